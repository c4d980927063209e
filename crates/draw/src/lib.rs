//! The look of curves and pages: colours ([`ink`]), the frame and style of a [`page`], and the
//! [`plot`]. It knows neither groups nor verdicts.

pub mod ink;
pub mod page;
pub mod plot;
mod svg;
