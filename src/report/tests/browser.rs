//! The page in a browser: no error, nothing fetched, the explorer works, and the crossover
//! it shows is the one that the raw points give.
//!
//! Needs Chromium (`CHROMIUM` names it where it is not on the path). Without it the tests
//! say so and pass, unless `CROSSOVER_REQUIRE_CHROMIUM=1`. Screenshots stay in
//! `target/screenshots/`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::report::assemble::Options;
use crate::report::tests::cdp::{Browser, Driven, chromium};
use crate::report::tests::fixture::{absurd, full, laptop};
use crate::report::tests::profiles::profiled;
use crate::report::tests::telemetry::plant_capped;
use crate::report::write;

/// Runs `test` with a browser, or says why not.
pub(super) fn with_browser(test: impl FnOnce(&mut Browser) -> Driven) {
    let Some(program) = chromium() else {
        let required = std::env::var("CROSSOVER_REQUIRE_CHROMIUM").is_ok_and(|v| v == "1");
        assert!(
            !required,
            "CROSSOVER_REQUIRE_CHROMIUM=1 and there is no Chromium"
        );
        eprintln!("skipped: there is no Chromium; install one or name it with CHROMIUM");
        return;
    };
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(&program, profile.path()).unwrap();
    test(&mut browser).unwrap();
}

fn screenshots() -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Screenshots of a page on a desktop, light and dark, and on a phone.
fn photograph(browser: &mut Browser, name: &str) -> Driven {
    let dir = screenshots();
    browser.eval("scrollTo(0, 0)")?;
    for (kind, width, height, dark) in [
        ("desktop", 1400, 900, false),
        ("dark", 1400, 900, true),
        ("phone", 390, 844, false),
        ("phone-dark", 390, 844, true),
    ] {
        browser.look(width, height, dark)?;
        let wide = browser.eval("document.documentElement.scrollWidth")?;
        assert!(
            wide.as_u64().is_some_and(|wide| wide <= width.into()),
            "{kind}: the page is {wide} wide on a screen of {width}"
        );
        browser.screenshot(&dir.join(format!("{name}-{kind}.png")))?;
    }
    browser.look(1400, 900, false)
}

/// The size at which the straight line through log-log points of two curves crosses last.
fn crossing(cpu: &[(f64, f64)], gpu: &[(f64, f64)]) -> Option<f64> {
    let gap: Vec<(f64, f64)> = cpu
        .iter()
        .zip(gpu)
        .map(|(c, g)| {
            assert_eq!(c.0, g.0);
            (c.0.ln(), (g.1 / c.1).ln())
        })
        .collect();
    let pair = gap
        .windows(2)
        .rev()
        .find(|w| w[0].1 >= 0.0 && w[1].1 < 0.0)?;
    let t = pair[0].1 / (pair[0].1 - pair[1].1);
    Some((pair[0].0 + t * (pair[1].0 - pair[0].0)).exp())
}

/// Medians straight from Criterion's files.
fn raw(root: &Path, series: &str) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = fs::read_dir(root.join(series))
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("new/estimates.json")).ok()?;
            let json: Value = serde_json::from_str(&text).ok()?;
            let size = entry.file_name().to_str()?.parse().ok()?;
            Some((size, json["median"]["point_estimate"].as_f64()?))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

pub(super) fn clean(browser: &Browser) {
    assert_eq!(browser.errors(), Vec::<String>::new());
    assert_eq!(browser.fetched(), Vec::<String>::new());
}

