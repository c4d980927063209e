// y = sin(sin(sin(sin x))) in float64, the four passes fused.
//
// The arithmetic is that of crates/arithmetic/src/sine_f64.rs, operation for operation, except
// above LARGE, where it is CUDA's own sine.

constexpr unsigned THREADS = 128;
constexpr unsigned VECTORS = 2;
constexpr double LARGE = 65536.0;
constexpr double PI_0 = 3.141592653589793, PI_1 = 1.2246467991473532e-16, PI_2 = -2.9947698097183397e-33;
constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52

__device__ __forceinline__ double sine_half_pi(double x) {
    const double square = __dmul_rn(x, x);
    double p = __fma_rn(2.721462832299599e-15, square, -7.643022721754522e-13);
    p = __fma_rn(p, square, 1.6058941100881238e-10);
    p = __fma_rn(p, square, -2.5052106905781365e-8);
    p = __fma_rn(p, square, 2.755731921157805e-6);
    p = __fma_rn(p, square, -0.00019841269841212498);
    p = __fma_rn(p, square, 0.008333333333333207);
    p = __fma_rn(p, square, -0.16666666666666666);
    return __fma_rn(__dmul_rn(x, square), p, x);
}

__device__ __forceinline__ double sine_sin_1(double x) {
    const double square = __dmul_rn(x, x);
    double p = __fma_rn(1.5872313688151102e-10, square, -2.5050318056930982e-8);
    p = __fma_rn(p, square, 2.7557310767237687e-6);
    p = __fma_rn(p, square, -0.00019841269821053382);
    p = __fma_rn(p, square, 0.008333333333311098);
    p = __fma_rn(p, square, -0.16666666666666585);
    return __fma_rn(__dmul_rn(x, square), p, x);
}

// |x| <= LARGE, and NaN.
__device__ __forceinline__ double sine_moderate(double x) {
    const double shifted = __fma_rn(x, 0.3183098861837907, ROUND);
    const double k = __dsub_rn(shifted, ROUND);
    double r = __fma_rn(k, -PI_0, x);
    r = __fma_rn(k, -PI_1, r);
    r = __fma_rn(k, -PI_2, r);
    return sine_half_pi(__longlong_as_double(__double_as_longlong(r) ^ __double_as_longlong(shifted) << 63));
}

// The slow path, kept out of line.
__device__ __noinline__ double sine_large(double x) { return sin(x); }

__device__ __forceinline__ double nested(double x) {
    const double first = fabs(x) > LARGE ? sine_large(x) : sine_moderate(x);
    return sine_sin_1(sine_sin_1(sine_half_pi(first)));
}

// A block takes VECTORS * THREADS double2, all loads of a thread before the first is used. Where n is
// not a multiple of the tile, the last tile goes element by element. x and y are aligned to 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS)
    sine_fused_f64(const double *x, double *y, unsigned long long n) {
    constexpr unsigned TILE = 2 * VECTORS * THREADS;
    const unsigned long long start = static_cast<unsigned long long>(blockIdx.x) * TILE;
    if (n - start >= TILE) {
        const double2 *source = reinterpret_cast<const double2 *>(x + start) + threadIdx.x;
        double2 *target = reinterpret_cast<double2 *>(y + start) + threadIdx.x;
        double2 value[VECTORS];
#pragma unroll
        for (unsigned i = 0; i < VECTORS; ++i) value[i] = source[i * THREADS];
#pragma unroll
        for (unsigned i = 0; i < VECTORS; ++i)
            target[i * THREADS] = make_double2(nested(value[i].x), nested(value[i].y));
    } else {
        for (unsigned long long i = start + threadIdx.x; i < n; i += THREADS) y[i] = nested(x[i]);
    }
}
