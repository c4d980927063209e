//! The interactive chart: it works by mouse and by keyboard, and the crossover it shows is the one
//! that the raw points give.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::tests::browser::{photograph, screenshots, text, with_page};
use crate::tests::cdp::{Browser, Driven};
use crate::tests::machines::{absurd, full};
use crate::tests::telemetry::plant_capped;

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

/// Chooses one of the options above the chart.
fn choose(browser: &mut Browser, name: &str, value: &str) -> Driven {
    browser.eval(&format!(
        "document.querySelector('#c-{name} [value={value}]').click()"
    ))?;
    browser.drawn()
}

/// Chooses the operation that the chart shows.
pub(super) fn choose_group(browser: &mut Browser, name: &str) -> Driven {
    browser.eval(&format!(
        "{{const s = document.querySelector('#c-group'); s.value = '{name}';
           s.dispatchEvent(new Event('change'))}}"
    ))?;
    browser.drawn()
}

/// What the chart is read at, as a screen reader says it.
fn said(browser: &mut Browser) -> Driven<String> {
    let said = browser.eval("document.querySelector('#c-plot').getAttribute('aria-valuetext')")?;
    Ok(said.as_str().unwrap_or_default().to_owned())
}

pub(super) fn address(browser: &mut Browser) -> Driven<String> {
    let address = browser.eval("location.hash")?;
    Ok(address.as_str().unwrap_or_default().to_owned())
}

/// Fails where a label of the chart lies over another or sticks out of it; how many there are.
pub(super) fn labels_are_apart(browser: &mut Browser) -> Driven<usize> {
    let boxes = browser.eval(
        "(() => {
           const frame = document.querySelector('#c-plot').getBoundingClientRect();
           return [...document.querySelectorAll('#c-plot .labels > *')].map(label => {
             const b = label.getBoundingClientRect();
             return {text: label.textContent, x0: b.left - frame.left, x1: b.right - frame.left,
                     y0: b.top - frame.top, y1: b.bottom - frame.top,
                     inside: b.left >= frame.left - 1 && b.right <= frame.right + 1
                       && b.top >= frame.top - 1 && b.bottom <= frame.bottom + 1};
           })})()",
    )?;
    let boxes = boxes.as_array().cloned().unwrap_or_default();
    let at = |label: &Value, side: &str| label[side].as_f64().unwrap();
    for (i, a) in boxes.iter().enumerate() {
        assert_eq!(a["inside"], true, "{a} sticks out");
        for b in &boxes[..i] {
            let apart = at(a, "x0") >= at(b, "x1") - 0.5
                || at(b, "x0") >= at(a, "x1") - 0.5
                || at(a, "y0") >= at(b, "y1") - 0.5
                || at(b, "y0") >= at(a, "y1") - 0.5;
            assert!(apart, "{a} lies over {b}");
        }
    }
    Ok(boxes.len())
}

