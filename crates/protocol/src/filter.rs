//! The filter of benchmarks, a regular expression.

use regex::Regex;

/// Why a text is not a regular expression; `None` where it is one.
pub fn why_no_filter(text: &str) -> Option<String> {
    let error = Regex::new(text).err()?.to_string();
    let why = error.lines().last().unwrap_or_default();
    Some(why.trim_start_matches("error: ").to_owned())
}
