//! Kernel sources from files of `kernels/`, and the grid of elementwise kernels, which compute each value from
//! one at the same place.

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

/// Threads of a block of an elementwise kernel.
pub(crate) const ELEMENTWISE_THREADS: u32 = 256;
/// Values per thread of one, in one access of 16 bytes.
const VALUES: u64 = 4;

/// Blocks of an elementwise kernel for `n` values; at least one, because the driver refuses an empty grid.
///
/// # Errors
/// A grid cannot have that number of blocks.
pub(crate) fn elementwise_blocks(n: u64) -> Result<u32, std::num::TryFromIntError> {
    u32::try_from(n.div_ceil(VALUES * u64::from(ELEMENTWISE_THREADS)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_value() {
        let block = VALUES * u64::from(ELEMENTWISE_THREADS);
        for (n, expected) in [(0, 1), (1, 1), (block, 1), (block + 1, 2), (1 << 20, 1024)] {
            assert_eq!(elementwise_blocks(n).unwrap(), expected, "{n}");
        }
    }
}
