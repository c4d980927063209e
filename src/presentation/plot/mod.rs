//! Plots as SVG, by plotters: `figure` says what is drawn, `draw` how, with the colours of
//! [`ink`](crate::presentation::ink) (light and dark from one drawing).

mod axis;
mod draw;
mod ends;
pub(crate) mod figure;
mod legend;
