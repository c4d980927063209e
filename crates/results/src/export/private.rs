//! Removes private data from a record: folders, which contain the user's name, and serial numbers of
//! boards.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The UUID of a whole GPU or of a slice of one, `GPU-01234567-89ab-cdef-0123-456789abcdef`. Fewer characters are
/// a word, such as `GPU-bad`.
static UUID: LazyLock<Regex> = LazyLock::new(|| pattern("(GPU|MIG)-[0-9A-Fa-f-]{8,36}"));

/// A path from the root or from a home folder, behind the beginning of a word.
static PATH: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(^|[\s"'`=:()\[\]{}<>,;|])([/~][^\s"'`=:()\[\]{}<>,;|]+)"#));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is sound")
}

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
    let board = |uuid: &Captures| {
        let digest = Sha256::digest(&uuid[0]);
        let digits: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        format!("board-{digits}")
    };
    UUID.replace_all(text, board).into_owned()
}

/// Paths without their folders: `…/name`. One with fewer than three parts may end in the name of a user.
fn without_folders(text: &str) -> String {
    let shortened = |found: &Captures| {
        let parts: Vec<&str> = found[2]
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        match parts[..] {
            [_, _, .., name] => format!("{}…/{name}", &found[1]),
            _ => format!("{}…", &found[1]),
        }
    };
    PATH.replace_all(text, shortened).into_owned()
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
