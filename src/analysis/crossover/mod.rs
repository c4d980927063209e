//! From which size on the GPU wins: `search` answers it for one pair of curves, `pairs` says
//! which curves are compared, `around` which sizes are then measured around a crossing, and
//! `words` says the answer.

pub(crate) mod around;
pub(crate) mod pairs;
pub(crate) mod search;
pub(crate) mod words;

#[cfg(test)]
mod tests;
