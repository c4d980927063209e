//! The written report: page, plots, summary and thresholds.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use crate::assemble::{Assembled, Options, ReportError, assemble};
use crate::page::answers::answered;
use crate::page::group::Section;
use crate::{csv, page, summary, terminal, thresholds};
use crossover_results::store::whole_file::{self, FileError};
use crossover_words::text::visible;
use crossover_words::units;

/// What was written, for the terminal.
#[derive(Debug)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// The thresholds for programs, where there are answers.
    pub thresholds: Option<PathBuf>,
    /// The short table of answers; empty without any.
    pub table: String,
    /// How many benchmarks were measured, and how many failed.
    pub measured: (usize, usize),
    /// How sure the answers are; empty without any.
    pub sure: String,
    /// How many things were left out; the page names them.
    pub left_out: usize,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.table.is_empty() {
            writeln!(f, "{}", self.table)?;
        }
        if !self.sure.is_empty() {
            writeln!(f, "{}", self.sure)?;
        }
        let (measured, failed) = self.measured;
        writeln!(
            f,
            "{}, {failed} failed",
            units::counted(measured, "benchmark")
        )?;
        match self.left_out {
            0 => {}
            1 => writeln!(
                f,
                "1 result or file was left out; the page says which and why"
            )?,
            n => writeln!(
                f,
                "{n} results or files were left out; the page says which and why"
            )?,
        }
        if let Some(thresholds) = &self.thresholds {
            writeln!(f, "thresholds: {}", visible(&thresholds.to_string_lossy()))?;
        }
        writeln!(f, "report: {}", visible(&self.page.to_string_lossy()))
    }
}

/// Reads the results under `root` and writes the report into `out`: `index.html`,
/// `groups/*.html`, `plots/*.svg`, `summary.json`, `results.csv` and `thresholds.json`.
pub fn refresh(root: &Path, out: &Path, options: &Options) -> Result<Written, ReportError> {
    let report = assemble(root, out, options)?;
    write(&report, out)
}

/// Removes the pages of groups that there are no longer. What else lies in the folder is not ours.
fn remove_others(groups: &Path, pages: &[(String, String)]) {
    for entry in fs::read_dir(groups).into_iter().flatten().flatten() {
        let name = format!("groups/{}", entry.file_name().to_string_lossy());
        let is_ours = || {
            let text = fs::read_to_string(entry.path());
            text.is_ok_and(|text| text.contains("<title>crossover: "))
        };
        let is_written = pages.iter().any(|(page, _)| *page == name);
        if name.ends_with(".html") && !is_written && is_ours() {
            // One that stays is old, and nothing links to it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write(report: &Assembled, out: &Path) -> Result<Written, ReportError> {
    let summary = out.join("summary.json");
    whole_file::write_json(&summary, &summary::summary(report))?;
    let sections = Section::all(report);
    let folder = out.join("plots");
    for drawn in sections.iter().flat_map(|s| &s.plots) {
        let path = folder.join(&drawn.file);
        whole_file::write_atomic(&path, drawn.svg.as_bytes())?;
    }
    // The links of the pages in it are found from there.
    let groups = out.join("groups");
    fs::create_dir_all(&groups).map_err(|source| FileError::io(&groups, source))?;
    let answers = answered(report);
    let pages = page::pages(report, &answers, &sections, out);
    for (name, html) in &pages.others {
        whole_file::write_atomic(&out.join(name), html.as_bytes())?;
    }
    remove_others(&groups, &pages.others);
    let page = out.join("index.html");
    whole_file::write_atomic(&page, pages.first.as_bytes())?;
    let results = csv::results(report);
    whole_file::write_atomic(&out.join("results.csv"), results.as_bytes())?;
    let machine = &report.machine;
    let path = out.join("thresholds.json");
    let thresholds = thresholds::write(report, &path)?.then_some(path);
    Ok(Written {
        page,
        thresholds,
        table: terminal::table(report),
        measured: (machine.benchmarks().count(), machine.failed().len()),
        sure: page::sure(&answers),
        left_out: report.machine.problems.len(),
    })
}
