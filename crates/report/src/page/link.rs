//! Names of anchors and files, and relative links from the page into Criterion's folders.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use crossover_results::analysis::answer::crossover_answer::CrossoverAnswer;

/// The way from the folder `from` to `to` as a URL reference; `None` if `to` does not exist or there is
/// no way (another drive).
pub(super) fn relative(from: &Path, to: &Path) -> Option<String> {
    // Most benchmarks have no page, so this is one system call.
    let to = to.is_file().then(|| to.canonicalize().ok())??;
    let from = from.canonicalize().ok()?;
    let shared = from.ancestors().find(|folder| to.starts_with(folder))?;
    let up = from.strip_prefix(shared).ok()?.components();
    let down = to.strip_prefix(shared).ok()?.components();
    let down = down.map(|part| part.as_os_str().to_str().map(encode));
    let parts: Option<Vec<String>> = up.map(|_| Some("..".to_owned())).chain(down).collect();
    Some(parts?.join("/"))
}

/// Percent-encodes all characters but those that any part of a path may have.
fn encode(part: &str) -> String {
    part.bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(b).to_string()
            }
            b => format!("%{b:02X}"),
        })
        .collect()
}

/// Where the page of a group lies, from the first page.
pub(crate) fn of_group(group: &str) -> String {
    format!("groups/{}.html", safe(group))
}

/// The anchor of the evidence for an answer, on the page of its group.
pub(super) fn anchor(answer: &CrossoverAnswer) -> String {
    let place = answer.question.name();
    format!("evidence-{}-{place}", safe(&answer.group))
}

/// Where the evidence for an answer stands, from the first page.
pub(super) fn of_answer(answer: &CrossoverAnswer) -> String {
    format!("{}#{}", of_group(&answer.group), anchor(answer))
}

/// A name as a part of a file's or an anchor's name. A name that is changed ends in `~` and a hash, so that
/// two names never give one file, also where upper and lower case are one.
pub(crate) fn safe(name: &str) -> String {
    let keep = |c: char| match c {
        'a'..='z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '_',
    };
    // A file's name may have 255 bytes, including prefix and suffix. Criterion's own names are shorter,
    // but a damaged file may have any.
    const LONGEST: usize = 150;
    let safe: String = name
        .to_ascii_lowercase()
        .chars()
        .map(keep)
        .take(LONGEST)
        .collect();
    if safe == name {
        return safe;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("{safe}~{:x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_names_share_a_file() {
        let mut names: Vec<String> = [
            "sort u32", "sort_u32", "sort.u32", "Sort_u32", "排序", "整理",
        ]
        .map(str::to_owned)
        .into();
        names.extend(["a".repeat(300), "a".repeat(301)]);
        // Some systems do not distinguish upper and lower case.
        let files: BTreeSet<String> = names
            .iter()
            .map(|name| of_group(name).to_lowercase())
            .collect();
        assert_eq!(files.len(), names.len(), "{files:?}");
        assert!(files.iter().all(|name| name.len() < 200), "{files:?}");
        assert_eq!(of_group("sort.u32"), "groups/sort.u32.html");
        // A name that looks changed is changed itself.
        let changed = safe("sort u32");
        assert_ne!(safe(&changed), changed);
    }

    #[test]
    fn goes_up_and_encodes() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let page = dir.path().join("a b#c/index.html");
        std::fs::create_dir_all(&out).unwrap();
        std::fs::create_dir_all(page.parent().unwrap()).unwrap();
        assert_eq!(relative(&out, &page), None, "not there");
        std::fs::write(&page, "").unwrap();
        assert_eq!(relative(&out, &page).unwrap(), "../a%20b%23c/index.html");
    }
}
