//! Tables, each in a region that the keyboard reaches and scrolls.

use maud::{Markup, html};

/// A table that may be wider than the screen. `what` says what is in it, for whoever hears it.
pub(super) fn scroll(what: &str, table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(what) { (table) } }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_broken_between_its_parts() {
        assert_eq!(breakable("gpu/a<b").into_string(), "gpu/<wbr>a&lt;b");
    }
}
