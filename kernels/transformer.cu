// The steps of a transformer between its products, in two ways: in few kernels, and in one kernel per
// step, as in code without fusion. The arithmetic is f32, and so is the residual that each part of a
// layer adds to; operands and results of BF16 products are BF16. A "four" is four neighbouring values.

constexpr unsigned WIDTH = 256, HEADS = 4, HEAD = 64, SEQUENCE = 128;
// Lengths in fours: of a row of the residual, of a row of `qkv`, and of a head in either.
constexpr unsigned FOURS = WIDTH / 4, QKV_FOURS = 3 * FOURS, HEAD_FOURS = HEAD / 4;
constexpr unsigned THREADS = 256, ROWS = THREADS / 32;
constexpr float EPSILON = 1e-5f, SCALE = 0.125f;  // 1 / sqrt(HEAD)

__device__ __forceinline__ float sum(float4 v) { return v.x + v.y + (v.z + v.w); }
__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}
__device__ __forceinline__ float4 minus(float4 v, float m) {
    return {v.x - m, v.y - m, v.z - m, v.w - m};
}
__device__ __forceinline__ float4 times(float4 v, float f) {
    return {v.x * f, v.y * f, v.z * f, v.w * f};
}
// f v + sum
__device__ __forceinline__ float4 scaled(float f, float4 v, float4 sum) {
    return {fmaf(f, v.x, sum.x), fmaf(f, v.y, sum.y), fmaf(f, v.z, sum.z), fmaf(f, v.w, sum.w)};
}

// A row of the residual in the registers of a warp: each lane has the fours `lane` and `lane + 32`.
struct Row {
    float4 a, b;
};

// Layer norm of a row. Gain and bias are loaded while the row is added up.
template <class T>
__device__ __forceinline__ void store_normed(Row x, const float *gain, const float *bias, T *y,
                                             unsigned row) {
    unsigned lane = threadIdx.x % 32;
    float4 gain_a = load(gain, lane), gain_b = load(gain, lane + 32);
    float4 bias_a = load(bias, lane), bias_b = load(bias, lane + 32);
    float mean = warp_sum(sum(x.a) + sum(x.b)) * (1.0f / WIDTH);
    x = {minus(x.a, mean), minus(x.b, mean)};
    float variance = warp_sum(dot(x.a, x.a, dot(x.b, x.b, 0.0f))) * (1.0f / WIDTH);
    float factor = rsqrtf(variance + EPSILON);
    float4 a = times(x.a, factor), b = times(x.b, factor);
    store(y, row * FOURS + lane,
          {fmaf(a.x, gain_a.x, bias_a.x), fmaf(a.y, gain_a.y, bias_a.y),
           fmaf(a.z, gain_a.z, bias_a.z), fmaf(a.w, gain_a.w, bias_a.w)});
    store(y, row * FOURS + lane + 32,
          {fmaf(b.x, gain_b.x, bias_b.x), fmaf(b.y, gain_b.y, bias_b.y),
           fmaf(b.z, gain_b.z, bias_b.z), fmaf(b.w, gain_b.w, bias_b.w)});
}

// Layer norm, a warp per row.
template <class T>
__device__ void layer_norm(const float *x, const float *gain, const float *bias, T *y,
                           unsigned rows) {
    unsigned lane = threadIdx.x % 32, row = blockIdx.x * ROWS + threadIdx.x / 32;
    if (row >= rows) return;
    Row v = {load(x, row * FOURS + lane), load(x, row * FOURS + lane + 32)};
    store_normed(v, gain, bias, y, row);
}

#define LAYER_NORM(T)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) layer_norm_##T(                          \
        const float *x, const float *gain, const float *bias, T *y, unsigned rows) {               \
        layer_norm(x, gain, bias, y, rows);                                                        \
    }
IN_BOTH(LAYER_NORM)

// Looks up the embedding of each token, with which the residual begins, and stores its first norm.
template <class T>
__device__ void embed_norm(const unsigned *tokens, const float *table, float *x,
                           const float *gain, const float *bias, T *y, unsigned rows) {
    unsigned lane = threadIdx.x % 32, row = blockIdx.x * ROWS + threadIdx.x / 32;
    if (row >= rows) return;
    unsigned token = tokens[row];
    Row v = {load(table, token * FOURS + lane), load(table, token * FOURS + lane + 32)};
    store(x, row * FOURS + lane, v.a);
    store(x, row * FOURS + lane + 32, v.b);
    store_normed(v, gain, bias, y, row);
}

