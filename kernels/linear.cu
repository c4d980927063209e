// A linear layer in f32: C = A W^T, plus a matrix, plus a bias for each column, with or without
// ReLU. All matrices are row-major: A is m x k, W is n x k, C and what is added are m x n. n and k
// are multiples of four and every address is aligned to 16 bytes, so that four values, a "four",
// move at once.
//
// A library has few tile sizes, and a layer of only a few large tiles leaves multiprocessors idle.
// Here the tile is chosen per shape, and the sum over k can be divided among the warps of a block
// (SLICES), which brings more warps to the same tile. The parts are added up in a fixed order.

// Terms of the sum in shared memory per stage: eight fours, 128 bytes per row.
constexpr unsigned DEPTH = 32, FOURS = DEPTH / 4, ROW_BYTES = 4 * DEPTH;

// Four values at an address of shared memory.
__device__ __forceinline__ float4 shared_four(unsigned address) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address));
    return v;
}

// A block computes BM x BN values, a thread TM x TN of them in registers. The lanes of a warp lie
// LM x (32 / LM). A thread's values are quads of 4 x 4, spread over the warp's tile so that
// neighbouring lanes have neighbouring quads.
//
// The tiles of A and W lie in shared memory as they do in global memory, the terms of a row side
// by side, so that they are copied without passing through registers; a thread reads four terms of
// a row at a time. Lanes read rows that are four apart, which would all lie in the same banks. So
// the fours of a row are permuted by its number: four q of row r lies at q ^ (r / 4 % 8).
template <unsigned BM, unsigned BN, unsigned TM, unsigned TN, unsigned SLICES, unsigned STAGES>
struct Linear {
    static constexpr unsigned LM = 4, LN = 32 / LM;
    static constexpr unsigned WARPS_M = BM / (LM * TM), WARPS_N = BN / (LN * TN);
    static constexpr unsigned THREADS = 32 * WARPS_M * WARPS_N * SLICES;
    // A thread copies the same four of every STEP-th row.
    static constexpr unsigned STEP = THREADS / FOURS;
    static constexpr unsigned FOURS_OF_SLICE = FOURS / SLICES;
    static constexpr unsigned BYTES_A = BM * ROW_BYTES, BYTES = (BM + BN) * ROW_BYTES;
    // Whether the registers suffice to load the next fours while these are multiplied.
    static constexpr bool AHEAD = FOURS_OF_SLICE > 1 && TM * TN + 8 * (TM + TN) <= 192;
    // Row length of the sums in shared memory: padded, so that rows that are four apart lie in
    // different banks.
    static constexpr unsigned PITCH = BN + 4, SUMS = BM * PITCH;
    // The fours of C that a thread stores.
    static constexpr unsigned STORES = BM * BN / 4 / THREADS;

    static_assert(BM % (LM * TM) == 0 && BN % (LN * TN) == 0 && TM % 4 == 0 && TN % 4 == 0, "tile");
    static_assert(STEP % 16 == 0 && BM % STEP == 0 && BN % STEP == 0, "copies");
    static_assert(FOURS % SLICES == 0, "slices");
    static_assert(BM * BN / 4 % THREADS == 0, "sums");

    // A lane's row and column in the warp. The lanes i and i ^ 1 have the same rows, i and i ^ 2
    // the same columns: of a load of 16 bytes per lane, shared memory serves half a warp at once if
    // pairs of its lanes load the same address, and otherwise a quarter.
    static __device__ __forceinline__ unsigned row_of(unsigned lane) {
        return lane / 2 % 2 + lane / 16 * 2;
    }
    static __device__ __forceinline__ unsigned column_of(unsigned lane) {
        return lane % 2 + lane / 4 % 4 * 2;
    }

    // Four terms of each of a thread's rows of A and of W.
    struct Terms {
        float4 x[TM], y[TN];

        // `a` and `w` are the addresses of the first row's first four in the slice. A thread's
        // quads are a multiple of 16 rows apart, which changes only the highest bit of the
        // permutation.
        __device__ __forceinline__ void read(unsigned a, unsigned w, unsigned four) {
#pragma unroll
            for (unsigned i = 0; i < TM; ++i) {
                const unsigned down = i / 4 * (4 * LM) + i % 4;
                x[i] = shared_four((a ^ (four ^ i / 4 * LM % 8) * 16) + down * ROW_BYTES);
            }
#pragma unroll
            for (unsigned j = 0; j < TN; ++j) {
                const unsigned down = j / 4 * (4 * LN) + j % 4;
                y[j] = shared_four((w ^ (four ^ j / 4 * LN % 8) * 16) + down * ROW_BYTES);
            }
        }

