// y = sin(sin(sin(sin x))) in float32: one pass, and the four passes fused in three ways.
//
// The arithmetic of `sine_pass` and `sine_fused` is that of
// crates/arithmetic/src/sine.rs, operation for operation, where the method and the
// constants are explained and the error is tested over all of float32. Every multiply-add
// is written out, so that the compiler has nothing to contract.

constexpr unsigned THREADS = 128;
constexpr float LARGE = 65536.0f;
constexpr float PI_0 = 3.1415927f, PI_1 = -8.742278e-8f, PI_2 = -3.430249e-15f;
constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23

// sin x = x + x^3 P(x^2) for |x| <= pi/2, and with one coefficient less for |x| <= sin 1.
constexpr float HALF_PI_0 = -0.16666657f, HALF_PI_1 = 0.008333054f,
                HALF_PI_2 = -0.00019809735f, HALF_PI_3 = 2.6061723e-6f;
constexpr float SIN_1_0 = -0.16666648f, SIN_1_1 = 0.008331754f, SIN_1_2 = -0.00019463318f;

__device__ __forceinline__ float sine_half_pi(float x) {
    const float square = __fmul_rn(x, x);
    float p = __fmaf_rn(HALF_PI_3, square, HALF_PI_2);
    p = __fmaf_rn(p, square, HALF_PI_1);
    p = __fmaf_rn(p, square, HALF_PI_0);
    return __fmaf_rn(__fmul_rn(x, square), p, x);
}

__device__ __forceinline__ float sine_sin_1(float x) {
    const float square = __fmul_rn(x, x);
    float p = __fmaf_rn(SIN_1_2, square, SIN_1_1);
    p = __fmaf_rn(p, square, SIN_1_0);
    return __fmaf_rn(__fmul_rn(x, square), p, x);
}

// |x| <= LARGE, and NaN.
__device__ __forceinline__ float sine_moderate(float x) {
    const float shifted = __fmaf_rn(x, 0.31830987f, ROUND);
    const float k = __fsub_rn(shifted, ROUND);
    float r = __fmaf_rn(k, -PI_0, x);
    r = __fmaf_rn(k, -PI_1, r);
    r = __fmaf_rn(k, -PI_2, r);
    // Odd k changes the sign: a shift and an addition that are one instruction.
    return sine_half_pi(__uint_as_float(__float_as_uint(r) + (__float_as_uint(shifted) << 31)));
}

// The binary digits of 1/pi, after 32 zeros.
__constant__ unsigned INVERSE_PI[8] = {0x00000000, 0x517cc1b7, 0x27220a94, 0xfe13abe8,
                                       0xfa9a6ee0, 0x6db14acc, 0x9e21c820, 0xff28b1d5};

// For |x| > 1 and infinities, and used above LARGE: the slow path, kept out of line and free of
// local memory.
__device__ __noinline__ float sine_large(float x) {
    const unsigned bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) >= 0x7f800000u) return __uint_as_float(0x7fffffffu);
    const unsigned long long mantissa = (bits & 0x007fffffu) | 0x00800000u;
    const unsigned offset = 31 + (bits >> 23 & 0xffu) - 150;
    const unsigned* word = INVERSE_PI + offset / 32;
    const unsigned shift = offset % 32;
    const unsigned digits_0 = __funnelshift_l(word[1], word[0], shift);
    const unsigned digits_1 = __funnelshift_l(word[2], word[1], shift);
    const unsigned digits_2 = __funnelshift_l(word[3], word[2], shift);
    const unsigned long long high = static_cast<unsigned long long>(digits_0) << 32 | digits_1;
    const unsigned long long turns = mantissa * high + (mantissa * digits_2 >> 32);
    const unsigned odd = static_cast<unsigned>((turns + (1ull << 62)) >> 63);
    const long long fraction = static_cast<long long>(turns << 1);
    const float r = static_cast<float>(static_cast<double>(fraction) *
                                       (3.141592653589793 / 18446744073709551616.0));
    return sine_half_pi(
        __uint_as_float(__float_as_uint(r) ^ odd << 31 ^ (bits & 0x80000000u)));
}

