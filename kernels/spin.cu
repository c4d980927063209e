// Kernels of known duration, to test clocks with.

// Does nothing: its time is that of the launch.
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

// As `spin`, and writes the nanoseconds from its first to its last reading of the clock, for the host
// to compare its own clock with.
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
