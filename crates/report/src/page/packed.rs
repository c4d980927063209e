//! Compact data for scripts: deflated, in characters that need no escaping in HTML. A browser inflates
//! it itself (`DecompressionStream`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec;
use serde::Serialize;

/// Leaves a fifth of the text, in a tenth of a second for ten megabytes; higher levels take longer and
/// save little.
const LEVEL: u8 = 4;

/// JSON, deflated without a header, as Base64.
pub(super) fn pack(data: &impl Serialize) -> String {
    let text = serde_json::to_vec(data).expect("every key is a text");
    STANDARD.encode(compress_to_vec(&text, LEVEL))
}
