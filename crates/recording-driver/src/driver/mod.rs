//! The functions of `libcuda.so.1` that the suite and cudarc call, by their names and signatures
//! there. Handles are numbers, which nobody dereferences.

mod device;
mod event;
mod graph;
mod memory;
mod module;
mod stream;

use crate::call::Library;

const DRIVER: Library = Library {
    statuses: None,
    logged: true,
};
