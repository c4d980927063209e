//! The id of a benchmark: `<group>/<cpu|gpu>/<implementation>/<size>`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

/// Where a benchmark's work runs: the second part of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
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

/// The id of one benchmark, in this suite's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    /// The operation.
    pub group: String,
    /// Device and implementation, such as `gpu/cublas`.
    pub function: String,
    /// Problem size.
    pub size: u64,
}

impl Id {
    /// The id of a function, such as `gpu/cublas`, at a size.
    pub fn new(group: &str, function: &str, size: u64) -> Self {
        Self {
            group: group.to_owned(),
            function: function.to_owned(),
            size,
        }
    }

    /// Criterion's folder of the benchmark, relative to the results. Criterion replaces `/` by `_`
    /// in each part of an id; our ids have no other character that it would change and no part
    /// near the 64 bytes at which it cuts.
    pub fn directory(&self) -> PathBuf {
        let function = self.function.replace('/', "_");
        // With the separator that Criterion writes on every system.
        format!("{}/{function}/{}", self.group, self.size).into()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.group, self.function, self.size)
    }
}

/// The error of reading an [`Id`] from a text of another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not <group>/<cpu|gpu>/<implementation>/<size>")]
pub struct NotAnId;

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let (group, rest) = text.split_once('/').ok_or(NotAnId)?;
        let (name, size) = rest.rsplit_once('/').ok_or(NotAnId)?;
        let size = size.parse().map_err(|_| NotAnId)?;
        let has_form = !group.is_empty() && function(name).is_some();
        has_form
            .then(|| Self::new(group, name, size))
            .ok_or(NotAnId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_put_together_and_taken_apart() {
        let id = Id::new("matmul", "gpu/cublas", 64);
        assert_eq!(id.to_string(), "matmul/gpu/cublas/64");
        assert_eq!("matmul/gpu/cublas/64".parse(), Ok(id.clone()));
        for bad in ["sort/quick/10", "/cpu/a/1", "a/cpu/b/many", "a", "a/cpu//1"] {
            assert_eq!(bad.parse::<Id>(), Err(NotAnId), "{bad}");
        }
        assert_eq!(device("matmul/gpu/cublas/64"), Some(Device::Gpu));
        assert_eq!(device("sort/quick/10"), None);
        assert_eq!(id.directory(), PathBuf::from("matmul/gpu_cublas/64"));
    }
}
