//! Why a benchmark has no profile, each with its remedy.

use std::fmt;

/// Why a benchmark has no profile, in a sentence with its remedy. The benchmark runs on without.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoProfile {
    /// There is no GPU.
    NoDevice,
    /// CUPTI's library (`libcupti`) was not found.
    NoLibrary,
    /// The library was found and cannot be used.
    BrokenLibrary {
        /// The file, or the name that the loader was given.
        library: String,
        /// What happened.
        message: String,
    },
    /// The library has a version whose records this crate does not know.
    UnknownVersion {
        /// What `cuptiGetVersion` returns.
        version: u32,
    },
    /// The driver is too old for the library.
    DriverTooOld {
        /// The library's version, such as `13.0`.
        version: String,
    },
    /// The driver lets only the administrator profile.
    NotPermitted,
    /// Another profiler, a debugger or a sanitizer is attached.
    OtherProfiler,
    /// Another error of CUPTI.
    Failed {
        /// The call.
        call: &'static str,
        /// CUPTI's text.
        message: String,
    },
    /// The benchmark enqueues nothing on a GPU.
    NothingOnDevice,
    /// Criterion's own `b.iter` or the like timed the benchmark, and its iterations cannot be told
    /// apart; or `iter_cpu`, which knows of no profiler.
    Uncounted,
    /// The benchmark failed before its recording was complete.
    BenchmarkFailed {
        /// Its error.
        message: String,
    },
}

impl NoProfile {
    /// Whether the cause is this machine or process, so that no benchmark has a profile.
    pub fn concerns_every_benchmark(&self) -> bool {
        match self {
            NoProfile::NoDevice
            | NoProfile::NoLibrary
            | NoProfile::BrokenLibrary { .. }
            | NoProfile::UnknownVersion { .. }
            | NoProfile::DriverTooOld { .. }
            | NoProfile::NotPermitted
            | NoProfile::OtherProfiler => true,
            NoProfile::Failed { .. }
            | NoProfile::NothingOnDevice
            | NoProfile::Uncounted
            | NoProfile::BenchmarkFailed { .. } => false,
        }
    }

    /// What the status of a CUPTI call means; `text` is CUPTI's own for it.
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
                version: super::version::name(version),
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

/// The sentence: it is what `main` prints of an error that it returns.
impl fmt::Debug for NoProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NoProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoProfile::NoDevice => write!(
                f,
                "there is no GPU to profile; run on a machine with an NVIDIA GPU and its driver"
            ),
            NoProfile::NoLibrary => write!(
                f,
                "NVIDIA's profiling library (libcupti) was not found; install the CUDA toolkit's CUPTI, or put its \
                 folder (extras/CUPTI/lib64 of the toolkit) into LD_LIBRARY_PATH or the toolkit's into CUDA_HOME"
            ),
            NoProfile::BrokenLibrary { library, message } => write!(
                f,
                "NVIDIA's profiling library {library} cannot be used ({message}); install the CUDA toolkit's CUPTI anew"
            ),
            NoProfile::UnknownVersion { version } => write!(
                f,
                "CUPTI {} is not among the versions whose records are known ({}); put the library of such a toolkit first in LD_LIBRARY_PATH",
                super::version::name(*version),
                super::version::KNOWN
            ),
            NoProfile::DriverTooOld { version } => write!(
                f,
                "CUPTI {version} does not work with this NVIDIA driver; update the driver, or put the CUPTI of an older toolkit first in LD_LIBRARY_PATH"
            ),
            NoProfile::NotPermitted => write!(
                f,
                "the driver lets only the administrator profile; run as root, or load the nvidia module with \
                 NVreg_RestrictProfilingToAdminUsers=0"
            ),
            NoProfile::OtherProfiler => write!(
                f,
                "another profiler, debugger or sanitizer is attached and CUPTI serves only one; run without it{}",
                if std::env::var_os("CUDA_INJECTION64_PATH").is_some() {
                    " (CUDA_INJECTION64_PATH is set)"
                } else {
                    ""
                }
            ),
            NoProfile::Failed { call, message } => write!(
                f,
                "{call} failed: {message}; check `nvidia-smi`, and NVIDIA's release notes of CUPTI for this driver"
            ),
            NoProfile::NothingOnDevice => write!(
                f,
                "it enqueues nothing on a GPU, so there is nothing to record; profile it with perf"
            ),
            NoProfile::Uncounted => write!(
                f,
                "it is CPU code, or its iterations could not be told apart; time work of the GPU with iter_gated, \
                 iter_wall or another method of CudaBencherExt that takes the CudaTime"
            ),
            NoProfile::BenchmarkFailed { message } => write!(
                f,
                "it failed before its recording was complete ({message}); make it run without the profiler first"
            ),
        }
    }
}

impl std::error::Error for NoProfile {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_one_sentence_with_a_remedy() {
        let of =
            |status| NoProfile::of_status("cuptiActivityEnable", status, "text".into(), 130_001);
        let all = [
            NoProfile::NoDevice,
            NoProfile::NoLibrary,
            NoProfile::BrokenLibrary {
                library: "libcupti.so".to_owned(),
                message: "no symbol".to_owned(),
            },
            NoProfile::UnknownVersion { version: 140_000 },
            of(14),
            of(35),
            of(39),
            of(999),
            NoProfile::NothingOnDevice,
            NoProfile::Uncounted,
            NoProfile::BenchmarkFailed {
                message: "out of memory".to_owned(),
            },
        ];
        for (i, reason) in all.iter().enumerate() {
            let text = reason.to_string();
            assert!(text.contains("; "), "a cause and a remedy: {text}");
            assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
            assert!(all[..i].iter().all(|r| r.to_string() != text), "{text}");
        }
        assert_eq!(of(35), NoProfile::NotPermitted);
        assert_eq!(of(40), NoProfile::NotPermitted);
        assert!(of(14).to_string().contains("CUPTI 13.0"));
        assert!(matches!(of(12), NoProfile::Failed { .. }));
        let subscribing = NoProfile::of_status("cuptiSubscribe", 12, String::new(), 26);
        assert_eq!(subscribing, NoProfile::OtherProfiler);
    }
}
