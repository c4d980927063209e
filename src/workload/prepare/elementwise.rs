//! The grid of elementwise kernels, which compute each value from one at the same place.

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;
/// Values per thread, in one access of 16 bytes.
const VALUES: u64 = 4;

/// Blocks for `n` values; at least one, because the driver refuses an empty grid.
///
/// # Errors
/// A grid cannot have that number of blocks.
pub(crate) fn blocks(n: u64) -> Result<u32, std::num::TryFromIntError> {
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
