// C = A * B for square, row-major f32 matrices of n x n elements, any n >= 1: tiles in registers, fed
// by vector loads from double-buffered shared memory.

typedef unsigned long long u64;

// A block computes BM x BN elements, a thread TM x TN of them in registers, BK terms of the
// sum at a time. The 32 lanes of a warp lie 4 x 8, so its tile is 4 TM x 8 TN. A thread's
// elements are quads of 4 x 4, spread over the warp's tile so that neighbouring lanes read
// neighbouring 16 bytes of shared memory. VEC is how many floats one global access moves: 4
// where n is a multiple of 4, so that each row is aligned to 16 bytes, else 1.
template <unsigned BM, unsigned BN, unsigned BK, unsigned TM, unsigned TN, unsigned VEC,
          unsigned THREADS>
struct Tiled {
    static constexpr unsigned WARPS_N = BN / (8 * TN);
    static constexpr unsigned A_LOADS = BM * BK / (VEC * THREADS);
    static constexpr unsigned B_LOADS = BK * BN / (VEC * THREADS);
    static constexpr unsigned A_PER_ROW = BK / VEC, A_STEP = THREADS / A_PER_ROW;
    static constexpr unsigned B_PER_ROW = BN / VEC, B_STEP = THREADS / B_PER_ROW;
    // A is stored transposed. The four padding columns keep the transposing stores of a warp
    // on different banks (BK = 8), and keep rows aligned to 16 bytes.
    static constexpr unsigned LDA = BM + 4;

    static_assert(BM % (4 * TM) == 0 && BN % (8 * TN) == 0 && TM % 4 == 0 && TN % 4 == 0, "tile");
    static_assert(BM / (4 * TM) * WARPS_N * 32 == THREADS, "warps");
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN, "loads");
    static_assert(THREADS % A_PER_ROW == 0 && THREADS % B_PER_ROW == 0, "rows");

    static __device__ __forceinline__ void load(float (&to)[VEC], const float *from, bool inside) {
        if constexpr (VEC == 4) {
            float4 v = inside ? __ldg((const float4 *)from) : make_float4(0.f, 0.f, 0.f, 0.f);
            to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
        } else {
            to[0] = inside ? __ldg(from) : 0.0f;
        }
    }

    static __device__ __forceinline__ void run(const float *__restrict__ a,
                                               const float *__restrict__ b, float *__restrict__ c,
                                               u64 n) {
        __shared__ __align__(16) float tile_a[2][BK][LDA];
        __shared__ __align__(16) float tile_b[2][BK][BN];

        const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
        const u64 row0 = (u64)blockIdx.y * BM, col0 = (u64)blockIdx.x * BN;

        // This thread's share of loading: fixed rows and columns of the two tiles.
        const unsigned a_row = t / A_PER_ROW, a_k = t % A_PER_ROW * VEC;
        const unsigned b_k = t / B_PER_ROW, b_col = t % B_PER_ROW * VEC;
        const float *a_from = a + (row0 + a_row) * n + a_k;
        const float *b_from = b + b_k * n + col0 + b_col;
        const bool b_inside = col0 + b_col < n;
        float a_next[A_LOADS][VEC], b_next[B_LOADS][VEC];

        auto fetch = [&](u64 k0) {
#pragma unroll
            for (unsigned i = 0; i < A_LOADS; ++i)
                load(a_next[i], a_from + i * A_STEP * n,
                     row0 + a_row + i * A_STEP < n && k0 + a_k < n);
#pragma unroll
            for (unsigned i = 0; i < B_LOADS; ++i)
                load(b_next[i], b_from + i * B_STEP * n, b_inside && k0 + b_k + i * B_STEP < n);
            a_from += BK;
            b_from += BK * n;
        };
        auto store = [&](unsigned buffer) {
#pragma unroll
            for (unsigned i = 0; i < A_LOADS; ++i)
#pragma unroll
                for (unsigned v = 0; v < VEC; ++v)
                    tile_a[buffer][a_k + v][a_row + i * A_STEP] = a_next[i][v];
#pragma unroll
            for (unsigned i = 0; i < B_LOADS; ++i) {
                float *to = &tile_b[buffer][b_k + i * B_STEP][b_col];
                if constexpr (VEC == 4)
                    *(float4 *)to =
                        make_float4(b_next[i][0], b_next[i][1], b_next[i][2], b_next[i][3]);
                else
                    *to = b_next[i][0];
            }
        };

        // First row and column of this thread's quads within the block's tile.
        const unsigned row = warp / WARPS_N * (4 * TM) + lane / 8 * 4;
        const unsigned col = warp % WARPS_N * (8 * TN) + lane % 8 * 4;
        float sum[TM][TN] = {};

        auto multiply = [&](unsigned buffer) {
#pragma unroll
            for (unsigned k = 0; k < BK; ++k) {
                float x[TM], y[TN];
#pragma unroll
                for (unsigned q = 0; q < TM; q += 4) {
                    float4 v = *(const float4 *)&tile_a[buffer][k][row + q * 4];
                    x[q] = v.x, x[q + 1] = v.y, x[q + 2] = v.z, x[q + 3] = v.w;
                }
#pragma unroll
                for (unsigned q = 0; q < TN; q += 4) {
                    float4 v = *(const float4 *)&tile_b[buffer][k][col + q * 8];
                    y[q] = v.x, y[q + 1] = v.y, y[q + 2] = v.z, y[q + 3] = v.w;
                }
#pragma unroll
                for (unsigned i = 0; i < TM; ++i)
#pragma unroll
                    for (unsigned j = 0; j < TN; ++j) sum[i][j] += x[i] * y[j];
            }
        };

        // While one buffer is multiplied, the next tile is on its way from global memory to
        // registers; one barrier per tile is enough, since a buffer is rewritten only after
        // the barrier that follows its last use.
        fetch(0);
        store(0);
        __syncthreads();
        unsigned buffer = 0;
        for (u64 k0 = BK; k0 < n; k0 += BK) {
            fetch(k0);
            multiply(buffer);
            buffer ^= 1;
            store(buffer);
            __syncthreads();
        }
        multiply(buffer);

#pragma unroll
        for (unsigned i = 0; i < TM; ++i) {
            const u64 r = row0 + row + i / 4 * 16 + i % 4;
            if (r >= n) continue;
#pragma unroll
            for (unsigned j = 0; j < TN; j += 4) {
                const u64 s = col0 + col + j * 8;
                if constexpr (VEC == 4) {
                    if (s < n)
                        *(float4 *)(c + r * n + s) =
                            make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
                } else {
#pragma unroll
                    for (unsigned v = 0; v < 4; ++v)
                        if (s + v < n) c[r * n + s + v] = sum[i][j + v];
                }
            }
        }
    }
};

