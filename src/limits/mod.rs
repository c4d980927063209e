//! The measured limits of the machine. Every share of a limit refers to these, and on the GPU to
//! [`flop_per_clock`](crossover_results::analysis::peak::flop_per_clock) times the clock that NVML reads.
//!
//! | limit | unit | what |
//! | --- | --- | --- |
//! | `gpu_fma` | FLOP/s | f32 fused multiply-adds in registers |
//! | `h2d_pinned`, `d2h_pinned` | B/s | copy between pinned host memory and the device |
//! | `launch_latency` | ns | an empty kernel launched eagerly, one after the other |
//! | `empty_kernel` | ns | an empty kernel behind a gate |
//! | `cpu_fma_1`, `cpu_fma_all` | FLOP/s | fused multiply-adds in registers, one thread and all |
//!
//! | curve over the working set, B/s | what |
//! | --- | --- |
//! | `gpu_read`, `gpu_copy` | the L2 cache and the device's memory, 256 KiB to 2 GiB |
//! | `cpu_read`, `cpu_write`, `cpu_copy` | the caches and the memory, all threads, 32 KiB to 1 GiB |

pub(crate) mod cpu;
pub(crate) mod gpu;
pub(crate) mod measured;

pub use gpu::{LIMITS, fma_rate};
