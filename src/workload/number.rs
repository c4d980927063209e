//! The number formats of operations as values in device memory, with their names in choices and their
//! costs.

pub use crossover_arithmetic::{DoubleDouble, Wide};

use crate::device::Value;
use crate::model::{Cost, LinkBytes};

/// f32 or f64.
pub trait Number: Value + crossover_arithmetic::Number {}

impl<T: Value + crossover_arithmetic::Number> Number for T {}

/// The format's words in the names of choices.
pub(crate) fn in_format<T: Number>() -> &'static str {
    match size_of::<T>() {
        4 => "",
        _ => " in f64",
    }
}

/// The cost in f64: twice the bytes.
pub(crate) fn in_f64(cost: Cost) -> Cost {
    let link = |bytes: LinkBytes| LinkBytes::new(2.0 * bytes.to_device, 2.0 * bytes.to_host);
    Cost {
        bytes: cost.bytes.map(|bytes| 2.0 * bytes),
        written: cost.written.map(|bytes| 2.0 * bytes),
        link_bytes: cost.link_bytes.map(link),
        ..cost
    }
}
