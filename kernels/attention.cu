// softmax(q k^T / sqrt(HEAD)) v without a mask, on tensor cores, of BF16 with sums in f32. A block
// computes TILES tiles of 16 queries of one head of one sequence, and has all keys and values of that
// head in shared memory. A warp takes one of the tiles and a part of the keys: with all of them it would
// compute one score after the other, and a small batch has no other warps to fill the multiprocessor
// with. The parts are combined as in FlashAttention, each relative to its own largest score
// (https://arxiv.org/abs/2205.14135, section 3.1).
//
// Scores stay in registers: `mma` leaves two neighbouring columns of a row in a lane. Packed as BF16
// pairs they lie as the first operand of the next product has to.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-fragment-mma-16816-float

constexpr unsigned WIDTH = 256, HEADS = 4, HEAD = 64, SEQUENCE = 128;
constexpr unsigned THREADS = 256, WARPS = THREADS / 32, TILE = 16;
constexpr unsigned QKV = 3 * WIDTH;  // a row of `qkv`
// 1 / sqrt(HEAD) / ln(2), so that exp2f takes the place of expf.
constexpr float SCALE = 0.125f * 1.44269504f;

// Rows in shared memory are padded, so that the addresses of one access of a warp lie in different
// banks: 16 bytes of each of eight rows of keys or values, two columns per lane of eight rows of
// partial results.
constexpr unsigned ROW = HEAD + 8;
constexpr unsigned SHARED = 2 * SEQUENCE * ROW * sizeof(bf16);
static_assert(SHARED >= WARPS * TILE * ROW * sizeof(float), "partial results");

// 16-byte vectors of a head's keys or values: per row, and per thread.
constexpr unsigned OF_ROW = HEAD * sizeof(bf16) / 16;
constexpr unsigned OF_THREAD = SEQUENCE * OF_ROW / THREADS;

// Terms of the sum that a product takes.
constexpr unsigned STEP = 16;

