//! Colours that hold in light and dark.
//!
//! Plotters writes one fixed colour into each element. Here every colour drawn is a number
//! of an `Inks` table, and the finished SVG has each number replaced by the light colour,
//! a class for the dark one, and the dash of the line. A viewer without style sheets still
//! sees the light colours.
//!
//! CPU curves are blues and GPU curves vermilions (the Okabe-Ito pair, apart for every
//! common kind of colour blindness), implementations differ by shade and marker. A group
//! without CPU curves has nothing to tell apart but its implementations, and uses all hues.

use plotters::style::RGBColor;

use crate::timing::Clock;

/// Which hue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// Blues.
    Cpu,
    /// Vermilions.
    Gpu,
    /// All hues: GPU curves without CPU curves beside them.
    Alone,
}

const SHADES: usize = 7;

/// (light, dark), strongest first.
const CPU: [(&str, &str); SHADES] = [
    ("#0072b2", "#56b4e9"),
    ("#00416a", "#a8dbf7"),
    ("#4a9fd4", "#2f8cc7"),
    ("#2c5c8c", "#7cc4ee"),
    ("#1793a5", "#4fc3d0"),
    ("#5a62c4", "#a6b0ff"),
    ("#0a7d74", "#58d0bf"),
];
const GPU: [(&str, &str); SHADES] = [
    ("#d55e00", "#f28b3b"),
    ("#8a3400", "#ffc491"),
    ("#ee8b3a", "#d9691f"),
    ("#b03a1e", "#ff9f80"),
    ("#b8860b", "#e8b84a"),
    ("#d6304a", "#ff8095"),
    ("#6f5200", "#c9a54d"),
];
const ALONE: [(&str, &str); 11] = [
    ("#d55e00", "#f28b3b"),
    ("#00845f", "#3fc79a"),
    ("#6a4fc0", "#ab9bff"),
    ("#b0498a", "#e88fc8"),
    ("#967000", "#e0bb45"),
    ("#0e7c95", "#4fcfe6"),
    ("#8a3400", "#ffc491"),
    ("#4d7a1f", "#a5d165"),
    ("#2567b8", "#7db4ff"),
    ("#c22f45", "#ff8095"),
    ("#5b6675", "#b4becb"),
];
const INK: (&str, &str) = ("#1c2430", "#e6e9ee");
const MUTED: (&str, &str) = ("#5b6675", "#9aa5b4");
const GRID: (&str, &str) = ("#dde2e9", "#333c49");
const PAPER: (&str, &str) = ("#ffffff", "#161b22");

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Text and marks.
    Ink,
    /// Secondary text, axes.
    Muted,
    /// Grid lines.
    Grid,
    /// The background, and the inside of hollow markers.
    Paper,
    /// A curve: family and shade; shades repeat, with other markers.
    Shade(Family, usize),
}

impl Role {
    fn pair(self) -> (&'static str, &'static str) {
        match self {
            Role::Ink => INK,
            Role::Muted => MUTED,
            Role::Grid => GRID,
            Role::Paper => PAPER,
            Role::Shade(Family::Cpu, i) => CPU[i % SHADES],
            Role::Shade(Family::Gpu, i) => GPU[i % SHADES],
            Role::Shade(Family::Alone, i) => ALONE[i % ALONE.len()],
        }
    }

    /// The class without its `f-` or `s-`.
    pub(crate) fn class(self) -> String {
        match self {
            Role::Ink => "ink".into(),
            Role::Muted => "muted".into(),
            Role::Grid => "grid".into(),
            Role::Paper => "paper".into(),
            Role::Shade(Family::Cpu, i) => format!("cpu{}", i % SHADES),
            Role::Shade(Family::Gpu, i) => format!("gpu{}", i % SHADES),
            Role::Shade(Family::Alone, i) => format!("alone{}", i % ALONE.len()),
        }
    }

    /// The light colour.
    pub(crate) fn light(self) -> &'static str {
        self.pair().0
    }

    fn all() -> impl Iterator<Item = Role> {
        let shades = |family| (0..SHADES).map(move |i| Role::Shade(family, i));
        let alone = (0..ALONE.len()).map(|i| Role::Shade(Family::Alone, i));
        [Role::Ink, Role::Muted, Role::Grid, Role::Paper]
            .into_iter()
            .chain(shades(Family::Cpu))
            .chain(shades(Family::Gpu))
            .chain(alone)
    }
}

