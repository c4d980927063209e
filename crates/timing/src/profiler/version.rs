//! Versions of CUPTI: which CUDA release they came with, and whose records are known.

/// The releases whose records are known.
pub(super) const KNOWN: &str = "CUDA 12.0 to 13.4";

/// Whether the fields that are read lie, in the records of this version, where they are read. The
/// structs of 12.0 to 13.0 are compared in `records`; those of 13.1 to 13.4 (kernels 11 to 13,
/// copies 7, sets 5) only add fields at their ends, by cudarc 0.19.10's bindings of each.
pub(super) fn is_known(version: u32) -> bool {
    matches!(version, 18..=28 | 130_000..130_500)
}

/// The CUDA release of a version, such as `13.0`.
pub(super) fn name(version: u32) -> String {
    match version {
        // The numbers before CUDA 13, from `cupti_version.h`. 18 is that of 11.8 too.
        18 => "12.0".to_owned(),
        20 => "12.2".to_owned(),
        21 => "12.3".to_owned(),
        22 => "12.4".to_owned(),
        23 => "12.5".to_owned(),
        24 => "12.6".to_owned(),
        26 => "12.8".to_owned(),
        28 => "12.9".to_owned(),
        newer @ 100_000.. => format!("{}.{}", newer / 10_000, newer / 100 % 100),
        other => format!("API {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_name_their_release() {
        assert_eq!([130_001, 130_401].map(name), ["13.0", "13.4"]);
        let at_the_ends = [17, 18, 28, 29, 130_401, 130_500].map(is_known);
        assert_eq!(at_the_ends, [false, true, true, false, true, false]);
    }
}