#define EMBED_NORM(T)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) embed_norm_##T(                          \
        const unsigned *tokens, const float *table, float *x, const float *gain,                   \
        const float *bias, T *y, unsigned rows) {                                                  \
        embed_norm(tokens, table, x, gain, bias, y, rows);                                         \
    }
IN_BOTH(EMBED_NORM)

// The residual as BF16, for a product to read.
ON_FOURS(narrow, y, load(x, i), const float *x, bf16 *y)

// softmax(q k^T / sqrt(HEAD)) v, without a mask. A block computes QUERIES queries per warp, of one
// head of one sequence, and has first all keys and then all values of that head in shared memory. A
// row of `qkv` has a token's queries, keys and values, a row of `heads` the results of all heads.
// TF32 and BF16 have kernels on tensor cores (attention.cu).
//
// Even lanes take the first half of their warp's queries, odd lanes the second. In the first
// product a lane takes every 16th key, so that the softmax of a row needs shuffles alone. Its
// results, the shares, then go to shared memory, since in the second product a lane takes four
// columns of the values. Of a load of 16 bytes per lane, shared memory serves half a warp at once
// if pairs of its lanes load the same address: the lanes i and i ^ 1 read the same keys and values,
// i and i ^ 2 the same queries and shares.
//
// Lanes read the same column of consecutive keys, whose rows begin at the same bank: a key's fours
// are permuted by the lowest bits of its number. Even and odd lanes read the same place of rows
// that begin at the same bank: the fours of the second half's rows are permuted as well.
constexpr unsigned KEYS = SEQUENCE / 16;  // per lane

// Reductions over the lanes of the same parity.
__device__ __forceinline__ float half_max(float v) {
#pragma unroll
    for (unsigned lanes = 16; lanes > 1; lanes /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lanes));
    return v;
}
__device__ __forceinline__ float half_sum(float v) {
#pragma unroll
    for (unsigned lanes = 16; lanes > 1; lanes /= 2) v += __shfl_xor_sync(0xffffffffu, v, lanes);
    return v;
}

template <unsigned QUERIES, unsigned WARPS>
__device__ __forceinline__ void attention(const float *qkv, float *heads) {
    constexpr unsigned TILES = SEQUENCE / (WARPS * QUERIES), HALF = QUERIES / 2;
    constexpr unsigned ALL = SEQUENCE * HEAD_FOURS, STEP = 32 * WARPS;
    __shared__ float4 rows[ALL];
    // First the warp's queries, then their shares of each key.
    __shared__ float4 owned[WARPS][QUERIES * SEQUENCE / 4];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = lane % 2;
    unsigned tile = blockIdx.x % TILES, head = blockIdx.x / TILES % HEADS;
    unsigned first = blockIdx.x / (TILES * HEADS) * SEQUENCE;
    unsigned query = first + (tile * WARPS + warp) * QUERIES;
    unsigned column_of_head = head * HEAD_FOURS;
    float4 *own = owned[warp];

#pragma unroll 8
    for (unsigned i = threadIdx.x; i < ALL; i += STEP) {
        unsigned row = i / HEAD_FOURS, four = i % HEAD_FOURS;
        rows[row * HEAD_FOURS + (four ^ (row & 7))] =
            load(qkv, (first + row) * QKV_FOURS + FOURS + column_of_head + four);
    }
#pragma unroll
    for (unsigned i = lane; i < QUERIES * HEAD_FOURS; i += 32) {
        unsigned row = i / HEAD_FOURS, four = i % HEAD_FOURS;
        own[row * HEAD_FOURS + (four ^ (row < HALF ? 0u : 4u))] =
            times(load(qkv, (query + row) * QKV_FOURS + column_of_head + four), SCALE);
    }
    __syncthreads();

    float scores[HALF][KEYS];
#pragma unroll
    for (unsigned q = 0; q < HALF; ++q)
#pragma unroll
        for (unsigned j = 0; j < KEYS; ++j) scores[q][j] = 0.0f;
#pragma unroll 2
    for (unsigned four = 0; four < HEAD_FOURS; ++four) {
        float4 key[KEYS];
#pragma unroll
        for (unsigned j = 0; j < KEYS; ++j)
            key[j] = rows[(lane / 2 + 16 * j) * HEAD_FOURS + (four ^ (lane / 2 & 7))];
#pragma unroll
        for (unsigned q = 0; q < HALF; ++q) {
            float4 v = own[(half * HALF + q) * HEAD_FOURS + (four ^ (4 * half))];
#pragma unroll
            for (unsigned j = 0; j < KEYS; ++j) scores[q][j] = dot(v, key[j], scores[q][j]);
        }
    }

    // From here on lanes overwrite the queries of their warp and the keys of the block.
    __syncthreads();
#pragma unroll 8
    for (unsigned i = threadIdx.x; i < ALL; i += STEP)
        rows[i] = load(qkv, (first + i / HEAD_FOURS) * QKV_FOURS + 2 * FOURS + column_of_head +
                                i % HEAD_FOURS);
#pragma unroll
    for (unsigned q = 0; q < HALF; ++q) {
        float largest = scores[q][0];
#pragma unroll
        for (unsigned j = 1; j < KEYS; ++j) largest = fmaxf(largest, scores[q][j]);
        largest = half_max(largest);
        float sum = 0.0f;
#pragma unroll
        for (unsigned j = 0; j < KEYS; ++j) {
            scores[q][j] = expf(scores[q][j] - largest);
            sum += scores[q][j];
        }
        float share = 1.0f / half_sum(sum);
#pragma unroll
        for (unsigned j = 0; j < KEYS; ++j) {
            unsigned four = (lane / 8 + 4 * j) ^ (4 * half);
            ((float *)own)[(half * HALF + q) * SEQUENCE + 4 * four + lane / 2 % 4] =
                scores[q][j] * share;
        }
    }
    __syncthreads();

    unsigned column = lane / 2;
    float4 result[HALF];
#pragma unroll
    for (unsigned q = 0; q < HALF; ++q) result[q] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 2
    for (unsigned four = 0; four < SEQUENCE / 4; ++four) {
        float4 value[4];
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) value[j] = rows[(4 * four + j) * HEAD_FOURS + column];
#pragma unroll
        for (unsigned q = 0; q < HALF; ++q) {
            float4 share = own[(half * HALF + q) * (SEQUENCE / 4) + (four ^ (4 * half))];
            result[q] = scaled(share.x, value[0], result[q]);
            result[q] = scaled(share.y, value[1], result[q]);
            result[q] = scaled(share.z, value[2], result[q]);
            result[q] = scaled(share.w, value[3], result[q]);
        }
    }
