//! Damages to a file: to its JSON values, and to its bytes.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crossover_report::readme;

/// One damage. Numbers pick a value of the file, a text of [`TEXTS`] or a byte.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// Any JSON in place of a value.
    Put(Index, Index),
    /// A number times a power of ten.
    Scale(Index, i32),
    /// A field or the last element is gone.
    Remove(Index),
    /// A byte is another.
    Flip(Index, u8),
    /// Bytes come in between.
    Insert(Index, Vec<u8>),
    /// The rest is missing.
    Cut(Index),
}

/// Any damage, more often of a value than of bytes.
pub(super) fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        8 => (at(), at()).prop_map(|(at, text)| Edit::Put(at, text)),
        4 => (at(), -330i32..330).prop_map(|(at, by)| Edit::Scale(at, by)),
        2 => at().prop_map(Edit::Remove),
        4 => edit_of_bytes(),
    ]
}

/// A damage of bytes.
pub(super) fn edit_of_bytes() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Flip(at, byte)),
        (at(), bytes()).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        at().prop_map(Edit::Cut),
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..8),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(b"\xff\xfe".to_vec()),
        Just(readme::BEGIN.as_bytes().to_vec()),
        Just(readme::END.as_bytes().to_vec()),
    ]
}

/// JSON that a reader may not expect: a line of the file each, and what is too long for one.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let lines = include_str!("unexpected.jsonl").lines();
    let mut texts: Vec<String> = lines.map(str::to_owned).collect();
    texts.push(format!("\"{}\"", "long ".repeat(2000)));
    texts.push(format!("\"{}\"", "x".repeat(5000)));
    texts.push("[".repeat(100) + &"]".repeat(100));
    texts.push("[".repeat(5000) + &"]".repeat(5000));
    texts.push("{\"a\":".repeat(200) + "1" + &"}".repeat(200));
    texts.push(format!("[{}1]", "1e308,".repeat(3000)));
    texts.push(format!("[{}0]", "0,".repeat(3000)));
    texts.push(format!("[{}null]", "null,".repeat(300)));
    texts.push(format!("[{}\"x\"]", "\"x\",".repeat(300)));
    texts
});

/// The file with all damages; those of bytes come last, so that the others find JSON.
pub(super) fn damaged(sound: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut text = sound.to_vec();
    if let Ok(mut value) = serde_json::from_slice::<Value>(sound) {
        edits.iter().for_each(|edit| damage_value(&mut value, edit));
        let mut json = value.to_string();
        for edit in edits {
            if let Edit::Put(_, text) = edit {
                let place = Value::from(place_of(text)).to_string();
                json = json.replace(&place, text_of(text));
            }
        }
        text = json.into_bytes();
    }
    edits.iter().for_each(|edit| damage_bytes(&mut text, edit));
    text
}

fn text_of(index: &Index) -> &'static str {
    &TEXTS[index.index(TEXTS.len())]
}

/// Stands for a text that no [`Value`] can hold, until all is text.
fn place_of(text: &Index) -> String {
    format!("@{}@", text.index(TEXTS.len()))
}

fn damage_value(value: &mut Value, edit: &Edit) {
    let all = pointers(value);
    let at = |index: &Index| index.get(&all).as_str();
    match edit {
        Edit::Put(index, text) => {
            if let Some(found) = value.pointer_mut(at(index)) {
                *found = place_of(text).into();
            }
        }
        Edit::Scale(index, by) => {
            if let Some(found) = value.pointer_mut(at(index))
                && let Some(number) = found.as_f64()
            {
                *found = (number * 10f64.powi(*by)).into();
            }
        }
        Edit::Remove(index) => {
            let (parent, name) = at(index).rsplit_once('/').unwrap_or(("", ""));
            match value.pointer_mut(parent) {
                Some(Value::Object(fields)) => drop(fields.remove(name)),
                Some(Value::Array(elements)) => drop(elements.pop()),
                _ => {}
            }
        }
        Edit::Flip(..) | Edit::Insert(..) | Edit::Cut(_) => {}
    }
}

fn damage_bytes(text: &mut Vec<u8>, edit: &Edit) {
    let at = |index: &Index| index.index(text.len() + 1);
    match edit {
        Edit::Flip(index, byte) => {
            let at = at(index);
            if let Some(found) = text.get_mut(at) {
                *found = *byte;
            }
        }
        Edit::Insert(index, bytes) => {
            let at = at(index);
            text.splice(at..at, bytes.iter().copied());
        }
        Edit::Cut(index) => text.truncate(at(index)),
        _ => {}
    }
}

/// The place of each value, of long arrays that of the first elements: the keys of these files
/// hold no `/`.
fn pointers(value: &Value) -> Vec<String> {
    fn walk(value: &Value, here: &str, all: &mut Vec<String>) {
        all.push(here.to_owned());
        match value {
            Value::Object(fields) => fields
                .iter()
                .for_each(|(key, inner)| walk(inner, &format!("{here}/{key}"), all)),
            Value::Array(elements) => (elements.iter().take(3).enumerate())
                .for_each(|(at, inner)| walk(inner, &format!("{here}/{at}"), all)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    walk(value, "", &mut all);
    all
}
