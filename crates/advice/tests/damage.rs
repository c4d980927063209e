//! No file makes it panic: an error or an answer. 100,000 files with
//! `PROPTEST_CASES=100000 cargo test --release -p crossover-advice --test damage`.

mod planted;

use crossover_advice::{Advice, Data, Here, Question, Size, Work};
use proptest::prelude::*;
use serde_json::Value;

/// One change of a file.
#[derive(Clone, Debug)]
enum Damage {
    /// The byte at a place becomes another one.
    Byte(usize, u8),
    /// The file ends there.
    Cut(usize),
    /// A part is there twice.
    Doubled(usize, usize),
    /// Of all numbers, one becomes another.
    Number(usize, f64),
    /// Of all values, one becomes something else.
    Value(usize, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    let numbers = prop_oneof![
        any::<f64>(),
        prop::sample::select(vec![
            0.0, -0.0, 1e-30, 1e30, 1e308, 5e-324, -1.0, 1.0, 1e300
        ]),
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        any::<usize>().prop_map(Damage::Cut),
        (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Damage::Doubled(from, to)),
        (any::<usize>(), numbers).prop_map(|(at, number)| Damage::Number(at, number)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, kind)| Damage::Value(at, kind)),
    ]
}

fn count(value: &Value, is_it: fn(&Value) -> bool) -> usize {
    let inside: usize = match value {
        Value::Array(all) => all.iter().map(|value| count(value, is_it)).sum(),
        Value::Object(all) => all.values().map(|value| count(value, is_it)).sum(),
        _ => 0,
    };
    usize::from(is_it(value)) + inside
}

/// Replaces the n-th value that `is_it` chooses.
fn replace(value: &mut Value, n: &mut usize, is_it: fn(&Value) -> bool, by: &Value) {
    if is_it(value) {
        if *n == 0 {
            *value = by.clone();
        }
        *n = n.wrapping_sub(1);
    }
    let mut inside = |value| replace(value, n, is_it, by);
    match value {
        Value::Array(all) => all.iter_mut().for_each(&mut inside),
        Value::Object(all) => all.values_mut().for_each(inside),
        _ => {}
    }
}

fn damaged(text: &[u8], damage: &Damage) -> Vec<u8> {
    let in_tree = |n: usize, is_it: fn(&Value) -> bool, by: &Value| {
        let Ok(mut tree) = serde_json::from_slice::<Value>(text) else {
            return text.to_vec();
        };
        let all = count(&tree, is_it).max(1);
        replace(&mut tree, &mut (n % all), is_it, by);
        serde_json::to_vec(&tree).unwrap()
    };
    let place = |at: usize| at % (text.len() + 1);
    match *damage {
        Damage::Byte(at, byte) => {
            let mut text = text.to_vec();
            if let Some(old) = text.get_mut(place(at)) {
                *old = byte;
            }
            text
        }
        Damage::Cut(at) => text[..place(at)].to_vec(),
        Damage::Doubled(a, b) => {
            let (from, to) = (place(a).min(place(b)), place(a).max(place(b)));
            [&text[..to], &text[from..]].concat()
        }
        Damage::Number(at, number) => in_tree(at, Value::is_number, &Value::from(number)),
        Damage::Value(at, kind) => {
            let by = match kind % 6 {
                0 => Value::Null,
                1 => Value::from("\u{1b}[31m"),
                2 => Value::Array(Vec::new()),
                3 => Value::from(u64::MAX),
                4 => Value::Object(serde_json::Map::new()),
                _ => Value::from(true),
            };
            in_tree(at, |_| true, &by)
        }
    }
}

/// Everything that can be asked, in shapes and sizes near and far.
fn ask_all(advice: &Advice) {
    let sizes = [1e-300, 0.5, 1.0, 300.0, 1e18, 1e300].map(Size::from);
    let shapes = [(1, 2, 3), (u64::MAX, 1, u64::MAX), (300, 300, 300)].map(Size::from);
    for operation in ["product", "plain", ""] {
        for size in sizes.into_iter().chain(shapes) {
            for data in Data::ALL {
                let question = Question::new(operation, size).data(data);
                for question in [question, question.reuse(u32::MAX).cold()] {
                    let answer = advice.decide(&question);
                    if let Some(estimate) = answer.estimate {
                        let in_order = estimate.low <= estimate.high || estimate.speedup.is_nan();
                        assert!(in_order, "{question:?} {answer:?}");
                    }
                }
            }
        }
    }
    let work = Work {
        flop: 1e9,
        bytes: 1e6,
        upload: 1e6,
        ..Work::default()
    };
    for data in Data::ALL {
        let _ = advice.moved(&work, data);
    }
    for place in advice
        .thresholds()
        .operations
        .iter()
        .flat_map(|operation| &operation.places)
    {
        let _ = place.decide_all();
    }
    for concern in advice.clone().check(&Here::detect()).concerns() {
        let _ = concern.to_string();
    }
}

proptest! {
    #[test]
    fn a_damaged_file_is_an_error_or_answers(
        damages in proptest::collection::vec(damage(), 1..4),
    ) {
        let mut text = serde_json::to_vec(&planted::thresholds()).unwrap();
        for damage in &damages {
            text = damaged(&text, damage);
        }
        match Advice::parse(&text) {
            Ok(advice) => ask_all(&advice),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
