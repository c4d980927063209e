// softmax(q k^T / sqrt(HEAD)) v without a mask, of BF16 on tensor cores with sums in f32. A block
// has 64 queries of one head of one sequence, 16 per warp, and all of the head's keys and values
// in shared memory. The scores stay in registers: as `mma` leaves them is how it reads them as the
// next product's first operand.
//
// `mma` takes pairs of neighbours along the sum. Keys lie as they come, a row each; values are
// transposed on their way, so that two keys' values of one column are a pair. Rows are padded by
// four pairs: the eight rows and four pairs that a warp reads lie in 32 different banks.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-fragment-mma-16816-float

constexpr unsigned WIDTH = 256, HEADS = 4, HEAD = 64, SEQUENCE = 128;
constexpr unsigned THREADS = 128, QUERIES = 64;
constexpr float SCALE = 0.125f;  // 1 / sqrt(HEAD)
// In pairs.
constexpr unsigned ROW = 3 * WIDTH / 2, HEAD_PAIRS = HEAD / 2;
constexpr unsigned KEY_ROW = HEAD_PAIRS + 4, VALUE_ROW = SEQUENCE / 2 + 4;
constexpr unsigned BY_KEYS = SEQUENCE / 16, BY_HEAD = HEAD / 16;  // steps along the sum

__device__ __forceinline__ unsigned pair(float low, float high) {
    return rounded(low) | rounded(high) << 16;
}

// c += a b, of 16 x 16 and 16 x 8 values.
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Over the four lanes that share a row.
__device__ __forceinline__ float row_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}
__device__ __forceinline__ float row_sum(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

extern "C" __global__ void __launch_bounds__(THREADS)
attention_bf16(const bf16 *qkv, bf16 *heads) {
    constexpr unsigned TILES = SEQUENCE / QUERIES;
    __shared__ uint4 keys_of_block[SEQUENCE * KEY_ROW / 4];
    __shared__ unsigned values[HEAD * VALUE_ROW];
    const unsigned *keys = (const unsigned *)keys_of_block;
    unsigned lane = threadIdx.x % 32, row = lane / 4, column = lane % 4;
    unsigned tile = blockIdx.x % TILES, head = blockIdx.x / TILES % HEADS;
    unsigned first = blockIdx.x / (TILES * HEADS) * SEQUENCE;
    unsigned query = first + tile * QUERIES + threadIdx.x / 32 * 16;

    // Eight values at a time.
#pragma unroll
    for (unsigned i = threadIdx.x; i < SEQUENCE * HEAD / 8; i += THREADS) {
        unsigned key = i / (HEAD / 8), eight = i % (HEAD / 8);
        keys_of_block[key * (KEY_ROW / 4) + eight] =
            ((const uint4 *)qkv)[((first + key) * ROW + WIDTH / 2 + head * HEAD_PAIRS) / 4 + eight];
    }
    // Four values each of two keys at a time; neighbours write neighbouring pairs of keys.
#pragma unroll
    for (unsigned i = threadIdx.x; i < SEQUENCE / 2 * HEAD / 4; i += THREADS) {
        unsigned both = i % (SEQUENCE / 2), four = i / (SEQUENCE / 2);
        unsigned at = ((first + 2 * both) * ROW + WIDTH + head * HEAD_PAIRS) / 2 + four;
        uint2 a = ((const uint2 *)qkv)[at], b = ((const uint2 *)qkv)[at + ROW / 2];
        unsigned *to = values + 4 * four * VALUE_ROW + both;
        to[0] = (a.x & 0xffffu) | b.x << 16;
        to[VALUE_ROW] = a.x >> 16 | (b.x & 0xffff0000u);
        to[2 * VALUE_ROW] = (a.y & 0xffffu) | b.y << 16;
        to[3 * VALUE_ROW] = a.y >> 16 | (b.y & 0xffff0000u);
    }
    unsigned queries[BY_HEAD][4];
    const unsigned *from = (const unsigned *)qkv + (query + row) * ROW + head * HEAD_PAIRS + column;
#pragma unroll
    for (unsigned k = 0; k < BY_HEAD; ++k) {
        queries[k][0] = from[8 * k];
        queries[k][1] = from[8 * k + 8 * ROW];
        queries[k][2] = from[8 * k + 4];
        queries[k][3] = from[8 * k + 8 * ROW + 4];
    }
    __syncthreads();

    // Of rows `row` and `row + 8`, two columns each.
    float scores[2 * BY_KEYS][4];
#pragma unroll
    for (unsigned n = 0; n < 2 * BY_KEYS; ++n) {
        scores[n][0] = scores[n][1] = scores[n][2] = scores[n][3] = 0.0f;
        const unsigned *key = keys + (8 * n + row) * KEY_ROW + column;
#pragma unroll
        for (unsigned k = 0; k < BY_HEAD; ++k)
            multiply(scores[n], queries[k], key[8 * k], key[8 * k + 4]);
    }

    float share[2];
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
        float largest = scores[0][2 * half];
#pragma unroll
        for (unsigned n = 0; n < 2 * BY_KEYS; ++n)
            largest = fmaxf(largest, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
        largest = row_max(largest);
        float sum = 0.0f;
#pragma unroll
        for (unsigned n = 0; n < 2 * BY_KEYS; ++n)
#pragma unroll
            for (unsigned i = 2 * half; i < 2 * half + 2; ++i) {
                scores[n][i] = expf((scores[n][i] - largest) * SCALE);
                sum += scores[n][i];
            }
        share[half] = 1.0f / row_sum(sum);
    }

    float result[HEAD / 8][4];
#pragma unroll
    for (unsigned n = 0; n < HEAD / 8; ++n)
        result[n][0] = result[n][1] = result[n][2] = result[n][3] = 0.0f;
#pragma unroll
    for (unsigned k = 0; k < BY_KEYS; ++k) {
        const float(&left)[4] = scores[2 * k], (&right)[4] = scores[2 * k + 1];
        unsigned weights[4] = {pair(left[0], left[1]), pair(left[2], left[3]),
                               pair(right[0], right[1]), pair(right[2], right[3])};
#pragma unroll
        for (unsigned n = 0; n < HEAD / 8; ++n) {
            const unsigned *value = values + (8 * n + row) * VALUE_ROW + 8 * k + column;
            multiply(result[n], weights, value[0], value[4]);
        }
    }
    unsigned *to = (unsigned *)heads + (query + row) * (WIDTH / 2) + head * HEAD_PAIRS + column;
#pragma unroll
    for (unsigned n = 0; n < HEAD / 8; ++n) {
        to[4 * n] = pair(result[n][0] * share[0], result[n][1] * share[0]);
        to[4 * n + 8 * (WIDTH / 2)] = pair(result[n][2] * share[1], result[n][3] * share[1]);
    }
}
