//! Clocks for CPU and GPU code.
mod clock;
pub use clock::Clock;
