//! Judging, showing and exit codes, shared by `compare` and `ab`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use regex::Regex;

use crate::number;
use crossover_compare::comparison::{Comparison, FailOn};
use crossover_compare::verdict::Options;
use crossover_results::store::whole_file::{try_to_replace, write_atomic};

/// How to judge and show a comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct VerdictArgs {
    /// Only benchmarks whose id matches this regular expression
    #[arg(long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// Smallest change worth a verdict, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 100.0 * Options::default().threshold,
        value_parser = number(1e-9..=100.0 - 1e-9, "give a percentage between 0 and 100")
    )]
    threshold: f64,
    /// Which verdicts make the exit code 1
    #[arg(long, value_enum, default_value_t)]
    fail_on: FailOn,
    /// List every benchmark, not only what changed
    #[arg(long)]
    all: bool,
    /// Print Markdown, for a pull request or the summary of a job
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print JSON, for programs; docs/comparing.md describes it
    #[arg(long)]
    json: bool,
    /// Write a page with both curves and the change at each size
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl VerdictArgs {
    /// The options of the comparison.
    pub(crate) fn options(&self) -> Options {
        Options {
            filter: self.filter.clone(),
            threshold: self.threshold / 100.0,
            ..Options::default()
        }
    }

    /// Tries whether the page can be written, before anything is measured for it.
    pub(crate) fn check_page(&self) -> anyhow::Result<()> {
        let tried = self.html.as_deref().map_or(Ok(()), try_to_replace);
        tried.context("--html: choose another file")
    }

    /// Writes the page, prints the comparison, and returns the exit code.
    ///
    /// # Errors
    /// That the page cannot be written.
    pub(crate) fn show(&self, comparison: &Comparison) -> anyhow::Result<ExitCode> {
        // First, since the process ends where its output cannot be printed.
        let write_page = |path: &PathBuf| write(path, &comparison.page());
        let page = self.html.as_ref().map_or(Ok(()), write_page);
        let text = if self.json {
            comparison.json(self.fail_on)
        } else if self.markdown {
            comparison.markdown()
        } else {
            comparison.text(self.all)
        };
        print!("{text}");
        page?;
        let code = comparison.exit_code(self.fail_on);
        if code == 2 {
            let matching = self.filter.as_ref().map(|f| format!(" that matches `{f}`"));
            let matching = matching.unwrap_or_default();
            eprintln!(
                "error: nothing could be compared: no benchmark{matching} has comparable results on both sides"
            );
        }
        Ok(ExitCode::from(code))
    }

    /// Writes the forms for files into a folder, named `compare`.
    pub(crate) fn keep(&self, comparison: &Comparison, dir: &Path) -> anyhow::Result<()> {
        write(&dir.join("compare.html"), &comparison.page())?;
        write(&dir.join("compare.md"), &comparison.markdown())?;
        write(&dir.join("compare.json"), &comparison.json(self.fail_on))
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    write_atomic(path, text.as_bytes()).with_context(|| "the comparison could not be written")
}
