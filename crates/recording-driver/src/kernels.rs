//! The kernels of the suite and of the gate, with their parameters: `cuLaunchKernel` gets pointers to
//! arguments without their sizes. NVRTC is asked for the table when a kernel changes, and in CI.

/// Lines of a source, with its kernels below it: name, the most threads of a block, and the types of
/// the parameters.
const TABLE: &str = include_str!("../kernels.txt");

/// The most threads of a block of a kernel without launch bounds.
const MOST_THREADS: u32 = 1024;

/// An entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Name that `cuModuleGetFunction` looks for.
    pub(crate) name: &'static str,
    /// The most threads that a block may have.
    pub(crate) threads: u32,
    /// Types in the order of the source: `ptr`, or a kind of number with its bits, such as `f32`.
    pub(crate) parameters: Vec<&'static str>,
}

/// What NVRTC returns here in place of machine code, before the name of the source.
pub(crate) const COMPILED: &str = "compiled from ";

/// The source of a module, and its kernels. The module is machine code of the stand-in for NVRTC, or
/// PTX.
pub(crate) fn of_module(module: &str) -> Result<(&str, Vec<Kernel>), String> {
    let source = module.strip_prefix(COMPILED).unwrap_or("gate.ptx");
    let mut kernels = of_source(source)?;
    if source == "gate.ptx" {
        kernels.retain(|kernel| module.contains(&format!(".entry {}(", kernel.name)));
    }
    if kernels.is_empty() {
        Err("a module is compiled here, or the PTX of the gate".to_owned())
    } else {
        Ok((source, kernels))
    }
}

/// The kernels of a source, in order.
///
/// # Errors
/// The table does not have it: a sentence with the remedy.
pub(crate) fn of_source(name: &str) -> Result<Vec<Kernel>, String> {
    let mut lines = TABLE.lines().skip_while(|line| *line != name);
    lines.next().ok_or_else(|| {
        format!(
            "{name} is not in kernels.txt; CROSSOVER_GOLDEN=write cargo test --test groups \
             golden::kernels writes it, with NVRTC"
        )
    })?;
    let kernels = lines.map_while(|line| line.strip_prefix("  "));
    Ok(kernels.map(kernel).collect())
}

fn kernel(line: &'static str) -> Kernel {
    let mut words = line.split(' ');
    let name = words.next().expect("a line has a name");
    let threads = words.next().and_then(|threads| threads.parse().ok());
    Kernel {
        name,
        threads: threads.unwrap_or(MOST_THREADS),
        parameters: words.collect(),
    }
}

/// Bytes of a parameter.
pub(crate) fn bytes(parameter: &str) -> usize {
    let bits = parameter.trim_start_matches(char::is_alphabetic);
    bits.parse::<usize>().map_or(8, |bits| bits / 8)
}
