//! Products C = A B: their shape, the formats of their operands, what follows them, and the ways to
//! compute one on the CPU and on the GPU, of which a calibration chooses the fastest.

mod cpu;
mod cublas;
mod few_rows;
mod gpu;
mod grid;
mod shape;
mod tile;

pub(crate) use cpu::{CpuPlan, LONG, PER_THREAD, candidates, products};
pub(crate) use cublas::{CUBLAS_WORKSPACE, Workspace};
pub(crate) use few_rows::FEW_ROWS;
pub(crate) use gpu::{GpuPlan, fastest};
pub use grid::Element;
pub(crate) use grid::{Library, loops};
pub use shape::Shape;
pub(crate) use shape::{FP8_SCALE, Matrix, Product, properties};
pub(crate) use tile::{LINEAR, MATMUL, TILES, Tile, fitting};
