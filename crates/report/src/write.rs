//! Writes the report: page, plots, summary and thresholds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use rayon::prelude::*;

use crate::answers::answered;
use crate::charts::files;
use crate::decisions::Decisions;
use crate::group::GroupView;
use crate::page::{Parts, link};
use crate::report::{self, Options, Report, ReportError};
use crate::{csv, page, terminal, thresholds};
use crossover_results::export::{self, BESIDE_THE_PAGE};
use crossover_results::store::machine_record;
use crossover_results::store::stored_results::StoredResults;
use crossover_results::store::whole_file::{self, FileError};
use crossover_words::text::visible;
use crossover_words::units;

/// The written files and their summary, for the terminal.
#[derive(Debug)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// The thresholds for programs, if there are answers.
    pub thresholds: Option<PathBuf>,
    /// The short table of answers; empty without any.
    pub table: String,
    /// How many benchmarks were measured, and how many failed.
    pub measured: (usize, usize),
    /// How sure the answers are; empty without any.
    pub sure: String,
    /// How many results and files were left out; the page names them.
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
        if self.left_out > 0 {
            writeln!(f, "left out: {}; the page gives the reasons", self.left_out)?;
        }
        if let Some(thresholds) = &self.thresholds {
            writeln!(f, "thresholds: {}", visible(&thresholds.to_string_lossy()))?;
        }
        writeln!(f, "report: {}", visible(&self.page.to_string_lossy()))
    }
}

/// Reads the results under `root` and writes the report into `out`: `index.html`,
/// `groups/*.html`, `plots/*.svg`, `results.csv`, `record.json.gz` and `thresholds.json`.
///
/// # Errors
/// As [`report::read`], and a file that cannot be written.
pub fn refresh(root: &Path, out: &Path, options: &Options) -> Result<Written, ReportError> {
    of_results(StoredResults::read(root), root, out, options)
}

/// As [`refresh`], for results that were already read or just measured.
///
/// # Errors
/// As [`refresh`].
pub fn of_results(
    results: StoredResults,
    root: &Path,
    out: &Path,
    options: &Options,
) -> Result<Written, ReportError> {
    let report = report::of_results(results, root, out, options)?;
    write(&report, root, out)
}

/// Removes the pages of groups that no longer exist, and no other files.
fn remove_others(report: &Report, out: &Path) {
    let written: BTreeSet<PathBuf> = (report.groups.iter())
        .map(|name| out.join(link::of_group(name)))
        .collect();
    for entry in fs::read_dir(out.join("groups"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        let is_ours = || {
            let text = fs::read_to_string(&path);
            text.is_ok_and(|text| text.contains("<title>crossover: "))
        };
        if path.extension().is_some_and(|e| e == "html") && !written.contains(&path) && is_ours() {
            // A page that cannot be removed is old, and nothing links to it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes the record of this machine; without one removes that of an earlier report.
fn write_record(report: &Report, out: &Path) -> Result<(), FileError> {
    let path = out.join(BESIDE_THE_PAGE);
    let own = Some(&report.machine).filter(|machine| !machine.other);
    let record = own.and_then(|machine| {
        export::record(machine, &report.found, &report.findings, &report.reuse)
    });
    match record {
        Some(record) => machine_record::write(&path, &record),
        None if path.exists() => {
            fs::remove_file(&path).map_err(|source| FileError::io(&path, source))
        }
        None => Ok(()),
    }
}

/// Writes independent files in parallel.
fn write<'r>(report: &'r Report, root: &Path, out: &Path) -> Result<Written, ReportError> {
    let write = |name: &str, text: &str| whole_file::write_atomic(&out.join(name), text.as_bytes());
    // The links in these pages are relative to that folder.
    let folder = out.join("groups");
    fs::create_dir_all(&folder).map_err(|source| FileError::io(&folder, source))?;
    let (decisions, answers) = rayon::join(|| Decisions::of(report), || answered(report));
    let parts = Parts {
        report,
        answers: &answers,
        decisions: decisions.as_ref(),
    };
    let group = |name: &'r String| -> Result<GroupView<'_>, FileError> {
        let group = GroupView::of(report, name, &answers, parts.decisions);
        let mut written = Vec::new();
        for (kind, plot) in files(&group) {
            if let Some(svg) = plot.svg() {
                let file = format!("{}-{kind}.svg", link::safe(name));
                write(&format!("plots/{file}"), &svg)?;
                written.push(file);
            }
        }
        write(
            &link::of_group(name),
            &parts.of_group(&group, &written, root, &folder),
        )?;
        Ok(group)
    };
    let pages = || {
        let groups: Result<Vec<GroupView>, FileError> =
            report.groups.par_iter().map(group).collect();
        write("index.html", &parts.index(root, out, &groups?))
    };
    let tables = || {
        write_record(report, out)?;
        write("results.csv", &csv::results(report))?;
        write("claims.html", &page::claims(report))?;
        write("limits.html", &page::limits(report))
    };
    let (pages, tables) = rayon::join(pages, tables);
    pages.and(tables)?;
    remove_others(report, out);
    let path = out.join("thresholds.json");
    let thresholds = match &decisions {
        Some(decisions) => {
            thresholds::write(decisions.thresholds(), &path)?;
            Some(path)
        }
        None => None,
    };
    let machine = &report.machine;
    Ok(Written {
        page: out.join("index.html"),
        thresholds,
        table: terminal::table(report),
        measured: (machine.benchmarks().count(), machine.failed().len()),
        sure: terminal::sure(&answers),
        left_out: report.machine.problems.len(),
    })
}
