//! Colours for pages, plots and timelines in light and dark.
//!
//! Elements are drawn in the light colour, and [`css`] replaces it in a dark scheme. CPU and GPU are
//! blue and vermilion, which people with common kinds of colour blindness can tell apart. Each colour
//! has a contrast of at least 4.5 to 1 with the background, because names are written in it.

use crossover_results::model::role::Residency;

/// The purpose of a colour.
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
    /// The CPU and its code.
    Cpu,
    /// The GPU and its code.
    Gpu,
    /// GPU code with its data in that place.
    Place(Residency),
    /// One of several hues for code without a colour of its own; they repeat.
    Hue(usize),
}

/// A light colour and the dark one.
type LightAndDark = (&'static str, &'static str);

const PLACES: [LightAndDark; Residency::ALL.len()] = [
    ("#b84e01", "#f59a53"),
    ("#6a4fc1", "#b7a8fe"),
    ("#00704f", "#4fcf9f"),
    ("#a02c6d", "#f08fc7"),
];
/// CPU code first, in blues.
const HUES: [LightAndDark; 12] = [
    ("#0072b3", "#56b4ea"),
    ("#00416a", "#a8dbf7"),
    ("#2c5c8c", "#7cc4ee"),
    ("#b84e02", "#f59a54"),
    ("#00845f", "#3fc79a"),
    ("#6a4fc0", "#ab9bff"),
    ("#b0498a", "#e88fc8"),
    ("#967000", "#e0bb45"),
    ("#8a3400", "#ffc491"),
    ("#4d7a1f", "#a5d165"),
    ("#c22f45", "#ff8095"),
    ("#0e7c95", "#4fcfe6"),
];
/// How many of the hues are for CPU code.
pub const CPU_HUES: usize = 3;

impl Paint {
    fn pair(self) -> LightAndDark {
        match self {
            Paint::Ink => ("#1c2430", "#e6e9ee"),
            Paint::Muted => ("#5b6675", "#9aa5b4"),
            Paint::Grid => ("#dde2e9", "#333c49"),
            Paint::Paper => ("#ffffff", "#161b22"),
            Paint::Cpu => ("#0072b2", "#56b4e9"),
            Paint::Gpu => ("#b84e00", "#f59a52"),
            Paint::Place(data) => {
                let at = Residency::ALL.iter().position(|place| *place == data);
                PLACES[at.unwrap_or(0)]
            }
            Paint::Hue(i) => HUES[i % HUES.len()],
        }
    }

    /// The light colour.
    pub fn light(self) -> &'static str {
        self.pair().0
    }

    /// The name of its custom property in a page, `--q-queued`.
    pub fn property(self) -> String {
        let named = Self::all().find(|(_, paint)| paint.pair() == self.pair());
        named.map_or_else(String::new, |(name, _)| format!("--{name}"))
    }

    /// All colours with the names of their custom properties in a page.
    fn all() -> impl Iterator<Item = (String, Paint)> {
        let named = [
            ("ink", Paint::Ink),
            ("muted", Paint::Muted),
            ("grid", Paint::Grid),
            ("paper", Paint::Paper),
            ("cpu", Paint::Cpu),
            ("gpu", Paint::Gpu),
        ];
        let places = Residency::ALL.map(|data| (format!("q-{}", data.name()), Paint::Place(data)));
        let hues = (0..HUES.len()).map(|i| (format!("c{i}"), Paint::Hue(i)));
        let named = named
            .into_iter()
            .map(|(name, paint)| (name.to_owned(), paint));
        named.chain(places).chain(hues)
    }
}

/// Style sheet for one SVG or a whole page: the colours as custom properties (`--cpu`, `--q-queued`,
/// `--c0`), and in a dark scheme the dark colours in place of the drawn ones.
pub fn css() -> String {
    let root = |pick: fn(LightAndDark) -> &'static str| -> String {
        let styles = Paint::all().map(|(name, paint)| format!("--{name}:{};", pick(paint.pair())));
        format!(":root{{{}}}", styles.collect::<String>())
    };
    let drawn = |(_, paint): (String, Paint)| {
        let (light, dark) = paint.pair();
        let drawn = light.to_uppercase();
        format!("[fill=\"{drawn}\" i]{{fill:{dark}}}[stroke=\"{drawn}\" i]{{stroke:{dark}}}")
    };
    let drawn: String = Paint::all().map(drawn).collect();
    let (light, dark) = (root(|pair| pair.0), root(|pair| pair.1));
    format!("{light}\n@media screen and (prefers-color-scheme:dark){{{dark}{drawn}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are written in these colours, on the paper, and light colours are distinguishable.
    #[test]
    fn every_colour_can_be_read_and_is_drawn_once() {
        let luminance = |hex: &str| -> f64 {
            let channel = |at: usize| {
                let value = u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                let value = f64::from(value) / 255.0;
                if value <= 0.04045 {
                    value / 12.92
                } else {
                    ((value + 0.055) / 1.055).powf(2.4)
                }
            };
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        let contrast = |a: &str, b: &str| {
            let (a, b) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        let paper = Paint::Paper.pair();
        let mut drawn = std::collections::BTreeSet::new();
        for (name, paint) in Paint::all() {
            let (light, dark) = paint.pair();
            assert!(drawn.insert(light), "{name}: {light} is drawn twice");
            if !matches!(paint, Paint::Grid | Paint::Paper) {
                assert!(contrast(light, paper.0) >= 4.5, "{name}: {light}");
                assert!(contrast(dark, paper.1) >= 4.5, "{name}: {dark}");
            }
        }
    }
}
