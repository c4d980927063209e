//! How curves and pages look: colours ([`ink`]), the frame and style of a [`page`], and the [`plot`].
//! Knows no group and no verdict.

pub mod ink;
pub mod page;
pub mod plot;
