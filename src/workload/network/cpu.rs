//! The products of a network on the CPU, each in the way that was the fastest when it was first
//! computed.

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::workload::network::product::Way;
use crate::workload::prepare::Threads;

/// What computes a network: threads, and the way of each product.
pub(crate) struct Products {
    pub(crate) threads: Threads,
    /// The network, for the names of choices.
    of: &'static str,
    /// The products, by their names in choices and in notes, and their ways.
    ways: Vec<(&'static str, &'static str, Option<Way>)>,
    /// For the transposed of operands, in ways that copy them.
    spare: Vec<f32>,
}

impl Products {
    /// `spare` is as long as the operands that may be transposed.
    pub(crate) fn new(
        threads: Threads,
        of: &'static str,
        names: &[(&'static str, &'static str)],
        spare: usize,
    ) -> Self {
        let ways = names.iter().map(|&(choice, note)| (choice, note, None));
        Self {
            threads,
            of,
            ways: ways.collect(),
            spare: vec![f32::NAN; spare],
        }
    }

    /// C = A B, the product with this place in the names. The first time a short calibration, in which
    /// the operands must hold numbers, chooses the way.
    pub(crate) fn multiply(
        &mut self,
        place: usize,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        mut c: ArrayViewMut2<'_, f32>,
    ) {
        let (threads, spare) = (&self.threads, &mut self.spare);
        let (name, _, way) = &mut self.ways[place];
        let way = way.get_or_insert_with(|| {
            let name = format!("{name} of {}", self.of);
            Way::fastest(threads, &name, a, b, c.view_mut(), spare)
        });
        way.multiply(threads, a, b, c, spare);
    }

    /// The ways, in a sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let chosen = self.ways.iter();
        chosen
            .filter_map(|(_, note, way)| way.map(|way| format!("{note}: {way}")))
            .collect()
    }
}
