// C = A B in f32 for a few rows of A: A is m x k, B k x n, all row-major. n and k are multiples of four
// and every address is aligned to 16 bytes, so that four values, a "four", move at once.
//
// Such a product takes the time in which memory delivers B, so many copies must be in flight. A block
// has all terms of COLUMNS columns: it needs no sum of another block. Its warps share out the rows of B.
// Each warp copies its rows, and the terms of A for them, to shared memory without passing through
// registers, some stages ahead, and waits for no other warp before its last sum.

constexpr unsigned COLUMNS = 32, WARPS = 8;
// Lanes that have a row of B, and fours of rows that a warp has at a time.
constexpr unsigned LANES = COLUMNS / 4, FOURS = 32 / LANES;

__device__ __forceinline__ void multiply_add(float4 &sum, float x, float4 y) {
    sum.x += x * y.x, sum.y += x * y.y, sum.z += x * y.z, sum.w += x * y.w;
}

// Adds the sums of the lanes i and i ^ MASK. Each of the two keeps half of the first COUNT rows, from the
// returned one on.
template <unsigned COUNT, unsigned MASK, unsigned ROWS>
__device__ __forceinline__ unsigned add_lanes(float4 (&sum)[ROWS], unsigned lane) {
    constexpr unsigned HALF = COUNT / 2;
    const bool upper = lane & MASK;
#pragma unroll
    for (unsigned r = 0; r < HALF; ++r) {
        const float4 kept = upper ? sum[r + HALF] : sum[r], given = upper ? sum[r] : sum[r + HALF];
        const float4 got = make_float4(
            __shfl_xor_sync(~0u, given.x, MASK), __shfl_xor_sync(~0u, given.y, MASK),
            __shfl_xor_sync(~0u, given.z, MASK), __shfl_xor_sync(~0u, given.w, MASK));
        sum[r] = plus(kept, got);
    }
    return upper ? HALF : 0;
}

// A block has up to ROWS rows of A, a thread ROWS x 4 sums.
template <unsigned ROWS, unsigned STAGES>
struct FewRows {
    // Fours of a stage of a warp: of B, each of which one lane copies and reads, and behind them of A.
    static constexpr unsigned OF_B = 4 * 32, OF_A = ROWS * FOURS, STAGE = OF_B + OF_A;
    // Fours from a step of a warp to its next.
    static constexpr unsigned STEP = WARPS * FOURS;
    // Fours of sums in shared memory, where they take the place of the stages.
    static constexpr unsigned SUMS = ROWS * LANES;

    static_assert(FOURS == 4 && ROWS % 4 == 0 && SUMS <= STAGES * STAGE, "lanes and sums");

    static __device__ __forceinline__ void run(const float *__restrict__ a,
                                               const float *__restrict__ b, float *__restrict__ c,
                                               unsigned m, unsigned n, unsigned k) {
        extern __shared__ __align__(16) float4 shared[];
        const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32, group = lane / LANES;
        const unsigned col = blockIdx.x * COLUMNS + lane % LANES * 4, fours = k / 4;
        float4 *const stages = shared + warp * STAGES * STAGE;
        const unsigned base = (unsigned)__cvta_generic_to_shared(stages);
        // Copies a lane's four of four rows of B, and the terms of A for them.
        auto copy = [&](unsigned first, unsigned stage) {
            const unsigned to = base + (stage * STAGE + lane) * 16, four = first + group;
            const bool inside = four < fours && col < n;
            const float *const from = inside ? b + (size_t)four * 4 * n + col : b;
#pragma unroll
            for (unsigned i = 0; i < 4; ++i)
                copy_async(to + i * 32 * 16, from + (inside ? (size_t)i * n : 0), inside);
#pragma unroll
            for (unsigned i = 0; i < OF_A; i += 32) {
                const unsigned row = (i + lane) / FOURS, term = first + (i + lane) % FOURS;
                const bool there = row < m && term < fours;
                if (i + lane < OF_A)
                    copy_async(to + (OF_B + i) * 16, there ? a + (size_t)row * k + term * 4 : a,
                               there);
            }
        };

        float4 sum[ROWS];
#pragma unroll
        for (unsigned r = 0; r < ROWS; ++r) sum[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        // All stages but one are being copied while that one is multiplied. A stage is written again
        // after the wait for the warp that follows its use.
        unsigned first = warp * FOURS, next = first;
#pragma unroll
        for (unsigned s = 0; s < STAGES - 1; ++s) {
            if (next < fours) copy(next, s);
            end_group();
            next += STEP;
        }
        unsigned stage = 0, written = STAGES - 1;
#pragma unroll 1
        for (; first < fours; first += STEP) {
            wait_for_groups<STAGES - 2>();
            __syncwarp();
            if (next < fours) copy(next, written);
            end_group();
            next += STEP;
            const float4 *const of_b = stages + stage * STAGE, *const of_a = of_b + OF_B + group;
            float4 y[4];
#pragma unroll
            for (unsigned i = 0; i < 4; ++i) y[i] = of_b[i * 32 + lane];
#pragma unroll
            for (unsigned r = 0; r < ROWS; ++r) {
                const float4 x = of_a[r * FOURS];
                multiply_add(sum[r], x.x, y[0]);
                multiply_add(sum[r], x.y, y[1]);
                multiply_add(sum[r], x.z, y[2]);
                multiply_add(sum[r], x.w, y[3]);
            }
            stage = stage + 1 < STAGES ? stage + 1 : 0;
            written = written + 1 < STAGES ? written + 1 : 0;
        }

        // The sums of a warp's lanes, and then of the warps.
        wait_for_groups<0>();
        __syncthreads();
        unsigned row = add_lanes<ROWS, 16>(sum, lane);
        row += add_lanes<ROWS / 2, 8>(sum, lane);
#pragma unroll
        for (unsigned r = 0; r < ROWS / 4; ++r)
            shared[warp * SUMS + (row + r) * LANES + lane % LANES] = sum[r];
        __syncthreads();
        for (unsigned i = t; i < SUMS; i += 32 * WARPS) {
            float4 v = shared[i];
#pragma unroll
            for (unsigned w = 1; w < WARPS; ++w) v = plus(v, shared[w * SUMS + i]);
            const unsigned r = i / LANES, s = blockIdx.x * COLUMNS + i % LANES * 4;
            if (r < m && s < n) *(float4 *)(c + (size_t)r * n + s) = v;
        }
    }
};

// The name has the rows and the stages.
#define FEW_ROWS(ROWS, STAGES)                                                                     \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                    \
        few_rows_##ROWS##_##STAGES(const float *__restrict__ a, const float *__restrict__ b,       \
                                   float *__restrict__ c, unsigned m, unsigned n, unsigned k) {    \
        FewRows<ROWS, STAGES>::run(a, b, c, m, n, k);                                              \
    }

FEW_ROWS(4, 6)
FEW_ROWS(4, 4)
FEW_ROWS(8, 6)
FEW_ROWS(8, 4)
FEW_ROWS(16, 6)
FEW_ROWS(16, 4)
FEW_ROWS(32, 5)
FEW_ROWS(32, 3)
