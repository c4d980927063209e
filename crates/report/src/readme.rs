//! Puts a plot and a table of real results into a README, between two markers.
//!
//! Of the named machines (or else the committed ones, or else this one), the machine with the most
//! answers is shown alone, so that the text does not depend on where it is made. The plot goes to
//! `docs/plots/` beside the README.

use std::fs;
use std::path::Path;

use maud::html;

use crate::group::{Shown, describe};
use crate::report::{self, Options, Report, ReportError, day};
use crate::terminal::{NOTE, small_table};
use crossover_results::analysis::answer::crossover_answer::headlines;
use crossover_results::store::machine_results::MachineResults;
use crossover_results::store::whole_file;
use crossover_words::text::escape;

/// The results begin after this line.
pub const BEGIN: &str = "<!-- crossover:begin -->";
/// They end before this line.
pub const END: &str = "<!-- crossover:end -->";
/// The most operations in the table.
const OPERATIONS: usize = 6;
/// Folder of the plots, beside the README.
const PLOTS: &str = "docs/plots";

/// Replaces the text between the markers of `readme` and writes its plots.
pub fn refresh(
    readme: &Path,
    root: &Path,
    out: &Path,
    options: &Options,
) -> Result<(), ReportError> {
    let report = report::most_answers(root, out, options)?;
    let recorded = |machine: &&MachineResults| {
        (machine.runs.iter()).any(|(run, _)| run.environment.recorded())
    };
    if let Some(machine) = report.machines().find(recorded) {
        return Err(ReportError(format!(
            "the results of {} come from the recording driver of the tests, which executes no kernel; run \
             `cargo bench` on a GPU",
            machine.name
        )));
    }
    if headlines(&report.found).next().is_none() {
        // The empty table would replace a good one.
        return Err(ReportError(format!(
            "the results of {} have no answers: measure an operation on the CPU and on a GPU",
            report.machine.hardware()
        )));
    }
    let shown = readme.display();
    let text = fs::read_to_string(readme).map_err(|error| {
        let remedy = "run this in the folder of your README";
        ReportError(format!("{shown}: {error}; {remedy}"))
    })?;
    let dir = readme.parent().unwrap_or(Path::new("."));
    let (body, plot) = body(&report);
    let text = splice(&text, &body).ok_or_else(|| {
        ReportError(format!(
            "{shown}: needs one line {BEGIN} and after it one line {END}; put them where the results \
             should stand"
        ))
    })?;
    let written = |path: &Path, text: &str| {
        whole_file::write_atomic(path, text.as_bytes())
            .map_err(|error| ReportError(error.to_string()))
    };
    if let Some((name, svg)) = plot {
        written(&dir.join(PLOTS).join(name), &svg)?;
    }
    written(readme, &text)
}

/// `None` unless each marker occurs once, in order.
fn splice(text: &str, body: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let once = !after.contains(BEGIN) && !after.contains(END) && !before.contains(END);
    once.then(|| format!("{before}{BEGIN}\n{body}{END}{after}"))
}

/// The results as Markdown, with their plot: the short table, and the speedup by size of the first
/// operation that has a curve.
fn body(report: &Report) -> (String, Option<(String, String)>) {
    let machine = &report.machine;
    let groups = describe(report);
    let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
    let operations = groups
        .iter()
        .filter(|group| !is_variant(group.name, &names));
    let small = small_table(report, operations);
    let day = day(machine).map_or(String::new(), |day| format!(", measured {day}"));
    let row = |cells: [&str; 4]| format!("| {} |\n", cells.map(escape).join(" | "));
    let mut text = format!(
        "<!-- Written by `crossover report --readme`. -->\n{}{day}, against {}:\n\n",
        escape(&machine.hardware()),
        escape(&small.against),
    );
    let mut plots = groups.iter();
    let plot =
        plots.find_map(|group| Some((&group.topic.title, group.chart_file(Shown::Speedup)?)));
    if let Some((title, (file, _))) = &plot {
        let what = "speedup of the GPU over the best CPU code by size, a curve for each place where the data may be";
        let image = html! { img src={ (PLOTS) "/" (file) } alt={ (title) ": " (what) }; };
        text += &format!("{}\n\n", image.0);
    }
    text += &row(small.head);
    text += &row(["---"; 4]);
    for cells in small.rows.iter().take(OPERATIONS) {
        text += &row(cells.each_ref().map(String::as_str));
    }
    text += &format!("\n{NOTE}\n");
    (text, plot.map(|(_, plot)| plot))
}

/// Whether the name of a group extends another group's, as `matmul_f64` extends `matmul`.
fn is_variant(name: &str, all: &[&str]) -> bool {
    let mut rests = all.iter().filter_map(|other| name.strip_prefix(other));
    rests.any(|rest| rest.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_an_operation_are_left_to_the_page() {
        let groups = ["fft", "fft_f64", "ffts", "sum_f64"];
        let is_variant = groups.map(|group| is_variant(group, &groups));
        assert_eq!(is_variant, [false, true, false, false]);
    }

    #[test]
    fn splices_between_the_markers_alone() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = splice(&text, "new\n").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert_eq!(splice(&new, "new\n").unwrap(), new, "again is the same");
        for bad in ["", BEGIN, END, "x"] {
            assert_eq!(splice(bad, "new"), None);
        }
        assert_eq!(splice(&format!("{END}{BEGIN}"), "new"), None);
        assert_eq!(splice(&format!("{BEGIN}{END}{BEGIN}{END}"), "new"), None);
    }
}
