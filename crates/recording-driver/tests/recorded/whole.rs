//! Whole runs of the suite's own groups, from the bench executable to the page.

use std::fs;

use serde_json::Value;

use crate::stand_in::{StandIn, expect};

/// The rows of a run, and what is in their files.
pub(crate) fn page() {
    let stand_in = StandIn::new();
    let rows = "nested_sine_uniform/gpu/(fused|graph)(-gated)?/1024$";
    let said = expect(
        stand_in
            .command("bench", "h200")
            .args(["--bench", "--quick", rows]),
        0,
    );
    assert!(said.contains("recorded, not measured"), "{said}");
    let root = stand_in.folder().join("criterion");
    let file = |row: &str, name: &str| -> Value {
        let folder = root.join("nested_sine_uniform").join(row).join("1024/new");
        let file = fs::read(folder.join(name)).unwrap_or_else(|e| {
            panic!("{}: {e}\n{said}", folder.display());
        });
        serde_json::from_slice(&file).expect("JSON")
    };
    // Of the H200's description, with its variation: a kernel, and a launch before the first.
    for (row, kernels, launch) in [
        ("gpu_fused", 1.0, 2_500.0),
        ("gpu_fused-gated", 1.0, 0.0),
        ("gpu_graph", 4.0, 2_500.0),
        ("gpu_graph-gated", 4.0, 0.0),
    ] {
        let sidecar = file(row, "crossover.json");
        assert_eq!(sidecar["verified"], Value::Null, "{row}");
        assert_eq!(sidecar["notes"][0], "recorded, not measured", "{row}");
        let samples = file(row, "sample.json");
        let numbers = |of: &str| -> Vec<f64> {
            let list = samples[of].as_array().expect("numbers");
            list.iter().map(|n| n.as_f64().expect("a number")).collect()
        };
        for (iterations, time) in numbers("iters").into_iter().zip(numbers("times")) {
            let known = 4_000.0 * kernels * iterations;
            let low = 0.99 * known;
            let high = 1.01 * known + launch;
            assert!(
                (low..=high).contains(&time),
                "{row}: {iterations} in {time} ns"
            );
        }
    }
    let page = fs::read_to_string(stand_in.folder().join("index.html")).expect("a page");
    assert!(page.contains("recorded, not measured"));
    let to = stand_in.folder().join("exported");
    let mut export = stand_in.command("crossover", "h200");
    let refused = expect(export.arg("export").arg(&to), 2);
    assert!(refused.contains("was recorded, not measured"), "{refused}");
    assert!(!to.exists());
}