        __device__ __forceinline__ void multiply(float (&sum)[TM][TN]) const {
#pragma unroll
            for (unsigned j = 0; j < TN; ++j)
#pragma unroll
                for (unsigned i = 0; i < TM; ++i) sum[i][j] += x[i].x * y[j].x;
#pragma unroll
            for (unsigned j = 0; j < TN; ++j)
#pragma unroll
                for (unsigned i = 0; i < TM; ++i) sum[i][j] += x[i].y * y[j].y;
#pragma unroll
            for (unsigned j = 0; j < TN; ++j)
#pragma unroll
                for (unsigned i = 0; i < TM; ++i) sum[i][j] += x[i].z * y[j].z;
#pragma unroll
            for (unsigned j = 0; j < TN; ++j)
#pragma unroll
                for (unsigned i = 0; i < TM; ++i) sum[i][j] += x[i].w * y[j].w;
        }
    };

    static __device__ __forceinline__ void run(const float *__restrict__ a,
                                               const float *__restrict__ w,
                                               const float *__restrict__ bias,
                                               const float *__restrict__ added,
                                               float *__restrict__ c, unsigned m, unsigned n,
                                               unsigned k, unsigned relu) {
        extern __shared__ __align__(1024) char shared[];
        const unsigned base = (unsigned)__cvta_generic_to_shared(shared);
        const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32 % (WARPS_M * WARPS_N);
        const unsigned slice = t / 32 / (WARPS_M * WARPS_N);
        const unsigned row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

        const unsigned count = k / DEPTH;

        // This thread's share of copying.
        const unsigned copied_row = t / FOURS, copied_four = t % FOURS;
        const unsigned copied_to =
            base + copied_row * ROW_BYTES + (copied_four ^ copied_row / 4 % 8) * 16;
        const float *a_from = a + (size_t)(row0 + copied_row) * k + copied_four * 4;
        const float *w_from = w + (size_t)(col0 + copied_row) * k + copied_four * 4;
        auto copy = [&](unsigned stage) {
            const unsigned to = copied_to + stage;
#pragma unroll
            for (unsigned i = 0; i < BM / STEP; ++i)
                copy_async((to ^ i * STEP / 4 % 8 * 16) + i * STEP * ROW_BYTES,
                           a_from + (size_t)(i * STEP) * k, row0 + copied_row + i * STEP < m);
#pragma unroll
            for (unsigned i = 0; i < BN / STEP; ++i)
                copy_async((to ^ i * STEP / 4 % 8 * 16) + BYTES_A + i * STEP * ROW_BYTES,
                           w_from + (size_t)(i * STEP) * k, col0 + copied_row + i * STEP < n);
            a_from += DEPTH, w_from += DEPTH;
        };
        // A stage is named by the offset of its first byte.
        auto following = [](unsigned stage) {
            return stage + BYTES < STAGES * BYTES ? stage + BYTES : 0;
        };

        // First row and column of this thread's quads within the block's tile, and the addresses
        // of the first four terms of its slice in them.
        const unsigned row = warp / WARPS_N * (LM * TM) + row_of(lane) * 4;
        const unsigned col = warp % WARPS_N * (LN * TN) + column_of(lane) * 4;
        const unsigned four = slice * FOURS_OF_SLICE;
        unsigned of_a = base + row * ROW_BYTES + (four ^ row / 4 % 8) * 16;
        unsigned of_w = base + BYTES_A + col * ROW_BYTES + (four ^ col / 4 % 8) * 16;
        float sum[TM][TN] = {};
        if constexpr (AHEAD) {
            // Every stage is being copied or read. The last fours of a stage are in registers
            // before they are multiplied, so the barrier before that frees the stage.
#pragma unroll
            for (unsigned s = 0; s < STAGES; ++s) {
                if (s < count) copy(s * BYTES);
                end_group();
            }
            Terms terms[2];
            unsigned stage = 0;
            wait_for_groups<STAGES - 1>();
            __syncthreads();
            terms[0].read(of_a, of_w, 0);
            for (unsigned s = 0; s < count; ++s) {
#pragma unroll
                for (unsigned q = 0; q < FOURS_OF_SLICE; ++q) {
                    if (q + 1 < FOURS_OF_SLICE) {
                        terms[(q + 1) % 2].read(of_a + stage, of_w + stage, q + 1);
                    } else {
                        wait_for_groups<STAGES - 2>();
                        __syncthreads();
                        if (s + STAGES < count) copy(stage);
                        end_group();
                        stage = following(stage);
                        // After the last stage, the values read here are not used.
                        terms[0].read(of_a + stage, of_w + stage, 0);
                    }
                    terms[q % 2].multiply(sum);
                }
            }
        } else {
            // All stages but one are being copied while that one is multiplied. One barrier per
            // stage is enough: a stage is written again after the barrier that follows its use.
#pragma unroll
            for (unsigned s = 0; s < STAGES - 1; ++s) {
                if (s < count) copy(s * BYTES);
                end_group();
            }
            unsigned stage = 0, written = (STAGES - 1) * BYTES;
            for (unsigned s = 0; s < count; ++s) {
                wait_for_groups<STAGES - 2>();
                __syncthreads();
                if (s + STAGES - 1 < count) copy(written);
                end_group();
#pragma unroll
                for (unsigned q = 0; q < FOURS_OF_SLICE; ++q) {
                    Terms terms;
                    terms.read(of_a + stage, of_w + stage, q);
                    terms.multiply(sum);
                }
                stage = following(stage);
                written = following(written);
            }
        }

        auto store = [&](unsigned r, unsigned s, float4 v, float4 residual) {
            v = plus(v, residual);
            if (bias) v = plus(v, __ldg((const float4 *)(bias + s)));
            if (relu) v = {positive(v.x), positive(v.y), positive(v.z), positive(v.w)};
            *(float4 *)(c + (size_t)r * n + s) = v;
        };
        auto residual = [&](unsigned r, unsigned s) {
            const bool there = added && r < m && s < n;
            // Not __ldg: the compiler may move that ahead of the wait for the kernel that writes.
            return there ? __ldcg((const float4 *)(added + (size_t)r * n + s))
                         : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        };
        if constexpr (SLICES == 1) {
#pragma unroll
            for (unsigned i = 0; i < TM; ++i) {
                const unsigned r = row0 + row + i / 4 * (4 * LM) + i % 4;
#pragma unroll
                for (unsigned j = 0; j < TN; j += 4) {
                    const unsigned s = col0 + col + j * LN;
                    const float4 v = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
                    if (r < m && s < n) store(r, s, v, residual(r, s));
                }
            }
        } else {
            // The sums take the place of the tiles, once all warps have read those.
            float *sums = (float *)shared;
            __syncthreads();
#pragma unroll
            for (unsigned i = 0; i < TM; ++i)
#pragma unroll
                for (unsigned j = 0; j < TN; j += 4) {
                    const unsigned r = row + i / 4 * (4 * LM) + i % 4;
                    *(float4 *)(sums + slice * SUMS + r * PITCH + col + j * LN) =
                        make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
                }
            // Loaded ahead of the barriers, to arrive while they wait.
            float4 others[STORES];
#pragma unroll
            for (unsigned i = 0; i < STORES; ++i) {
                const unsigned four = t + i * THREADS;
                others[i] = residual(row0 + four / (BN / 4), col0 + four % (BN / 4) * 4);
            }
            __syncthreads();
#pragma unroll
            for (unsigned i = 0; i < STORES; ++i) {
                const unsigned four = t + i * THREADS;
                const unsigned r = four / (BN / 4), s = four % (BN / 4) * 4;
                float4 v = *(const float4 *)(sums + r * PITCH + s);
#pragma unroll
                for (unsigned j = 1; j < SLICES; ++j)
                    v = plus(v, *(const float4 *)(sums + j * SUMS + r * PITCH + s));
                if (row0 + r < m && col0 + s < n) store(row0 + r, col0 + s, v, others[i]);
            }
        }
    }
};