#[test]
fn the_explorer_shows_what_the_raw_points_say() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    full(&root, "Example GPU");
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    with_browser(|browser| {
        browser.look(1400, 900, false)?;
        browser.open(&written.page)?;
        assert_eq!(
            browser.eval("document.querySelector('#explorer').hidden")?,
            false
        );

        // The crossover in the explorer and on the card is that of the raw points.
        let best: Vec<(f64, f64)> = {
            let all = ["naive", "ndarray", "rayon", "best"]
                .map(|name| raw(&root, &format!("matmul/cpu_{name}")));
            raw(&root, "matmul/gpu_cublas-eager")
                .iter()
                .map(|(size, _)| {
                    let here = all.iter().flatten().filter(|p| p.0 == *size);
                    (*size, here.map(|p| p.1).fold(f64::INFINITY, f64::min))
                })
                .collect()
        };
        let planted = crossing(&best, &raw(&root, "matmul/gpu_cublas-eager")).unwrap();
        browser.eval(
            "{const s = document.querySelector('#x-group'); s.value = 'matmul';
              s.dispatchEvent(new Event('change'))}",
        )?;
        for script in [
            "Number(document.querySelector('#x-crossings [data-gpu=\"gpu/cublas-eager\"]').dataset.size)",
            "Number(document.querySelector('[data-answer=\"matmul/queued\"]').dataset.size)",
        ] {
            let shown = browser.eval(script)?.as_f64().unwrap();
            assert!(
                (shown / planted - 1.0).abs() < 1e-6,
                "{shown} is not {planted}"
            );
        }
        let text = browser
            .eval("document.querySelector('[data-answer=\"matmul/queued\"]').textContent")?;
        let text = text.as_str().unwrap().trim_start_matches("N ≥ ");
        assert!(
            (text.parse::<f64>()? / planted - 1.0).abs() < 0.01,
            "{text} is not {planted}"
        );

        // All implementations, the smallest size: the CPU wins there, the largest: the GPU.
        browser.eval("document.querySelector('[data-pick=all]').click()")?;
        let implementations =
            browser.eval("document.querySelectorAll('#x-series input:checked').length")?;
        assert_eq!(implementations, 11);
        let winner = |browser: &mut Browser, at: &str| -> Driven<String> {
            browser.eval(&format!(
                "{{const s = document.querySelector('#x-size'); s.value = {at};
                   s.dispatchEvent(new Event('input'))}}"
            ))?;
            let text = browser.eval("document.querySelector('#x-winner').textContent")?;
            Ok(text.as_str().unwrap_or_default().to_owned())
        };
        let smallest = winner(browser, "0")?;
        assert!(smallest.contains("N = 4: cpu/best"), "{smallest}");
        let largest = winner(browser, "s.max")?;
        assert!(largest.contains("N = 8,192: gpu/cublas"), "{largest}");
        assert!(!largest.contains("submit"), "{largest}");

        // Taking an implementation away takes its curve away.
        let curves = "document.querySelectorAll('#x-chart polyline').length";
        assert_eq!(browser.eval(curves)?, 11);
        browser.eval("document.querySelector('#x-series input').click()")?;
        assert_eq!(browser.eval(curves)?, 10);

        // Speedup and throughput leave the clock out that measures no work.
        for (metric, expected) in [("speedup", 9), ("rate", 9)] {
            browser.eval(&format!(
                "document.querySelector('#x-metric [value={metric}]').click()"
            ))?;
            let drawn = browser.eval(
                "[...document.querySelectorAll('#x-chart polyline')].filter(p => p.getAttribute('points')).length",
            )?;
            assert_eq!(drawn, expected, "{metric}");
        }
        browser.eval("document.querySelector('#x-metric [value=time]').click()")?;

        // The mouse over a point shows its figures.
        let point = browser.eval(
            "(() => {document.querySelector('#explorer').scrollIntoView();
              const c = document.querySelector('#x-chart circle').getBoundingClientRect();
              return [c.x + c.width / 2, c.y + c.height / 2]})()",
        )?;
        let moved = json!({"type": "mouseMoved", "x": point[0], "y": point[1]});
        browser.call("Input.dispatchMouseEvent", moved)?;
        let tip = browser.eval("document.querySelector('#x-tip').textContent")?;
        let tip = tip.as_str().unwrap_or_default();
        assert!(tip.contains("clock wall") && tip.contains(" to "), "{tip}");
        assert!(tip.contains("N = "), "{tip}");
        browser.screenshot(&screenshots().join("explorer.png"))?;

        browser.eval("document.querySelector('[data-pick=headline]').click()")?;
        photograph(browser, "full")?;
        let pdf = browser.call("Page.printToPDF", json!({"printBackground": true}))?;
        assert!(pdf["data"].as_str().is_some_and(|d| d.len() > 1000));
        clean(browser);
        Ok(())
    });
}

