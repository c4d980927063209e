//! Eight things that a reader wants to know, found on the page by script: how many steps each takes,
//! and the sentence that says it. On the committed record, whose figures may be those of another one
//! some day: what is asserted is what kind of answer it is.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tests::browser::{beside_the_committed, text};
use crate::tests::cdp::{Browser, Driven};
use crate::tests::chart::enter;
use crate::tests::holds;
use crate::tests::machines::laptop;
use crossover_words::units;

/// Somebody who looks for something.
struct Reader<'b> {
    browser: &'b mut Browser,
    page: PathBuf,
    steps: usize,
}

impl Reader<'_> {
    fn enter(&mut self, field: &str, value: &str) -> Driven {
        self.steps += 1;
        enter(self.browser, field, value)
    }

    fn click(&mut self, selector: &str) -> Driven {
        self.steps += 1;
        let click = format!("document.querySelector({selector:?}).click()");
        self.browser.eval(&click)?;
        self.browser.drawn()
    }

    /// The cells of a row whose first one begins with `name`, where it is shown.
    fn row(&mut self, table: &str, name: &str) -> Driven<Vec<String>> {
        let find = format!(
            "[...document.querySelectorAll({table:?})].map(row => [...row.cells].filter(c => c.checkVisibility() && c.className !== 'bar')\
             .map(c => c.textContent.trim())).find(cells => cells[0]?.startsWith({name:?}))"
        );
        let cells = self.browser.eval(&find)?;
        let cells = cells
            .as_array()
            .ok_or(format!("no row {name} in {table}"))?;
        Ok(cells
            .iter()
            .filter_map(|c| c.as_str().map(str::to_owned))
            .collect())
    }

    /// What was seen; the next task begins at the top of the page.
    fn done(&mut self, task: &str, seen: &str) -> Driven {
        eprintln!("{task}: {}: {seen}", units::counted(self.steps, "step"));
        self.steps = 0;
        self.browser.open(&self.page.clone())
    }
}

/// Someone before the page of what `plant` plants beside the committed machines.
fn read(plant: impl FnOnce(&Path), test: impl FnOnce(&mut Reader) -> Driven) {
    beside_the_committed(plant, |browser, page| {
        test(&mut Reader {
            browser,
            page: page.page.clone(),
            steps: 0,
        })
    });
}

#[test]
fn seven_tasks_on_the_committed_record() {
    read(
        |_| {},
        |reader| {
            reader.enter("size", "500")?;
            let says = text(reader.browser, "#v-says")?;
            assert!(
                says.starts_with("Matrix product, N = 500, in ordinary memory: "),
                "{says}"
            );
            holds(&says, &["GPU", "× ", " to "]);
            reader.done("a: N = 500 from ordinary memory", &says)?;

            reader.enter("size", "512")?;
            let gain = reader.row("#w-rows tr", "Pin the host memory")?;
            assert!(
                gain[1].ends_with("× faster") && gain[2] == "with data in ordinary memory",
                "{gain:?}"
            );
            reader.done("b: what pinning gains at 512", &gain.join(", "))?;

            reader.enter("size", "1024")?;
            let cublas = reader.row("#i-rows tr", "gpu/cublas")?;
            holds(&cublas[3], &[" % of ", "peak"]);
            reader.done(
                "c: how near cuBLAS is to the roof at 1,024",
                &cublas.join(", "),
            )?;

            reader.enter("data", "pinned")?;
            let why = text(reader.browser, "#p-says")?;
            holds(&why, &["processes measured ", "×"]);
            reader.done("d: why an answer is uncertain", &why)?;

            reader.click("footer a[href='results.csv']")?;
            let csv = fs::read_to_string(reader.page.with_file_name("results.csv"))?;
            let lines = csv.lines().count();
            assert!(lines > 500 && csv.starts_with("machine,id,"), "{lines}");
            reader.done(
                "e: all numbers as one file",
                &format!("results.csv, {lines} lines"),
            )?;

            reader.enter("operation", "transformer")?;
            reader.enter("data", "pinned")?;
            let says = text(reader.browser, "#v-says")?;
            let link = reader
                .browser
                .eval("document.querySelector('#view-link').href")?;
            let link = link.as_str().unwrap_or_default().to_owned();
            reader.browser.open(&reader.page.clone())?;
            reader.browser.eval(&format!("location.href = {link:?}"))?;
            reader.browser.reload()?;
            assert_eq!(text(reader.browser, "#v-says")?, says);
            // To copy the link.
            reader.steps = 1;
            let hash = &link[link.find('#').unwrap()..];
            reader.done("f: a link to a view", &format!("{hash}: {says}"))?;

            reader.enter("size", "256")?;
            let best = reader.browser.eval("[...document.querySelectorAll('#i-rows .best')].map(r => [...r.cells].slice(0, 5).map(c => c.textContent).join(', '))")?;
            let best: Vec<&str> = best
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|b| b.as_str())
                .collect();
            assert!(
                best.len() >= 3
                    && best
                        .iter()
                        .any(|b| b.contains(" % of ") || b.contains("launches")),
                "{best:?}"
            );
            reader.done(
                "h: the fastest at 256 of each clock, and why",
                &best.join("; "),
            )
        },
    );
}

/// This machine has no GPU: its CPU against that of the committed one, and no advice to use it.
#[test]
fn this_machine_with_the_gpu_of_the_committed_one() {
    read(
        |root| drop(laptop(root)),
        |reader| {
            let banner = text(reader.browser, ".banner")?;
            holds(&banner, &["There is no GPU here.", "NVIDIA H"]);
            let says = text(reader.browser, "#v-says")?;
            holds(&says, &["with an NVIDIA H", " this would be ", "× faster"]);
            let claims = "document.querySelector('#groups a[href=\"claims.html\"]').click()";
            reader.browser.eval(claims)?;
            reader
                .browser
                .until("document.querySelectorAll('article.finding').length > 40")?;
            reader.done("g: this machine with the committed GPU", &says)
        },
    );
}
