// The small steps between the products of a neural network, on row-major matrices whose rows are
// a multiple of four long. All arithmetic is in f32. A "four" is four neighbouring values.

// y += bias, the same for each row. A row has `fours` fours, the matrix `count`.
template <class T>
__device__ void add_bias(T *y, const T *bias, unsigned fours, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    store(y, i, plus(load(y, i), load(bias, i % fours)));
}

#define ADD_BIAS(T)                                                                                \
    extern "C" __global__ void add_bias_##T(T *y, const T *bias, unsigned fours, unsigned count) { \
        add_bias(y, bias, fours, count);                                                           \
    }
IN_BOTH(ADD_BIAS)

// y = max(y, 0).
template <class T>
__device__ void relu(T *y, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float4 v = load(y, i);
    store(y, i, {positive(v.x), positive(v.y), positive(v.z), positive(v.w)});
}

#define RELU(T) extern "C" __global__ void relu_##T(T *y, unsigned count) { relu(y, count); }
IN_BOTH(RELU)

// The derivative of ReLU: the gradient passes where the output `y` is above zero.
__device__ __forceinline__ float4 where_positive(float4 gradient, float4 y) {
    return {y.x > 0.0f ? gradient.x : 0.0f, y.y > 0.0f ? gradient.y : 0.0f,
            y.z > 0.0f ? gradient.z : 0.0f, y.w > 0.0f ? gradient.w : 0.0f};
}

extern "C" __global__ void relu_backward_f32(float *gradient, const float *y, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) store(gradient, i, where_positive(load(gradient, i), load(y, i)));
}

// The sum of each column over up to 256 rows, 16 columns per block: a thread adds up four columns
// of every 64th row, and then the block the sums of its threads, in a fixed order. For more rows
// there are several rows of blocks, each of which writes a row of `sums`; these are then summed
// likewise. With MASKED, x is first multiplied with the derivative of ReLU and written back. A
// thread loads from all its rows before it stores to any, since the compiler cannot know that they
// are distinct.
constexpr unsigned SUM_THREADS = 256, SUM_FOURS = 4, SUM_ROWS = SUM_THREADS / SUM_FOURS;
constexpr unsigned SUM_AT_ONCE = 4;

template <bool MASKED, class X, class Y>
__device__ void sum_rows(X *x, const Y *y, float *sums, unsigned rows, unsigned fours) {
    unsigned column = threadIdx.x % SUM_FOURS;
    unsigned row = blockIdx.y * SUM_AT_ONCE * SUM_ROWS + threadIdx.x / SUM_FOURS;
    unsigned at = blockIdx.x * SUM_FOURS + column;
    const float4 nothing = {0.0f, 0.0f, 0.0f, 0.0f};
    float4 sum = nothing, v[SUM_AT_ONCE], mask[SUM_AT_ONCE];
#pragma unroll
    for (unsigned k = 0; k < SUM_AT_ONCE; ++k) {
        unsigned i = (row + k * SUM_ROWS) * fours + at;
        bool there = row + k * SUM_ROWS < rows;
        v[k] = there ? load(x, i) : nothing;
        if constexpr (MASKED) mask[k] = there ? load(y, i) : nothing;
    }
#pragma unroll
    for (unsigned k = 0; k < SUM_AT_ONCE; ++k) {
        if constexpr (MASKED) {
            v[k] = where_positive(v[k], mask[k]);
            if (row + k * SUM_ROWS < rows) store(x, (row + k * SUM_ROWS) * fours + at, v[k]);
        }
        sum = {sum.x + v[k].x, sum.y + v[k].y, sum.z + v[k].z, sum.w + v[k].w};
    }
    __shared__ float4 partial[SUM_THREADS];
    partial[threadIdx.x] = sum;
    for (unsigned half = SUM_THREADS / 2; half >= SUM_FOURS; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            float4 a = partial[threadIdx.x], b = partial[threadIdx.x + half];
            partial[threadIdx.x] = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
        }
    }
    // Needs no barrier: each of these threads reads its own writes.
    if (threadIdx.x < SUM_FOURS) store(sums, blockIdx.y * fours + at, partial[threadIdx.x]);
}

#define SUMS_OF(T)                                                                                \
    extern "C" __global__ void __launch_bounds__(SUM_THREADS)                                      \
        sum_rows_##T(const T *x, float *sums, unsigned rows, unsigned fours) {                     \
        sum_rows<false>(x, x, sums, rows, fours);                                                  \
    }
IN_BOTH(SUMS_OF)
// Without the bound of five blocks the compiler spills two registers to fit a sixth.
extern "C" __global__ void __launch_bounds__(SUM_THREADS, 5)
relu_backward_sums_f32(float *gradient, const float *y, float *sums, unsigned rows,
                       unsigned fours) {
    sum_rows<true>(gradient, y, sums, rows, fours);
}
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
relu_backward_sums_bf16(bf16 *gradient, const bf16 *y, float *sums, unsigned rows,
                        unsigned fours) {
    sum_rows<true>(gradient, y, sums, rows, fours);
}
