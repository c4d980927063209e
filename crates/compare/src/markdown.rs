//! A comparison as Markdown, for a pull request.

use std::fmt::Write;

use crate::comparison::Comparison;
use crate::rows::BenchmarkRow;
use crate::sheet::{Sheet, is_number};
use crate::verdict::Verdict;
use crossover_words::text::{escape, visible};
use crossover_words::units::counted;

impl Comparison {
    /// Markdown for a pull request: what changed on top, the rest folded.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for failure in &self.failures {
            let _ = writeln!(text, "**Error: {}**\n", escape(failure));
        }
        let _ = write!(
            text,
            "### Benchmarks: {}\n\n{} against {}. {}\n",
            self.summary(),
            code_list(&self.new),
            code_list(&self.base),
            self.promise()
        );
        let doubts = self.doubts.iter().chain(&self.unknown);
        let lines = doubts.cloned().chain(self.finds());
        for line in lines.chain(self.layout()) {
            let _ = writeln!(text, "\n{}", escape(&line));
        }
        let changed = self.changed_rows();
        let quiet = self.of(&[Verdict::Same, Verdict::Unsure]);
        if !changed.is_empty() {
            let _ = write!(text, "\n{}", markdown_table(&changed));
        }
        if !quiet.is_empty() {
            let _ = write!(
                text,
                "\n<details><summary>{} without a detected change</summary>\n\n{}\n</details>\n",
                counted(quiet.len(), "benchmark"),
                markdown_table(&quiet)
            );
        }
        if let Some(note) = self.times_note() {
            let _ = writeln!(text, "\n{note}");
        }
        for (heading, lines) in self.remarks(true) {
            let _ = writeln!(text, "\n**{heading}**\n");
            for line in lines {
                let _ = writeln!(text, "- {}", escape(&line));
            }
        }
        text
    }
}

fn code_list(labels: &[String]) -> String {
    let quoted: Vec<String> = labels.iter().map(|l| format!("`{}`", visible(l))).collect();
    quoted.join(", ")
}

fn markdown_table(rows: &[&BenchmarkRow]) -> String {
    let Sheet { header, lines } = Sheet::of(rows.iter().copied());
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = |name: &&str| if is_number(name) { "---:" } else { "---" };
    let rules = header.iter().map(|name| rule(name).to_owned()).collect();
    let mut text = format!("| {} |\n", header.join(" | ")) + &line(rules);
    for (_, cells) in lines {
        text += &line(cells.iter().map(|cell| escape(cell)).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_a_table() {
        assert_eq!(escape("a|b <i>\n`x`"), "a\\|b &lt;i&gt; \\`x\\`");
    }
}
