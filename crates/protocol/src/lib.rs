//! Communication between the processes of a run: [`settings`] in environment variables, and the
//! messages of a process that takes [`turns`] with another. Both the suite and the command use it.

pub mod child;
pub mod filter;
pub mod rank;
pub mod ranks;
pub mod settings;
pub mod turns;
