//! `crossover-clock.json`, the file beside Criterion's that names the clock of a result, for
//! projects that use `crossover-timing` without the suite.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Clock;

/// Lies in the folder of a result, beside Criterion's [`SAMPLES`].
pub const FILE: &str = "crossover-clock.json";
/// Criterion's samples of a result.
pub const SAMPLES: &str = "sample.json";
/// Version of the file's form.
pub const SCHEMA: u64 = 1;

/// The clock of Criterion's samples in `dir`, which a `CudaTime` of `crossover-timing` wrote beside
/// them; `None` without such a file, or if it is about other samples.
pub fn stored_clock(dir: &Path) -> Option<Clock> {
    let (clock, of) = read(dir)?;
    let samples = fs::read(dir.join(SAMPLES)).ok()?;
    (of == digest(&samples)).then_some(clock)
}

/// The clock, and the digest of the samples that it is of.
pub fn read(dir: &Path) -> Option<(Clock, String)> {
    let text = fs::read_to_string(dir.join(FILE)).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    if value["schema"].as_u64()? != SCHEMA {
        return None;
    }
    let clock = Clock::named(value["clock"].as_str()?)?;
    Some((clock, value["samples"].as_str()?.to_owned()))
}

/// FNV-1a with 64 bits: enough to detect other samples, but no protection against forgery.
pub fn digest(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
