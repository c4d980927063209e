//! Batched discrete Fourier transforms of complex f32: `X[k] = Σ x[j] e^(-2πi jk / N)`.

pub mod cpu;
pub mod gpu;
mod problem;

pub use problem::{BATCH, Fft, cost};

#[cfg(test)]
mod tests;
