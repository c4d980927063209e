//! The command line of Criterion: its options, its filter, a regular expression, and suggestions for
//! mistyped names.

use regex::Regex;

/// The long options of Criterion, up to 0.8, that take a value.
pub const WITH_VALUE: &str = "baseline baseline-lenient color colour confidence-level format \
    load-baseline measurement-time noise-threshold nresamples output-format plotting-backend \
    profile-time sample-size save-baseline significance-level warm-up-time";

/// Why a filter selects nothing, in a sentence; `None` if it is a regular expression.
pub fn bad_filter(filter: &str) -> Option<String> {
    let error = Regex::new(filter).err()?.to_string();
    let why = error.lines().last().unwrap_or_default();
    let why = why.trim_start_matches("error: ");
    Some(format!(
        "the filter `{filter}`: it is not a regular expression: {why}; correct it, or give an id with --exact"
    ))
}

/// A question about a mistyped name, such as `; is CROSSOVER_GATE meant?`, after `before`; empty without a
/// similar name.
pub fn meant<'a>(before: &str, written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, known).map_or(String::new(), |near| format!("{before} is {near} meant?"))
}

/// The known name most similar to a mistyped one, if they differ by a few characters.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Insertions, deletions, changes and swaps that count as a slip.
    const EDITS: usize = 3;
    let length = written.chars().count();
    known
        .into_iter()
        // Each character more or fewer is an edit.
        .filter(|known| known.chars().count().abs_diff(length) <= EDITS)
        .map(|known| (strsim::damerau_levenshtein(written, known), known))
        // Three edits turn any short word into any other one.
        .filter(|(edits, known)| *edits <= EDITS.min(known.len() / 2))
        .min()
        .map(|(_, known)| known)
}

/// A suggestion for a filter without a match: the beginning of an id with as many parts, such as a
/// group, a group and a device, an implementation or a benchmark.
pub fn nearest_id<'a>(filter: &str, ids: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = filter.trim_start_matches('^').trim_end_matches('$');
    let written = written.trim_end_matches('/');
    let slashes = written.matches('/').count();
    let part = |id: &'a str| match id.match_indices('/').nth(slashes) {
        Some((end, _)) => &id[..end],
        None => id,
    };
    nearest(written, ids.into_iter().map(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_at_each_length() {
        let ids = [
            "matmul/cpu/best/64",
            "matmul/gpu/cublas/64",
            "nested_sine/gpu/fused/1024",
        ];
        let meant = |filter| nearest_id(filter, ids);
        assert_eq!(meant("matmull"), Some("matmul"));
        assert_eq!(meant("^nested-sine/"), Some("nested_sine"));
        assert_eq!(meant("matmul/gpuu"), Some("matmul/gpu"));
        assert_eq!(meant("matmul/cpu/bets"), Some("matmul/cpu/best"));
        assert_eq!(meant("matmul/cpu/best/46$"), Some("matmul/cpu/best/64"));
        assert_eq!(meant("convolution"), None);
        assert_eq!(meant("x"), None);
        assert_eq!(meant(""), None);
    }
}
