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
    let sidecar = |row: &str| -> Value {
        let folder = root.join("nested_sine_uniform").join(row).join("1024/new");
        let file = fs::read(folder.join("crossover.json")).unwrap_or_else(|e| {
            panic!("{}: {e}\n{said}", folder.display());
        });
        serde_json::from_slice(&file).expect("a sidecar")
    };
    for row in [
        "gpu_fused",
        "gpu_fused-gated",
        "gpu_graph",
        "gpu_graph-gated",
    ] {
        let sidecar = sidecar(row);
        assert_eq!(sidecar["verified"], Value::Null, "{row}");
        assert_eq!(sidecar["notes"][0], "recorded, not measured", "{row}");
    }
    let page = fs::read_to_string(stand_in.folder().join("report/index.html")).expect("a page");
    assert!(page.contains("recorded, not measured"));
    let to = stand_in.folder().join("exported");
    let mut export = stand_in.command("crossover", "h200");
    let refused = expect(export.arg("export").arg(&to), 1);
    assert!(refused.contains("was recorded, not measured"), "{refused}");
    assert!(!to.exists());
}
