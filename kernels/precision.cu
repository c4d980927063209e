// Operands in fewer bits, and f32 operands as sums of three parts in BF16.
//
// All rounding is to nearest, ties to even, and written out in integer arithmetic where the
// instruction for it is younger than the oldest architecture.

typedef unsigned long long u64;

struct Tf32 {
    typedef float Stored;
    // 10 bits of fraction.
    static __device__ Stored from(float v) {
        unsigned bits = __float_as_uint(v);
        // A NaN would become infinity or, carried over into the sign, zero.
        bits = isnan(v) ? 0x7fffffffu : bits + 0xfffu + (bits >> 13 & 1u);
        return __uint_as_float(bits & ~0x1fffu);
    }
};

struct F16 {
    typedef unsigned short Stored;
    // 10 bits of fraction, a smaller exponent.
    static __device__ Stored from(float v) {
        Stored s;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(s) : "f"(v));
        return s;
    }
};

struct Bf16 {
    typedef unsigned short Stored;
    // 7 bits of fraction: the upper half of an f32.
    static __device__ Stored from(float v) {
        unsigned bits = __float_as_uint(v);
        bits = isnan(v) ? 0x7fffffffu : bits + 0x7fffu + (bits >> 16 & 1u);
        return bits >> 16;
    }
    static __device__ Stored truncated(float v) { return __float_as_uint(v) >> 16; }
    static __device__ float value(Stored s) { return __uint_as_float((unsigned)s << 16); }
};

struct E4m3 {
    typedef unsigned char Stored;
    // 3 bits of fraction, exponents from -6 to 8. Values in [-1, 1] are scaled to [-256, 256],
    // so that few of them are subnormal and none overflows. There is no infinity: whatever exceeds
    // the largest value becomes that, 448, as in the conversions of NVIDIA's libraries.
    static __device__ Stored from(float v) {
        float scaled = v * 256.0f, size = fabsf(scaled);
        unsigned sign = __float_as_uint(v) >> 24 & 0x80u;
        if (isnan(v)) return sign | 0x7fu;
        // Subnormal: steps of 2^-9. The eighth step is the smallest normal number's code.
        if (size < 0.015625f) return sign | (unsigned)rintf(size * 512.0f);
        unsigned bits = __float_as_uint(size);
        bits += 0x7ffffu + (bits >> 20 & 1u);
        return sign | min((bits >> 20) - (120u << 3), 0x7eu);
    }
};

// Converts each element of a row-major matrix, one thread per element of row blockIdx.y; writes the
// result transposed where asked to.
template <class F>
__device__ void convert(const float *x, typename F::Stored *y, u64 rows, u64 cols,
                        u64 transposed) {
    u64 row = blockIdx.y, col = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    y[transposed ? col * rows + row : row * cols + col] = F::from(x[row * cols + col]);
}

#define CONVERSION(NAME, F)                                                                        \
    extern "C" __global__ void NAME(const float *x, F::Stored *y, u64 rows, u64 cols,              \
                                    u64 transposed) {                                              \
        convert<F>(x, y, rows, cols, transposed);                                                  \
    }
CONVERSION(to_tf32, Tf32)
CONVERSION(to_f16, F16)
CONVERSION(to_bf16, Bf16)
CONVERSION(to_e4m3, E4m3)

template <class T, unsigned VEC>
struct alignas(VEC * sizeof(T)) Pack {
    T v[VEC];
};

// x = part 0 + part 1 + part 2, each the rounded rest of x minus the parts before it. A number that
// would round up to infinity is truncated instead; of infinity only part 0 is not zero. Element (row,
// col) of part i goes to y[first + i * step + row * pitch + col]. A thread takes VEC neighbours of row
// blockIdx.y: 4 if rows are aligned to that, else 1. Addresses count in packs: with a pointer cast only
// at the store, the compiler made one store per element for Hopper and older.
template <unsigned VEC>
__device__ void split(const float *__restrict__ x, Bf16::Stored *__restrict__ y, u64 cols,
                      u64 pitch, u64 first, long long step) {
    typedef Bf16::Stored Stored;
    u64 row = blockIdx.y, col = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * VEC;
    if (col >= cols) return;
    Pack<float, VEC> rest = *(const Pack<float, VEC> *)(x + row * cols + col);
    Pack<Stored, VEC> *to = (Pack<Stored, VEC> *)y + (first + row * pitch + col) / VEC;
#pragma unroll
    for (unsigned i = 0; i < 3; ++i) {
        Pack<Stored, VEC> part;
#pragma unroll
        for (unsigned j = 0; j < VEC; ++j) {
            part.v[j] = Bf16::from(rest.v[j]);
            if (isinf(Bf16::value(part.v[j]))) {
                part.v[j] = Bf16::truncated(rest.v[j]);
                if (isinf(rest.v[j])) rest.v[j] = 0.0f;
            }
            // The rest of infinity is zero already.
            if (!isinf(Bf16::value(part.v[j]))) rest.v[j] -= Bf16::value(part.v[j]);
        }
        to[(long long)i * (step / (long long)VEC)] = part;
    }
}

extern "C" __global__ void split_bf16(const float *x, unsigned short *y, u64 cols, u64 pitch,
                                      u64 first, long long step) {
    split<4>(x, y, cols, pitch, first, step);
}
extern "C" __global__ void split_bf16_any(const float *x, unsigned short *y, u64 cols, u64 pitch,
                                          u64 first, long long step) {
    split<1>(x, y, cols, pitch, first, step);
}
