//! Kernel sources from files of `kernels/`.

/// The source in a file, after the header that it shares with others, if named. Compute capability 7.5 is the
/// oldest, and NVRTC has no options, unless others are given. Line numbers in the compiler's messages are those
/// of the file.
macro_rules! kernels {
    ($file:literal $(, after $header:literal)? $(, oldest $oldest:expr)? $(, options $options:expr)?) => {
        $crate::device::kernel::Source {
            $(oldest: $oldest,)?
            $(options: $options,)?
            ..$crate::device::kernel::Source::new(
                $file,
                concat!(
                    $(
                        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $header)),
                        "\n#line 1 \"", $file, "\"\n",
                    )?
                    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $file))
                ),
            )
        }
    };
}

pub(crate) use kernels;

/// Options for a source that NVRTC compiles in a second or more: it optimises the kernels on all cores.
/// Their machine code does not change.
pub(crate) const ON_ALL_CORES: &[&str] = &["--split-compile=0"];
