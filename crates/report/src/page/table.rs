//! Tables, each in a region that can be focused and scrolled by keyboard.

use maud::{Markup, html};

/// A table that may be wider than the screen. `what` is its label for screen readers.
pub(super) fn scroll(what: &str, table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(what) { (table) } }
}

/// A link to this place, for readers to copy.
pub(super) fn permalink(anchor: &str, what: &str) -> Markup {
    html! { " " a.permalink href={ "#" (anchor) } aria-label={ "Link to: " (what) } { "#" } }
}

/// A name with line breaks allowed between its parts.
pub(super) fn breakable(name: &str) -> Markup {
    html! {
        @for (i, part) in name.split('/').enumerate() {
            @if i > 0 { "/" wbr; }
            (part)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_broken_between_its_parts() {
        assert_eq!(breakable("gpu/a<b").into_string(), "gpu/<wbr>a&lt;b");
    }
}
