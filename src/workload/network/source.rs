//! Kernel sources that share the values and reductions of `kernels/values.cuh`.

/// The text of a file of `kernels/`, after what it shares with the others. Messages of the compiler
/// count the lines of the file itself.
macro_rules! with_values {
    ($file:literal) => {
        concat!(
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/values.cuh")),
            "\n#line 1 \"",
            $file,
            "\"\n",
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $file))
        )
    };
}

pub(in crate::workload) use with_values;
