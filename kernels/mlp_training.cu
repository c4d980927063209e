// The loss of a batch and the update of the parameters, in two ways: in few kernels, and in one kernel
// per step, as in code without fusion. The arithmetic is f32; operands of later BF16 products are
// stored as BF16.

constexpr unsigned CLASSES = 512, THREADS = 256, WARPS = THREADS / 32, FOURS = CLASSES / 128;

// AdamW as PyTorch computes it:
// https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
constexpr double RATE = 1e-3, BETA_1 = 0.9, BETA_2 = 0.999, EPSILON = 1e-8, DECAY = 0.01;

// The step counter and the factors that follow from it, in device memory, so that replaying a graph
// advances them.
struct Counter {
    double power_1, power_2;  // BETA_1 and BETA_2 to the number of steps
    double steps;
    double rate;  // RATE / (1 - power_1)
    double root;  // 1 / sqrt(1 - power_2)
};

__device__ void advance(Counter *counter) {
    double power_1 = counter->power_1 * BETA_1, power_2 = counter->power_2 * BETA_2;
    counter->power_1 = power_1;
    counter->power_2 = power_2;
    counter->steps += 1.0;
    counter->rate = RATE / (1.0 - power_1);
    counter->root = 1.0 / sqrt(1.0 - power_2);
}

// The sum over a block of THREADS threads, in a fixed order; the result is in thread 0.
__device__ float block_sum(float v) {
    __shared__ float sums[WARPS];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    float sum = 0.0f;
    if (threadIdx.x == 0)
        for (unsigned warp = 0; warp < WARPS; ++warp) sum += sums[warp];
    return sum;
}

// Loads the logits of a row into the registers of a warp: `v[i]` has the four from 128 i + 4 lane
// on. Returns the logarithm of the sum of their exponentials.
__device__ __forceinline__ float log_sum_exp(const float4 *row, float4 (&v)[FOURS]) {
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < FOURS; ++i) v[i] = row[32 * i + lane];
    float largest = __uint_as_float(0xff800000u);  // minus infinity
#pragma unroll
    for (unsigned i = 0; i < FOURS; ++i)
        largest = fmaxf(largest, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    largest = warp_max(largest);
    float sum = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < FOURS; ++i)
        sum += expf(v[i].x - largest) + expf(v[i].y - largest) + expf(v[i].z - largest) +
               expf(v[i].w - largest);
    return largest + logf(warp_sum(sum));
}

__device__ __forceinline__ float of_label(unsigned column, unsigned label) {
    return column == label ? 1.0f : 0.0f;
}

// Softmax and cross-entropy, the mean over the batch, and its gradient with respect to the
// logits, a warp per row. The last block to arrive adds up the sums of all blocks, in the order of
// their numbers, and advances the step counter for the update that follows.
template <class T>
__device__ void cross_entropy(const float *logits, const unsigned *labels, unsigned rows,
                              float share, T *gradient, float *partial, float *loss,
                              unsigned *arrived, Counter *counter) {
    __shared__ float losses[WARPS];
    __shared__ bool last;
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned row = blockIdx.x * WARPS + warp;
    float of_row = 0.0f;
    if (row < rows) {
        float4 v[FOURS];
        unsigned label = labels[row];
        float normal = log_sum_exp((const float4 *)(logits + row * CLASSES), v);
#pragma unroll
        for (unsigned i = 0; i < FOURS; ++i) {
            unsigned column = 128 * i + 4 * lane;
            store(gradient, row * (CLASSES / 4) + 32 * i + lane,
                  {share * (expf(v[i].x - normal) - of_label(column, label)),
                   share * (expf(v[i].y - normal) - of_label(column + 1, label)),
                   share * (expf(v[i].z - normal) - of_label(column + 2, label)),
                   share * (expf(v[i].w - normal) - of_label(column + 3, label))});
        }
        of_row = normal - logits[row * CLASSES + label];
    }
    if (lane == 0) losses[warp] = of_row;
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (unsigned i = 0; i < WARPS; ++i) sum += losses[i];
        partial[blockIdx.x] = sum;
        __threadfence();
        // atomicInc wraps around to zero, so the counter is ready for the next step.
        last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS) sum += __ldcg(partial + i);
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        *loss = share * sum;
        advance(counter);
    }
}

#define CROSS_ENTROPY(T)                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS) cross_entropy_##T(                       \
        const float *logits, const unsigned *labels, unsigned rows, float share, T *gradient,      \
        float *partial, float *loss, unsigned *arrived, Counter *counter) {                        \
        cross_entropy(logits, labels, rows, share, gradient, partial, loss, arrived, counter);     \
    }
IN_BOTH(CROSS_ENTROPY)

// The same in one kernel per step.

extern "C" __global__ void __launch_bounds__(THREADS)
log_softmax(const float *logits, float *logarithms, unsigned rows) {
    unsigned lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;
    float4 v[FOURS];
    float normal = log_sum_exp((const float4 *)(logits + row * CLASSES), v);
#pragma unroll
    for (unsigned i = 0; i < FOURS; ++i)
        store(logarithms, row * (CLASSES / 4) + 32 * i + lane,
              {v[i].x - normal, v[i].y - normal, v[i].z - normal, v[i].w - normal});
}

