//! Colours that hold in light and dark.
//!
//! Plotters writes one fixed colour into each element. Here every colour drawn is a number
//! of an `Inks` table, and the finished SVG has each number replaced by the light colour,
//! a class for the dark one, and the dash of the line. A viewer without style sheets still
//! sees the light colours.
//!
//! CPU curves are blues and GPU curves vermilions (a pair that is apart for every common kind of
//! colour blindness), implementations differ by shade and marker. Where a group has more GPU curves
//! than there are such shades, the others take hues that no CPU curve has. A group without CPU curves
//! has nothing to tell apart but its implementations, and uses all hues. Each colour has a contrast of
//! 4.5 to 1 or more with the paper, since names are written in it.

use plotters::style::RGBColor;

use crossover_results::model::role::Residency;
use crossover_words::Clock;

/// Which hue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Blues.
    Cpu,
    /// Vermilions.
    Gpu,
    /// All hues: GPU curves without CPU curves beside them.
    Alone,
    /// The answers of a group, one hue for each question, in the order of `Residency::ALL`.
    Answer,
}

/// A light colour and the dark one.
type Pair = (&'static str, &'static str);

// Strongest first.
const CPU: [Pair; 7] = [
    ("#0072b2", "#56b4e9"),
    ("#00416a", "#a8dbf7"),
    ("#0a7d74", "#58d0bf"),
    ("#5a62c4", "#a6b0ff"),
    ("#2f7cae", "#2f8cc7"),
    ("#2c5c8c", "#7cc4ee"),
    ("#0b7a8a", "#4fc3d0"),
];
const GPU: [Pair; 12] = [
    ("#b84e00", "#f59a52"),
    ("#7a2e00", "#ffc491"),
    ("#d6304a", "#ff8095"),
    ("#8f6a00", "#e8b84a"),
    ("#b0498a", "#e88fc8"),
    ("#5c4a00", "#c9a54d"),
    ("#9e4a2f", "#d9691f"),
    ("#00845f", "#3fc79a"),
    ("#6a4fc0", "#ab9bff"),
    ("#c2185b", "#ff9f80"),
    ("#4d7a1f", "#a5d165"),
    ("#5b6675", "#b4becb"),
];
const ALONE: [Pair; 11] = [
    ("#b84e00", "#f59a52"),
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
const ANSWERS: [Pair; Residency::ALL.len()] = [
    ("#b84e00", "#f59a52"),
    ("#6a4fc0", "#b7a8ff"),
    ("#00704f", "#4fcf9f"),
    ("#a02c6d", "#f08fc8"),
];
const INK: Pair = ("#1c2430", "#e6e9ee");
const MUTED: Pair = ("#5b6675", "#9aa5b4");
const GRID: Pair = ("#dde2e9", "#333c49");
const PAPER: Pair = ("#ffffff", "#161b22");

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
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

impl Family {
    /// Its colours, and what their classes begin with.
    fn palette(self) -> (&'static [Pair], &'static str) {
        match self {
            Family::Cpu => (&CPU, "cpu"),
            Family::Gpu => (&GPU, "gpu"),
            Family::Alone => (&ALONE, "alone"),
            Family::Answer => (&ANSWERS, "answer"),
        }
    }
}

impl Paint {
    fn pair(self) -> Pair {
        match self {
            Paint::Ink => INK,
            Paint::Muted => MUTED,
            Paint::Grid => GRID,
            Paint::Paper => PAPER,
            Paint::Shade(family, i) => {
                let (colours, _) = family.palette();
                colours[i % colours.len()]
            }
        }
    }

    /// The class without its `f-` or `s-`.
    pub fn class(self) -> String {
        match self {
            Paint::Ink => "ink".into(),
            Paint::Muted => "muted".into(),
            Paint::Grid => "grid".into(),
            Paint::Paper => "paper".into(),
            Paint::Shade(family, i) => {
                let (colours, name) = family.palette();
                format!("{name}{}", i % colours.len())
            }
        }
    }

    /// The light colour.
    pub fn light(self) -> &'static str {
        self.pair().0
    }

    fn all() -> impl Iterator<Item = Paint> {
        let families = [Family::Cpu, Family::Gpu, Family::Alone, Family::Answer];
        let shades = families
            .into_iter()
            .flat_map(|family| (0..family.palette().0.len()).map(move |i| Paint::Shade(family, i)));
        [Paint::Ink, Paint::Muted, Paint::Grid, Paint::Paper]
            .into_iter()
            .chain(shades)
    }
}

