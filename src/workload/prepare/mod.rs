//! What prepares the routines of operations: memory, steps that are enqueued or replayed, the choice
//! among several ways, threads, vectors, and the handles of libraries. No operation is named here.

pub(crate) mod awaited;
pub(crate) mod block;
pub(crate) mod calibrate;
pub(crate) mod child_process;
pub(crate) mod cublaslt;
pub(crate) mod elementwise;
pub(crate) mod end_to_end;
pub(crate) mod exponential;
pub(crate) mod host_memory;
pub(crate) mod launches;
pub(crate) mod prepared;
pub(crate) mod source;
pub(crate) mod staging;
pub(crate) mod steps;
pub(crate) mod threads;
pub(crate) mod timed;
pub(crate) mod trial;
pub(crate) mod wide;
