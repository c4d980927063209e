//! The limits of the machine, measured rather than read from a datasheet: whatever calls
//! itself a share of a limit refers to these.
//!
//! | name | unit | what |
//! | --- | --- | --- |
//! | `gpu_copy` | B/s | device-to-device copy, bytes read plus bytes written |
//! | `gpu_sgemm` | FLOP/s | cuBLAS SGEMM, large N |
//! | `h2d_pinned`, `d2h_pinned` | B/s | copy between pinned host memory and the device |
//! | `launch_latency` | ns | an empty kernel launched eagerly, one after the other |
//! | `empty_kernel` | ns | an empty kernel behind a gate |
//! | `cpu_fma_1`, `cpu_fma_all` | FLOP/s | fused multiply-adds in registers, one thread and all |
//! | `cpu_memory` | B/s | copy between arrays far larger than the caches, all threads, bytes read plus bytes written |

pub(crate) mod cpu;
mod entry;
pub(crate) mod gpu;