/// Place of a question in `Family::Answer`.
pub fn answer(question: Residency) -> usize {
    let place = Residency::ALL.iter().position(|data| *data == question);
    place.unwrap_or(0)
}

/// On and off lengths of a clock's line; `None` is solid.
pub fn dash(clock: Option<Clock>) -> Option<&'static [u32]> {
    match clock {
        Some(Clock::Wall) => None,
        Some(Clock::EventsGated) => Some(&[11, 3]),
        Some(Clock::Events) => Some(&[6, 4]),
        Some(Clock::EventsCold) => Some(&[9, 3, 2, 3]),
        Some(Clock::Submit) => Some(&[2, 3]),
        _ => Some(&[3, 7]),
    }
}

/// Style sheet with the colours, light and dark, for one SVG or a whole page.
pub fn css() -> String {
    let rules = |pick: fn(Pair) -> &'static str| -> String {
        Paint::all()
            .map(|role| {
                let (class, color) = (role.class(), pick(role.pair()));
                format!(".s-{class}{{stroke:{color}}}.f-{class}{{fill:{color}}}")
            })
            .collect()
    };
    light_and_dark(rules(|pair| pair.0), rules(|pair| pair.1))
}

/// The colours of the CPU, the GPU and each question as custom properties of a page: `--cpu`,
/// `--gpu`, `--q-queued`.
pub fn properties() -> String {
    let questions = Residency::ALL.map(|data| {
        let role = Paint::Shade(Family::Answer, answer(data));
        (format!("q-{}", data.name()), role)
    });
    let devices = [("cpu", Family::Cpu), ("gpu", Family::Gpu)];
    let devices = devices.map(|(name, family)| (name.to_owned(), Paint::Shade(family, 0)));
    let root = |pick: fn(Pair) -> &'static str| -> String {
        let all = devices.iter().chain(&questions);
        let all = all.map(|(name, role)| format!("--{name}:{};", pick(role.pair())));
        format!(":root{{{}}}", all.collect::<String>())
    };
    light_and_dark(root(|pair| pair.0), root(|pair| pair.1))
}

fn light_and_dark(light: String, dark: String) -> String {
    format!("{light}\n@media screen and (prefers-color-scheme:dark){{{dark}}}")
}

/// The numbers of the colours of one drawing.
#[derive(Debug, Default)]
pub(super) struct Inks(Vec<(Paint, Option<String>)>);

impl Inks {
    /// The number of a solid colour.
    pub(super) fn solid(&mut self, role: Paint) -> RGBColor {
        self.number(role, None)
    }

    /// The number of a line of that colour in a clock's style, lengths times `scale`.
    pub(super) fn line(&mut self, role: Paint, clock: Option<Clock>, scale: u32) -> RGBColor {
        let lengths = |d: &[u32]| {
            let scaled: Vec<String> = d.iter().map(|l| (l * scale).to_string()).collect();
            scaled.join(" ")
        };
        self.number(role, dash(clock).map(lengths))
    }

    fn number(&mut self, role: Paint, dash: Option<String>) -> RGBColor {
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
        inks.solid(Paint::Ink);
        inks.line(Paint::Shade(Family::Gpu, 0), Some(Clock::Events), 2);
        let svg = "<text fill=\"#000000\">=\"#</text><polyline stroke=\"#000001\" points=\"\"/>";
        assert_eq!(
            inks.apply(svg, false),
            "<text class=\"f-ink\">=\"#</text><polyline class=\"s-gpu0\" \
             stroke-dasharray=\"12 8\" points=\"\"/>"
        );
        assert_eq!(
            inks.apply(svg, true),
            "<text class=\"f-ink\" fill=\"#1c2430\">=\"#</text><polyline class=\"s-gpu0\" \
             stroke=\"#b84e00\" stroke-dasharray=\"12 8\" points=\"\"/>"
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

    /// Names are written in these colours, on the paper.
    #[test]
    fn every_colour_can_be_read() {
        let luminance = |hex: &str| -> f64 {
            let channel = |at: usize| {
                let value = u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                let value = f64::from(value) / 255.0;
                match value <= 0.04045 {
                    true => value / 12.92,
                    false => ((value + 0.055) / 1.055).powf(2.4),
                }
            };
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        let contrast = |a: &str, b: &str| {
            let (a, b) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        for role in Paint::all().filter(|role| !matches!(role, Paint::Grid | Paint::Paper)) {
            let (light, dark) = role.pair();
            assert!(contrast(light, PAPER.0) >= 4.5, "{role:?}: {light}");
            assert!(contrast(dark, PAPER.1) >= 4.5, "{role:?}: {dark}");
        }
    }
}
