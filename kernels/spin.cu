// Kernels of known duration, which a clock must report.

// Does nothing: what remains of its time is the launch.
extern "C" __global__ void empty() {}

// Runs for `nanoseconds` by the device's own clock, from its first instruction to its last.
// One thread reads the clock, whose step (32 ns on Hopper, up to 1 us on other devices) bounds
// the accuracy. The asm is volatile, so that the compiler keeps each read.
extern "C" __global__ void spin(unsigned long long nanoseconds) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}

// The same, and writes the nanoseconds from its first reading of the clock to its last, for the
// host to compare its own clock with.
extern "C" __global__ void spin_timed(unsigned long long nanoseconds,
                                      unsigned long long *spun) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
    *spun = now - start;
}
