//! Tables, each in a region that the keyboard reaches and scrolls, and each as CSV.

use maud::{Markup, html};

/// Makes the CSV of a table when it is asked for, out of what stands in the page: so the page need
/// not hold everything twice, and it works from a file.
pub(super) const SCRIPT: &str = include_str!("script/table.js");

/// A table that may be wider than the screen. `what` says what is in it, for whoever hears it.
pub(super) fn scroll(what: &str, table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(what) { (table) } }
}

/// A table with its CSV, called `file`.
pub(super) fn table(what: &str, file: &str, table: Markup) -> Markup {
    html! {
        div.table {
            (scroll(what, table))
            div.tools {
                button.csv.scripted type="button" hidden data-file={ (file) ".csv" } aria-label={ "CSV of " (what) } { "CSV" }
            }
        }
    }
}

/// A link to where a reader is, to be passed on.
pub(super) fn permalink(anchor: &str, what: &str) -> Markup {
    html! { " " a.permalink href={ "#" (anchor) } aria-label={ "Link to: " (what) } { "#" } }
}

/// A name that may be broken where its parts end.
pub(super) fn breakable(name: &str) -> Markup {
    html! {
        @for (i, part) in name.split('/').enumerate() {
            @if i > 0 { "/" wbr; }
            (part)
        }
    }
}

/// A figure in full, for the CSV; what is shown is rounded.
pub(super) fn full(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 1e15 => return format!("{value:.6e}"),
        v if v >= 1e6 || v == 0.0 => 0,
        v if v >= 1.0 => 6 - v.log10().floor() as usize,
        _ => return format!("{value:.6e}"),
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_keeps_seven_digits() {
        assert_eq!(full(1234.5678901), "1234.568");
        assert_eq!(full(12.0), "12");
        assert_eq!(full(0.0), "0");
        assert_eq!(full(123456789.4), "123456789");
        assert_eq!(full(0.000123456789), "1.234568e-4");
        assert_eq!(full(1e300), "1.000000e300");
    }

    #[test]
    fn a_name_is_broken_between_its_parts() {
        assert_eq!(breakable("gpu/a<b").into_string(), "gpu/<wbr>a&lt;b");
    }
}