#[test]
fn the_chart_shows_what_the_raw_points_say() {
    with_page(
        |root| drop(full(root, "Example GPU")),
        |browser, planted| {
            assert_eq!(
                browser.eval("document.querySelector('#chart').hidden")?,
                false
            );

            // The crossover in the chart and on the card is that of the raw points.
            let best: Vec<(f64, f64)> = {
                let all = ["naive", "ndarray", "rayon", "best"]
                    .map(|name| raw(&planted.root, &format!("matmul/cpu_{name}")));
                raw(&planted.root, "matmul/gpu_cublas-eager")
                    .iter()
                    .map(|(size, _)| {
                        let here = all.iter().flatten().filter(|p| p.0 == *size);
                        (*size, here.map(|p| p.1).fold(f64::INFINITY, f64::min))
                    })
                    .collect()
            };
            let planted = crossing(&best, &raw(&planted.root, "matmul/gpu_cublas-eager")).unwrap();
            choose_group(browser, "matmul")?;
            for script in [
                "unpacked().then(({ groups }) => groups
               .find(g => g.name === 'matmul').answers.find(a => a.question === 'queued').size)",
                "Number(document.querySelector('[data-answer=\"matmul/queued\"]').dataset.size)",
            ] {
                let shown = browser.eval(script)?.as_f64().unwrap();
                assert!(
                    (shown / planted - 1.0).abs() < 1e-6,
                    "{shown} is not {planted}"
                );
            }
            for selector in [
                "[data-answer=\"matmul/queued\"]",
                ".cross-label",
                "#c-answers .says b",
            ] {
                let text = text(browser, selector)?;
                let number = text.trim_start_matches("N ≥ ");
                assert!(
                    (number.parse::<f64>()? / planted - 1.0).abs() < 0.01,
                    "{text} is not {planted}"
                );
            }

            // Each answer is a curve with its name at the end.
            assert_eq!(labels_are_apart(browser)?, 3 + 3);
            assert_eq!(
                browser.eval("document.querySelectorAll('#c-answers li').length")?,
                3
            );
            for fact in ["other processes", "is faster"] {
                let caption = text(browser, "#c-caption")?;
                assert!(caption.contains(fact), "{caption}");
            }
            let panel = text(browser, "#c-answers")?;
            assert!(panel.contains("limited by compute: "), "{panel}");
            assert!(panel.contains("Unconfirmed: one process"), "{panel}");

            // The smallest size: the CPU wins there; the largest: the GPU.
            browser.eval("document.querySelector('#c-plot').focus()")?;
            browser.press("Home")?;
            let smallest = said(browser)?;
            assert!(smallest.starts_with("N = 4: "), "{smallest}");
            let winner = text(browser, "#c-winner")?;
            assert!(winner.starts_with("Fastest at N = 4: cpu/best"), "{winner}");
            browser.press("ArrowRight")?;
            assert!(said(browser)?.starts_with("N = 8: "));
            browser.press("End")?;
            assert!(said(browser)?.starts_with("N = 8,192: "));
            let winner = text(browser, "#c-winner")?;
            assert!(
                winner.contains("Fastest at N = 8,192: gpu/cublas-eager"),
                "{winner}"
            );

            // What the canvas shows is there as a table.
            browser.eval("document.querySelector('#c-table').open = true")?;
            browser.drawn()?;
            let rows = "document.querySelectorAll('#c-table tbody tr').length";
            assert_eq!(browser.eval(rows)?, 12);
            let last = text(browser, "#c-table tbody tr:last-child")?;
            assert!(
                last.contains("× (") && last.contains("of f32 peak"),
                "{last}"
            );

            // A curve that is switched off is gone, with its label and its crossing.
            browser
                .eval("document.querySelector('#c-answers [data-key=ordinary] input').click()")?;
            browser.drawn()?;
            assert_eq!(labels_are_apart(browser)?, 2 + 2);
            assert!(address(browser)?.contains("off=ordinary"));
            browser
                .eval("document.querySelector('#c-answers [data-key=ordinary] input').click()")?;

            // Time has the CPU's curve too, throughput the limits; rows that measure no work have none.
            choose(browser, "show", "time")?;
            assert_eq!(labels_are_apart(browser)?, 4 + 3);
            choose(browser, "show", "rate")?;
            labels_are_apart(browser)?;
            assert!(text(browser, "#c-plot .labels")?.contains("GPU f32 peak"));
            choose(browser, "rows", "all")?;
            labels_are_apart(browser)?;
            assert_eq!(
                browser.eval("document.querySelectorAll('#c-answers li').length")?,
                11
            );
            for (show, expected) in [("rate", 10), ("speedup", 10), ("time", 11)] {
                choose(browser, "show", show)?;
                let curves = browser
                    .eval("document.querySelectorAll('#c-plot .end-label:not(.limit)').length")?;
                assert_eq!(curves, expected, "{show}");
                labels_are_apart(browser)?;
            }
            browser.screenshot(&screenshots().join("all-rows.png"))?;

            // Linear axes.
            choose(browser, "x", "lin")?;
            choose(browser, "y", "lin")?;
            labels_are_apart(browser)?;
            Ok(())
        },
    );
}