/// On and off lengths of a clock's line; `None` is solid.
pub(crate) fn dash(clock: Option<Clock>) -> Option<&'static [u32]> {
    match clock {
        Some(Clock::Wall) => None,
        Some(Clock::EventsGated) => Some(&[11, 3]),
        Some(Clock::Events) => Some(&[6, 4]),
        Some(Clock::EventsCold) => Some(&[9, 3, 2, 3]),
        Some(Clock::Submit) => Some(&[2, 3]),
        None => Some(&[3, 7]),
    }
}

/// Style sheet with the colours, light and dark, for one SVG or a whole page.
pub(crate) fn css() -> String {
    let rules = |pick: fn((&'static str, &'static str)) -> &'static str| -> String {
        Role::all()
            .map(|role| {
                let (class, color) = (role.class(), pick(role.pair()));
                format!(".s-{class}{{stroke:{color}}}.f-{class}{{fill:{color}}}")
            })
            .collect()
    };
    format!(
        "{}\n@media(prefers-color-scheme:dark){{{}}}",
        rules(|pair| pair.0),
        rules(|pair| pair.1)
    )
}

/// The numbers of the colours of one drawing.
#[derive(Debug, Default)]
pub(super) struct Inks(Vec<(Role, Option<String>)>);

impl Inks {
    /// The number of a solid colour.
    pub(super) fn solid(&mut self, role: Role) -> RGBColor {
        self.number(role, None)
    }

    /// The number of a line of that colour in a clock's style, lengths times `scale`.
    pub(super) fn line(&mut self, role: Role, clock: Option<Clock>, scale: u32) -> RGBColor {
        let lengths = |d: &[u32]| {
            let scaled: Vec<String> = d.iter().map(|l| (l * scale).to_string()).collect();
            scaled.join(" ")
        };
        self.number(role, dash(clock).map(lengths))
    }

    fn number(&mut self, role: Role, dash: Option<String>) -> RGBColor {
        let entry = (role, dash);
        let at = self.0.iter().position(|e| *e == entry).unwrap_or_else(|| {
            self.0.push(entry);
            self.0.len() - 1
        });
        RGBColor(0, (at >> 8) as u8, at as u8)
    }

    /// Replaces the numbers in a finished SVG by classes, and with `colours` by these too, for where
    /// no style sheet is read.
    pub(super) fn apply(&self, svg: &str, colours: bool) -> String {
        let mut out = String::with_capacity(svg.len() * 5 / 4);
        let mut rest = svg;
        while let Some(at) = rest.find("=\"#") {
            let (before, value) = (&rest[..at], &rest[at + 3..]);
            let number = value
                .get(..6)
                .and_then(|h| usize::from_str_radix(h, 16).ok());
            let entry = number.and_then(|n| self.0.get(n));
            let attribute = ["fill", "stroke"].into_iter().find(|a| before.ends_with(a));
            let (Some((role, dash)), Some(attribute)) = (entry, attribute) else {
                out.push_str(&rest[..at + 3]);
                rest = value;
                continue;
            };
            out.push_str(&before[..before.len() - attribute.len()]);
            let letter = &attribute[..1];
            out += &format!("class=\"{letter}-{}\"", role.class());
            if colours {
                out += &format!(" {attribute}=\"{}\"", role.light());
            }
            if let (Some(dash), "stroke") = (dash, attribute) {
                out += &format!(" stroke-dasharray=\"{dash}\"");
            }
            // Six digits and the closing quote.
            rest = &value[7..];
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_colours_classes_and_dashes() {
        let mut inks = Inks::default();
        inks.solid(Role::Ink);
        inks.line(Role::Shade(Family::Gpu, 0), Some(Clock::Events), 2);
        let svg = "<text fill=\"#000000\">=\"#</text><polyline stroke=\"#000001\" points=\"\"/>";
        assert_eq!(
            inks.apply(svg, false),
            "<text class=\"f-ink\">=\"#</text><polyline class=\"s-gpu0\" \
             stroke-dasharray=\"12 8\" points=\"\"/>"
        );
        assert_eq!(
            inks.apply(svg, true),
            "<text class=\"f-ink\" fill=\"#1c2430\">=\"#</text><polyline class=\"s-gpu0\" \
             stroke=\"#d55e00\" stroke-dasharray=\"12 8\" points=\"\"/>"
        );
    }

    #[test]
    fn each_clock_has_its_own_line() {
        let clocks = [
            None,
            Some(Clock::Wall),
            Some(Clock::Events),
            Some(Clock::EventsGated),
            Some(Clock::EventsCold),
            Some(Clock::Submit),
        ];
        for (i, a) in clocks.iter().enumerate() {
            for b in &clocks[i + 1..] {
                assert_ne!(dash(*a), dash(*b));
            }
        }
    }
}
