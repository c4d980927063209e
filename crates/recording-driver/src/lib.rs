//! Stands in for the CUDA driver and its libraries, so that GPU code runs where there is no GPU.
//!
//! A test makes a folder with links of the libraries' names (`libcuda.so.1`, `libcublas.so.13`, ...) to
//! this one shared library and starts itself again with `LD_LIBRARY_PATH` on that folder.
//!
//! # What a test wants of it
//!
//! | a test wants to know | so the driver |
//! | --- | --- |
//! | which calls a row makes, in which order, with sizes, geometry and counts | writes each call as a line of a text ([`log`]), with names in place of addresses |
//! | that a failing call is handled | lets a call fail ([`fault`]), and counts the calls that can fail ([`control`]) |
//! | that the host does nothing that the driver forbids | refuses the call, or ends the process with a sentence where the real driver would corrupt memory |
//! | that the host waits for what it reads | runs copies and sets in stream order, as late as possible |
//! | that a clock reads the time of the work | gives each piece of work a known time on a virtual clock |
//! | all of this on several devices | takes a list of descriptions ([`device`]). Each device has a primary context, memory, streams and events of its own; it uses another device's memory only if it was given access |
//!
//! Functions that serve none of these are left out. Kernels write nothing, nor do sets of twice the L2 cache
//! or more, as a flush is.
//! The parameters of kernels come from `kernels.txt`, which NVRTC is asked for; the heuristic of cuBLASLt
//! always gives the same answer. cudarc names a function that is missing here (`Missing symbol cuX`): write it
//! into an `exported!` block in the file of its object, as a function of the state with Rust types.
//! The block adds the C symbol, the count and the planted fault.

#[macro_use]
pub mod fault;
#[macro_use]
pub mod log;

mod call;
mod capture;
mod clock;
mod context;
pub mod control;
mod copies;
mod cublas;
mod cublaslt;
mod cufft;
mod cupti;
pub mod device;
mod effects;
mod event;
mod graph;
mod kernels;
mod launch;
pub mod memory;
pub mod module;
mod nccl;
mod nvml;
mod nvrtc;
mod objects;
mod pool;
mod product;
mod state;
pub mod stream;
#[cfg(test)]
mod tests;
mod work;
