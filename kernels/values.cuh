// Common code of the kernels of neural networks: values in memory as f32 or as BF16, the upper half of
// an f32, four at a time (16 bytes and 8), copies to shared memory, and reductions over a warp.

typedef float f32;
typedef unsigned short bf16;

// Defines a kernel of values in f32 and one in BF16, by a macro of the type.
#define IN_BOTH(KERNEL) KERNEL(f32) KERNEL(bf16)

__device__ __forceinline__ float4 load(const float *from, unsigned four) {
    return ((const float4 *)from)[four];
}
__device__ __forceinline__ float4 load(const bf16 *from, unsigned four) {
    ushort4 v = ((const ushort4 *)from)[four];
    return {__uint_as_float((unsigned)v.x << 16), __uint_as_float((unsigned)v.y << 16),
            __uint_as_float((unsigned)v.z << 16), __uint_as_float((unsigned)v.w << 16)};
}
__device__ __forceinline__ void store(float *to, unsigned four, float4 v) {
    ((float4 *)to)[four] = v;
}
// Two values in one word, the first in its lower half, rounded to nearest, ties to even. Before
// Ampere there is no instruction for it, and rounding by an addition alone would carry a NaN into
// the sign and make it zero. It must stay a NaN: memory is filled with NaN before a verification,
// so that whatever is computed from an element that was never written shows.
__device__ __forceinline__ unsigned bf16_pair(float low, float high) {
#if __CUDA_ARCH__ >= 800
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    auto rounded = [](float v) {
        unsigned bits = __float_as_uint(v);
        return (isnan(v) ? 0x7fffffffu : bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    };
    return rounded(low) | rounded(high) << 16;
#endif
}
__device__ __forceinline__ void store(bf16 *to, unsigned four, float4 v) {
    ((uint2 *)to)[four] = {bf16_pair(v.x, v.y), bf16_pair(v.z, v.w)};
}

__device__ __forceinline__ float4 plus(float4 a, float4 b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
// max(v, 0). A NaN stays NaN, unlike with fmaxf.
__device__ __forceinline__ float positive(float v) { return v <= 0.0f ? 0.0f : v; }

// A kernel that stores a value for each of `count` fours, by the four's index i.
#define ON_FOURS(NAME, TO, VALUE, ...)                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS) NAME(__VA_ARGS__, unsigned count) {      \
        unsigned i = blockIdx.x * THREADS + threadIdx.x;                                           \
        if (i < count) store(TO, i, VALUE);                                                        \
    }

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lanes));
    return v;
}
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (unsigned lanes = 16; lanes > 0; lanes /= 2) v += __shfl_xor_sync(0xffffffffu, v, lanes);
    return v;
}

// Copies 16 bytes to an address of shared memory, or zeros where they are not `inside`, without
// passing through registers and without waiting. From compute capability 8.0 on.
__device__ __forceinline__ void copy_async(unsigned to, const float *from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(inside ? 16 : 0)
                 : "memory");
}
// Makes one group of the copies since the last call.
__device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most LEFT groups are in flight.
template <unsigned LEFT>
__device__ __forceinline__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
