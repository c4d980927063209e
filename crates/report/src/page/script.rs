//! The page's scripts: modules with imports and exports, joined into one, because a page that is opened
//! from a file can load no others.

use maud::{Markup, PreEscaped, html};

const UPLOT: &str = include_str!("vendor/uplot/uPlot.iife.min.js");
const LICENSE: &str = include_str!("vendor/uplot/LICENSE");

/// Styles of pages with a chart; the other pages leave the first one out.
pub(super) const STYLES: [&str; 2] = [
    include_str!("vendor/uplot/uPlot.min.css"),
    include_str!("style/first.css"),
];

/// The scripts of a page with the data that they work on, packed.
pub(super) fn scripts(data: &str) -> Markup {
    html! {
        script type="text/plain" id="data" { (data) }
        script { "/*\n" (PreEscaped(LICENSE)) "*/\n" (PreEscaped(UPLOT)) }
        script { (PreEscaped(joined())) }
    }
}

/// Each module after those that it imports from.
const MODULES: [(&str, &str); 5] = [
    ("dom", include_str!("script/dom.js")),
    ("words", include_str!("script/words.js")),
    ("verdict", include_str!("script/verdict.js")),
    ("chart", include_str!("script/chart.js")),
    ("main", include_str!("script/main.js")),
];

/// All modules in one scope, without the lines of imports and exports.
fn joined() -> String {
    let lines = MODULES.iter().flat_map(|(_, source)| source.lines());
    let own = lines.filter(|line| !line.starts_with("import "));
    let own = own.map(|line| line.strip_prefix("export ").unwrap_or(line));
    own.fold("\"use strict\";\n".to_owned(), |all, line| {
        all + line + "\n"
    })
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
        // The texts stand inside elements of the page.
        for text in [LICENSE, UPLOT, &joined()] {
            assert!(!text.contains("</script") && !text.contains("<!--"));
        }
        assert!(!LICENSE.contains("*/"));
    }
}
