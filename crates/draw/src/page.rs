//! The frame of every page: head, style sheet and colours.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::ink;

/// Nothing may be fetched, whatever a damaged file contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src 'self' file: data:; base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("page.css");

/// The page around a body: head, style sheet, colours, and further styles.
pub fn shell(heading: &str, styles: &[&str], body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (heading) }
                style {
                    (PreEscaped(STYLE))
                    (PreEscaped(ink::css()))
                    @for style in styles { (PreEscaped(style)) }
                }
            }
            body { (body) }
        }
    }
}