// `matmul_tiled_<side>` needs n to be a multiple of 4, `matmul_tiled_<side>_any` does not.
// BLOCKS is the least number of blocks that a multiprocessor must hold at once, which bounds the
// registers per thread.
#define TILED(SIDE, TM, TN, THREADS, BLOCKS, BK)                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                  \
        matmul_tiled_##SIDE(const float *__restrict__ a, const float *__restrict__ b,              \
                            float *__restrict__ c, u64 n) {                                        \
        Tiled<SIDE, SIDE, BK, TM, TN, 4, THREADS>::run(a, b, c, n);                                \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                  \
        matmul_tiled_##SIDE##_any(const float *__restrict__ a, const float *__restrict__ b,        \
                                  float *__restrict__ c, u64 n) {                                  \
        Tiled<SIDE, SIDE, BK, TM, TN, 1, THREADS>::run(a, b, c, n);                                \
    }

TILED(128, 8, 8, 256, 2, 8)
TILED(64, 8, 4, 128, 4, 16)
TILED(32, 4, 4, 64, 8, 16)

// Copies both operands of a product to the device from host memory that is mapped into the device's
// address space: 16 bytes per thread, and the last few floats of each operand one by one. One range
// of indices covers both operands, so that all loads are in flight over the link at once. Addresses
// are aligned to 16 bytes.
extern "C" __global__ void __launch_bounds__(256)
    matmul_fetch(float *a, const float *from_a, u64 a_len, float *b, const float *from_b,
                 u64 b_len) {
    const u64 a_vectors = a_len / 4, b_vectors = b_len / 4, vectors = a_vectors + b_vectors;
    const u64 a_left = a_len % 4, all = vectors + a_left + b_len % 4;
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        if (i < vectors) {
            const bool first = i < a_vectors;
            const u64 at = first ? i : i - a_vectors;
            ((float4 *)(first ? a : b))[at] = ((const float4 *)(first ? from_a : from_b))[at];
        } else {
            const u64 left = i - vectors;
            const bool first = left < a_left;
            const u64 at = first ? 4 * a_vectors + left : 4 * b_vectors + left - a_left;
            (first ? a : b)[at] = (first ? from_a : from_b)[at];
        }
    }
}
