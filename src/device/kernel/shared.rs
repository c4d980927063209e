//! Machine code that the processes of a run share, because NVRTC takes seconds for some sources.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::device::kernel::compile::{CompileError, Cubin, Source};
use crossover_words::files::replace;

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
    fn a_second_process_compiles_nothing_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.cu.sm_90");
        let compiled = || {
            Ok(Cubin {
                image: vec![1, 2, 3],
                log: "log".to_owned(),
            })
        };
        assert_eq!(shared(&file, compiled).unwrap().log, "log");
        let again = shared(&file, || panic!("compiled again")).unwrap();
        assert_eq!(again.image, [1, 2, 3]);
    }

    #[test]
    fn sources_of_one_name_are_kept_apart() {
        let source = |text| Source {
            name: "a.cu",
            text,
            options: &[],
            oldest: (7, 5),
        };
        let (one, other) = (source("one"), source("other"));
        assert_eq!(file_name(&one, (9, 0)), file_name(&one, (9, 0)));
        assert_ne!(file_name(&one, (9, 0)), file_name(&other, (9, 0)));
        assert_ne!(file_name(&one, (9, 0)), file_name(&one, (8, 0)));
    }

    #[test]
    fn a_folder_that_is_gone_costs_a_compilation_alone() {
        let file = Path::new("/nonexistent/folder/a.cu.sm_90");
        let image = vec![1];
        let log = String::new();
        assert_eq!(
            shared(file, || Ok(Cubin { image, log })).unwrap().image,
            [1]
        );
    }
}