extern "C" __global__ void __launch_bounds__(THREADS)
mean_loss(const float *logarithms, const unsigned *labels, unsigned rows, float share,
          float *loss) {
    float sum = 0.0f;
    for (unsigned row = threadIdx.x; row < rows; row += THREADS)
        sum -= logarithms[row * CLASSES + labels[row]];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *loss = share * sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
loss_gradient(const float *logarithms, const unsigned *labels, unsigned count, float share,
              float *gradient) {
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    unsigned label = labels[i / (CLASSES / 4)], column = 4 * (i % (CLASSES / 4));
    float4 v = ((const float4 *)logarithms)[i];
    store(gradient, i,
          {share * (expf(v.x) - of_label(column, label)),
           share * (expf(v.y) - of_label(column + 1, label)),
           share * (expf(v.z) - of_label(column + 2, label)),
           share * (expf(v.w) - of_label(column + 3, label))});
}

// The steps of AdamW on one value.

__device__ __forceinline__ float decayed(float w) { return w * (float)(1.0 - RATE * DECAY); }
__device__ __forceinline__ float first_moment(float m, float g) {
    return fmaf((float)(1.0 - BETA_1), g - m, m);
}
__device__ __forceinline__ float aged(float v) { return v * (float)BETA_2; }
__device__ __forceinline__ float with_square(float v, float g) {
    return fmaf((float)(1.0 - BETA_2) * g, g, v);
}
__device__ __forceinline__ float denominator(float root, float correction) {
    return fmaf(root, correction, (float)EPSILON);
}
__device__ __forceinline__ float moved(float w, float rate, float m, float d) {
    return w - rate * (m / d);
}

struct Value {
    float w, m, v;
};

__device__ __forceinline__ Value updated(float w, float g, float m, float v, float rate,
                                         float correction) {
    m = first_moment(m, g);
    v = with_square(aged(v), g);
    return {moved(decayed(w), rate, m, denominator(sqrtf(v), correction)), m, v};
}

// AdamW on all parameters in one pass; with COPIES it also writes them as BF16, for products.
template <bool COPIES>
__device__ void adamw(float *w, const float *g, float *m, float *v, bf16 *copies,
                      const Counter *counter, unsigned count) {
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    float rate = (float)counter->rate, correction = (float)counter->root;
    float4 w4 = ((float4 *)w)[i], g4 = ((const float4 *)g)[i];
    float4 m4 = ((float4 *)m)[i], v4 = ((float4 *)v)[i];
    Value a = updated(w4.x, g4.x, m4.x, v4.x, rate, correction);
    Value b = updated(w4.y, g4.y, m4.y, v4.y, rate, correction);
    Value c = updated(w4.z, g4.z, m4.z, v4.z, rate, correction);
    Value d = updated(w4.w, g4.w, m4.w, v4.w, rate, correction);
    store(w, i, {a.w, b.w, c.w, d.w});
    store(m, i, {a.m, b.m, c.m, d.m});
    store(v, i, {a.v, b.v, c.v, d.v});
    if constexpr (COPIES) store(copies, i, {a.w, b.w, c.w, d.w});
}

extern "C" __global__ void __launch_bounds__(THREADS)
adamw_f32(float *w, const float *g, float *m, float *v, const Counter *counter, unsigned count) {
    adamw<false>(w, g, m, v, (bf16 *)0, counter, count);
}
extern "C" __global__ void __launch_bounds__(THREADS)
adamw_bf16(float *w, const float *g, float *m, float *v, bf16 *copies, const Counter *counter,
           unsigned count) {
    adamw<true>(w, g, m, v, copies, counter, count);
}

// The same in one kernel per step, each over all parameters.

extern "C" __global__ void adamw_advance(Counter *counter) { advance(counter); }

// A function of each value of some fours.
template <class F, class... Four>
__device__ __forceinline__ float4 each(F of, Four... v) {
    return {of(v.x...), of(v.y...), of(v.z...), of(v.w...)};
}

ON_FOURS(adamw_decay, w, each(decayed, load(w, i)), float *w)
ON_FOURS(adamw_first, m, each(first_moment, load(m, i), load(g, i)), float *m, const float *g)
ON_FOURS(adamw_age, v, each(aged, load(v, i)), float *v)
ON_FOURS(adamw_second, v, each(with_square, load(v, i), load(g, i)), float *v, const float *g)
ON_FOURS(adamw_root, root, each([](float v) { return sqrtf(v); }, load(v, i)),
         const float *v, float *root)
ON_FOURS(adamw_denominator, root,
         each([c = (float)counter->root](float r) { return denominator(r, c); }, load(root, i)),
         float *root, const Counter *counter)
ON_FOURS(adamw_move, w,
         each([=](float w, float m, float d) { return moved(w, (float)counter->rate, m, d); },
              load(w, i), load(m, i), load(d, i)),
         float *w, const float *m, const float *d, const Counter *counter)
