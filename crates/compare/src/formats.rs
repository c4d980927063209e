//! The forms of a comparison that other programs read: Bencher's, github-action-benchmark's, and
//! JUnit's.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use crate::comparison::{Comparison, FailOn};
use crate::rows::Row;
use crate::show;
use crate::verdict::Verdict;

/// A value of Bencher's, <https://bencher.dev/docs/reference/bencher-metric-format/>.
#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// A value of github-action-benchmark's, with its tool `customSmallerIsBetter`,
/// <https://github.com/benchmark-action/github-action-benchmark>.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    unit: &'static str,
    value: f64,
    extra: String,
}

impl Comparison {
    /// The times of the new side in Bencher Metric Format, as its measure `latency` in nanoseconds, or
    /// `value` where the clock is unknown.
    /// The bounds are those of the change, as times.
    pub fn bencher(&self) -> String {
        let times = self.rows.iter().filter_map(|row| Some((row, row.new_ns?)));
        let metric = |(row, value): (&Row, f64)| {
            let bound = |ratio: f64| Some(row.base_ns? * ratio).filter(|bound| bound.is_finite());
            let metric = Metric {
                value,
                lower_value: row.judgement.and_then(|judgement| bound(judgement.low)),
                upper_value: row.judgement.and_then(|judgement| bound(judgement.high)),
            };
            let measure = if row.clock.is_some() {
                "latency"
            } else {
                "value"
            };
            (row.id.clone(), BTreeMap::from([(measure, metric)]))
        };
        pretty(&times.map(metric).collect::<BTreeMap<_, _>>())
    }

    /// The times of the new side for github-action-benchmark, `customSmallerIsBetter`.
    pub fn github_action_benchmark(&self) -> String {
        let entries = self.rows.iter().filter_map(|row| {
            Some(Entry {
                name: &row.id,
                unit: if row.clock.is_some() { "ns" } else { "" },
                value: row.new_ns?,
                extra: in_words(row),
            })
        });
        pretty(&entries.collect::<Vec<_>>())
    }

    /// A test case for each benchmark, which fails by a verdict that `fail_on` names and is skipped
    /// without one; and an error for each run that failed.
    pub fn junit(&self, fail_on: FailOn) -> String {
        let fails =
            |row: &Row| row.verdict == Verdict::Failed || fail_on.verdicts().contains(&row.verdict);
        let is_skipped = |row: &Row| row.verdict == Verdict::Unsure;
        let count = |of: &dyn Fn(&Row) -> bool| self.rows.iter().filter(|row| of(row)).count();
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"benchmarks\" \
             tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
            self.rows.len() + self.failures.len(),
            count(&fails),
            self.failures.len(),
            count(&is_skipped),
        );
        for row in &self.rows {
            let (class, name) = row.id.split_once('/').unwrap_or(("", &row.id));
            let seconds = row.clock.and(row.new_ns).unwrap_or(0.0) * 1e-9;
            let _ = write!(
                text,
                "<testcase classname=\"{}\" name=\"{}\" time=\"{seconds:e}\">",
                escape(class),
                escape(name)
            );
            let what = match (fails(row), is_skipped(row)) {
                (true, _) => "failure",
                (_, true) => "skipped",
                _ => "system-out",
            };
            let said = escape(&in_words(row));
            let _ = match what {
                "system-out" => write!(text, "<system-out>{said}</system-out>"),
                _ => write!(text, "<{what} message=\"{said}\"/>"),
            };
            text.push_str("</testcase>\n");
        }
        for failure in &self.failures {
            let _ = writeln!(
                text,
                "<testcase classname=\"ab\" name=\"run\"><error message=\"{}\"/></testcase>",
                escape(failure)
            );
        }
        text.push_str("</testsuite>\n</testsuites>\n");
        text
    }
}

/// Verdict, change and interval.
fn in_words(row: &Row) -> String {
    let verdict = show::verdict(row);
    match &row.judgement {
        Some(judgement) => {
            format!(
                "{verdict}: {} {}",
                show::ratio(judgement),
                show::interval(judgement)
            )
        }
        None => verdict,
    }
}

fn pretty(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("strings, numbers and maps with text keys") + "\n"
}

/// Text that is safe in an attribute and between tags. A control character cannot be written in XML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_an_attribute() {
        assert_eq!(
            escape("a \"<b>\" &\n\u{1b}"),
            "a &quot;&lt;b&gt;&quot; &amp;  "
        );
    }
}
