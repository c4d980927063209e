//! What the scripts of the first page fill: the chart, the implementations at a size, the processes
//! behind an answer. Each has its place before a script runs, and is out of sight without one.

use maud::{Markup, PreEscaped, html};

use crate::page::{script, table};

const UPLOT: &str = include_str!("vendor/uplot/uPlot.iife.min.js");
const LICENSE: &str = include_str!("vendor/uplot/LICENSE");

/// What the first page looks like.
pub(super) const STYLES: [&str; 2] = [
    include_str!("vendor/uplot/uPlot.min.css"),
    include_str!("style/first.css"),
];

/// The chart.
pub(super) fn section() -> Markup {
    html! {
        section #chart.scripted {
            h2 { "Along the sizes" }
            div.controls {
                (choice("show", "Show", &[("speedup", "speedup"), ("time", "time"), ("rate", "throughput")]))
                (choice("rows", "Curves", &[("answers", "places of the data"), ("all", "all implementations")]))
            }
            p #c-caption {}
            div #c-plot role="slider" tabindex="0" aria-label="Size that everything on this page is about" aria-describedby="c-reads"
                aria-valuemin="0" aria-valuemax="1" aria-valuenow="0" {}
            p.note #c-reads {}
            details #c-table { summary { "The values as a table" } (table::scroll("Values of the chart", html! {})) }
        }
    }
}

fn choice(name: &str, label: &str, options: &[(&str, &str)]) -> Markup {
    html! {
        fieldset id={ "c-" (name) } {
            legend { (label) }
            @for (i, (value, words)) in options.iter().enumerate() {
                label { input type="radio" name=(name) value=(value) checked[i == 0]; span { (words) } }
            }
        }
    }
}

/// All implementations at the size that was chosen.
pub(super) fn implementations() -> Markup {
    let heads = [
        "implementation",
        "time",
        "against the CPU",
        "nearest limit",
        "clock",
    ];
    html! {
        section #implementations.scripted {
            h2 { "Every implementation at this size" }
            p.note { span #i-at {} ". The fastest of each clock is marked, with what lies in its interval; bars are logarithmic. " a #i-link href="#" { "All that is known of each" } }
            (table::table("Implementations at this size", "implementations", html! {
                table.ranked {
                    thead { tr {
                        @for (i, head) in heads.iter().enumerate() {
                            th scope="col" aria-sort="none" class=[matches!(i, 1 | 2).then_some("n")] { button type="button" { (head) } }
                        }
                        th.bar aria-hidden="true" {}
                    } }
                    tbody #i-rows {}
                }
            }))
        }
    }
}

/// What each process said of the question that was chosen.
pub(super) fn processes() -> Markup {
    html! {
        section #sure.scripted {
            h2 { "How sure that is" }
            p #p-says {}
            div #p-dots aria-hidden="true" {}
            p.note { a #p-link href="#" { "The measurements behind it" } }
        }
    }
}

/// The scripts of the page with the data that they work on, packed.
pub(super) fn scripts(data: &str) -> Markup {
    html! {
        script type="text/plain" id="data" { (data) }
        script { "/*\n" (PreEscaped(LICENSE)) "*/\n" (PreEscaped(UPLOT)) }
        script { (PreEscaped(script::joined())) }
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_vendored_files_are_those_of_the_release() {
        let readme = include_str!("vendor/uplot/README.md");
        for (name, text) in [
            ("LICENSE", LICENSE),
            ("uPlot.iife.min.js", UPLOT),
            ("uPlot.min.css", STYLES[0]),
        ] {
            let digest = Sha256::digest(text.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = format!("| `{name}` | `{hex}` |");
            assert!(readme.contains(&line), "{line}");
        }
        // They stand inside elements of the page.
        for text in [LICENSE, UPLOT, &script::joined()] {
            assert!(!text.contains("</script") && !text.contains("<!--"));
        }
        assert!(!LICENSE.contains("*/"));
    }
}
