// The sum of n floats, x aligned to 16 bytes. A thread adds every so many-th vector of four to one of
// VECTORS sums, so that as many loads are in flight; the sums of a thread, the threads of a block and
// the blocks are added in pairs. The order is the same in every run.

constexpr unsigned THREADS = 256;
constexpr unsigned VECTORS = 4;
constexpr unsigned LANES = 0xffffffffu;

// The sum of the values of all threads, in thread 0. A second call needs a barrier before it.
__device__ __forceinline__ float of_block(float value) {
    __shared__ float of_warp[THREADS / 32];
#pragma unroll
    for (unsigned lanes = 16; lanes > 0; lanes /= 2) value += __shfl_down_sync(LANES, value, lanes);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < THREADS / 32 ? of_warp[threadIdx.x] : 0.0f;
#pragma unroll
        for (unsigned lanes = THREADS / 64; lanes > 0; lanes /= 2)
            value += __shfl_down_sync(LANES, value, lanes);
    }
    return value;
}

// The sum of this block's share of x, in thread 0.
__device__ __forceinline__ float of_share(const float *x, unsigned long long n) {
    const float4 *const vectors = reinterpret_cast<const float4 *>(x);
    const unsigned long long count = n / 4;
    const unsigned long long stride = 1ull * gridDim.x * THREADS * VECTORS;
    float4 sums[VECTORS] = {};
    for (unsigned long long first = 1ull * blockIdx.x * THREADS * VECTORS + threadIdx.x;
         first < count; first += stride) {
        float4 loaded[VECTORS];
#pragma unroll
        for (unsigned i = 0; i < VECTORS; ++i) {
            const unsigned long long at = first + i * THREADS;
            loaded[i] = at < count ? vectors[at] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
#pragma unroll
        for (unsigned i = 0; i < VECTORS; ++i) {
            sums[i].x += loaded[i].x;
            sums[i].y += loaded[i].y;
            sums[i].z += loaded[i].z;
            sums[i].w += loaded[i].w;
        }
    }
    float sum = 0.0f;
    // The up to three terms behind the last vector.
    if (blockIdx.x == 0 && threadIdx.x < n % 4) sum = x[4 * count + threadIdx.x];
#pragma unroll
    for (unsigned i = 0; i < VECTORS; ++i)
        sum += (sums[i].x + sums[i].y) + (sums[i].z + sums[i].w);
    return of_block(sum);
}

// The sum of the parts, in thread 0. Past the L1 cache: other blocks of this kernel may have written
// them.
__device__ __forceinline__ float of_parts(const float *parts, unsigned count) {
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < count; i += THREADS) sum += __ldcg(parts + i);
    return of_block(sum);
}

// The first of two kernels: a part for each block, or what it adds to the part that is there.
extern "C" __global__ void __launch_bounds__(THREADS)
    sum_shares(const float *x, unsigned long long n, float *parts, unsigned adds) {
    const float sum = of_share(x, n);
    if (threadIdx.x == 0) parts[blockIdx.x] = adds != 0 ? parts[blockIdx.x] + sum : sum;
}

// The second, of one block.
extern "C" __global__ void __launch_bounds__(THREADS)
    sum_parts(const float *parts, unsigned count, float *y) {
    const float sum = of_parts(parts, count);
    if (threadIdx.x == 0) *y = sum;
}

// One kernel: blocks count themselves, and the last one adds up the parts. The counter begins at 0
// and is 0 again at the end.
extern "C" __global__ void __launch_bounds__(THREADS)
    sum_last_block(const float *x, unsigned long long n, float *parts, unsigned *counter, float *y) {
    __shared__ bool is_last;
    const float share = of_share(x, n);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = share;
        __threadfence();
        is_last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    const float sum = of_parts(parts, gridDim.x);
    if (threadIdx.x == 0) *y = sum;
}

// One kernel with a barrier of the whole grid, which a cooperative launch has on the device at once.
// Blocks add 1 to the counter, the first so much more that all together change its highest bit: it
// need not be reset.
extern "C" __global__ void __launch_bounds__(THREADS)
    sum_cooperative(const float *x, unsigned long long n, float *parts, unsigned *counter, float *y) {
    constexpr unsigned HIGHEST = 0x80000000u;
    const float share = of_share(x, n);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = share;
        __threadfence();
        const unsigned adds = blockIdx.x == 0 ? HIGHEST - (gridDim.x - 1) : 1;
        const unsigned before = atomicAdd(counter, adds);
        while (((before ^ *reinterpret_cast<volatile unsigned *>(counter)) & HIGHEST) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
    if (blockIdx.x != 0) return;
    const float sum = of_parts(parts, gridDim.x);
    if (threadIdx.x == 0) *y = sum;
}