// c += a b, of which a is 16 x 16 and b 16 x 8.
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Loads four matrices of 8 x 8 BF16 values. Each lane points at a row: eight lanes per matrix.
__device__ __forceinline__ void matrices(unsigned (&to)[4], const bf16 *row) {
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}
__device__ __forceinline__ void transposed_matrices(unsigned (&to)[4], const bf16 *row) {
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

// Reductions over the four lanes that hold a row.
__device__ __forceinline__ float row_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}
__device__ __forceinline__ float row_sum(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

// `fetch` loads the keys or values of one head of one sequence from rows of `qkv` into registers,
// all loads in flight at once; `place` stores them to rows in shared memory.
__device__ __forceinline__ void fetch(uint4 (&vectors)[OF_THREAD], const bf16 *from) {
#pragma unroll
    for (unsigned k = 0; k < OF_THREAD; ++k) {
        unsigned i = threadIdx.x + k * THREADS;
        vectors[k] = ((const uint4 *)(from + i / OF_ROW * QKV))[i % OF_ROW];
    }
}
__device__ __forceinline__ void place(const uint4 (&vectors)[OF_THREAD], bf16 *to) {
#pragma unroll
    for (unsigned k = 0; k < OF_THREAD; ++k) {
        unsigned i = threadIdx.x + k * THREADS;
        ((uint4 *)(to + i / OF_ROW * ROW))[i % OF_ROW] = vectors[k];
    }
}

template <unsigned TILES>
__device__ __forceinline__ void attention(const bf16 *qkv, bf16 *heads) {
    constexpr unsigned PARTS = WARPS / TILES, KEYS = SEQUENCE / PARTS, ROWS = TILES * TILE;
    constexpr unsigned BLOCKS = SEQUENCE / ROWS;  // of one head of one sequence
    __shared__ uint4 shared[SHARED / sizeof(uint4)];
    // Per row of a warp: its largest scaled score, and the sum of exponentials relative to that.
    __shared__ float2 parts[WARPS][TILE];
    unsigned lane = threadIdx.x % 32, row = lane / 4, column = lane % 4, warp = threadIdx.x / 32;
    unsigned head = blockIdx.x / BLOCKS % HEADS;
    unsigned first = blockIdx.x / (BLOCKS * HEADS) * SEQUENCE;
    unsigned block_query = first + blockIdx.x % BLOCKS * ROWS;
    unsigned query = block_query + warp / PARTS * TILE, part = warp % PARTS * KEYS;

    bf16 *keys = (bf16 *)shared, *values = keys + SEQUENCE * ROW;
    uint4 of_keys[OF_THREAD], of_values[OF_THREAD];
    const bf16 *of_head = qkv + first * QKV + head * HEAD;
    fetch(of_keys, of_head + WIDTH);
    fetch(of_values, of_head + 2 * WIDTH);
    unsigned queries[HEAD / STEP][4];
    const bf16 *from = qkv + (query + row) * QKV + head * HEAD + 2 * column;
#pragma unroll
    for (unsigned k = 0; k < HEAD / STEP; ++k) {
        queries[k][0] = *(const unsigned *)(from + STEP * k);
        queries[k][1] = *(const unsigned *)(from + STEP * k + 8 * QKV);
        queries[k][2] = *(const unsigned *)(from + STEP * k + 8);
        queries[k][3] = *(const unsigned *)(from + STEP * k + 8 * QKV + 8);
    }
    place(of_keys, keys);
    place(of_values, values);
    __syncthreads();

    // A lane has two columns of row `row` and two of row `row + 8`.
    float scores[KEYS / 8][4];
#pragma unroll
    for (unsigned n = 0; n < KEYS / 8; ++n) {
        scores[n][0] = scores[n][1] = scores[n][2] = scores[n][3] = 0.0f;
        const bf16 *at = keys + (part + 8 * n + lane % 8) * ROW + lane / 8 * 8;
#pragma unroll
        for (unsigned k = 0; k < HEAD / STEP; k += 2) {
            unsigned key[4];
            matrices(key, at + STEP * k);
            multiply(scores[n], queries[k], key[0], key[1]);
            multiply(scores[n], queries[k + 1], key[2], key[3]);
        }
    }

    float largest[2], sums[2];
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
        float most = scores[0][2 * half];
#pragma unroll
        for (unsigned n = 0; n < KEYS / 8; ++n)
            most = fmaxf(most, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
        largest[half] = row_max(most) * SCALE;
        float sum = 0.0f;
#pragma unroll
        for (unsigned n = 0; n < KEYS / 8; ++n)
#pragma unroll
            for (unsigned i = 2 * half; i < 2 * half + 2; ++i) {
                scores[n][i] = exp2f(fmaf(scores[n][i], SCALE, -largest[half]));
                sum += scores[n][i];
            }
        sums[half] = row_sum(sum);
    }

    float result[HEAD / 8][4];
#pragma unroll
    for (unsigned n = 0; n < HEAD / 8; ++n)
        result[n][0] = result[n][1] = result[n][2] = result[n][3] = 0.0f;
#pragma unroll
    for (unsigned k = 0; k < KEYS / STEP; ++k) {
        const float(&left)[4] = scores[2 * k], (&right)[4] = scores[2 * k + 1];
        unsigned weights[4] = {bf16_pair(left[0], left[1]), bf16_pair(left[2], left[3]),
                               bf16_pair(right[0], right[1]), bf16_pair(right[2], right[3])};
        const bf16 *at = values + (part + STEP * k + lane % STEP) * ROW + lane / STEP * 8;
#pragma unroll
        for (unsigned n = 0; n < HEAD / 8; n += 2) {
            unsigned value[4];
            transposed_matrices(value, at + 8 * n);
            multiply(result[n], weights, value[0], value[1]);
            multiply(result[n + 1], weights, value[2], value[3]);
        }
    }

    // The partial results take the place of the values, once all warps have read those.
    __syncthreads();
    float *partial = (float *)shared;
    unsigned of_warp = warp * TILE + row;
    if (column == 0) {
        parts[warp][row] = {largest[0], sums[0]};
        parts[warp][row + 8] = {largest[1], sums[1]};
    }
#pragma unroll
    for (unsigned n = 0; n < HEAD / 8; ++n) {
        float *to = partial + of_warp * ROW + 8 * n + 2 * column;
        *(float2 *)to = {result[n][0], result[n][1]};
        *(float2 *)(to + 8 * ROW) = {result[n][2], result[n][3]};
    }
    __syncthreads();

    // BY threads add up the parts of a row, each four columns at a time.
    constexpr unsigned BY = THREADS / ROWS;
    unsigned of_block = threadIdx.x / BY, of_tile = of_block % TILE;
    unsigned warp_of_row = of_block / TILE * PARTS;
    float most = parts[warp_of_row][of_tile].x, all = 0.0f, factors[PARTS];
#pragma unroll
    for (unsigned p = 1; p < PARTS; ++p) most = fmaxf(most, parts[warp_of_row + p][of_tile].x);
#pragma unroll
    for (unsigned p = 0; p < PARTS; ++p) {
        float2 of_part = parts[warp_of_row + p][of_tile];
        factors[p] = exp2f(of_part.x - most);
        all = fmaf(factors[p], of_part.y, all);
    }
    float share = 1.0f / all;
    bf16 *to = heads + (block_query + of_block) * WIDTH + head * HEAD;
#pragma unroll
    for (unsigned four = threadIdx.x % BY; four < HEAD / 4; four += BY) {
        float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (unsigned p = 0; p < PARTS; ++p) {
            unsigned at = (warp_of_row + p) * TILE + of_tile;
            float4 v = load(partial + at * ROW, four);
            sum = {fmaf(factors[p], v.x, sum.x), fmaf(factors[p], v.y, sum.y),
                   fmaf(factors[p], v.z, sum.z), fmaf(factors[p], v.w, sum.w)};
        }
        store(to, four, {sum.x * share, sum.y * share, sum.z * share, sum.w * share});
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
attention_32_bf16(const bf16 *qkv, bf16 *heads) {
    attention<2>(qkv, heads);
}
extern "C" __global__ void __launch_bounds__(THREADS, 3)
attention_64_bf16(const bf16 *qkv, bf16 *heads) {
    attention<4>(qkv, heads);
}