#[test]
fn the_explorer_opens_a_benchmark_with_its_telemetry() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    plant_capped(&full(&root, "Example GPU"));
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    with_browser(|browser| {
        browser.look(1400, 900, false)?;
        browser.open(&written.page)?;
        let text = |browser: &mut Browser, id: &str| -> Driven<String> {
            let text = browser.eval(&format!("document.querySelector('{id}').textContent"))?;
            Ok(text.as_str().unwrap_or_default().to_owned())
        };
        let open = |name: &str| {
            format!(
                "[...document.querySelectorAll('#x-bars button')].find(b => b.textContent === '{name}').click()"
            )
        };
        browser.eval(
            "document.querySelector('[data-pick=all]').click();
             {const s = document.querySelector('#x-size'); s.value = 10;
              s.dispatchEvent(new Event('input'))}",
        )?;
        browser.eval(&open("gpu/cublas"))?;
        assert_eq!(text(browser, "#x-name")?, "gpu/cublas at N = 4,096");
        let facts = text(browser, "#x-facts")?;
        for fact in [
            "3.00 J, 45.8 GFLOP/J",
            "55 % of f32 peak",
            "pool peak 32 MiB",
        ] {
            assert!(facts.contains(fact), "{fact:?} in {facts}");
        }
        let telemetry = text(browser, "#x-telemetry")?;
        for words in [
            "1,455 to 1,980 MHz",
            "41 to 55 °C",
            "0.2 s: throttling set in: power cap; SM clock fell from 1980 to 1500 MHz",
        ] {
            assert!(telemetry.contains(words), "{words:?} in {telemetry}");
        }
        // The memory clock did not change, and what was not seen is not drawn.
        let lines = "document.querySelectorAll('#x-telemetry polyline').length";
        assert_eq!(browser.eval(lines)?, 4);
        let dots = "document.querySelectorAll('#x-telemetry circle').length";
        assert_eq!(browser.eval(dots)?, 23);
        let calm = "document.querySelector('#x-calm').hidden";
        assert_eq!(browser.eval(calm)?, true);
        let bars = text(browser, "#x-bars")?;
        assert!(bars.contains("▾ power cap, clock fell"), "{bars}");
        photograph(browser, "telemetry")?;

        // One without a telemetry, and without figures that it does not have.
        browser.eval(&open("cpu/best"))?;
        assert_eq!(text(browser, "#x-name")?, "cpu/best at N = 4,096");
        let hidden = "document.querySelector('#x-telemetry').hidden";
        assert_eq!(browser.eval(hidden)?, true);
        let facts = text(browser, "#x-facts")?;
        assert!(
            facts.contains("of FMA peak") && !facts.contains("energy"),
            "{facts}"
        );
        clean(browser);
        Ok(())
    });
}

#[test]
fn a_laptop_beside_the_reference() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    laptop(&root);
    full(
        &dir.path().join("reference/example-gpu/criterion"),
        "Example GPU",
    );
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    with_browser(|browser| {
        browser.look(1400, 900, false)?;
        browser.open(&written.page)?;
        let text = browser.eval("document.body.textContent")?;
        assert!(text.as_str().unwrap().contains("another machine"), "{text}");
        let crossings = browser.eval("document.querySelectorAll('#x-crossings li').length")?;
        assert!(crossings.as_u64() >= Some(2), "{crossings}");
        photograph(browser, "laptop")?;
        clean(browser);
        Ok(())
    });
}

