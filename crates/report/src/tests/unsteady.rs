//! What is unsteady is shown and marked, and no answer rests on it.

use serde_json::{Value, json};

use crate::page::packed::unpacked;
use crate::tests::fixture::Planted;
use crate::tests::machines::full;
use crate::tests::refreshed;
use crossover_words::Clock::{Events, Wall};

#[test]
fn it_is_marked_and_left_out_of_answers_and_findings() {
    let (dir, root) = crate::tests::folders();
    let f = full(&root, "Example GPU");
    let said = || {
        let (page, _, record) = refreshed(&root, dir.path());
        (page, record)
    };
    let headline = |record: &Value| {
        let all = record["answers"].as_array().unwrap().clone();
        let device = |c: &&Value| {
            c["group"] == "matmul" && c["headline"] == true && c["question"] == "queued"
        };
        all.iter().find(device).unwrap().clone()
    };
    let (page, steady) = said();
    assert!(!page.contains("± unsteady</small>"));
    let before = headline(&steady);

    // The fastest CPU code at the largest size, a little slower than it was: nothing slower takes
    // its place.
    let why = "the interval of its median is 16 % wide";
    let unsteady = Some(why.to_owned());
    let mut best = Planted::new("matmul/cpu/best/8192", Wall, 1.0e9);
    best.unsteady = unsteady.clone();
    f.plant(&best);
    let (_, without_best) = said();
    let shorter = headline(&without_best);
    assert_eq!(shorter["range"][1], json!(4096.0));
    let earlier = before["speedup"].as_f64().unwrap();
    assert!(
        shorter["speedup"].as_f64().unwrap() < 1.5 * earlier,
        "{shorter}"
    );

    // Much faster than the GPU where that wins, and much slower than the CPU at the largest size.
    let mut fast = Planted::new("matmul/cpu/best/1024", Wall, 1e3);
    fast.unsteady = unsteady.clone();
    f.plant(&fast);
    let mut slow = Planted::new("matmul/gpu/cublas-eager/8192", Events, 1e12);
    slow.unsteady = unsteady;
    f.plant(&slow);
    let (page, unsteady) = said();
    let now = headline(&unsteady);
    assert_eq!(now["size"], before["size"]);
    assert_eq!(
        (&now["answer"], &now["range"][1]),
        (&json!("at"), &json!(4096.0))
    );
    let ids = [best.id, fast.id, slow.id];
    let rests = |finding: &Value| {
        let on = finding["benchmarks"].as_array().unwrap();
        on.iter().any(|id| ids.contains(&id.as_str().unwrap()))
    };
    let findings = unsteady["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && !findings.iter().any(rests));
    let rows = unsteady["benchmarks"].as_array().unwrap();
    for row in rows {
        let is = ids.contains(&row["id"].as_str().unwrap());
        assert_eq!(row["unsteady"], if is { json!(why) } else { Value::Null });
    }
    let mark = format!("<small class=\"unsteady\" title=\"{why}\">± unsteady</small>");
    assert_eq!(page.matches(&mark).count(), 3);
    assert_eq!(
        unpacked(&page)
            .matches(&format!("\"unsteady\":\"{why}\""))
            .count(),
        3,
        "the chart"
    );
    for text in [
        "± marks times with unsteady samples (3 here)",
        "Unsteady, so left out of answers: 3",
        &format!("unsteady: {why}"),
    ] {
        assert!(page.contains(text), "{text}");
    }
}
