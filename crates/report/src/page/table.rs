//! Tables, each in a region that can be focused and scrolled by keyboard.

use maud::{Markup, Render, html};

/// A column of a table.
pub(super) struct Column {
    head: Markup,
    is_number: bool,
}

/// A column of texts.
pub(super) fn text(head: impl Render) -> Column {
    let head = head.render();
    let is_number = false;
    Column { head, is_number }
}

/// A column of numbers.
pub(super) fn number(head: impl Render) -> Column {
    let is_number = true;
    Column {
        is_number,
        ..text(head)
    }
}

/// Columns of numbers after one of names.
pub(super) fn named<'a>(heads: &'a [impl Render + 'a]) -> Vec<Column> {
    let heads = heads.iter().enumerate();
    heads
        .map(|(i, head)| match i {
            0 => text(head),
            _ => number(head),
        })
        .collect()
}

/// A table whose rows have a cell for each column; the first cell names the row. `label` is for screen
/// readers.
pub(super) fn table<Row: IntoIterator<Item = Markup>>(
    label: &str,
    class: &str,
    columns: &[Column],
    rows: impl IntoIterator<Item = Row>,
) -> Markup {
    let row = |row: Row| {
        html! { tr {
            @for (i, (cell, column)) in row.into_iter().zip(columns).enumerate() {
                @match (i, column.is_number) {
                    (0, _) => th scope="row" { (cell) },
                    (_, true) => td.n { (cell) },
                    _ => td { (cell) },
                }
            }
        } }
    };
    let rows = rows.into_iter();
    scroll(
        label,
        class,
        columns,
        html! { tbody { @for it in rows { (row(it)) } } },
    )
}

/// A table that may be wider than the screen, with a body of its own form.
pub(super) fn scroll(label: &str, class: &str, columns: &[Column], body: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table class=(class) {
                thead { tr {
                    @for column in columns { th class=[column.is_number.then_some("n")] scope="col" { (column.head) } }
                } }
                (body)
            }
        }
    }
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