#[test]
fn names_from_files_stay_text() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    let f = full(&root, "<script>alert(1)</script>");
    let id = "</script><img src=x onerror=alert(2)>/gpu/\"><b>/64";
    let new = root.join("odd/new");
    fs::create_dir_all(&new).unwrap();
    let from = f.dir("matmul/cpu/best/64");
    fs::copy(from.join("estimates.json"), new.join("estimates.json")).unwrap();
    let benchmark = json!({
        "group_id": "</script><img src=x onerror=alert(2)>",
        "function_id": "cpu/\"><b>", "value_str": "64", "full_id": id,
    });
    fs::write(new.join("benchmark.json"), benchmark.to_string()).unwrap();
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    with_browser(|browser| {
        browser.open(&written.page)?;
        assert_eq!(
            browser.eval("document.querySelectorAll('img, b b').length")?,
            0
        );
        assert_eq!(
            browser.eval("document.querySelectorAll('#x-group option').length")?,
            3
        );
        clean(browser);
        Ok(())
    });
}

/// The committed machines, where there are any.
#[test]
fn the_committed_reference() {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("target-reports");
    let Ok(machines) = fs::read_dir(reports.join("reference")) else {
        eprintln!("skipped: no reference is committed");
        return;
    };
    let options = Options {
        with: machines.flatten().map(|e| e.path()).collect(),
        no_reference: true,
    };
    let out = tempfile::tempdir().unwrap();
    let written = write::refresh(&out.path().join("none"), out.path(), &options).unwrap();
    with_browser(|browser| {
        browser.look(1400, 900, false)?;
        browser.open(&written.page)?;
        let cards = browser.eval("document.querySelectorAll('.card').length")?;
        assert!(cards.as_u64() >= Some(1), "{cards}");
        photograph(browser, "reference")?;
        clean(browser);
        Ok(())
    });
}

#[test]
fn absurd_times_do_not_stop_the_explorer() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    absurd(&root, 1e-300, 1e303);
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    with_browser(|browser| {
        browser.look(1400, 900, false)?;
        browser.open(&written.page)?;
        for metric in ["time", "speedup", "rate"] {
            browser.eval(&format!(
                "document.querySelector('#x-metric [value={metric}]').click()"
            ))?;
            let lines = browser.eval("document.querySelectorAll('#x-chart line').length")?;
            assert!(
                lines.as_u64().is_some_and(|n| (3..80).contains(&n)),
                "{metric}: {lines}"
            );
            let longest = browser.eval(
                "Math.max(...[...document.querySelectorAll('#x-chart text, #x-bars span, #x-facts dd')]
                   .map((node) => node.textContent.length))",
            )?;
            assert!(
                longest.as_u64().is_some_and(|n| n < 60),
                "{metric}: {longest}"
            );
        }
        clean(browser);
        Ok(())
    });
}

/// Also for whoever wants to look: light and dark, wide and narrow.
#[test]
fn timelines_fit_every_screen() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    profiled(&root);
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    with_browser(|browser| {
        browser.look(1400, 900, false)?;
        browser.open(&written.page)?;
        // Every text that is drawn stays within its drawing, and a name within its block.
        let outside = browser.eval(
            "[...document.querySelectorAll('.timeline svg')].flatMap(svg => {
               const box = svg.getBoundingClientRect();
               return [...svg.querySelectorAll('text,rect')].filter(t => {
                 const b = t.getBoundingClientRect();
                 return b.left < box.left - 1 || b.right > box.right + 1 || b.bottom > box.bottom + 1;
               }).map(t => t.textContent)})",
        )?;
        assert_eq!(outside, json!([]));
        let drawn = browser.eval("document.querySelectorAll('.timeline svg rect').length")?;
        assert!(drawn.as_u64().is_some_and(|n| n > 150), "{drawn}");
        photograph(browser, "profiles")?;
        clean(browser);
        Ok(())
    });
}
