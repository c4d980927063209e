//! Faults on purpose: what a user does wrong, and what goes wrong beside the measurement, each by
//! its command, exit code and sentence, with the earlier results unharmed.

pub(crate) mod confirmed;
pub(crate) mod cut_short;
pub(crate) mod files;
pub(crate) mod habits;
pub(crate) mod run;
pub(crate) mod settings;
pub(crate) mod signals;
pub(crate) mod turns;
