//! What a network keeps in device memory.

use std::collections::BTreeMap;

/// Bytes in device memory, all of them from the beginning of an iteration to its end.
pub(crate) struct Kept {
    /// Parameters and what belongs to them: copies, moments, gradients.
    pub(crate) parameters: usize,
    /// Inputs and what lies between the kernels.
    pub(crate) activations: usize,
    /// What the library may use.
    pub(crate) workspace: usize,
}

impl Kept {
    /// The figures under the names with which a result stores them. All of it is allocated at once,
    /// so the peak is the sum.
    pub(crate) fn figures(&self) -> BTreeMap<String, f64> {
        let [parameters, activations, workspace] =
            [self.parameters, self.activations, self.workspace].map(|bytes| bytes as f64);
        [
            ("parameters_bytes", parameters),
            ("activations_bytes", activations),
            ("workspace_bytes", workspace),
            ("peak_bytes", parameters + activations + workspace),
        ]
        .map(|(key, bytes)| (key.to_owned(), bytes))
        .into()
    }
}
