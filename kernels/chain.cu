// One link of a chain of small kernels: y = factor * x + term. x and y may be the same.
extern "C" __global__ void chain_link(const float *x, float *y, float factor, float term,
                                      unsigned long long n) {
    elementwise(x, y, n, [=](float v) { return __fmaf_rn(factor, v, term); });
}

// The same for programmatic dependent launches: it lets the next link start as soon as all of its
// own blocks have, and touches memory only when the link before it is done and its writes are
// visible. Since a link is done only after the one before it, the third cannot overtake the
// first. Devices before sm_90 have no such launches.
extern "C" __global__ void chain_link_dependent(const float *x, float *y, float factor, float term,
                                                unsigned long long n) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    elementwise(x, y, n, [=](float v) { return __fmaf_rn(factor, v, term); });
}
