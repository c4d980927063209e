//! Sources of kernels that share a file with others.

/// The text of a file of `kernels/`, after the header that it shares with others. Messages of the
/// compiler count the lines of the file itself.
macro_rules! with_header {
    ($header:literal, $file:literal) => {
        concat!(
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $header)),
            "\n#line 1 \"",
            $file,
            "\"\n",
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $file))
        )
    };
}

pub(crate) use with_header;
