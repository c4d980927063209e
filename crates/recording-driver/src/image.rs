//! The content of a module: the text that the NVRTC stand-in returns instead of machine code, or PTX.
//!
//! The text lists each kernel with its parameters, because `cuLaunchKernel` gets pointers to arguments
//! without their sizes:
//!
//! ```text
//! crossover-image
//! source matmul.cu
//! kernel 1024 matmul_fetch
//! param 8 float *
//! param 4 unsigned int
//! end
//! ```
//!
//! `kernel` has the most threads of a block (1024 or the value of `__launch_bounds__`) and the name;
//! `param` the size in bytes and the type as in the source, without `const`, `__restrict__` and the
//! like. `end` is needed because a module is loaded from an address without a length.

use std::fmt::Write;

/// The first line of the text.
const HEADER: &str = "crossover-image";

/// The kernels of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// File name of the source; empty for PTX, which does not name it.
    pub source: String,
    /// In the order of the source.
    pub kernels: Vec<Kernel>,
}

/// Registers per thread of every kernel, a fixed number because nothing is compiled. With it, a
/// multiprocessor holds 2 × 1024 threads, the most that any launch bound here requires.
pub(crate) const REGISTERS: i32 = 32;
/// The most threads of a block of a kernel without launch bounds, or with one that is computed.
pub(crate) const MOST_THREADS: u32 = 1024;

/// An entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name that `cuModuleGetFunction` looks for.
    pub name: String,
    /// The most threads that a block may have.
    pub threads: u32,
    /// In the order of the source.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes.
    pub size: usize,
    /// Type as the source writes it, such as `float *` or `unsigned int`; in PTX `.u64`.
    pub type_name: String,
}

impl Image {
    /// The text as bytes that end with a zero.
    pub fn to_bytes(&self) -> Vec<u8> {
        (self.to_text() + "\0").into_bytes()
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\nsource {}\n", self.source);
        for kernel in &self.kernels {
            let _ = writeln!(text, "kernel {} {}", kernel.threads, kernel.name);
            for Parameter { size, type_name } in &kernel.parameters {
                let _ = writeln!(text, "param {size} {type_name}");
            }
        }
        text.push_str("end\n");
        text
    }

    /// Reads the text of an image, or PTX.
    ///
    /// # Errors
    /// A sentence with the line that is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if text.starts_with("\u{7f}ELF") {
            return Err(
                "a module in machine code, of which only the recording driver's own NVRTC knows the \
                 kernels: put that in place of the real one too"
                    .to_owned(),
            );
        }
        if lines.next() != Some(HEADER) {
            return from_ptx(text);
        }
        let mut image = Self::default();
        for line in lines.take_while(|line| *line != "end") {
            let wrong = || format!("an image has no line `{line}`");
            let (word, rest) = line.split_once(' ').ok_or_else(wrong)?;
            match word {
                "source" => image.source = rest.to_owned(),
                "kernel" => image.kernels.push(kernel(rest).ok_or_else(wrong)?),
                "param" => {
                    let kernel = image.kernels.last_mut().ok_or_else(wrong)?;
                    kernel.parameters.push(parameter(rest).ok_or_else(wrong)?);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(image)
    }
}

fn kernel(line: &str) -> Option<Kernel> {
    let (threads, name) = line.split_once(' ')?;
    Some(Kernel {
        name: name.to_owned(),
        threads: threads.parse().ok()?,
        parameters: Vec::new(),
    })
}

fn parameter(line: &str) -> Option<Parameter> {
    let (size, type_name) = line.split_once(' ')?;
    Some(Parameter {
        size: size.parse().ok()?,
        type_name: type_name.to_owned(),
    })
}

/// The entry points of PTX: `.visible .entry name(`, a line `.param .u64 flag,` for each parameter,
/// and `)`.
fn from_ptx(text: &str) -> Result<Image, String> {
    if !text.contains(".entry") {
        return Err(
            "a module is an image of the stand-in for NVRTC, or PTX; this is neither".to_owned(),
        );
    }
    let mut kernels = Vec::new();
    for entry in text.split(".entry").skip(1) {
        let (name, rest) = entry.split_once('(').ok_or("an entry of PTX without `(`")?;
        let (list, _) = rest.split_once(')').ok_or("an entry of PTX without `)`")?;
        let parameters = list.split(',').filter(|item| !item.trim().is_empty());
        let parameters = parameters.map(|item| {
            let mut words = item.split_whitespace().skip(1);
            let type_name = words.next()?.to_owned();
            let bits: usize = type_name.get(2..)?.parse().ok()?;
            let size = bits / 8;
            Some(Parameter { size, type_name })
        });
        kernels.push(Kernel {
            name: name.trim().to_owned(),
            threads: MOST_THREADS,
            parameters: parameters
                .collect::<Option<_>>()
                .ok_or_else(|| format!("PTX with a parameter that is not understood: {list}"))?,
        });
    }
    Ok(Image {
        source: String::new(),
        kernels,
    })
}
