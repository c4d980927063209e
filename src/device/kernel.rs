//! Kernel sources, compiled by NVRTC and loaded. The processes of a run share the machine code, because NVRTC takes
//! seconds for some sources.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction};
use cudarc::nvrtc::Ptx;
use rayon::prelude::*;

use crossover_machine::libraries::{self, Absence, NO_NVRTC};
use crossover_words::files::replace;

use crate::timing::{Called, CudaError, machine_code};

/// One compute capability of each generation that CUDA 13 compiles for: major, minor.
pub const ARCHITECTURES: [(u32, u32); 7] =
    [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)];

/// A CUDA C++ source, embedded in the executable and compiled at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// File name, for the compiler's messages and debug information.
    pub name: &'static str,
    /// The text.
    pub text: &'static str,
    /// Options of NVRTC beside the architecture, such as `--use_fast_math`.
    pub options: &'static [&'static str],
    /// Oldest compute capability that the source compiles for: major, minor.
    pub oldest: (u32, u32),
}

/// A compiled kernel source.
#[derive(Clone, Debug)]
pub struct Cubin {
    /// Machine code for one architecture.
    pub image: Vec<u8>,
    /// The compiler's log, with registers and spills of each kernel.
    pub log: String,
}

/// Why a source did not compile.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileError {
    /// NVRTC is not installed.
    #[error("{0}")]
    Absent(Absence),
    /// The source uses what the device is too old for.
    #[error(
        "{name} needs compute capability {}.{} and the device has {}.{}: a newer one runs it",
        oldest.0, oldest.1, arch.0, arch.1
    )]
    TooOld {
        /// File name of the source.
        name: &'static str,
        /// Oldest compute capability that the source compiles for: major, minor.
        oldest: (u32, u32),
        /// Compute capability that it was to be compiled for.
        arch: (u32, u32),
    },
    /// The compiler rejected the source.
    #[error("NVRTC rejected {name} for sm_{}{}: {log}", arch.0, arch.1)]
    Rejected {
        /// File name of the source.
        name: &'static str,
        /// Compute capability it was compiled for.
        arch: (u32, u32),
        /// The compiler's log.
        log: String,
    },
}

impl Source {
    /// A source without options, for compute capability 7.5 and later.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            options: &[],
            oldest: (7, 5),
        }
    }

    /// Compiles the source to machine code for the compute capability `arch` (major, minor). Needs
    /// NVRTC and no GPU.
    ///
    /// # Errors
    /// [`CompileError::TooOld`] below [`Self::oldest`], [`CompileError::Absent`] without NVRTC,
    /// [`CompileError::Rejected`] with the compiler's log.
    pub fn compile(&self, arch: (u32, u32)) -> Result<Cubin, CompileError> {
        if arch < self.oldest {
            let Self { name, oldest, .. } = *self;
            return Err(CompileError::TooOld { name, oldest, arch });
        }
        if !libraries::nvrtc() {
            return Err(CompileError::Absent(NO_NVRTC));
        }
        let rejected = |log: String| CompileError::Rejected {
            name: self.name,
            arch,
            log,
        };
        let mut options = vec![
            format!("--gpu-architecture=sm_{}{}", arch.0, arch.1),
            "--std=c++17".to_owned(),
            "--generate-line-info".to_owned(),
            "--ptxas-options=-v".to_owned(),
        ];
        options.extend(self.options.iter().map(|o| (*o).to_owned()));
        let (image, log) = machine_code(self.name, self.text, &options).map_err(rejected)?;
        Ok(Cubin { image, log })
    }
}

impl Cubin {
    /// Loads the machine code into a context.
    ///
    /// # Errors
    /// The driver's error of `cuModuleLoadData`.
    pub fn load(self, context: &Arc<CudaContext>) -> Result<Module, CudaError> {
        let module = context
            .load_module(Ptx::from_binary(self.image))
            .called("cuModuleLoadData")?;
        Ok(Module { module })
    }
}

/// The kernels of a source, loaded into a context.
#[derive(Clone, Debug)]
pub struct Module {
    module: Arc<cudarc::driver::CudaModule>,
}

impl Module {
    /// The kernel of this name. Declare kernels `extern "C"`, so that their names are not mangled.
    ///
    /// # Errors
    /// The driver's error of `cuModuleGetFunction`, above all where there is no such kernel.
    pub fn function(&self, name: &str) -> Result<CudaFunction, CudaError> {
        self.module
            .load_function(name)
            .called("cuModuleGetFunction")
    }
}

/// The folder in which the processes of a run share machine code; `None` where they share none. Only
/// processes of one executable on one machine use it, so source and architecture identify a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedKernels(pub(crate) Option<PathBuf>);

impl SharedKernels {
    /// The machine code of `source` for the compute capability `arch` (major, minor). Code that another
    /// process compiled has no log.
    ///
    /// # Errors
    /// Those of [`Source::compile`].
    pub(in crate::device) fn cubin(
        &self,
        source: &Source,
        arch: (u32, u32),
    ) -> Result<Cubin, CompileError> {
        match &self.0 {
            Some(folder) => shared(&folder.join(file_name(source, arch)), || {
                source.compile(arch)
            }),
            None => source.compile(arch),
        }
    }

    /// Compiles these sources on all cores before they are needed. Nothing may be timed meanwhile. An
    /// error is reported when the source is needed.
    pub(crate) fn compile_ahead(&self, sources: &[&Source], arch: (u32, u32)) {
        if self.0.is_some() {
            sources.par_iter().with_max_len(1).for_each(|source| {
                let _ = self.cubin(source, arch);
            });
        }
    }
}

/// A hash of the whole source: those of two groups may have the same name.
fn file_name(source: &Source, (major, minor): (u32, u32)) -> String {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    format!("{:016x}.sm_{major}{minor}", hasher.finish())
}

fn shared(
    file: &Path,
    compile: impl FnOnce() -> Result<Cubin, CompileError>,
) -> Result<Cubin, CompileError> {
    if let Ok(image) = fs::read(file) {
        let log = String::new();
        return Ok(Cubin { image, log });
    }
    let cubin = compile()?;
    // If it cannot be kept, the next process compiles again.
    let _ = replace(file, &cubin.image);
    Ok(cubin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_share_what_they_compile() {
        let source = |text| Source {
            name: "a.cu",
            text,
            options: &[],
            oldest: (7, 5),
        };
        // Sources of one name are kept apart.
        let name = file_name(&source("one"), (9, 0));
        assert_ne!(name, file_name(&source("other"), (9, 0)));
        assert_ne!(name, file_name(&source("one"), (8, 0)));
        let compiled = || {
            Ok(Cubin {
                image: vec![1, 2, 3],
                log: "log".to_owned(),
            })
        };
        let folder = tempfile::tempdir().unwrap();
        // A folder that is gone costs a compilation alone.
        for file in [
            Path::new("/nonexistent").join(&name),
            folder.path().join(&name),
        ] {
            assert_eq!(shared(&file, compiled).unwrap().log, "log");
        }
        let again = shared(&folder.path().join(&name), || panic!("compiled again"));
        assert_eq!(again.unwrap().image, [1, 2, 3]);
    }
}
