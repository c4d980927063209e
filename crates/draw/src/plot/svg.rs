//! A drawn plot as SVG, for a page or as a file.

use crate::ink::{Inks, Paint, css};
use crossover_words::text::visible;

/// Plotters places on whole pixels: everything is drawn larger and shown smaller.
pub(super) const SCALE: i32 = 4;

/// A drawn plot.
pub struct Drawing {
    title: String,
    /// In scaled pixels.
    size: (i32, i32),
    /// The elements, with numbers for colours.
    body: String,
    inks: Inks,
}

impl Drawing {
    /// From what plotters wrote, whose colours are numbers of `inks`. `None` when that is no SVG.
    pub(super) fn new(title: &str, size: (i32, i32), svg: &str, inks: Inks) -> Option<Self> {
        let open = svg.find("<svg ")?;
        let body = svg[open..].find('>').map(|at| &svg[open + at + 1..])?;
        // Defaults need not stand in thousands of elements.
        let body = body
            .replace(" opacity=\"1\"", "")
            .replace(" font-family=\"sans-serif\"", "");
        Some(Self {
            title: escape(title),
            size,
            body,
            inks,
        })
    }

    /// For a page. Its style sheet has the colours, light and dark, and the attributes that most
    /// elements share: with many plots in a page each of them would cost bytes.
    pub fn inline(&self) -> String {
        let (width, height) = self.size;
        let body = merged(&self.inks.apply(&self.body, false))
            .replace(" fill=\"none\" class=\"s-", " class=\"s-")
            .replace(" stroke=\"none\" stroke-width=\"1\"", "")
            .replace(" text-anchor=\"start\"", "")
            .replace("font-size=\"60.00000000000001\"", "font-size=\"60\"")
            .replace(" font-size=\"48\"", "")
            .replace('\n', "");
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {width} {height}\" \
             stroke-linejoin=\"round\" font-size=\"48\"><title>{}</title>{body}",
            self.title
        )
    }

    /// As a file of its own, with a size, a style sheet with the colours, and a background.
    pub fn file(&self) -> String {
        let (width, height) = self.size;
        format!(
            "<svg width=\"{}\" height=\"{}\" font-family=\"sans-serif\" \
             xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {width} {height}\" \
             stroke-linejoin=\"round\">\n<title>{}</title><style>{}</style><rect class=\"f-paper\" \
             fill=\"{}\" width=\"{width}\" height=\"{height}\" rx=\"24\"/>{}",
            width / SCALE,
            height / SCALE,
            self.title,
            css(),
            Paint::Paper.light(),
            self.inks.apply(&self.body, true)
        )
    }
}

/// Joins successive shapes of the same attributes to one path. Plotters writes a shape per line.
fn merged(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut last: Option<String> = None;
    for line in body.lines() {
        let Some((attributes, path)) = path(line) else {
            if last.take().is_some() {
                out.push_str("\"/>");
            }
            out.push_str(line);
            continue;
        };
        if last.as_ref() != Some(&attributes) {
            if last.is_some() {
                out.push_str("\"/>");
            }
            out += &format!("<path {attributes} d=\"");
            last = Some(attributes);
        }
        out.push_str(&path);
    }
    out
}

/// The attributes of a shape, and its outline as the `d` of a path. `None` for any other element.
fn path(line: &str) -> Option<(String, String)> {
    let value = |name: &str| {
        let from = line.find(&format!(" {name}=\""))? + name.len() + 3;
        line[from..].split('"').next()
    };
    let points = || Some(format!("M{}", value("points")?.trim_end()));
    let (tag, rest) = line.strip_prefix('<')?.split_once(' ')?;
    match tag {
        "polyline" => Some((rest.split_once(" points=")?.0.to_owned(), points()?)),
        "polygon" => Some((rest.split_once(" points=")?.0.to_owned(), points()? + "Z")),
        "circle" => {
            let attributes = rest.split_once(" r=\"")?.1.split_once("\" ")?.1;
            let attributes = attributes.strip_suffix("/>")?.to_owned();
            let number = |name| value(name)?.parse::<i32>().ok();
            let (x, y, r) = (number("cx")?, number("cy")?, number("r")?);
            let turn = format!("a{r},{r} 0 1 0");
            let path = format!("M{},{y}{turn} {},0{turn}-{},0", x - r, 2 * r, 2 * r);
            Some((attributes, path))
        }
        _ => None,
    }
}

fn escape(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_shapes_that_follow_each_other_are_one_path() {
        let body = "<polyline class=\"s-grid\" points=\"0,1 2,1 \"/>\n\
                    <polyline class=\"s-grid\" points=\"0,3 2,3 \"/>\n\
                    <polyline class=\"s-ink\" points=\"0,5 2,5 \"/>\n\
                    <text x=\"1\">\na\n</text>\n\
                    <polygon class=\"f-ink\" points=\"0,0 1,1 2,0 \"/>\n\
                    <circle cx=\"20\" cy=\"30\" r=\"10\" class=\"f-ink\"/>\n</svg>\n";
        let path = "<path class=\"s-grid\" d=\"M0,1 2,1M0,3 2,3\"/><path class=\"s-ink\" d=\"M0,5 2,5\"/>\
                    <text x=\"1\">a</text><path class=\"f-ink\" d=\"M0,0 1,1 2,0ZM10,30a10,10 0 1 0 20,0\
                    a10,10 0 1 0-20,0\"/></svg>";
        assert_eq!(merged(body), path);
    }
}
