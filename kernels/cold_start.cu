// What a first call runs: small, so that loading and launching it is what takes the time.
extern "C" __global__ void fill(float *x, float value, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}
