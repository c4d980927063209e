//! Compact data for scripts: deflated, in characters that need no escaping in HTML. A browser inflates
//! it itself (`DecompressionStream`).

use miniz_oxide::deflate::compress_to_vec;

/// Leaves a fifth of the text, in a tenth of a second for ten megabytes; higher levels take longer and
/// save little.
const LEVEL: u8 = 4;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Deflate without a header, as Base64.
pub(super) fn pack(text: &str) -> String {
    base64(&compress_to_vec(text.as_bytes(), LEVEL))
}

fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |i: usize| three.get(i).copied().map_or(0, u32::from);
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for letter in 0..4 {
            let six = bits >> (18 - 6 * letter) & 63;
            out.push(match letter <= three.len() {
                true => char::from(LETTERS[six as usize]),
                false => '=',
            });
        }
    }
    out
}

/// The data of a page.
#[cfg(test)]
pub(crate) fn unpacked(page: &str) -> String {
    let (_, data) = page.split_once("id=\"data\">").expect("a page has data");
    let (data, _) = data.split_once('<').expect("the element ends");
    let plain = miniz_oxide::inflate::decompress_to_vec(&from_base64(data)).expect("deflated");
    String::from_utf8(plain).expect("text")
}

/// Decodes Base64.
#[cfg(test)]
pub(crate) fn from_base64(text: &str) -> Vec<u8> {
    let mut values = [0; 256];
    for (value, letter) in (0..).zip(LETTERS) {
        values[usize::from(*letter)] = value;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.as_bytes().chunks(4) {
        let bits = four
            .iter()
            .fold(0_u32, |bits, c| bits << 6 | values[usize::from(*c)]);
        bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    bytes.truncate(bytes.len() - text.bytes().filter(|c| *c == b'=').count());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn repeated_values_are_packed_and_restored() {
        let long = "{\"name\":\"gpu/µ\"}".repeat(1000);
        for text in [
            long.repeat(200),
            long,
            "a".into(),
            "ab".into(),
            String::new(),
        ] {
            let packed = pack(&text);
            assert!(packed.len() < 20 + text.len() / 20);
            assert_eq!(
                unpacked(&format!("<script id=\"data\">{packed}</script>")),
                text
            );
        }
    }
}
