// A copy made by a kernel that reads the source itself, 16 bytes per thread and step. The
// source may be host memory that is mapped into the device's address space.
extern "C" __global__ void copy_bytes(unsigned char *to, const unsigned char *from,
                                      unsigned long long bytes) {
    unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long vectors = bytes / 16;
    for (unsigned long long i = first; i < vectors; i += step)
        ((uint4 *)to)[i] = ((const uint4 *)from)[i];
    for (unsigned long long i = vectors * 16 + first; i < bytes; i += step)
        to[i] = from[i];
}