// The last number is the least number of blocks that a multiprocessor must hold at once, which
// bounds the registers per thread. The name has the tile of a block, that of a thread, and slices.
#define LINEAR(BM, BN, TM, TN, SLICES, STAGES, BLOCKS)                                             \
    extern "C" __global__ void __launch_bounds__(                                                  \
        Linear<BM, BN, TM, TN, SLICES, STAGES>::THREADS, BLOCKS)                                   \
        linear_##BM##x##BN##_##TM##x##TN##_##SLICES(                                               \
            const float *__restrict__ a, const float *__restrict__ w,                              \
            const float *__restrict__ bias, const float *__restrict__ added,                       \
            float *__restrict__ c, unsigned m, unsigned n, unsigned k, unsigned relu) {            \
        Linear<BM, BN, TM, TN, SLICES, STAGES>::run(a, w, bias, added, c, m, n, k, relu);          \
    }

LINEAR(128, 128, 8, 8, 1, 3, 1)
LINEAR(64, 128, 16, 8, 2, 4, 1)
LINEAR(64, 96, 8, 12, 2, 4, 2)
LINEAR(64, 96, 8, 12, 4, 4, 1)
LINEAR(64, 64, 8, 8, 2, 4, 2)
LINEAR(32, 32, 8, 4, 4, 4, 2)
LINEAR(32, 32, 8, 4, 8, 4, 1)
