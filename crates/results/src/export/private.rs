//! Removes private data from a record: folders, which contain the user's name, and serial numbers of
//! boards.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// How the UUIDs of a whole GPU and of a slice of one begin.
const UUIDS: [&str; 2] = ["GPU-", "MIG-"];

/// Further characters of a UUID: `01234567-89ab-cdef-0123-456789abcdef`.
const UUID_CHARACTERS: usize = 36;

/// Fewer characters are a word, such as `GPU-bad`.
const FEWEST_OF_A_UUID: usize = 8;

/// Replaces folders.
const LEFT_OUT: &str = "…";

/// A path with fewer parts than this may end in the name of a user.
const FEWEST_PARTS: usize = 3;

/// Replaces folders and UUIDs in all texts.
pub(super) fn remove(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_folders(&without_uuids(text)),
        Value::Array(values) => values.iter_mut().for_each(remove),
        Value::Object(fields) => fields.values_mut().for_each(remove),
        _ => {}
    }
}

/// `board-` and a digest in place of each UUID, so that results of one board are known as such.
fn without_uuids(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = UUIDS.iter().filter_map(|kind| rest.find(kind)).min() {
        let from = &rest[at..];
        let is_of_one = |c: &char| c.is_ascii_hexdigit() || *c == '-';
        let id = from[UUIDS[0].len()..].chars().take(UUID_CHARACTERS);
        let length = id.take_while(is_of_one).count();
        let (uuid, after) = from.split_at(UUIDS[0].len() + length);
        out += &rest[..at];
        out += &match length < FEWEST_OF_A_UUID {
            true => uuid.to_owned(),
            false => board(uuid),
        };
        rest = after;
    }
    out + rest
}

fn board(uuid: &str) -> String {
    let digest = Sha256::digest(uuid);
    let digits: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
    format!("board-{digits}")
}

/// Paths from the root or from a home folder without their folders: `…/name`.
fn without_folders(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "\"'`=:()[]{}<>,;|".contains(c);
    let mut out = String::new();
    for word in text.split_inclusive(is_end) {
        let path = word.trim_end_matches(is_end);
        let is_path = (path.starts_with('/') || path.starts_with('~')) && path.len() > 1;
        if !is_path {
            out += word;
            continue;
        }
        out += LEFT_OUT;
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if let Some(name) = parts.last().filter(|_| parts.len() >= FEWEST_PARTS) {
            out += "/";
            out += name;
        }
        out += &word[path.len()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_path_the_name_at_its_end_is_left() {
        // Also the argument of a run that names ids.
        let filter = "^(matmul/((cpu/naive)/(1|2)|(gpu/tiled)/(8)))$";
        for (text, kept) in [
            ("/home/a/kernels/b.cu: no such file", "…/b.cu: no such file"),
            ("cannot open '/home/someone'", "cannot open '…'"),
            ("PATH=/home/a/lib:/opt/b/lib64/", "PATH=…/lib:…/lib64"),
            ("at ~someone/lib, ~/x/y and ~", "at …, …/y and ~"),
            (
                "matmul/gpu/cublas/64, 3 GB/s",
                "matmul/gpu/cublas/64, 3 GB/s",
            ),
            ("a / b, 1/2 /", "a / b, 1/2 /"),
            (filter, filter),
        ] {
            assert_eq!(without_folders(text), kept);
        }
    }

    #[test]
    fn boards_are_told_apart_by_a_digest() {
        let of_kind = |kind| format!("a {kind}-01234567-89ab-cdef-0123-456789abcdef b");
        let texts = ["GPU", "MIG"].map(|kind| without_uuids(&of_kind(kind)));
        assert_ne!(texts[0], texts[1]);
        for text in &texts {
            assert!(!text.contains("01234567"), "{text}");
            assert_eq!(text.len(), "a board-................ b".len());
        }
        for kept in [&texts[0], "GPU-bad, GPU-"] {
            assert_eq!(without_uuids(kept), kept);
        }
    }
}
