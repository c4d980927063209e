//! The first page in a browser: all of it works by mouse and by keyboard. `.ci/numbers` compares its verdicts with
//! `thresholds.json` and `crossover advise`, where data are used more than once by their speedups alone.

use serde_json::json;

use crate::tests::browser::{
    of_group, on_the_committed_page, photograph, screenshots, text, with_page,
};
use crate::tests::cdp::{Browser, Driven};
use crate::tests::committed::{measured, of_one_process};
use crate::tests::{holds, report};
use crate::thresholds::thresholds;
use crossover_advice::{Advice, Question, Residency};
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossover_answer::headlines;
use crossover_results::model::group_info::Unit;
use crossover_results::model::id::Device;
use crossover_results::store::stored_results::StoredResults;
use crossover_words::units;

/// Chooses one of the options above the chart.
fn choose(browser: &mut Browser, name: &str, value: &str) -> Driven {
    browser.eval(&format!(
        "document.querySelector('#c-{name} [value={value}]').click()"
    ))?;
    browser.drawn()
}

/// Enters something in the form of the verdict.
pub(super) fn enter(browser: &mut Browser, field: &str, value: &str) -> Driven {
    browser.eval(&format!(
        "{{const f = document.querySelector('#v-{field}'); f.value = '{value}';
           f.dispatchEvent(new Event(f.tagName === 'INPUT' ? 'input' : 'change'))}}"
    ))?;
    browser.drawn()
}

fn address(browser: &mut Browser) -> Driven<String> {
    let address = browser.eval("location.hash")?;
    Ok(address.as_str().unwrap_or_default().to_owned())
}

/// The curves of the legend, each with its value at the chosen size.
pub(super) fn legend(browser: &mut Browser) -> Driven<Vec<String>> {
    let items = browser.eval(
        "[...document.querySelectorAll('#c-legend li:not(.limit)')].map(item => item.textContent)",
    )?;
    Ok(serde_json::from_value(items)?)
}

#[test]
#[ignore = "needs Chromium"]
fn the_page_is_about_one_view_by_mouse_and_keyboard() {
    on_the_committed_page(|browser, page| {
        // The crossover in the map and in the chart is that of the answer.
        let report = report(StoredResults::default(), page.parent().unwrap());
        let mut answers = headlines(&report.found);
        let queued = answers.find(|f| f.group == "matmul" && f.question == Residency::Queued);
        let from = answer_in_words::size(queued.unwrap());
        let cell = "#map [data-group=matmul][data-place=queued]";
        // A cell leads to its verdict.
        browser.eval(&format!("document.querySelector('{cell} a').click()"))?;
        browser.until("document.querySelector('#v-data').value === 'queued'")?;
        let says = text(browser, "#v-says")?;
        holds(&says, &["on the device, a queue of calls: use the GPU"]);
        let shown = text(browser, &format!("{cell} a"))?;
        let shown = shown.trim_end_matches([' ', '°', '±']);
        assert_eq!(shown, from.trim_start_matches("N "));
        let queued = |item: &String| item.starts_with("on the device, a queue of calls ");
        let item = legend(browser)?.into_iter().find(queued).unwrap();
        assert!(item.ends_with(&format!("GPU wins: {from}")), "{item}");

        // The size is one for all: typed, and moved along the chart by keys.
        enter(browser, "data", "ordinary")?;
        enter(browser, "size", "500")?;
        let says = text(browser, "#v-says")?;
        holds(&says, &["Matrix product, N = 500, in ordinary memory: "]);
        assert_eq!(text(browser, "#c-at")?, "N = 512:");
        enter(browser, "data", "queued")?;
        browser.eval("document.querySelector('#c-plot').focus()")?;
        let mut sizes = Vec::new();
        for (key, choice) in [
            ("Home", "stay on the CPU"),
            ("ArrowRight", "stay on the CPU"),
            ("End", "use the GPU"),
        ] {
            browser.press(key)?;
            let reads = text(browser, "#c-at")?;
            let size = reads.trim_end_matches(':');
            let says = format!("{size}, on the device, a queue of calls: {choice}");
            holds(&text(browser, "#v-says")?, &[&says]);
            sizes.push(size.to_owned());
        }
        sizes.dedup();
        assert_eq!(sizes.len(), 3, "{sizes:?}");

        // The address alone brings the view back.
        enter(browser, "uses", "1")?;
        let state = |browser: &mut Browser| -> Driven<[String; 4]> {
            Ok([
                address(browser)?,
                text(browser, "#v-says")?,
                text(browser, "#c-at")?,
                text(browser, "#c-legend")?,
            ])
        };
        let before = state(browser)?;
        assert!(before[1].contains("used 10 times"), "{}", before[1]);
        browser.reload()?;
        browser.drawn()?;
        assert_eq!(state(browser)?, before);
        let link = browser.eval("document.querySelector('#view-link').hash")?;
        assert_eq!(link, before[0].as_str());

        // The next operation begins at a size of its own.
        enter(browser, "operation", "nested_sine")?;
        let next = address(browser)?;
        assert!(
            next.contains("operation=nested_sine") && !next.contains("size="),
            "{next}"
        );

        enter(browser, "operation", "matmul")?;
        photograph(browser, "full")?;

        // The page of the group shows the same view, with every chart and every implementation.
        enter(browser, "size", "500")?;
        let says = text(browser, "#v-says")?;
        browser.eval("document.querySelector('#c-link').click()")?;
        browser.until("document.querySelector('#i-rows tr') !== null")?;
        assert_eq!(text(browser, "#v-says")?, says);
        assert!(text(browser, "#i-at")?.contains("N = 512"));
        for (rows, show, expected) in [
            ("places", "speedup", 4),
            ("places", "time", 5),
            ("places", "throughput", 5),
            ("all", "speedup", 9),
            ("all", "time", 10),
            ("all", "throughput", 9),
        ] {
            choose(browser, "rows", rows)?;
            choose(browser, "show", show)?;
            let curves = legend(browser)?;
            assert!(curves.len() >= expected, "{rows} {show}: {curves:?}");
        }
        assert!(text(browser, "#c-legend")?.contains("GPU f32 peak"));
        browser.screenshot(&screenshots().join("all-rows.png"))
    });
}

