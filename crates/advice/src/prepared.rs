//! Operations and places, prepared for decisions.

use crate::curve::Curve;
use crate::thresholds::{Choice, Place, Residency, Shape};

/// An operation, prepared for decisions.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub name: String,
    pub shape: Shape,
    pub first_call_ns: Option<f64>,
    pub places: [Option<PreparedPlace>; Residency::ALL.len()],
}

/// A place, prepared for decisions.
#[derive(Clone, Debug)]
pub(crate) struct PreparedPlace {
    pub curve: Curve,
    pub below: Option<Choice>,
    pub above: Option<Choice>,
}

impl PreparedPlace {
    pub(crate) fn new(place: &Place) -> Result<Self, &'static str> {
        Ok(Self {
            curve: Curve::new(place)?,
            below: place.below,
            above: place.above,
        })
    }
}

impl Measured {
    pub(crate) fn place(&self, data: Residency) -> Option<&PreparedPlace> {
        self.places[data as usize].as_ref()
    }
}
