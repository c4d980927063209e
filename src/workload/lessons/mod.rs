//! Groups that show what one technique is worth, or what a call costs: launching, waiting, copying,
//! overlapping, allocating, the first call of a process, and ways of timing.

pub mod cold_start;
pub mod graph_replay;
pub mod host_sync;
pub mod loader;
pub mod memory;
pub mod product_chain;
pub mod streams;
pub mod timing_methods;
pub mod transfer;
pub mod warming_up;
