//! Names at the ends of lines: which names, how much room they take, and where they go so that none
//! lies on another.

use crate::plot::figure::{Plot, Shape};

/// How a person finds out which curve is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// By its name at its end.
    AtEnds,
    /// By a number at its end, which the legend explains: for names too long for the margin.
    Numbers,
    /// By the legend alone: where curves are no lines.
    Legend,
}

/// The longest name that goes into the margin.
const LONGEST: usize = 26;
/// From one name to the next.
const ROW: i32 = 14;
/// A number and the gap before it.
const NUMBER: i32 = 30;

/// Width of a text at 12 px, generous for any sans-serif face.
pub(super) fn width(text: &str) -> i32 {
    // Past the widest plot it does not matter by how much.
    text.chars().take(1000).count() as i32 * 13 / 2
}

/// Letters that have room in a width.
pub(super) fn letters(width: i32) -> usize {
    (width.max(0) * 2 / 13) as usize
}

impl Names {
    pub(super) fn of(plot: &Plot, shape: Shape) -> Self {
        let is_short = |label: &str| label.chars().count() <= LONGEST;
        match shape {
            _ if plot.curves.iter().any(|c| !c.joined) => Names::Legend,
            Shape::Wide if plot.curves.iter().all(|c| is_short(&c.label)) => Names::AtEnds,
            _ => Names::Numbers,
        }
    }
}

/// The margin that the names need.
pub(super) fn margin(plot: &Plot, names: Names, shape: Shape) -> i32 {
    let most = match shape {
        Shape::Wide => 26 + LONGEST as i32 * 15 / 2,
        Shape::Narrow => 96,
    };
    // Bold letters are wider.
    let room = |label: &str| match names {
        Names::Numbers => NUMBER,
        _ => 24 + label.chars().take(1000).count() as i32 * 15 / 2,
    };
    let curves = plot.curves.iter().filter(|_| names != Names::Legend);
    let curves = curves.map(|c| room(&c.label));
    let limits = plot.limits.iter().map(|l| room(&l.label));
    curves.chain(limits).max().unwrap_or(0).min(most)
}

/// What stands for a limit in place of its name: `a`.
pub(super) fn letter(index: usize) -> String {
    char::from(b'a' + (index % 26) as u8).to_string()
}

/// Where names go that want to be at these heights, ascending: near them, a row apart, and between
/// top and bottom where there is room for all.
pub(super) fn apart(wanted: &[i32], (top, bottom): (i32, i32)) -> Vec<i32> {
    let mut rows = wanted.to_vec();
    let mut least = top + ROW / 2;
    for row in &mut rows {
        *row = (*row).max(least);
        least = *row + ROW;
    }
    let mut most = bottom - ROW / 2;
    for row in rows.iter_mut().rev() {
        *row = (*row).min(most);
        most = *row - ROW;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_lies_on_another() {
        let wanted: [&[i32]; 5] = [
            &[10, 100, 200],
            &[50, 50, 50, 51, 52],
            &[0, 0, 0],
            &[298, 299, 300, 300],
            &[],
        ];
        for wanted in wanted {
            let rows = apart(wanted, (0, 300));
            assert_eq!(rows.len(), wanted.len());
            assert!(rows.windows(2).all(|w| w[1] - w[0] >= ROW), "{rows:?}");
            assert!(rows.iter().all(|r| (7..=293).contains(r)), "{rows:?}");
        }
        assert_eq!(apart(&[10, 100, 200], (0, 300)), [10, 100, 200]);
    }
}
