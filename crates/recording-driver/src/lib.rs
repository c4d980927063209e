//! Stands in for the CUDA driver and its libraries, so that GPU code runs where there is no GPU.
//!
//! A test makes a folder with links of the libraries' names (`libcuda.so.1`, `libcublas.so.13`, ...) to
//! this one shared library and starts itself again with `LD_LIBRARY_PATH` on that folder. Memory is
//! then on the host, copies and sets happen in stream order, kernels take a known time and write
//! nothing, calls that the driver forbids fail or end the process with a sentence, and each call is a
//! line of a text. Variables set the file of this text ([`log`]), the properties of the device
//! ([`device`]) and the calls that fail ([`fault`]). [`real`] passes calls through to a real driver,
//! and [`control`] has functions for tests.
//!
//! A missing function has not been needed yet: cudarc names it when it does not find it (`Missing
//! symbol cuX`).

mod call;
mod capture;
mod clock;
mod context;
pub mod control;
mod copies;
mod cublas;
mod cublaslt;
mod cufft;
pub mod device;
mod driver;
mod effects;
mod event;
pub mod fault;
mod graph;
pub mod image;
mod launch;
pub mod log;
pub mod memory;
pub mod module;
mod names;
mod nvml;
pub mod nvrtc;
mod objects;
mod pool;
mod preprocess;
mod product;
pub mod real;
mod signature;
mod state;
pub mod stream;
#[cfg(test)]
mod tests;
mod work;
