//! The page and the plots as files.

use std::fs;

use crossover::report::{self, Options};

use crate::fixture::{full, laptop};

#[test]
fn the_page_holds_plots_tables_and_links() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    let f = full(&root, "Example GPU");
    // Criterion's own page of one benchmark.
    let own = f.dir("matmul/cpu/best/64").parent().unwrap().join("report");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("index.html"), "").unwrap();
    let written = report::refresh(&root, dir.path(), &Options::default()).unwrap();
    let html = fs::read_to_string(&written.page).unwrap();
    assert!(html.contains("href=\"criterion/matmul/cpu_best/64/report/index.html\""));
    assert_eq!(
        html.matches("report/index.html").count(),
        2,
        "only where it is there"
    );
    for text in [
        "Example GPU",
        "Example CPU 9000",
        "Matrix product",
        "SGEMM rate",
        "events-gated",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert_eq!(written.plots.len(), 6, "{:?}", written.plots);
    assert!(written.table.contains("cublas-eager"), "{}", written.table);
}

#[test]
fn plots_stand_alone() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    laptop(&root);
    full(&dir.path().join("reference/big/criterion"), "R&D <GPU>");
    let written = report::refresh(&root, dir.path(), &Options::default()).unwrap();
    for plot in &written.plots {
        let svg = fs::read_to_string(plot).unwrap();
        assert!(svg.starts_with("<svg width="), "{}", plot.display());
        assert!(svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("prefers-color-scheme:dark"));
        assert!(
            !svg.contains("#0000"),
            "a colour's number is left in {}",
            plot.display()
        );
        assert!(!svg.contains("R&D"), "unescaped");
    }
    let time = fs::read_to_string(dir.path().join("plots/matmul-time.svg")).unwrap();
    assert!(time.contains("gpu/cublas, R&amp;D &lt;GPU&gt;"));
    assert!(time.contains("clock: events-gated") && !time.contains("clock: submit"));
    // Bands, a dashed line, hollow markers.
    assert!(time.contains("<polygon") && time.contains("stroke-dasharray"));
    let off = Options {
        no_reference: true,
        ..Options::default()
    };
    report::refresh(&root, dir.path(), &off).unwrap();
    let time = fs::read_to_string(dir.path().join("plots/matmul-time.svg")).unwrap();
    assert!(!time.contains("GPU"), "the reference is switched off");
}
