//! Arithmetic on slices, in every instruction set of this CPU. The sine is tested beside its kernel, by the
//! package that has both.

mod adamw;
mod direct;
mod limits;
mod number;
