//! Every benchmark of every machine as one table, `results.csv`.

use std::borrow::Cow;

use crate::report::Report;
use crossover_results::analysis::rate::{self, RateKind};
use crossover_results::analysis::{limits, telemetry};

/// Rates are per second, in the unit beside them.
const HEAD: &str = "machine,id,group,implementation,size,clock,median_ns,low_ns,high_ns,rate,unit,limit,share,\
                    energy_j,unsteady\r\n";

pub(super) fn results(report: &Report) -> String {
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
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text,
    }
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
