//! Compact data for scripts: deflated, in characters that need no escaping in HTML. A browser inflates
//! it itself (`DecompressionStream`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec;

/// Leaves a fifth of the text, in a tenth of a second for ten megabytes; higher levels take longer and
/// save little.
const LEVEL: u8 = 4;

/// Deflate without a header, as Base64.
pub(super) fn pack(text: &str) -> String {
    STANDARD.encode(compress_to_vec(text.as_bytes(), LEVEL))
}