#[test]
#[ignore = "needs Chromium"]
fn figures_of_different_sizes_are_not_compared() {
    with_page(measured(&["matmul"]), |browser, page| {
        // Only pinned data were measured there. The other places have the answers of the command, with
        // their sizes.
        enter(browser, "data", "pinned")?;
        enter(browser, "size", "1")?;
        let advice = Advice::new(thresholds(&report(measured(&["matmul"]), page)).unwrap())?;
        let kept = Question::new("matmul", 1u64).data(Residency::Awaited);
        let kept = units::speedup(advice.decide(&kept).estimate.unwrap().speedup);
        let kept = format!("Kept on the device: {kept} at N = 8.");
        holds(&text(browser, "#v-more")?, &[&kept]);
        assert_eq!(text(browser, "#w-rows")?, "");
        let pinned = |item: &String| item.contains("pinned host memory");
        let item = legend(browser)?.into_iter().find(pinned).unwrap();
        holds(&item, &["× slower"]);
        // If they are used again, most uses find them on the device.
        enter(browser, "uses", "1")?;
        let outside = "Outside the measured sizes (8 to 2,048)";
        holds(
            &text(browser, "#v-more")?,
            &["Kept there and queued: ", outside],
        );
        // The figures of the nearest size are compared, and the size is named.
        enter(browser, "data", "ordinary")?;
        enter(browser, "uses", "0")?;
        holds(&text(browser, "#v-more")?, &["Pinned: ", outside]);
        holds(&text(browser, "#v-core")?, &["At N = 8 the GPU is "]);
        assert_eq!(text(browser, "#w-at")?, "Matrix product at N = 8");
        holds(&text(browser, "#w-rows")?, &["Pin the host memory"]);
        enter(browser, "size", "700")?;
        holds(&text(browser, "#v-core")?, &["At N = 700 the GPU is "]);
        // A size that is none has no answer.
        for size in ["", "0", "x"] {
            enter(browser, "size", size)?;
            holds(&text(browser, "#v-says")?, &["This is no size: "]);
            assert_eq!(text(browser, "#v-more")?, "");
        }
        enter(browser, "data", "pinned")?;
        holds(
            &text(browser, "#v-says")?,
            &["N = 700, in pinned host memory: "],
        );
        Ok(())
    });
}

/// The script writes numbers of its own only for typed sizes and between measured ones.
#[test]
#[ignore = "needs Chromium"]
fn the_script_writes_numbers_as_the_tables_do() {
    on_the_committed_page(|browser, _| {
        let ratios: Vec<f64> = (0..200)
            .map(|i| 10f64.powf(f64::from(i) * 0.06 - 6.0))
            .collect();
        let found = browser.eval(&format!("{}.map(by)", json!(ratios)))?;
        let expected: Vec<String> = ratios.iter().map(|ratio| units::speedup(*ratio)).collect();
        assert_eq!(found, json!(expected));
        let sizes = (0..200).map(|i| match i % 4 {
            0 => 1_u64 << (i / 4),
            _ => 1.23f64.powi(i) as u64,
        });
        let sizes: Vec<u64> = sizes.filter(|size| (1..1 << 52).contains(size)).collect();
        for (name, unit) in [
            ("count", Unit::Count),
            ("powers", Unit::Powers),
            ("bytes", Unit::Bytes),
            ("time", Unit::Time),
        ] {
            let written = format!(
                "{}.map(size => sized({{unit: '{name}'}}, size))",
                json!(sizes)
            );
            let expected: Vec<String> = sizes.iter().map(|size| unit.write(*size)).collect();
            assert_eq!(browser.eval(&written)?, json!(expected), "{name}");
        }
        Ok(())
    });
}

#[test]
#[ignore = "needs Chromium"]
fn absurd_times_do_not_stop_the_chart() {
    // As a damaged file has them, from the smallest size to the largest that an id can have.
    let mut results = of_one_process(&["matmul"]);
    let kept = [
        "matmul/cpu/best/64",
        "matmul/gpu/cublas-eager/32",
        "matmul/cpu/best/128",
        "matmul/gpu/cublas-eager/256",
    ];
    results.benchmarks.retain(|b| kept.contains(&&*b.id));
    for benchmark in &mut results.benchmarks {
        let is_small = benchmark.size < 100;
        benchmark.size = if is_small { 1 } else { u64::MAX };
        benchmark.median_ns = if is_small == (benchmark.device == Device::Cpu) {
            1e-300
        } else {
            1e303
        };
        benchmark.interval_ns = Some((benchmark.median_ns, benchmark.median_ns));
        benchmark.cost.flop = Some(1e300);
    }
    with_page(results, |browser, page| {
        browser.open(&of_group(page, "matmul"))?;
        for rows in ["all", "places"] {
            choose(browser, "rows", rows)?;
            for show in ["time", "speedup", "throughput"] {
                choose(browser, "show", show)?;
                let longest = browser.eval(
                    "Math.max(...[...document.querySelectorAll('#c-legend b, #i-rows td')]
                           .map((node) => node.textContent.length))",
                )?;
                assert!(
                    longest.as_u64().is_some_and(|n| n < 60),
                    "{rows} {show}: {longest}"
                );
            }
        }
        Ok(())
    });
}