#pragma unroll
    for (unsigned q = 0; q < HALF; ++q)
        store(heads, (query + half * HALF + q) * FOURS + column_of_head + column, result[q]);
}

// 16 queries per block, in four warps; and 32 in two, where a load from shared memory serves at
// least twice as many multiply-adds.
extern "C" __global__ void __launch_bounds__(128)
attention_16_f32(const float *qkv, float *heads) {
    attention<4, 4>(qkv, heads);
}
extern "C" __global__ void __launch_bounds__(64)
attention_32_f32(const float *qkv, float *heads) {
    attention<16, 2>(qkv, heads);
}

// The rest in one kernel per step, beside the norm above and products; in f32 alone.

ON_FOURS(embed, x, load(table, tokens[i / FOURS] * FOURS + i % FOURS),
         const unsigned *tokens, const float *table, float *x)

// The index of a four of a row of all heads, where each head of each sequence is a matrix of its
// own.
__device__ __forceinline__ unsigned in_own_matrix(unsigned row, unsigned four) {
    unsigned matrix = row / SEQUENCE * HEADS + four / HEAD_FOURS;
    return (matrix * SEQUENCE + row % SEQUENCE) * HEAD_FOURS + four % HEAD_FOURS;
}

// From rows of queries, keys and values of all heads to one matrix per head and sequence: first
// those of all queries, then of all keys, then of all values.
extern "C" __global__ void __launch_bounds__(THREADS)
split_heads(const float *qkv, float *matrices, unsigned count) {
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    unsigned row = i / QKV_FOURS, which = i % QKV_FOURS / FOURS, four = i % FOURS;
    store(matrices, which * (count / 3) + in_own_matrix(row, four), load(qkv, i));
}

ON_FOURS(merge_heads, heads, load(matrices, in_own_matrix(i / FOURS, i % FOURS)),
         const float *matrices, float *heads)

// Softmax of the scaled scores, a warp per row.
extern "C" __global__ void __launch_bounds__(THREADS) softmax(float *scores, unsigned rows) {
    unsigned lane = threadIdx.x % 32, row = blockIdx.x * ROWS + threadIdx.x / 32;
    if (row >= rows) return;
    float4 v = load(scores, row * (SEQUENCE / 4) + lane);
    float largest = warp_max(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    v = times(minus(v, largest), SCALE);
    v = {expf(v.x), expf(v.y), expf(v.z), expf(v.w)};
    store(scores, row * (SEQUENCE / 4) + lane, times(v, 1.0f / warp_sum(sum(v))));
}

ON_FOURS(add, x, plus(load(x, i), load(y, i)), float *x, const float *y)