#[test]
fn a_view_is_zoomed_by_mouse_and_keys_and_its_address_brings_it_back() {
    with_page(
        |root| drop(full(root, "Example GPU")),
        |browser, _| {
            let ticks = "document.querySelector('#c-plot').getAttribute('aria-valuemax')";
            assert_eq!(browser.eval(ticks)?, "11");
            assert_eq!(address(browser)?, "");

            // Drag over the middle of the plot.
            let middle = browser.eval(
            "(() => {const b = document.querySelector('#c-plot .u-over').getBoundingClientRect();
               return [b.x + 0.4 * b.width, b.x + 0.7 * b.width, b.y + b.height / 2]})()",
        )?;
            for (kind, x) in [
                ("mouseMoved", 0),
                ("mousePressed", 0),
                ("mouseMoved", 1),
                ("mouseReleased", 1),
            ] {
                let event = json!({"type": kind, "x": middle[x], "y": middle[2], "button": "left", "buttons": 1, "clickCount": 1});
                browser.call("Input.dispatchMouseEvent", event)?;
            }
            browser.drawn()?;
            let zoomed = address(browser)?;
            assert!(
                zoomed.contains("from=") && zoomed.contains("to="),
                "{zoomed}"
            );
            let from: f64 = zoomed
                .split("from=")
                .nth(1)
                .unwrap()
                .split('&')
                .next()
                .unwrap()
                .parse()?;
            assert!((40.0..160.0).contains(&from), "{zoomed}");
            labels_are_apart(browser)?;

            // Everything once more; then by keys.
            browser.eval("document.querySelector('#c-plot').focus()")?;
            browser.press("Escape")?;
            assert!(!address(browser)?.contains("from="));
            browser.press("Home")?;
            for _ in 0..4 {
                browser.press("ArrowRight")?;
            }
            browser.press("+")?;
            assert!(said(browser)?.starts_with("N = 64: "));
            let zoomed = address(browser)?;
            assert!(
                zoomed.contains("at=64") && zoomed.contains("from="),
                "{zoomed}"
            );
            browser.eval("document.querySelector('#c-answers [data-key=pinned] input').click()")?;
            choose(browser, "show", "time")?;

            // The address alone brings all of it back.
            let state = |browser: &mut Browser| -> Driven<[String; 4]> {
                Ok([
                    address(browser)?,
                    said(browser)?,
                    text(browser, "#c-answers")?,
                    text(browser, "#c-plot .labels")?,
                ])
            };
            let before = state(browser)?;
            browser.reload()?;
            browser.drawn()?;
            assert_eq!(state(browser)?, before);
            let link = browser.eval("document.querySelector('#c-link').hash")?;
            assert_eq!(link, before[0].as_str());

            // The next group begins at its own largest size, with its own curves.
            choose_group(browser, "nested_sine")?;
            let next = address(browser)?;
            assert!(next.contains("group=nested_sine"), "{next}");
            for kept in ["at=", "from=", "off="] {
                assert!(!next.contains(kept), "{kept} leaked into {next}");
            }
            let read = said(browser)?;
            assert!(read.starts_with("n = 2²⁸: "), "{read}");

            // A card leads to its chart, and a mark of trust to what the answer rests on.
            browser.eval("document.querySelector('#card-matmul h3 a').click()")?;
            browser.drawn()?;
            assert_eq!(text(browser, "#c-group option:checked")?, "Matrix product");
            browser.eval("document.querySelector('#card-matmul .trust').click()")?;
            browser.drawn()?;
            let open = "document.querySelector('#evidence-matmul-queued').closest('details').open";
            assert_eq!(browser.eval(open)?, true);

            // No FLOP stands on its own: matmul has a roofline.
            browser.eval("document.querySelector('#c-roof').open = true")?;
            browser.drawn()?;
            let lines = "document.querySelectorAll('#c-roofline polyline[fill=none]').length";
            assert!(browser.eval(lines)?.as_u64() >= Some(10));
            let cells = "document.querySelectorAll('#c-limits .cells i').length";
            assert!(browser.eval(cells)?.as_u64() >= Some(30));

            photograph(browser, "full")?;
            browser.look(390, 844, false)?;
            browser.drawn()?;
            labels_are_apart(browser)?;
            let pdf = browser.call("Page.printToPDF", json!({"printBackground": true}))?;
            assert!(pdf["data"].as_str().is_some_and(|d| d.len() > 1000));
            Ok(())
        },
    );
}

