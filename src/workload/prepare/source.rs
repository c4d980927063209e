//! Sources of kernels in files of `kernels/`.

/// The source in a file, after the header that it shares with others, where there is one; for devices
/// from compute capability 7.5 on, or what is said last. Messages of the compiler count the lines of
/// the file itself.
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

/// Options for a source whose kernels take NVRTC a second or more: it optimises them on all cores, and
/// their machine code stays the same.
pub(crate) const ON_ALL_CORES: &[&str] = &["--split-compile=0"];
