//! Writes the report: page, plots, table of all benchmarks (`results.csv`), summary and thresholds.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use rayon::prelude::*;
use serde_json::Value;

use crossover_results::analysis::rate::{self, RateKind};
use crossover_results::analysis::{limits, telemetry};
use crossover_results::export::{self, BESIDE_THE_PAGE};
use crossover_results::store::machine_record;
use crossover_results::store::whole_file::{self, FileError};
use crossover_words::text::visible;

use crate::decisions::Decisions;
use crate::group::{GroupView, Shown, describe};
use crate::page::{self, Parts, link};
use crate::report::{Report, ReportError};
use crate::{terminal, thresholds};

/// The written page, and what a terminal shows of it.
#[derive(Debug)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// The answers and how sure they are, numbers of benchmarks, and the files for programs.
    pub summary: String,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = visible(&self.page.to_string_lossy());
        writeln!(f, "{}\nreport: {page}", self.summary)
    }
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

/// The record of this machine; `None` for another machine's page, and if no result belongs to a run.
fn record(report: &Report) -> Option<Value> {
    let own = Some(&report.machine).filter(|machine| !machine.other)?;
    export::record(own, &report.found, &report.findings, &report.reuse)
}

/// Writes the thresholds, or removes those of an earlier report; the line of the summary about them.
fn write_thresholds(decisions: Option<&Decisions>, out: &Path) -> Result<String, FileError> {
    let path = out.join("thresholds.json");
    let Some(decisions) = decisions else {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::io(&path, error)),
            _ => Ok(String::new()),
        };
    };
    thresholds::write(decisions.thresholds(), &path)?;
    let path = visible(&path.to_string_lossy());
    Ok(format!("\nthresholds: {path}"))
}

/// Writes the report on results under `root` into `out`: `index.html`, `groups/*.html`, `plots/*.svg`,
/// `results.csv`, `record.json.gz` and `thresholds.json`.
///
/// # Errors
/// A file that cannot be written.
pub fn write(report: &Report, root: &Path, out: &Path) -> Result<Written, ReportError> {
    let write = |name: &str, text: &str| {
        let path = out.join(name);
        // A new file costs more than reading an old one, and most plots are those of the last report.
        let is_there = fs::read(&path).is_ok_and(|there| there == text.as_bytes());
        if is_there {
            return Ok(());
        }
        whole_file::write_atomic(&path, text.as_bytes())
    };
    // The links in these pages are relative to that folder.
    let folder = out.join("groups");
    fs::create_dir_all(&folder).map_err(|source| FileError::io(&folder, source))?;
    let groups = describe(report);
    let (decisions, record) = rayon::join(|| Decisions::of(report, &groups), || record(report));
    let parts = Parts {
        report,
        groups: &groups,
        decisions: decisions.as_ref(),
        has_record: record.is_some(),
    };
    let group = |group: &GroupView| -> Result<(), FileError> {
        let mut plots = Vec::new();
        for (file, svg) in Shown::ALL.into_iter().filter_map(|it| group.chart_file(it)) {
            write(&format!("plots/{file}"), &svg)?;
            plots.push(file);
        }
        let page = parts.of_group(group, &plots, root, &folder);
        write(&link::of_group(group.name), &page)
    };
    let first = || write("index.html", &parts.index(root, out));
    let of_groups = || groups.par_iter().map(group).collect::<Result<(), _>>();
    let tables = || {
        // Without a record, a file that is there stays: it may be the only copy of measured results.
        if let Some(record) = &record {
            machine_record::write(&out.join(BESIDE_THE_PAGE), record)?;
        }
        write("results.csv", &results_csv(report))?;
        write("claims.html", &page::claims(report))?;
        write("limits.html", &page::limits(report))
    };
    let ((first, of_groups), tables) = rayon::join(|| rayon::join(first, of_groups), tables);
    first.and(of_groups).and(tables)?;
    remove_others(report, out);
    let mut summary = terminal::summary(report, &groups);
    summary += &write_thresholds(decisions.as_ref(), out)?;
    Ok(Written {
        page: out.join("index.html"),
        summary,
    })
}

/// Rates are per second, in the unit beside them.
const HEAD: &str = "machine,id,group,implementation,size,clock,median_ns,low_ns,high_ns,rate,unit,limit,share,\
                    energy_j,unsteady\r\n";

fn results_csv(report: &Report) -> String {
    let mut text = HEAD.to_owned();
    for machine in report.machines() {
        let hardware = machine.hardware();
        for group in &machine.groups {
            let work = rate::work(&[group]);
            for series in &group.series {
                let name = series.name();
                for (i, b) in series.points.iter().enumerate() {
                    let counted = work.filter(|_| series.measures_work());
                    let amount = counted.and_then(|work| work.amount(series, i));
                    let limit = limits::share(series, b, machine);
                    let share = limit.and_then(|limit| limit.fraction());
                    let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
                    let cells: [&str; 15] = [
                        &hardware,
                        &b.id,
                        &group.name,
                        &name,
                        &b.size.to_string(),
                        series.clock_name(),
                        &b.median_ns.to_string(),
                        &b.low_ns().to_string(),
                        &b.high_ns().to_string(),
                        &number(amount.map(|amount| b.rate(amount))),
                        counted.map_or("", RateKind::unit),
                        limit.map_or("", |limit| limit.kind.name()),
                        &number(share),
                        &number(telemetry::energy_j(b)),
                        b.unsteady.as_deref().unwrap_or_default(),
                    ];
                    text += &cells.map(quoted).join(",");
                    text += "\r\n";
                }
            }
        }
    }
    text
}

/// Quoted for a spreadsheet, which must not take it for a formula.
fn quoted(text: &str) -> Cow<'_, str> {
    let is_formula =
        text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let mut text = Cow::Borrowed(text);
    if is_formula {
        text.to_mut().insert(0, '\'');
    }
    if text.contains([',', '"', '\n', '\r']) {
        text = format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spreadsheet_takes_no_name_for_a_formula() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("-1.5", "-1.5"),
            ("a,b", "\"a,b\""),
            ("@\"x\"", "\"'@\"\"x\"\"\""),
        ] {
            assert_eq!(quoted(text), cell);
        }
    }
}
