//! Findings beside their charts, the table of techniques, tables, the banner of a machine without a
//! GPU, the costs of a start: in the page, and in a browser.

use serde_json::json;

use crate::tests::browser::with_page;
use crate::tests::fixture::Fixture;
use crate::tests::holds;
use crate::tests::machines::full;
use crate::tests::refreshed;
use crossover_words::Clock;

/// The phases of a start, ms.
const PHASES: [(&str, f64); 9] = [
    ("driver-init", 10.0),
    ("context", 100.0),
    ("first-stream", 0.02),
    ("first-alloc", 0.05),
    ("nvrtc-compile", 30.0),
    ("ptx-jit", 9.0),
    ("first-launch", 0.93),
    ("warm-launch", 0.009),
    ("cubin-load", 0.03),
];

/// Everything that the page shows, with a cold start.
fn planted(root: &std::path::Path) -> Fixture {
    let f = full(root, "Example GPU");
    for (name, ms) in PHASES {
        let id = format!("cold_start/gpu/{name}/1");
        f.row(&id, Clock::Wall, ms * 1e6);
    }
    f
}

fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let begin = page.find(&format!("id=\"{id}\"")).unwrap();
    let end = page[begin..].find("</section>").unwrap();
    &page[begin..begin + end]
}

#[test]
fn each_finding_stands_in_its_group_and_each_technique_leads_there() {
    let (dir, root) = crate::tests::folders();
    planted(&root);
    let (page, _, record) = refreshed(&root, dir.path());
    let techniques = section(&page, "findings");
    holds(techniques, &["Move the work to the GPU"]);
    holds(techniques, &["Keep the data on the device"]);
    let links: Vec<&str> = techniques
        .split("<td><a href=\"groups/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next()?.split_once('#'))
        .map(|(_, anchor)| anchor)
        .collect();
    assert!(links.len() >= 2, "{techniques}");
    for link in links {
        assert!(
            page.contains(&format!("id=\"{link}\"")),
            "{link} leads nowhere"
        );
    }
    // What an answer says stands with the answers alone.
    let findings = record["findings"].as_array().unwrap();
    assert!(findings.iter().any(|f| f["id"] == "winner.matmul.queued"));
    assert!(!page.contains("id=\"finding-matmul-winner"));
    let share = "finding-matmul-transfers.matmul.transfer";
    assert!(section(&page, "group-matmul").contains(&format!("id=\"{share}\"")));
    assert!(page.contains(&format!("#{share}\"")));
    assert!(!techniques.contains("NaN") && !page.contains("rests on"));
}

#[test]
fn the_cost_of_a_start_lists_its_longest_phases() {
    let (dir, root) = crate::tests::folders();
    planted(&root);
    let (page, _, _) = refreshed(&root, dir.path());
    let costs = section(&page, "costs");
    holds(costs, &["150 ms", " 100 ms; ", "later calls 9.00 µs"]);
}

#[test]
fn tables_are_read_on_a_phone_and_by_keyboard() {
    with_page(
        |root| drop(planted(root)),
        |browser, page| {
            browser.look(390, 844, false)?;
            browser.open(&page.of("matmul"))?;
            // The page itself does not scroll sideways; its tables do.
            let wide = "document.documentElement.scrollWidth <= innerWidth";
            assert_eq!(browser.eval(wide)?, true);
            // The keyboard reaches and scrolls what scrolls.
            let regions = "[...document.querySelectorAll('.scroll')].every(s => s.tabIndex === 0 && \
                       s.getAttribute('role') === 'region' && s.ariaLabel)";
            assert_eq!(browser.eval(regions)?, true);
            browser.eval(
            "{const s = [...document.querySelectorAll('#group-matmul .matrix')].pop().closest('.scroll'); \
                       s.scrollIntoView(); s.focus()}",
        )?;
            browser.press("ArrowRight")?;
            browser.until("document.activeElement.scrollLeft > 0")?;
            Ok(())
        },
    );
}

#[test]
fn a_permalink_opens_where_it_was_taken() {
    with_page(
        |root| drop(planted(root)),
        |browser, page| {
            browser.open(&page.of("matmul"))?;
            browser.eval("document.querySelector('#group-matmul .finding .permalink').click()")?;
            browser.drawn()?;
            let address = browser.eval("location.hash")?;
            assert!(
                address
                    .as_str()
                    .is_some_and(|a| a.starts_with("#finding-matmul-"))
            );
            browser.reload()?;
            browser.until("(r => r.top >= 0 && r.top < innerHeight)(document.querySelector(':target').getBoundingClientRect())")?;
            // Every link to a group's page leads to something on it, and every other one within its page.
            let within = "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href'))\
                    .filter(h => !h.startsWith('#view:') && !document.getElementById(decodeURIComponent(h.slice(1))))";
            assert_eq!(browser.eval(within)?, json!([]));
            browser.open(&page.page)?;
            assert_eq!(browser.eval(within)?, json!([]));
            let to_groups = "[...document.querySelectorAll('a[href^=\"groups/\"]')].map(a => a.getAttribute('href'))";
            let links = browser.eval(to_groups)?;
            for link in links
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|link| link.as_str())
            {
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let html = std::fs::read_to_string(page.page.with_file_name(file))?;
                let anchor = format!("id=\"{anchor}\"");
                assert!(anchor == "id=\"\"" || html.contains(&anchor), "{link}");
            }
            Ok(())
        },
    );
}
