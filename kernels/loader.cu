// Consumes a batch of images, and takes about as long as a small network: each byte becomes a value
// in [-1, 1], is turned `steps` times about the origin together with a second coordinate, and is
// added up. The integer sum of the bytes, byte i times 2 i + 1, tells whether every byte was the
// right one in the right place.
//
// Each block writes one sum of values and one of bytes.

#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS)
consume(const unsigned char *batch, unsigned long long bytes, float cosine, float sine,
        unsigned int steps, double *value_sums, unsigned long long *byte_sums) {
    unsigned long long first = (unsigned long long)blockIdx.x * THREADS + threadIdx.x;
    unsigned long long stride = (unsigned long long)gridDim.x * THREADS;
    double value_sum = 0.0;
    unsigned long long byte_sum = 0;
    for (unsigned long long word = first; word < bytes / 4; word += stride) {
        uchar4 v = ((const uchar4 *)batch)[word];
        unsigned int b[4] = {v.x, v.y, v.z, v.w};
        float x[4], y[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            byte_sum += b[k] * (8 * word + 2 * k + 1);
            x[k] = fmaf((float)b[k], 1.0f / 127.5f, -1.0f);
            y[k] = 0.5f;
        }
        for (unsigned int step = 0; step < steps; ++step) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                float turned = fmaf(cosine, x[k], -(sine * y[k]));
                y[k] = fmaf(sine, x[k], cosine * y[k]);
                x[k] = turned;
            }
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) value_sum += (double)x[k];
    }

    __shared__ double values[THREADS];
    __shared__ unsigned long long places[THREADS];
    values[threadIdx.x] = value_sum;
    places[threadIdx.x] = byte_sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            values[threadIdx.x] += values[threadIdx.x + half];
            places[threadIdx.x] += places[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        value_sums[blockIdx.x] = values[0];
        byte_sums[blockIdx.x] = places[0];
    }
}
