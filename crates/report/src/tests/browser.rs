//! A page in a browser, without an error and with nothing fetched, for the tests that look at one.
//!
//! Needs Chromium (`CHROMIUM` names it where it is not on the path). Without it the tests
//! say so and pass, unless `CROSSOVER_REQUIRE_CHROMIUM=1`. Screenshots stay in
//! `target/screenshots/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::report::Options;
use crate::tests::cdp::{Browser, Driven, chromium};
use crate::write;
use crossover_results::store::machine_record::MACHINES;

/// A report of its own, for a test in the browser: `plant` fills the folder of results. The page is
/// opened on a desktop.
pub(super) fn with_page(
    plant: impl FnOnce(&Path),
    test: impl FnOnce(&mut Browser, &Page) -> Driven,
) {
    let (dir, root) = crate::tests::folders();
    plant(&root);
    opened(&written(dir.path()), test);
}

/// The same of what `plant` plants beside the committed machines; says so where none is committed.
pub(super) fn beside_the_committed(
    plant: impl FnOnce(&Path),
    test: impl FnOnce(&mut Browser, &Page) -> Driven,
) {
    let out = crate::tests::folder();
    if copy_committed(out.path()) {
        plant(&out.path().join("criterion"));
        opened(&written(out.path()), test);
    }
}

/// The page of the committed machines alone, written once for all tests.
pub(super) fn on_the_committed_page(test: impl FnOnce(&mut Browser, &Page) -> Driven) {
    static PAGE: OnceLock<Option<Page>> = OnceLock::new();
    let page = PAGE.get_or_init(|| {
        let out = screenshots().join("committed");
        // Of an earlier run, with the records of that time.
        let _ = fs::remove_dir_all(&out);
        copy_committed(&out).then(|| written(&out))
    });
    if let Some(page) = page {
        opened(page, test);
    }
}

/// Copies the committed machines beside the page in `out`; false where there are none.
fn copy_committed(out: &Path) -> bool {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target-reports");
    let machines = reports.join(MACHINES);
    match machines.is_dir() {
        true => crate::tests::copy_folder(&machines, &out.join(MACHINES)),
        false => eprintln!("skipped: no machine is committed"),
    }
    machines.is_dir()
}

/// The page of the results in a folder.
fn written(out: &Path) -> Page {
    let root = out.join("criterion");
    let written = write::refresh(&root, out, &Options::default()).unwrap();
    let page = written.page;
    Page { root, page }
}

fn opened(page: &Page, test: impl FnOnce(&mut Browser, &Page) -> Driven) {
    with_browser(|browser| {
        browser.look(1400, 900, false)?;
        browser.open(&page.page)?;
        test(browser, page)?;
        clean(browser);
        Ok(())
    });
}

/// Where the results of a test are, and the page made of them.
pub(super) struct Page {
    pub(super) root: PathBuf,
    pub(super) page: PathBuf,
}

impl Page {
    /// The page of a group.
    pub(super) fn of(&self, group: &str) -> PathBuf {
        self.page
            .with_file_name("groups")
            .join(format!("{group}.html"))
    }
}

/// Runs `test` with a browser, or says why not.
fn with_browser(test: impl FnOnce(&mut Browser) -> Driven) {
    let Some(program) = chromium() else {
        let required = std::env::var("CROSSOVER_REQUIRE_CHROMIUM").is_ok_and(|v| v == "1");
        assert!(
            !required,
            "CROSSOVER_REQUIRE_CHROMIUM=1 and there is no Chromium"
        );
        eprintln!("skipped: there is no Chromium; install one or name it with CHROMIUM");
        return;
    };
    let profile = crate::tests::folder();
    let mut browser = Browser::start(&program, profile.path()).unwrap();
    test(&mut browser).unwrap();
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
