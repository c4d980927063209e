//! What a benchmark is called: `<group>/<cpu|gpu>/<implementation>/<size>`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Where a benchmark's work runs: the second part of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// The processor.
    Cpu,
    /// The GPU.
    Gpu,
}

impl Device {
    /// The device of this name, `cpu` or `gpu`.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "cpu" => Some(Device::Cpu),
            "gpu" => Some(Device::Gpu),
            _ => None,
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Gpu => "gpu",
        })
    }
}

/// Device and implementation of a function part such as `gpu/cublas`; `None` where it has not
/// this form.
pub fn function(text: &str) -> Option<(Device, &str)> {
    let (device, implementation) = text.split_once('/')?;
    let device = Device::of(device)?;
    (!implementation.is_empty()).then_some((device, implementation))
}

/// The function part, such as `gpu/cublas`.
pub fn function_of(device: Device, implementation: &str) -> String {
    format!("{device}/{implementation}")
}

/// The device that an id names, where it has this suite's form.
pub fn device(id: &str) -> Option<Device> {
    Device::of(id.split('/').nth(1)?)
}

/// The whole id.
pub fn id(group: &str, function: &str, size: impl fmt::Display) -> String {
    format!("{group}/{function}/{size}")
}

/// Criterion's folder of a benchmark, relative to the results. Criterion replaces `/` by `_`
/// in each part of an id; our ids have no other character that it would change and no part
/// near the 64 bytes at which it cuts.
pub fn directory(group: &str, function: &str, size: u64) -> PathBuf {
    Path::new(group)
        .join(function.replace('/', "_"))
        .join(size.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_put_together_and_taken_apart() {
        assert_eq!(id("matmul", "gpu/cublas", 64), "matmul/gpu/cublas/64");
        assert_eq!(device("matmul/gpu/cublas/64"), Some(Device::Gpu));
        assert_eq!(device("sort/quick/10"), None);
        assert_eq!(function("cpu/a/b"), Some((Device::Cpu, "a/b")));
        for bad in ["cpu", "cpu/", "tpu/x", ""] {
            assert_eq!(function(bad), None, "{bad:?}");
        }
        let path = directory("matmul", "gpu/cublas", 64);
        assert_eq!(path, Path::new("matmul/gpu_cublas/64"));
    }
}
