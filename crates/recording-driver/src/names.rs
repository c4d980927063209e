//! Names in place of addresses and handles, numbered in the order of their creation, so that logs
//! of two runs are equal.

use std::collections::HashMap;

/// The next number of each noun.
#[derive(Default)]
pub(crate) struct Names(HashMap<&'static str, u32>);

impl Names {
    /// `d1`, then `d2`, and so on.
    pub(crate) fn next(&mut self, noun: &'static str) -> String {
        let number = self.0.entry(noun).or_default();
        *number += 1;
        format!("{noun}{number}")
    }
}
