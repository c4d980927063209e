//! What the processes of a run tell each other: the [`settings`] of the environment, and the messages
//! of a process that takes [`turns`] with another. The suite and the command both know these.

pub mod filter;
pub mod settings;
pub mod turns;
