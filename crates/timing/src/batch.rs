//! How many launches one gate holds back.

/// Upper bound on the launches queued behind one gate. Measured on an H200 with driver 580:
/// about 1,000 fit, and from 400 on the constant cost of gate and events no longer shows
/// (samples spread by 0.015 %). Less than half of what fits leaves room for library calls that
/// launch a second kernel.
pub const LAUNCHES_PER_GATE: u32 = 448;
