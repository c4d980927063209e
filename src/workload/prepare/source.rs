//! Kernel sources from files of `kernels/`.

/// The source in a file, after the header that it shares with others, if named first. Compute
/// capability 7.5 is the oldest, unless `oldest` is given. Line numbers in the compiler's messages are
/// those of the file.
macro_rules! kernels {
    ($file:literal) => {
        kernels!(@ $file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $file)), (7, 5))
    };
    ($file:literal, oldest $oldest:expr) => {
        kernels!(@ $file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $file)), $oldest)
    };
    ($header:literal, $file:literal) => {
        kernels!($header, $file, oldest (7, 5))
    };
    ($header:literal, $file:literal, oldest $oldest:expr) => {
        kernels!(@ $file, concat!(
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $header)),
            "\n#line 1 \"",
            $file,
            "\"\n",
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $file))
        ), $oldest)
    };
    (@ $file:literal, $text:expr, $oldest:expr) => {
        $crate::device::kernel::Source {
            name: $file,
            text: $text,
            options: &[],
            oldest: $oldest,
        }
    };
}

pub(crate) use kernels;

/// Options for a source that NVRTC compiles in a second or more: it optimises the kernels on all cores.
/// Their machine code does not change.
pub(crate) const ON_ALL_CORES: &[&str] = &["--split-compile=0"];