__device__ __forceinline__ float sine(float x) {
    return fabsf(x) > LARGE ? sine_large(x) : sine_moderate(x);
}

// The operation on an element. `apply` also takes four at once, so that one branch decides for
// all of them whether the slow path is needed.
struct OnePass {
    static __device__ __forceinline__ float rest(float first) { return first; }
};
struct FourPasses {
    static __device__ __forceinline__ float rest(float first) {
        return sine_sin_1(sine_sin_1(sine_half_pi(first)));
    }
};

template <typename Passes>
struct Accurate {
    static __device__ __forceinline__ float apply(float x) { return Passes::rest(sine(x)); }
    static __device__ __forceinline__ float4 apply(float4 v) {
        float4 first = {sine_moderate(v.x), sine_moderate(v.y), sine_moderate(v.z),
                        sine_moderate(v.w)};
        // Infinities are above LARGE too; fmaxf drops NaN, which sine_moderate handles.
        const float largest =
            fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
        if (largest > LARGE) {
            if (fabsf(v.x) > LARGE) first.x = sine_large(v.x);
            if (fabsf(v.y) > LARGE) first.y = sine_large(v.y);
            if (fabsf(v.z) > LARGE) first.z = sine_large(v.z);
            if (fabsf(v.w) > LARGE) first.w = sine_large(v.w);
        }
        return {Passes::rest(first.x), Passes::rest(first.y), Passes::rest(first.z),
                Passes::rest(first.w)};
    }
};

// CUDA's own sine.
struct FourSinf {
    static __device__ __forceinline__ float apply(float x) { return sinf(sinf(sinf(sinf(x)))); }
    static __device__ __forceinline__ float4 apply(float4 v) {
        return {apply(v.x), apply(v.y), apply(v.z), apply(v.w)};
    }
};

// A block takes VECTORS * THREADS float4. All loads of a thread are issued before the first
// is used, to keep the memory busy. Where n is not a multiple of the tile, the last tile goes
// element by element. x and y are aligned to 16 bytes and may be the same. Blocks start about in
// the order of their index, so BACKWARDS begins with the last elements.
template <typename Operation, unsigned VECTORS, bool BACKWARDS>
__device__ __forceinline__ void map(const float* x, float* y, unsigned long long n) {
    constexpr unsigned TILE = 4 * VECTORS * THREADS;
    const unsigned tile = BACKWARDS ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const unsigned long long start = static_cast<unsigned long long>(tile) * TILE;
    if (n - start >= TILE) {
        const float4* source = reinterpret_cast<const float4*>(x + start) + threadIdx.x;
        float4* target = reinterpret_cast<float4*>(y + start) + threadIdx.x;
        float4 value[VECTORS];
#pragma unroll
        for (unsigned i = 0; i < VECTORS; ++i) value[i] = source[i * THREADS];
#pragma unroll
        for (unsigned i = 0; i < VECTORS; ++i) target[i * THREADS] = Operation::apply(value[i]);
    } else {
        for (unsigned long long i = start + threadIdx.x; i < n; i += THREADS) {
            y[i] = Operation::apply(x[i]);
        }
    }
}

// One vector per thread where memory is the limit; two for the fused kernel, whose arithmetic
// has more latency to hide. `nested_sine/gpu.rs` has the same numbers for its grid.
#define KERNEL(name, operation, vectors, backwards)                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                        \
        name(const float* x, float* y, unsigned long long n) {                   \
        map<operation, vectors, backwards>(x, y, n);                             \
    }

KERNEL(sine_pass, Accurate<OnePass>, 1, false)
KERNEL(sine_pass_backwards, Accurate<OnePass>, 1, true)
KERNEL(sine_fused, Accurate<FourPasses>, 2, false)
KERNEL(sine_fused_sinf, FourSinf, 1, false)
