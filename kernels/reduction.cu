// The sum of n floats, x aligned to 16 bytes. The threads take the vectors of four in turn. Each thread
// loads VECTORS of its vectors before it adds the first, so that many loads are in flight. It adds them
// in pairs to SUMS sums; the sums of a thread, the threads of a block and the blocks are added in
// pairs. The order is the same in every run.

constexpr unsigned THREADS = 256;
constexpr unsigned VECTORS = 8;
constexpr unsigned SUMS = VECTORS / 2;
// Blocks per multiprocessor, as in `reduction/gpu.rs`.
constexpr unsigned BLOCKS = 4;
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

__device__ __forceinline__ void add(float4 &sum, float4 x, float4 y) {
    sum.x += x.x + y.x;
    sum.y += x.y + y.y;
    sum.z += x.z + y.z;
    sum.w += x.w + y.w;
}

// The sum of this block's share of x, in thread 0. The loads go past the L1 cache, as those that measure
// the bandwidth do.
__device__ __forceinline__ float of_share(const float *x, unsigned long long n) {
    const float4 *const vectors = reinterpret_cast<const float4 *>(x);
    const unsigned long long count = n / 4;
    const unsigned long long step = 1ull * gridDim.x * THREADS;
    unsigned long long at = 1ull * blockIdx.x * THREADS + threadIdx.x;
    float4 sums[SUMS] = {};
    float4 loaded[VECTORS];
    // Unrolled further, it would take more registers than the launch bounds leave.
#pragma unroll 1
    for (; at + (VECTORS - 1) * step < count; at += VECTORS * step) {
#pragma unroll
        for (unsigned i = 0; i < VECTORS; ++i) loaded[i] = __ldcg(vectors + at + i * step);
#pragma unroll
        for (unsigned i = 0; i < SUMS; ++i) add(sums[i], loaded[i], loaded[i + SUMS]);
    }
    // The remaining vectors, also loaded before they are added.
#pragma unroll
    for (unsigned i = 0; i < VECTORS; ++i) {
        loaded[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (at + i * step < count) loaded[i] = __ldcg(vectors + at + i * step);
    }
#pragma unroll
    for (unsigned i = 0; i < SUMS; ++i) add(sums[i], loaded[i], loaded[i + SUMS]);
    float sum = 0.0f;
    // The up to three terms behind the last vector.
    if (blockIdx.x == 0 && threadIdx.x < n % 4) sum = x[4 * count + threadIdx.x];
#pragma unroll
    for (unsigned i = 0; i < SUMS; ++i) sum += (sums[i].x + sums[i].y) + (sums[i].z + sums[i].w);
    return of_block(sum);
}

// The sum of the parts, in thread 0. Past the L1 cache: other blocks of this kernel may have written
// them.
__device__ __forceinline__ float of_parts(const float *parts, unsigned count) {
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < count; i += THREADS) sum += __ldcg(parts + i);
    return of_block(sum);
}

// The first of two kernels: writes the part of each block, or adds to the part that is there.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sum_shares(const float *x, unsigned long long n, float *parts, unsigned adds) {
    const float sum = of_share(x, n);
    if (threadIdx.x == 0) parts[blockIdx.x] = adds != 0 ? parts[blockIdx.x] + sum : sum;
}

// The second kernel, of one block.
extern "C" __global__ void __launch_bounds__(THREADS)
    sum_parts(const float *parts, unsigned count, float *y) {
    const float sum = of_parts(parts, count);
    if (threadIdx.x == 0) *y = sum;
}

// One kernel: blocks count themselves, and the last one adds the parts. The counter begins at 0 and is
// 0 again at the end.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
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
