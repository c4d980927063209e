//! Eight things that a reader wants to know, each found on the page by script. The page is that of the
//! committed record, whose figures change with it: the tests assert what kind of answer it is.

use std::fs;

use crate::tests::browser::{beside_the_committed, on_the_committed_page, text};
use crate::tests::cdp::{Browser, Driven};
use crate::tests::chart::enter;
use crate::tests::committed::without_gpu;
use crate::tests::holds;

/// The cells of the rows that a selector names.
fn rows(browser: &mut Browser, selector: &str) -> Driven<Vec<Vec<String>>> {
    let cells = browser.eval(&format!(
        "[...document.querySelectorAll('{selector}')].map(row => [...row.cells].map(c => c.textContent.trim()))"
    ))?;
    Ok(serde_json::from_value(cells)?)
}

/// The row that begins with a name.
fn row(browser: &mut Browser, table: &str, name: &str) -> Driven<Vec<String>> {
    let mut rows = rows(browser, table)?.into_iter();
    let found = rows.find(|cells| cells[0].starts_with(name));
    Ok(found.ok_or(format!("no row {name} in {table}"))?)
}

/// Follows the link below the chart.
fn to_all_implementations(browser: &mut Browser) -> Driven {
    browser.eval("document.querySelector('#c-link').click()")?;
    browser.until("document.querySelector('#i-rows tr') !== null")
}

#[test]
#[ignore = "needs Chromium"]
fn is_a_product_of_500_worth_moving_from_ordinary_memory() {
    on_the_committed_page(|browser, _| {
        enter(browser, "size", "500")?;
        let says = text(browser, "#v-says")?;
        holds(
            &says,
            &["Matrix product, N = 500, in ordinary memory: ", "GPU", "× "],
        );
        Ok(())
    });
}

#[test]
#[ignore = "needs Chromium"]
fn what_does_pinning_gain_at_512() {
    on_the_committed_page(|browser, _| {
        enter(browser, "size", "512")?;
        let gain = row(browser, "#w-rows tr", "Pin the host memory")?;
        assert!(gain[1].ends_with("× faster"), "{gain:?}");
        assert_eq!(gain[2], "with data in ordinary memory");
        Ok(())
    });
}

#[test]
#[ignore = "needs Chromium"]
fn how_near_is_cublas_to_its_limit_at_1024() {
    on_the_committed_page(|browser, _| {
        enter(browser, "size", "1024")?;
        to_all_implementations(browser)?;
        let cublas = row(browser, "#i-rows tr", "gpu/cublas")?;
        holds(&cublas[3], &[" % of ", "peak"]);
        Ok(())
    });
}

#[test]
#[ignore = "needs Chromium"]
fn how_sure_is_an_answer() {
    on_the_committed_page(|browser, _| {
        enter(browser, "data", "pinned")?;
        holds(
            &text(browser, "#p-says")?,
            &["The GPU wins: ", "the median of ", " processes. ", ": "],
        );
        // Where it is not known which side wins, no speedup is shown.
        let cells = rows(browser, "#map tr")?.concat();
        let mut undecided = cells.iter().filter(|cell| cell.contains("undecided"));
        assert_eq!(undecided.next().unwrap(), "undecided±");
        assert!(undecided.all(|cell| cell == "undecided±"));
        Ok(())
    });
}

#[test]
#[ignore = "needs Chromium"]
fn where_are_all_numbers_as_a_file() {
    on_the_committed_page(|browser, page| {
        let file = browser.eval("document.querySelector('footer a').getAttribute('href')")?;
        let csv = page.with_file_name(file.as_str().unwrap());
        let csv = fs::read_to_string(csv)?;
        assert!(csv.lines().count() > 500 && csv.starts_with("machine,id,"));
        Ok(())
    });
}

#[test]
#[ignore = "needs Chromium"]
fn what_address_leads_to_this_view() {
    on_the_committed_page(|browser, page| {
        enter(browser, "operation", "transformer")?;
        enter(browser, "data", "pinned")?;
        let says = text(browser, "#v-says")?;
        let link = browser.eval("document.querySelector('#view-link').href")?;
        browser.open(page)?;
        assert_ne!(text(browser, "#v-says")?, says);
        browser.eval(&format!("location.href = {link}"))?;
        browser.reload()?;
        assert_eq!(text(browser, "#v-says")?, says);
        Ok(())
    });
}

#[test]
#[ignore = "needs Chromium"]
fn what_is_the_fastest_of_each_clock_at_256_and_why() {
    on_the_committed_page(|browser, _| {
        enter(browser, "operation", "transformer")?;
        enter(browser, "size", "256")?;
        to_all_implementations(browser)?;
        let best = rows(browser, "#i-rows .best")?;
        assert!(best.len() >= 3, "{best:?}");
        let has_reason = |cells: &Vec<String>| !cells[3].is_empty();
        assert!(best.iter().any(has_reason), "{best:?}");
        Ok(())
    });
}

/// Its CPU is shown against the GPU of the committed machine, and no advice is given to use that.
#[test]
#[ignore = "needs Chromium"]
fn what_would_a_gpu_do_for_a_machine_without_one() {
    beside_the_committed(without_gpu(&["matmul"]), |browser, _| {
        let banner = text(browser, ".banner")?;
        holds(&banner, &["There is no GPU here.", "NVIDIA H"]);
        enter(browser, "data", "queued")?;
        enter(browser, "size", "1024")?;
        let says = text(browser, "#v-says")?;
        holds(&says, &["with an NVIDIA H", " this would be ", "× faster"]);
        Ok(())
    });
}
