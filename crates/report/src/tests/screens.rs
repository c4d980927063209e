//! The page on screens of several kinds: without scripts, with odd names, with timelines, and that of the
//! committed record.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::tests::browser::{on_the_committed_page, photograph, text, with_page};
use crate::tests::chart::labels_are_apart;
use crate::tests::holds;
use crate::tests::machines::{full, laptop};
use crate::tests::profiles::profiled;

/// Without scripts the page says what is missing; every answer and every figure is there.
#[test]
fn without_scripts_the_answers_are_there() {
    let plant = |root: &Path| drop(full(root, "Example GPU"));
    with_page(plant, |browser, page| {
        let off = json!({"value": true});
        browser.call("Emulation.setScriptExecutionDisabled", off)?;
        browser.open(&page.page)?;
        // What is not shown is not in it.
        let text = browser.eval("document.body.innerText")?;
        let text = text.as_str().unwrap();
        holds(text, &["in ordinary memory: use the GPU", "≥ ", "ordinary"]);
        // What would need one is not shown, and each operation has a page with its plots.
        let needs =
            "[...document.querySelectorAll('.scripted')].filter(e => e.checkVisibility()).length";
        assert_eq!(browser.eval(needs)?, 0);
        browser.open(&page.of("matmul"))?;
        let drawn = "[...document.querySelectorAll('.plots img')].filter(image => image.checkVisibility() && image.naturalWidth > 0).length";
        assert!(browser.eval(drawn)?.as_u64() >= Some(3));
        browser.call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": false}),
        )?;
        Ok(())
    });
}

/// Neither here nor among the committed machines.
#[test]
fn without_a_gpu_the_page_shows_the_cpu() {
    let plant = |root: &Path| laptop(root).skip("matmul/gpu/cublas", "there is none");
    with_page(plant, |browser, _| {
        let says = text(browser, "#v-says")?;
        assert!(says.starts_with("No GPU has measured matmul "), "{says}");
        assert!(text(browser, "#i-rows")?.contains("cpu/best"));
        assert!(labels_are_apart(browser)? >= 1);
        let empty = "[...document.querySelectorAll('tbody')].filter(b => !b.rows.length).length";
        assert_eq!(browser.eval(empty)?, 0);
        let dead = "[...document.querySelectorAll('nav a')].filter(a => !document.querySelector(a.hash)).length";
        assert_eq!(browser.eval(dead)?, 0);
        Ok(())
    });
}

/// A group, an implementation and a GPU whose names are HTML.
fn odd_names(root: &Path) {
    let f = full(root, "<script>alert(1)</script>");
    let id = "</script><img src=x onerror=alert(2)>/gpu/\"><b>/64";
    let new = root.join("odd/new");
    fs::create_dir_all(&new).unwrap();
    let from = f.dir("matmul/cpu/best/64");
    fs::copy(from.join("sample.json"), new.join("sample.json")).unwrap();
    let benchmark = json!({
        "group_id": "</script><img src=x onerror=alert(2)>",
        "function_id": "cpu/\"><b>", "value_str": "64", "full_id": id,
    });
    fs::write(new.join("benchmark.json"), benchmark.to_string()).unwrap();
}

#[test]
fn names_from_files_stay_text() {
    with_page(odd_names, |browser, _| {
        assert_eq!(
            browser.eval("document.querySelectorAll('img, b b').length")?,
            0
        );
        assert_eq!(
            browser.eval("document.querySelectorAll('#v-operation option').length")?,
            2
        );
        Ok(())
    });
}

/// The words of the map that are broken, or reach out of their cell.
const BROKEN: &str = r"[...document.querySelectorAll('.map :is(th, a, small)')].flatMap(cell =>
   [...cell.childNodes].filter(node => node.nodeType === Node.TEXT_NODE)
   .flatMap(text => [...text.data.matchAll(/\S+/g)].filter(word => {
     const range = document.createRange();
     range.setStart(text, word.index);
     range.setEnd(text, word.index + word[0].length);
     const {left, right} = cell.closest('td, th').getBoundingClientRect();
     const lines = [...range.getClientRects()];
     return lines.length > 1 || lines.some(line => line.left < left || line.right > right);
   }).map(word => word[0])))";

/// What is wider than the screen, and does not scroll by itself.
const WIDE: &str = "[...document.querySelectorAll('main *')].filter(e => !e.parentElement.closest('.scroll') \
   && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 99))";

/// The committed machines, where there are any.
#[test]
fn the_committed_reference() {
    on_the_committed_page(|browser, page| {
        // What a reader has to load, to scroll and to read.
        let bytes = fs::metadata(&page.page)?.len();
        let shown = browser.eval(
                "[document.documentElement.scrollHeight, document.body.innerText.match(/\\d[\\d,.]*/g).length]",
            )?;
        eprintln!("{bytes} bytes; height and numbers: {shown}");
        assert!(bytes <= 400_000, "{bytes}");
        let at_most = |at: usize, most: u64| shown[at].as_u64().is_some_and(|n| n <= most);
        assert!(at_most(0, 8_000) && at_most(1, 450), "{shown}");
        let labels = labels_are_apart(browser)?;
        assert!(labels >= 3, "{labels}");
        let cells = browser.eval("document.querySelectorAll('#map td[data-group]').length")?;
        assert!(cells.as_u64() >= Some(20), "{cells}");
        browser.look(390, 844, false)?;
        browser.open(&page.page)?;
        assert_eq!(browser.eval(BROKEN)?, json!([]), "on a phone");
        for page in [page.page.clone(), page.of("matmul"), page.of("fft")] {
            browser.open(&page)?;
            browser.eval("document.querySelectorAll('details').forEach(d => d.open = true)")?;
            browser.drawn()?;
            assert_eq!(browser.eval(WIDE)?, json!([]), "{}", page.display());
        }
        browser.open(&page.page)?;
        photograph(browser, "reference")
    });
}

/// Also for whoever wants to look: light and dark, wide and narrow.
#[test]
fn timelines_fit_every_screen() {
    with_page(
        |root| drop(profiled(root)),
        |browser, page| {
            browser.open(&page.of("chain"))?;
            let outside = browser.eval(
                "[...document.querySelectorAll('.lane')].flatMap(lane => {
                   const box = lane.lastElementChild.getBoundingClientRect();
                   return [...lane.querySelectorAll('i')].filter(block => {
                     const b = block.getBoundingClientRect();
                     return b.left < box.left - 1 || b.right > box.right + 1 || b.bottom > box.bottom + 1;
                   }).map(block => block.title)})",
            )?;
            assert_eq!(outside, json!([]));
            let drawn = browser.eval("document.querySelectorAll('.lane i').length")?;
            assert!(drawn.as_u64().is_some_and(|n| n > 90), "{drawn}");
            photograph(browser, "profiles")?;
            Ok(())
        },
    );
}
