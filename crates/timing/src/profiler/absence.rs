//! The reasons why a benchmark has no profile, each with its remedy.

use super::version::{self, KNOWN};

/// Why a benchmark has no profile, in a sentence with its remedy. The benchmark runs without one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoProfile {
    /// There is no GPU.
    #[error("there is no GPU to profile; run on a machine with an NVIDIA GPU and its driver")]
    NoDevice,
    /// CUPTI's library (`libcupti`) was not found.
    #[error(
        "NVIDIA's profiling library (libcupti) was not found; install the CUDA toolkit's CUPTI, or put its \
         folder (extras/CUPTI/lib64 of the toolkit) into LD_LIBRARY_PATH or the toolkit's into CUDA_HOME"
    )]
    NoLibrary,
    /// The library was found and cannot be used.
    #[error(
        "NVIDIA's profiling library {library} cannot be used ({message}); reinstall the CUDA toolkit's CUPTI"
    )]
    BrokenLibrary {
        /// The file, or the name that the loader was given.
        library: String,
        /// The error.
        message: String,
    },
    /// The library has a version whose records this crate does not know.
    #[error(
        "CUPTI {} is not supported; put the library of {KNOWN} first in LD_LIBRARY_PATH",
        version::name(*version)
    )]
    UnknownVersion {
        /// The version that `cuptiGetVersion` returns.
        version: u32,
    },
    /// The driver is too old for the library.
    #[error(
        "CUPTI {version} does not work with this NVIDIA driver; update the driver, or put the CUPTI of an older \
         toolkit first in LD_LIBRARY_PATH"
    )]
    DriverTooOld {
        /// The library's version, such as `13.0`.
        version: String,
    },
    /// The driver allows only administrators to profile.
    #[error(
        "the driver allows only administrators to profile; run as root, or load the nvidia module with \
         NVreg_RestrictProfilingToAdminUsers=0"
    )]
    NotPermitted,
    /// Another profiler, a debugger or a sanitizer is attached, or another thread records.
    #[error(
        "another profiler, debugger or sanitizer is attached, or another thread of this program records, and CUPTI \
         serves only one; run without it{}",
        std::env::var_os("CUDA_INJECTION64_PATH").map_or("", |_| " (CUDA_INJECTION64_PATH is set)")
    )]
    OtherProfiler,
    /// Another error of CUPTI.
    #[error(
        "{call} failed: {message}; check `nvidia-smi`, and NVIDIA's release notes of CUPTI for this driver"
    )]
    Failed {
        /// The call.
        call: &'static str,
        /// CUPTI's text.
        message: String,
    },
    /// The benchmark enqueues nothing on a GPU.
    #[error("it enqueues nothing on a GPU, so there is nothing to record; profile it with perf")]
    NothingOnDevice,
    /// The benchmark was timed by Criterion's own `b.iter` or the like, whose iterations cannot be told
    /// apart, or by `iter_cpu`, which records nothing.
    #[error(
        "it is CPU code, or its iterations could not be told apart; time work of the GPU with iter_gated, \
         iter_wall or another method of CudaBencherExt that takes the CudaTime"
    )]
    Uncounted,
    /// The benchmark failed before its recording was complete.
    #[error(
        "it failed before its recording was complete ({message}); make it run without the profiler first"
    )]
    BenchmarkFailed {
        /// Its error.
        message: String,
    },
}

impl NoProfile {
    /// Whether the cause lies in this machine or process, so that no benchmark can have a profile.
    pub(super) fn concerns_every_benchmark(&self) -> bool {
        !matches!(
            self,
            NoProfile::Failed { .. }
                | NoProfile::NothingOnDevice
                | NoProfile::Uncounted
                | NoProfile::BenchmarkFailed { .. }
        )
    }

    /// The reason for the status of a CUPTI call; `text` is CUPTI's own for it.
    pub(super) fn of_status(
        call: &'static str,
        status: u32,
        text: String,
        version: u32,
    ) -> NoProfile {
        // From `cupti_result.h`. A number and not an enum: a newer library may have more.
        match status {
            // MAX_LIMIT_REACHED, as cuptiSubscribe has it, and MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED.
            12 if call == "cuptiSubscribe" => NoProfile::OtherProfiler,
            39 => NoProfile::OtherProfiler,
            // NOT_COMPATIBLE
            14 => NoProfile::DriverTooOld {
                version: version::name(version),
            },
            // INSUFFICIENT_PRIVILEGES and VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
            35 | 40 => NoProfile::NotPermitted,
            _ => NoProfile::Failed {
                call,
                message: text,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_a_reason_of_one_sentence_with_a_remedy() {
        let reason = |call, status| NoProfile::of_status(call, status, "text".into(), 130_001);
        for (call, status, part) in [
            ("cuptiActivityEnable", 14, "CUPTI 13.0 does not work"),
            ("cuptiActivityEnable", 35, "allows only administrators"),
            ("cuptiActivityEnable", 40, "allows only administrators"),
            ("cuptiActivityEnable", 39, "another profiler"),
            ("cuptiSubscribe", 12, "another profiler"),
            ("cuptiActivityEnable", 12, "failed: text"),
        ] {
            let sentence = reason(call, status).to_string();
            let (cause, remedy) = sentence.split_once("; ").expect(&sentence);
            assert!(cause.contains(part), "{sentence}");
            assert!(!remedy.ends_with(['.', '\n']), "{sentence}");
        }
    }
}
