//! Times and amounts in words.

/// What nanoseconds are multiplied by to be in the unit that fits `typical` of them.
pub(crate) fn scale(typical: f64) -> (f64, &'static str) {
    if typical < 1e3 {
        (1.0, "ns")
    } else if typical < 1e6 {
        (1e-3, "µs")
    } else if typical < 1e9 {
        (1e-6, "ms")
    } else {
        (1e-9, "s")
    }
}

/// A time with its unit, to three digits.
pub(crate) fn time(ns: f64) -> String {
    // What rounds up to a thousand belongs to the next unit.
    let (factor, unit) = scale(ns * 1.000_5);
    format!("{} {unit}", digits(ns * factor, unit == "ns"))
}

/// An amount or a rate with a decimal prefix, to three digits.
#[cfg(feature = "profile")]
pub(crate) fn amount(mut value: f64, unit: &str) -> String {
    let mut prefixes = ["", "k", "M", "G", "T"].into_iter();
    let mut prefix = prefixes.next().unwrap_or_default();
    for larger in prefixes {
        if value < 999.5 {
            break;
        }
        value /= 1e3;
        prefix = larger;
    }
    format!("{} {prefix}{unit}", digits(value, prefix.is_empty()))
}

/// Three digits; no decimals where the unit counts `whole` things and the value has no fraction.
fn digits(value: f64, whole: bool) -> String {
    let decimals = match value {
        v if whole && v.fract() == 0.0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "profile")]
    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (7.25, "7.25 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (39.2e6, "39.2 ms"),
            (2.5e9, "2.50 s"),
        ] {
            assert_eq!(time(ns), text);
        }
        for (bytes, text) in [
            (4.0, "4 B"),
            (512.0, "512 B"),
            (16_777_216.0, "16.8 MB"),
            (999_600.0, "1.00 MB"),
            (5e15, "5000 TB"),
        ] {
            assert_eq!(amount(bytes, "B"), text);
        }
    }
}
