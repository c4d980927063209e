// The small step between two products: each row of a square matrix, divided by its largest magnitude.
// A warp takes a row.
extern "C" __global__ void normalise_rows(const float *x, float *y, unsigned n) {
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    x += 1ull * row * n;
    y += 1ull * row * n;
    float largest = 0.0f;
    for (unsigned i = threadIdx.x % 32; i < n; i += 32) largest = fmaxf(largest, fabsf(x[i]));
    largest = warp_max(largest);
    for (unsigned i = threadIdx.x % 32; i < n; i += 32) y[i] = x[i] / largest;
}
