//! Stands in for the CUDA driver and the libraries beside it, so that what speaks to a GPU runs
//! where there is none.
//!
//! A test makes a folder with links of their names (`libcuda.so.1`, `libcublas.so.13`, ...) to this
//! one shared library and starts itself again with `LD_LIBRARY_PATH` on that folder. Memory then
//! lies on the host, copies and sets are done for real and in stream order, kernels take a known
//! time and write nothing, what the driver forbids fails or ends the process with a sentence, and
//! each call is a line of a text: see [`log`], [`device`] and [`fault`] for the variables that say
//! where it goes, what device there is and which calls are to fail, [`real`] for passing calls through
//! to a real driver, and [`control`] for what a test may ask of the loaded library.
//!
//! A function that is not here is one that nobody has called yet: cudarc names it when it does not
//! find it (`Missing symbol cuX`).

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
