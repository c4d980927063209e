//! A page in a browser, without an error and with nothing fetched, for the tests that look at one.
//!
//! Needs Chromium (`CHROMIUM` names it where it is not `chromium`), so these tests are ignored:
//! `cargo test --lib -p crossover-report -- --ignored` runs them. Screenshots stay in `target/screenshots/`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::tests::cdp::{Browser, Driven};
use crate::tests::{committed, folder, written};
use crossover_results::store::machine_record::MACHINES;
use crossover_results::store::stored_results::StoredResults;

/// The page of these results in a folder of its own, opened on a desktop.
pub(super) fn with_page(results: StoredResults, test: impl FnOnce(&mut Browser, &Path) -> Driven) {
    let dir = folder();
    opened(&written(results, dir.path()).page, test);
}

/// The page of the committed machines alone, written once for all tests.
pub(super) fn on_the_committed_page(test: impl FnOnce(&mut Browser, &Path) -> Driven) {
    static PAGE: LazyLock<PathBuf> = LazyLock::new(|| {
        let out = screenshots().join("committed");
        // Of an earlier run, with the records of that time.
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out).unwrap();
        symlink(committed::machines(), out.join(MACHINES)).unwrap();
        written(StoredResults::default(), &out).page
    });
    opened(&PAGE, test);
}

fn opened(page: &Path, test: impl FnOnce(&mut Browser, &Path) -> Driven) {
    let program = std::env::var("CHROMIUM").unwrap_or("chromium".to_owned());
    let profile = folder();
    let started = Browser::start(&program, profile.path());
    let mut browser = started.expect("install Chromium, or name it with CHROMIUM");
    browser.look(1400, 900, false).unwrap();
    browser.open(page).unwrap();
    test(&mut browser, page).unwrap();
    clean(&browser);
}

/// The page of a group.
pub(super) fn of_group(page: &Path, group: &str) -> PathBuf {
    page.with_file_name(format!("groups/{group}.html"))
}

pub(super) fn screenshots() -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots");
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Screenshots of a page on a desktop, light and dark, and on a phone.
pub(super) fn photograph(browser: &mut Browser, name: &str) -> Driven {
    let dir = screenshots();
    browser.eval("scrollTo(0, 0)")?;
    for (kind, width, height, dark) in [
        ("desktop", 1400, 900, false),
        ("dark", 1400, 900, true),
        ("phone", 390, 844, false),
        ("phone-dark", 390, 844, true),
    ] {
        browser.look(width, height, dark)?;
        browser.drawn()?;
        let wide = browser.eval("document.documentElement.scrollWidth")?;
        assert!(
            wide.as_u64().is_some_and(|wide| wide <= width.into()),
            "{kind}: the page is {wide} wide on a screen of {width}"
        );
        browser.screenshot(&dir.join(format!("{name}-{kind}.png")))?;
    }
    browser.look(1400, 900, false)
}

/// No error, and nothing fetched.
fn clean(browser: &Browser) {
    assert_eq!(browser.errors(), Vec::<String>::new());
    assert_eq!(browser.fetched(), Vec::<String>::new());
}

/// The text of the element that a selector names.
pub(super) fn text(browser: &mut Browser, selector: &str) -> Driven<String> {
    let text = browser.eval(&format!("document.querySelector('{selector}').textContent"))?;
    Ok(text.as_str().unwrap_or_default().to_owned())
}
