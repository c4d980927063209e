//! How numbers, curves and pages look. Knows nothing of results.

pub(crate) mod ink;
pub(crate) mod page;
pub(crate) mod plot;
pub(crate) mod text;
pub(crate) mod timeline;
pub(crate) mod units;
