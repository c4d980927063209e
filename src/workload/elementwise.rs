//! What kernels have in common that compute each value from one at the same place.

/// The text of a file of `kernels/`, after `kernels/elementwise.cuh`. Messages of the compiler
/// count the lines of the file itself. Without a file, `elementwise.cuh` alone.
macro_rules! with_elementwise {
    () => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/kernels/elementwise.cuh"
        ))
    };
    ($file:literal) => {
        concat!(
            with_elementwise!(),
            "\n#line 1 \"",
            $file,
            "\"\n",
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $file))
        )
    };
}

pub(in crate::workload) use with_elementwise;

/// Threads of a block.
pub(in crate::workload) const THREADS: u32 = 256;
/// Values of a thread, in one access of 16 bytes.
const VALUES: u64 = 4;

/// Blocks that `n` values take; at least one, since a grid of none is refused.
///
/// # Errors
/// More than a grid has.
pub(in crate::workload) fn blocks(n: u64) -> Result<u32, std::num::TryFromIntError> {
    u32::try_from(n.div_ceil(VALUES * u64::from(THREADS)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_value() {
        let block = VALUES * u64::from(THREADS);
        for (n, expected) in [(0, 1), (1, 1), (block, 1), (block + 1, 2), (1 << 20, 1024)] {
            assert_eq!(blocks(n).unwrap(), expected, "{n}");
        }
    }
}
