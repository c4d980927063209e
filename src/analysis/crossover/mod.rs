//! From which size on the GPU wins: `search` answers it for one pair of curves, `pairs` says
//! which curves are compared, `confirm` what several processes say together, and `words`
//! says the answer.

pub(crate) mod confirm;
pub(crate) mod pairs;
pub(crate) mod search;
pub(crate) mod words;

#[cfg(test)]
mod tests;
