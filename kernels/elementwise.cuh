// y[i] = operation(x[i]) for n floats. Each thread takes four in one access of 16 bytes; the last
// thread takes the remaining ones. x and y are aligned to 16 bytes and may be the same.
template <typename Operation>
__device__ __forceinline__ void elementwise(const float *x, float *y, unsigned long long n,
                                            Operation operation) {
    const unsigned long long thread =
        blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
    const unsigned long long first = 4 * thread;
    if (first + 4 <= n) {
        const float4 v = *reinterpret_cast<const float4 *>(x + first);
        *reinterpret_cast<float4 *>(y + first) =
            make_float4(operation(v.x), operation(v.y), operation(v.z), operation(v.w));
    } else {
        for (unsigned long long i = first; i < n; ++i) y[i] = operation(x[i]);
    }
}
