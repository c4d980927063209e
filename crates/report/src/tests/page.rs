//! The page and the plots as files.

use std::fs;

use crate::report::Options;
use crate::tests::holds;
use crate::tests::machines::{commit, full, laptop};
use crate::tests::refreshed;
use crate::tests::unpacked;
use crate::{readme, write};
use crossover_results::export::BESIDE_THE_PAGE;

#[test]
fn the_page_of_a_group_that_is_gone_goes() {
    let (dir, root) = crate::tests::folders();
    full(&root, "Example GPU");
    let refresh = || write::refresh(&root, dir.path(), &Options::default()).unwrap();
    refresh();
    let groups = dir.path().join("groups");
    fs::copy(groups.join("matmul.html"), groups.join("gone.html")).unwrap();
    fs::write(groups.join("mine.html"), "<title>mine</title>").unwrap();
    refresh();
    let is_there = |name: &str| groups.join(name).is_file();
    assert!(is_there("matmul.html") && is_there("mine.html") && !is_there("gone.html"));
}

#[test]
fn the_page_holds_plots_tables_and_links() {
    let (dir, root) = crate::tests::folders();
    let f = full(&root, "Example GPU");
    // Criterion's own page of one benchmark.
    let own = f.dir("matmul/cpu/best/64").parent().unwrap().join("report");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("index.html"), "").unwrap();
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    let html = written.pages();
    assert!(html.contains("href=\"../criterion/matmul/cpu_best/64/report/index.html\""));
    assert_eq!(
        html.matches("report/index.html").count(),
        2,
        "only where it is there"
    );
    holds(
        &html,
        &[
            "Example GPU",
            "Example CPU 9000",
            "Matrix product",
            "f32 peak",
            "Bandwidth over the working set",
            "events-gated",
        ],
    );
    assert_eq!(written.plots().len(), 6, "{:?}", written.plots());
    let said = written.to_string();
    holds(
        &said,
        &["Matrix product", "one process", " benchmarks, 0 failed"],
    );
    // Every benchmark is a line with its time in full.
    let record = unpacked(&dir.path().join(BESIDE_THE_PAGE));
    let csv = fs::read_to_string(dir.path().join("results.csv")).unwrap();
    let all = record["benchmarks"].as_array().unwrap();
    assert_eq!(csv.lines().count(), 1 + all.len());
    let line = "Example GPU,matmul/cpu/best/64,matmul,cpu/best,64,wall,";
    assert!(csv.contains(line), "{csv}");
    for line in csv.lines().skip(1) {
        let cells: Vec<f64> = (line.split(',').skip(6).take(3))
            .map(|cell| cell.parse().unwrap())
            .collect();
        let [median, low, high] = cells[..] else {
            panic!("{line}");
        };
        assert!(low < median && median < high, "{line}");
    }
}

#[test]
fn plots_stand_alone() {
    let (dir, root) = crate::tests::folders();
    laptop(&root);
    commit(dir.path(), |root| full(root, "R&D <GPU>"));
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    for plot in &written.plots() {
        let svg = fs::read_to_string(plot).unwrap();
        assert!(svg.starts_with("<svg width="), "{}", plot.display());
        assert!(svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("prefers-color-scheme:dark"));
        assert!(!svg.contains("R&D"), "unescaped");
    }
    let time = fs::read_to_string(dir.path().join("plots/matmul-time.svg")).unwrap();
    holds(
        &time,
        &[
            "<polygon",
            "best CPU code",
            "on the device, a queue of calls",
        ],
    );
    let off = Options {
        no_reference: true,
        ..Options::default()
    };
    write::refresh(&root, dir.path(), &off).unwrap();
    let time = fs::read_to_string(dir.path().join("plots/matmul-time.svg")).unwrap();
    assert!(
        !time.contains("on the device"),
        "the reference is switched off"
    );
}

#[test]
fn a_page_names_the_gpu_or_says_that_none_measured() {
    let (dir, root) = crate::tests::folders();
    let mut laptop = laptop(&root);
    laptop.skip("matmul/gpu/cublas", "no device has verified it yet");
    let unknown = "No GPU has measured matmul in these results, so from which size on it would win is not known.";
    let (page, table, _) = refreshed(&root, dir.path());
    assert!(page.contains(unknown) && table.contains(unknown), "{table}");
    assert!(page.contains("<code>matmul/gpu/cublas</code></dt><dd>no device has verified it yet"));
    commit(dir.path(), |root| full(root, "Example GPU"));
    let (page, table, _) = refreshed(&root, dir.path());
    assert!(
        !page.contains(unknown) && !table.contains(unknown),
        "{table}"
    );
    let whose = "There is no GPU here. The GPU figures are of another machine: Example GPU";
    assert!(page.contains(whose) && table.contains(whose), "{table}");
}

#[test]
fn the_readme_shows_the_reference() {
    let (dir, root) = crate::tests::folders();
    laptop(&root);
    commit(dir.path(), |root| full(root, "Example GPU"));
    let path = dir.path().join("README.md");
    let options = Options::default();
    let refresh = || readme::refresh(&path, &root, dir.path(), &options);
    assert!(refresh().unwrap_err().to_string().contains("README.md"));
    fs::write(&path, "# a\n").unwrap();
    let error = refresh().unwrap_err().to_string();
    assert!(error.contains(readme::BEGIN), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "# a\n");
    let (begin, end) = (readme::BEGIN, readme::END);
    fs::write(&path, format!("# a\n{begin}\n{end}\nz\n")).unwrap();
    let alone = Options {
        no_reference: true,
        ..Options::default()
    };
    let error = readme::refresh(&path, &root, dir.path(), &alone).unwrap_err();
    assert!(error.to_string().contains("answer no question"), "{error}");
    refresh().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# a\n") && text.ends_with("\nz\n"));
    assert!(
        text.contains("Example GPU, measured 2026-01-02, against 16 threads of Example CPU 9000:")
    );
    let row = text
        .lines()
        .find(|line| line.starts_with("| Matrix product | N ≥ "));
    assert!(
        row.is_some_and(|row| row.ends_with("× faster° | · |")),
        "{text}"
    );
    assert_eq!(text.matches("<img ").count(), 1);
    assert!(text.contains("docs/plots/matmul-speedup.svg"));
    let plot = fs::read_to_string(dir.path().join("docs/plots/matmul-speedup.svg")).unwrap();
    assert!(plot.contains("on the device, a queue of calls"));
}
