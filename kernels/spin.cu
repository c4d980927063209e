// Kernels of known duration, which a clock must give back.

// Does nothing: what remains of its time is the launch.
extern "C" __global__ void empty() {}

// Runs for `nanoseconds` by the device's own clock, from its first instruction to its last.
// One thread decides; the clock's step (32 ns on Hopper, up to 1 us on other devices) bounds
// the accuracy. The asm is volatile, so each read of the clock happens.
extern "C" __global__ void spin(unsigned long long nanoseconds) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}

// The same, and writes the nanoseconds from its first reading of the clock to its last, which
// a clock on the host must give back.
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
