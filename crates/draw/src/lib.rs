//! How curves, timelines and pages look: colours ([`ink`]), the frame and style of a [`page`], the
//! [`plot`] and the [`timeline`] of an iteration. Knows no group and no verdict.

pub mod ink;
pub mod page;
pub mod plot;
pub mod timeline;