#[test]
fn the_chart_opens_a_benchmark_with_its_telemetry() {
    with_page(
        |root| plant_capped(&full(root, "Example GPU")),
        |browser, _| {
            let open = |name: &str| {
                format!(
                    "[...document.querySelectorAll('#c-answers .open')].find(b => b.ariaLabel === 'Details of {name}').click()"
                )
            };
            choose(browser, "rows", "all")?;
            browser.eval("document.querySelector('#c-plot').focus()")?;
            browser.press("End")?;
            browser.press("ArrowLeft")?;
            browser.eval(&open("gpu/cublas"))?;
            assert_eq!(text(browser, "#c-name")?, "gpu/cublas at N = 4,096");
            let facts = text(browser, "#c-facts")?;
            for fact in [
                "3.00 J, 45.8 GFLOP/J",
                "55 % of f32 peak",
                "pool peak 32 MiB",
            ] {
                assert!(facts.contains(fact), "{fact:?} in {facts}");
            }
            let telemetry = text(browser, "#c-telemetry")?;
            for words in [
                "1,455 to 1,980 MHz",
                "41 to 55 °C",
                "0.2 s: throttling set in: power cap; SM clock fell from 1980 to 1500 MHz",
            ] {
                assert!(telemetry.contains(words), "{words:?} in {telemetry}");
            }
            // The memory clock did not change, and what was not seen is not drawn.
            let lines = "document.querySelectorAll('#c-telemetry polyline').length";
            assert_eq!(browser.eval(lines)?, 4);
            let dots = "document.querySelectorAll('#c-telemetry circle').length";
            assert_eq!(browser.eval(dots)?, 23);
            let calm = "document.querySelector('#c-calm').hidden";
            assert_eq!(browser.eval(calm)?, true);
            let rows = text(browser, "#c-answers")?;
            assert!(rows.contains("▾ power cap, clock fell"), "{rows}");
            photograph(browser, "telemetry")?;

            // One without a telemetry, and without figures that it does not have.
            browser.eval(&open("cpu/best"))?;
            assert_eq!(text(browser, "#c-name")?, "cpu/best at N = 4,096");
            let hidden = "document.querySelector('#c-telemetry').hidden";
            assert_eq!(browser.eval(hidden)?, true);
            let facts = text(browser, "#c-facts")?;
            assert!(
                facts.contains("of FMA peak") && !facts.contains("energy"),
                "{facts}"
            );
            Ok(())
        },
    );
}

#[test]
fn absurd_times_do_not_stop_the_chart() {
    with_page(
        |root| absurd(root, 1e-300, 1e303),
        |browser, _| {
            for rows in ["all", "answers"] {
                for axis in ["lin", "log"] {
                    choose(browser, "rows", rows)?;
                    choose(browser, "x", axis)?;
                    choose(browser, "y", axis)?;
                    for show in ["time", "speedup", "rate"] {
                        choose(browser, "show", show)?;
                        labels_are_apart(browser)?;
                        let longest = browser.eval(
                        "Math.max(...[...document.querySelectorAll('#c-plot span, #c-answers b, #c-facts dd')]
                           .map((node) => node.textContent.length))",
                    )?;
                        assert!(
                            longest.as_u64().is_some_and(|n| n < 60),
                            "{rows} {axis} {show}: {longest}"
                        );
                    }
                }
            }
            Ok(())
        },
    );
}
