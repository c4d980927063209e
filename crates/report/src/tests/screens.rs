//! The page on screens of several kinds: without scripts, with odd names, with timelines, and that of the
//! committed record.

use std::fs;

use serde_json::json;

use crate::tests::browser::{of_group, on_the_committed_page, photograph, text, with_page};
use crate::tests::chart::legend;
use crate::tests::committed::{benchmark, measured, newest, without_gpu};
use crate::tests::holds;

/// Without scripts the page says what is missing; every answer and every figure is there.
#[test]
#[ignore = "needs Chromium"]
fn without_scripts_the_answers_are_there() {
    on_the_committed_page(|browser, page| {
        let off = json!({"value": true});
        browser.call("Emulation.setScriptExecutionDisabled", off)?;
        browser.open(page)?;
        // What is not shown is not in it.
        let text = browser.eval("document.body.innerText")?;
        let text = text.as_str().unwrap();
        holds(
            text,
            &[
                "With data in ordinary memory the GPU wins at ",
                "≥ ",
                "ordinary",
            ],
        );
        // What would need one is not shown, and each operation has a page with its plots.
        let needs =
            "[...document.querySelectorAll('.scripted')].filter(e => e.checkVisibility()).length";
        assert_eq!(browser.eval(needs)?, 0);
        browser.open(&of_group(page, "matmul"))?;
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
#[ignore = "needs Chromium"]
fn without_a_gpu_the_page_shows_the_cpu() {
    with_page(without_gpu(&["matmul"]), |browser, page| {
        let says = text(browser, "#v-says")?;
        assert!(
            says.starts_with("These results have no GPU times of matmul"),
            "{says}"
        );
        let empty = "[...document.querySelectorAll('tbody')].filter(b => !b.rows.length).length";
        assert_eq!(browser.eval(empty)?, 0);
        let dead = "[...document.querySelectorAll('nav a')].filter(a => !document.querySelector(a.hash)).length";
        assert_eq!(browser.eval(dead)?, 0);
        browser.open(&of_group(page, "matmul"))?;
        assert!(text(browser, "#i-rows")?.contains("cpu/best"));
        assert!(!legend(browser)?.is_empty());
        Ok(())
    });
}

/// A group, an implementation and a GPU whose names are HTML.
#[test]
#[ignore = "needs Chromium"]
fn names_from_files_stay_text() {
    let mut results = measured(&["matmul"]);
    let gpu = &mut newest(&mut results).environment.gpu;
    gpu.as_mut().unwrap().name = "<script>alert(1)</script>".into();
    let mut odd = benchmark(&mut results, "matmul/cpu/best/64").clone();
    odd.group = "</script><img src=x onerror=alert(2)>".into();
    odd.implementation = "\"><b>".into();
    odd.id = format!("{}/cpu/{}/64", odd.group, odd.implementation);
    results.benchmarks.push(odd);
    with_page(results, |browser, _| {
        let elements = browser.eval("document.querySelectorAll('img, b b').length")?;
        assert_eq!(elements, 0);
        assert!(text(browser, "#groups")?.contains("</script><img src=x"));
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
#[ignore = "needs Chromium"]
fn the_committed_reference() {
    on_the_committed_page(|browser, page| {
        // What a reader has to load, to scroll and to read.
        let bytes = fs::metadata(page)?.len();
        let shown = browser.eval(
                "[document.documentElement.scrollHeight, document.body.innerText.match(/\\d[\\d,.]*/g).length]",
            )?;
        eprintln!("{bytes} bytes; height and numbers: {shown}");
        assert!(bytes <= 250_000, "{bytes}");
        let at_most = |at: usize, most: u64| shown[at].as_u64().is_some_and(|n| n <= most);
        assert!(at_most(0, 3_900) && at_most(1, 450), "{shown}");
        assert!(legend(browser)?.len() >= 3);
        let cells = browser.eval("document.querySelectorAll('#map td[data-group]').length")?;
        assert!(cells.as_u64() >= Some(20), "{cells}");
        browser.look(390, 844, false)?;
        browser.open(page)?;
        assert_eq!(browser.eval(BROKEN)?, json!([]), "on a phone");
        let height = browser.eval("document.documentElement.scrollHeight")?;
        assert!(height.as_u64() <= Some(6_400), "{height} on a phone");
        // The answer is on the first screen.
        let end = "document.querySelector('#v-says').getBoundingClientRect().bottom <= innerHeight";
        assert_eq!(browser.eval(end)?, true);
        for page in [
            page.to_owned(),
            of_group(page, "matmul"),
            of_group(page, "fft"),
        ] {
            browser.open(&page)?;
            browser.eval("document.querySelectorAll('details').forEach(d => d.open = true)")?;
            browser.drawn()?;
            assert_eq!(browser.eval(WIDE)?, json!([]), "{}", page.display());
        }
        browser.open(page)?;
        photograph(browser, "reference")
    });
}

/// Also for whoever wants to look: light and dark, wide and narrow.
#[test]
#[ignore = "needs Chromium"]
fn timelines_fit_every_screen() {
    on_the_committed_page(|browser, page| {
        browser.open(&of_group(page, "graph_replay"))?;
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
        photograph(browser, "profiles")
    });
}

#[test]
#[ignore = "needs Chromium"]
fn tables_are_read_on_a_phone_and_by_keyboard() {
    on_the_committed_page(|browser, page| {
        browser.look(390, 844, false)?;
        browser.open(&of_group(page, "matmul"))?;
        // The page itself does not scroll sideways; its tables do.
        let wide = "document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.eval(wide)?, true);
        // The keyboard reaches and scrolls what scrolls.
        let regions = "[...document.querySelectorAll('.scroll')].every(s => s.tabIndex === 0 && \
                       s.getAttribute('role') === 'region' && s.ariaLabel)";
        assert_eq!(browser.eval(regions)?, true);
        browser.eval(
            "{document.querySelector('#group-matmul .all').open = true; \
              const s = document.querySelector('#group-matmul .figures').closest('.scroll'); \
              s.scrollIntoView(); s.focus()}",
        )?;
        browser.press("ArrowRight")?;
        browser.until("document.activeElement.scrollLeft > 0")
    });
}

#[test]
#[ignore = "needs Chromium"]
fn a_permalink_opens_where_it_was_taken_and_each_link_leads_somewhere() {
    on_the_committed_page(|browser, page| {
        browser.open(&of_group(page, "matmul"))?;
        browser.eval("document.querySelector('#group-matmul .finding .permalink').click()")?;
        browser.drawn()?;
        let address = browser.eval("location.hash")?;
        holds(&address.to_string(), &["\"#finding-matmul-"]);
        browser.reload()?;
        browser.until("(r => r.top >= 0 && r.top < innerHeight)(document.querySelector(':target').getBoundingClientRect())")?;
        // Every link to a group's page leads to something on it, and every other one within its page.
        let within = "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href'))\
                    .filter(h => !h.startsWith('#view:') && !document.getElementById(decodeURIComponent(h.slice(1))))";
        assert_eq!(browser.eval(within)?, json!([]));
        browser.open(page)?;
        assert_eq!(browser.eval(within)?, json!([]));
        let to_groups = "[...document.querySelectorAll('a[href^=\"groups/\"]')].map(a => a.getAttribute('href'))";
        let links: Vec<String> = serde_json::from_value(browser.eval(to_groups)?)?;
        for link in links {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let html = fs::read_to_string(page.with_file_name(file))?;
            let anchor = format!("id=\"{anchor}\"");
            let is_view = anchor.starts_with("id=\"view:");
            assert!(
                anchor == "id=\"\"" || is_view || html.contains(&anchor),
                "{link}"
            );
        }
        Ok(())
    });
}
