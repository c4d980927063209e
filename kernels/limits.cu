// The kernels that measure the limits of the device. Each is launched once per measurement with work
// for several hundred microseconds, so that the cost of a launch is negligible.

// A load past the L1 cache: each launch finds that cache empty, so a kernel that streams its data
// gets them from the L2 cache at best. Volatile, so that the compiler keeps loads whose value is
// not used.
__device__ __forceinline__ uint4 load(const uint4 *from) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

// Reads `total` vectors of 16 bytes from a working set of `mask` + 1 of them, a power of two, from
// its start to its end and again. A thread has four loads in flight, to hide the latency of the
// memory.
extern "C" __global__ void __launch_bounds__(256)
read_again(const uint4 *from, unsigned mask, unsigned total, unsigned *sink) {
    unsigned step = gridDim.x * blockDim.x;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned seen = 0;
    for (; i + 3 * step < total; i += 4 * step) {
        uint4 a = load(from + (i & mask));
        uint4 b = load(from + ((i + step) & mask));
        uint4 c = load(from + ((i + 2 * step) & mask));
        uint4 d = load(from + ((i + 3 * step) & mask));
        seen |= a.x | a.y | a.z | a.w | b.x | b.y | b.z | b.w;
        seen |= c.x | c.y | c.z | c.w | d.x | d.y | d.z | d.w;
    }
    for (; i < total; i += step) {
        uint4 a = load(from + (i & mask));
        seen |= a.x | a.y | a.z | a.w;
    }
    // Never true, but the compiler cannot know that.
    if (seen == 1) *sink = seen;
}

// Copies `total` vectors in the same way, the same `mask` + 1 again and again.
extern "C" __global__ void __launch_bounds__(256)
copy_again(uint4 *to, const uint4 *from, unsigned mask, unsigned total) {
    unsigned step = gridDim.x * blockDim.x;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < total; i += 4 * step) {
        uint4 a = load(from + (i & mask));
        uint4 b = load(from + ((i + step) & mask));
        uint4 c = load(from + ((i + 2 * step) & mask));
        uint4 d = load(from + ((i + 3 * step) & mask));
        to[i & mask] = a;
        to[(i + step) & mask] = b;
        to[(i + 2 * step) & mask] = c;
        to[(i + 3 * step) & mask] = d;
    }
    for (; i < total; i += step) to[i & mask] = load(from + (i & mask));
}

// `rounds` times 512 fused multiply-adds in registers: eight chains that do not wait for each
// other, 64 links of each in a row, so that the loop around them takes under 1 % of the
// instructions. A link reads two registers only, so that no two are in the same bank.
extern "C" __global__ void __launch_bounds__(1024)
fma_chains(float *sink, float factor, unsigned rounds) {
    float chain[8];
#pragma unroll
    for (int i = 0; i < 8; i++) chain[i] = factor + (float)(threadIdx.x + i);
#pragma unroll 1
    for (unsigned round = 0; round < rounds; round++) {
#pragma unroll
        for (int link = 0; link < 64; link++) {
#pragma unroll
            for (int i = 0; i < 8; i++) chain[i] = fmaf(chain[i], factor, factor);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) sum += chain[i];
    // Never true: everything is positive.
    if (sum < 0.0f) *sink = sum;
}
