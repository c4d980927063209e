//! What only a device can show: each test is ignored unless it is asked for.

mod device;
mod host_memory;
mod launch;
mod lessons;
mod limits;
mod matmul;
mod monitor;
mod precision;
mod sine;
