//! The chart at the top of the page: its frame, which a script fills, and is out of sight without
//! one.

use maud::{Markup, PreEscaped, html};

use crate::page::{packed, table};

/// In one script element, each using those before it.
const SCRIPTS: [&str; 12] = [
    include_str!("script/dom.js"),
    include_str!("script/telemetry.js"),
    include_str!("script/numbers.js"),
    include_str!("script/labels.js"),
    include_str!("script/chart_axes.js"),
    include_str!("script/chart_layout.js"),
    include_str!("script/chart_marks.js"),
    include_str!("script/chart.js"),
    include_str!("script/limit_lanes.js"),
    include_str!("script/roofline.js"),
    include_str!("script/benchmark.js"),
    include_str!("script/headline.js"),
];

const UPLOT: &str = include_str!("vendor/uplot/uPlot.iife.min.js");
const LICENSE: &str = include_str!("vendor/uplot/LICENSE");

/// What the chart and the cards look like.
pub(super) const STYLES: [&str; 3] = [
    include_str!("vendor/uplot/uPlot.min.css"),
    include_str!("style/headline.css"),
    include_str!("style/cards.css"),
];

pub(super) fn section() -> Markup {
    html! {
        section #chart.scripted hidden {
            div.top {
                h2 { label for="c-group" { "Operation" } " " select #c-group {} }
                (controls())
            }
            div.beside {
                div.plot {
                    p #c-caption {}
                    div #c-plot role="slider" tabindex="0" aria-label="Size at which the curves are read"
                        aria-describedby="c-keys" {}
                    div #c-limits role="img" {}
                    p #c-kinds {}
                }
                div.side {
                    p #c-winner aria-live="polite" {}
                    ul #c-answers {}
                }
            }
            p.note #c-keys {
                "Arrow keys move the cursor, Home and End go to its ends, + and − zoom, Page Up and Page Down \
                 move the view, Escape shows everything. Or drag over the part to enlarge. "
                a #c-link href="#chart" { "Link to this view" }
            }
            details #c-table { summary { "The values as a table" } (table::scroll("Values of the chart", html! {})) }
            details #c-roof {
                summary { "Roofline: FLOP/s over FLOP per byte" }
                div.plot {
                    figure { svg #c-roofline role="img" {} div.labels {} }
                    p.note #c-roof-note {}
                }
            }
            div #c-one hidden {
                h3 #c-name aria-live="polite" {}
                dl.facts #c-facts {}
                figure #c-telemetry {
                    figcaption.note { "The GPU during warm-up and sampling, read from NVML ten times per second" }
                    svg role="img" {}
                    ol #c-events {}
                    p.note #c-calm { "Nothing held the GPU's clock down." }
                }
            }
        }
        noscript { p.note { "The interactive chart that stands here needs scripts; the plots and tables below do not." } }
    }
}

fn controls() -> Markup {
    let choice = |name: &str, label: &str, options: &[(&str, &str)]| {
        html! {
            fieldset id={ "c-" (name) } {
                legend { (label) }
                @for (i, (value, words)) in options.iter().enumerate() {
                    label { input type="radio" name=(name) value=(value) checked[i == 0]; span { (words) } }
                }
            }
        }
    };
    html! {
        div.controls {
            (choice("show", "Show", &[("speedup", "speedup"), ("time", "time"), ("rate", "throughput")]))
            (choice("rows", "Curves", &[("answers", "the answers"), ("all", "all implementations")]))
            (choice("x", "Size", &[("log", "log"), ("lin", "linear")]))
            (choice("y", "Values", &[("log", "log"), ("lin", "linear")]))
            div.zoom role="group" aria-label="Zoom" {
                button #c-in type="button" aria-label="Enlarge around the cursor" { "+" }
                button #c-out type="button" aria-label="Show more" { "−" }
                button #c-all type="button" { "Everything" }
            }
        }
    }
}

/// The scripts of the page with the data that they work on.
pub(super) fn scripts(data: &str) -> Markup {
    html! {
        script type="text/plain" id="data" { (packed::pack(data)) }
        script { "/*\n" (PreEscaped(LICENSE)) "*/\n" (PreEscaped(UPLOT)) }
        script {
            @for script in SCRIPTS { (PreEscaped(script)) }
        }
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
        for text in [LICENSE, UPLOT].iter().chain(&SCRIPTS) {
            assert!(!text.contains("</script") && !text.contains("<!--"));
        }
        assert!(!LICENSE.contains("*/"));
    }
}
