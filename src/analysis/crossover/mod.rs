//! From which size on the GPU wins: `search` answers it for one pair of curves, `pairs` says
//! which curves are compared, `one_process` what one process sees, `confirm` what several say together, `speedup`
//! by how much it is ahead along the sizes, and `words` says the answer.

pub(crate) mod confirm;
pub(crate) mod one_process;
pub(crate) mod pairs;
pub(crate) mod search;
pub(crate) mod speedup;
pub(crate) mod words;

#[cfg(test)]
mod tests;
