//! Plots as SVG, by plotters: `figure` says what is drawn, `draw` draws it with the colours of
//! [`ink`](crate::ink) (light and dark from one drawing), and `svg` makes it short.

mod axis;
mod draw;
mod ends;
pub mod figure;
mod legend;
mod svg;
