//! Warps that a multiprocessor holds at once, from what a kernel takes of it.

use crossover::device::kernel::Resources;

// Limits of compute capability 9.0:
// https://docs.nvidia.com/cuda/cuda-c-programming-guide/#features-and-technical-specifications
// How registers and shared memory are allotted: cuda_occupancy.h of the CUDA toolkit.
const WARP: u32 = 32;
const WARPS: u32 = 64;
const BLOCKS: u32 = 32;
/// A multiprocessor has four partitions, each with its own scheduler and registers.
const PARTITIONS: u32 = 4;
const REGISTERS: u32 = 65_536 / PARTITIONS;
/// Registers are given to a warp in multiples of this.
const REGISTER_UNIT: u32 = 256;
/// Bytes of shared memory, where the L1 cache gets as little as it can.
const SHARED_BYTES: u32 = 228 << 10;
/// Bytes of each block's shared memory that the driver keeps.
const SHARED_RESERVED: u32 = 1 << 10;
const SHARED_UNIT: u32 = 128;

/// Warps resident on a multiprocessor of Hopper when a kernel is launched in blocks of so many
/// threads, at most.
pub(crate) fn warps(kernel: &Resources, threads: u32) -> u32 {
    let warps = threads.div_ceil(WARP);
    let registers = (kernel.registers * WARP).next_multiple_of(REGISTER_UNIT);
    let shared = (kernel.shared + SHARED_RESERVED).next_multiple_of(SHARED_UNIT);
    let blocks = BLOCKS
        .min(WARPS / warps)
        .min(REGISTERS / registers * PARTITIONS / warps)
        .min(SHARED_BYTES / shared);
    blocks * warps
}

/// The first two are the example of NVIDIA's best practices guide, for a device with the same
/// limits on warps and registers (12 and 4 blocks):
/// <https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#calculating-occupancy>
pub(crate) fn each_limit_is_the_one_that_counts() {
    for (limit, registers, shared, threads, resident) in [
        ("registers", 37, 0, 128, 48),
        ("registers", 37, 0, 320, 40),
        ("warps", 32, 0, 128, 64),
        ("blocks", 16, 0, 32, 32),
        ("shared memory", 32, 48 << 10, 256, 32),
    ] {
        let kernel = Resources {
            registers,
            shared,
            ..Resources::default()
        };
        assert_eq!(warps(&kernel, threads), resident, "{limit}");
    }
}
