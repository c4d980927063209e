//! Data that only a script reads, small: deflated, in the letters that HTML takes as they are. A
//! browser inflates it by itself (`DecompressionStream`).

use miniz_oxide::deflate::compress_to_vec;

/// A fifth of the text is left, in a tenth of a second for ten megabytes; higher levels take longer
/// and save little.
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
    let mut bytes = Vec::new();
    for four in data.as_bytes().chunks(4) {
        let six = |letter: &u8| LETTERS.iter().position(|l| l == letter);
        let found: Vec<usize> = four.iter().filter_map(six).collect();
        let bits = (0..4).fold(0, |bits, i| bits << 6 | found.get(i).copied().unwrap_or(0));
        bytes.extend((0..found.len() - 1).map(|i| (bits >> (16 - 8 * i)) as u8));
    }
    let plain = miniz_oxide::inflate::decompress_to_vec(&bytes).expect("deflated");
    String::from_utf8(plain).expect("text")
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
    fn what_repeats_is_small_and_comes_back() {
        for text in ["{\"name\":\"gpu/µ\"}".repeat(1000), "a".into(), "ab".into()] {
            let packed = pack(&text);
            assert!(packed.len() < 20 + text.len() / 20);
            assert_eq!(
                unpacked(&format!("<script id=\"data\">{packed}</script>")),
                text
            );
        }
    }
}
