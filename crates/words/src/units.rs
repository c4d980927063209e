//! Numbers for people: three significant digits, SI prefixes, decimal gigabytes.

/// Three significant digits, no exponent from 0.001 to 999,999, thousands separated.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor();
    if !(-4.0..15.0).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    // Rounding may carry into the next decade (999.6), so round first.
    let scale = 10f64.powf(2.0 - magnitude);
    let rounded = (value * scale).round() / scale;
    let decimals = (2 - rounded.abs().log10().floor() as i32).max(0) as usize;
    thousands(&format!("{rounded:.decimals$}"))
}

/// A number to the given number of significant digits, 2 to 9: the value that parsing its text would give.
pub fn significant(value: f64, digits: u8) -> f64 {
    let digits = i32::from(digits) - 1;
    let shift = digits.saturating_sub(value.abs().log10().floor() as i32);
    // Exact up to 10^22, and so is one multiplication or division, rounded.
    let power = 10f64.powi(shift.saturating_abs());
    let to = |value: f64, up: bool| if up { value * power } else { value / power };
    let scaled = to(value, shift > 0);
    let is_half = (scaled.fract().abs() - 0.5).abs() < 1e-6;
    if shift.saturating_abs() <= 22 && !is_half {
        return to(scaled.round(), shift <= 0);
    }
    let written = format!("{value:.*e}", digits as usize);
    written.parse().unwrap_or(value)
}

fn thousands(digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (sign, whole) = match whole.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", whole),
    };
    let mut out = String::from(sign);
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Nanoseconds as `1.38 µs`.
pub fn time(ns: f64) -> String {
    let (scale, unit) = time_unit(ns, 999.5);
    format!("{} {unit}", number(ns / scale))
}

/// Nanoseconds to four digits, `1.382 µs`, where small differences count; to three beyond the
/// times that a benchmark can have.
pub fn time_fine(ns: f64) -> String {
    if !(1e-3..1e15).contains(&ns.abs()) {
        return time(ns);
    }
    let (scale, unit) = time_unit(ns, 999.95);
    let value = ns / scale;
    let decimals = match value.abs() {
        v if v < 9.9995 => 3,
        v if v < 99.995 => 2,
        _ => 1,
    };
    format!("{value:.decimals$} {unit}")
}

/// The unit in which a time is not above `most`, and its nanoseconds.
fn time_unit(ns: f64, most: f64) -> (f64, &'static str) {
    unit_of(ns, most, 1.0, &["ns", "µs", "ms", "s"])
}

/// The first of these units, each a thousand times the one before, in which a value is below `most`, else
/// the last, and how much it is.
fn unit_of<'a>(value: f64, most: f64, smallest: f64, units: &[&'a str]) -> (f64, &'a str) {
    let scales = (0..).map(|power| smallest * 1e3_f64.powi(power));
    let units = scales.zip(units.iter().copied());
    let fits = units.clone().find(|(scale, _)| value.abs() < most * scale);
    fits.or(units.last()).expect("there are units")
}

/// A ratio as a signed change, `+1.20 %`. Far changes read better as factors.
pub fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    if ratio == f64::INFINITY {
        "×∞".to_owned()
    } else if !(1e-3..1e6).contains(&ratio) {
        format!("×{}", number(ratio))
    } else if ratio >= 10.0 {
        format!("×{ratio:.2}")
    } else if percent >= 99.95 {
        format!("{percent:+.0} %")
    } else if percent.abs() < 0.005 {
        // No "-0.00 %".
        "0.00 %".to_owned()
    } else if percent.abs() < 10.0 {
        format!("{percent:+.2} %")
    } else {
        format!("{percent:+.1} %")
    }
}

/// A rate in `FLOP/s` or `B/s` as `51.3 TFLOP/s`.
pub fn rate(value: f64, unit: &str) -> String {
    let (scale, prefix) = unit_of(value, 999.5, 1.0, &["", "k", "M", "G", "T", "P"]);
    format!("{} {prefix}{unit}", number(value / scale))
}

/// Joules as `146 mJ`.
pub fn energy(joules: f64) -> String {
    let (scale, unit) = unit_of(joules, 999.5, 1e-6, &["µJ", "mJ", "J"]);
    format!("{} {unit}", number(joules / scale))
}

/// A figure besides the time, in the unit of its key's suffix, in words: `pool peak 32 MiB`.
pub fn figure(key: &str, value: f64) -> String {
    let is_whole = (0.0..u64::MAX as f64).contains(&value);
    let (name, amount) = match key.rsplit_once('_') {
        Some((name, "bytes")) if is_whole => (name, binary(value as u64)),
        Some((name, "bytes")) => (name, bytes(value)),
        Some((name, "ns")) => (name, time(value)),
        Some((name, "share")) => (name, format!("{} of the time", percent(value))),
        _ => (key, number(value)),
    };
    format!("{} {amount}", name.replace('_', " "))
}

/// A measured limit in its own unit.
pub fn limit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => time(value),
        _ => rate(value, unit),
    }
}

/// A problem size: `16,384`.
pub fn size(size: u64) -> String {
    thousands(&size.to_string())
}

/// A size among others up to hundreds of millions: powers of two from 2^10 on as such, `2^20`.
pub fn power(size: u64) -> String {
    match size {
        s if s >= 1 << 10 && s.is_power_of_two() => {
            format!("2{}", superscript(s.trailing_zeros()))
        }
        s => self::size(s),
    }
}

/// A number of bytes that names a size: `256 MiB`, or decimal where it is no whole number of
/// binary units.
pub fn binary(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(e, _)| bytes >= 1 << e) {
        Some((e, unit)) if bytes.is_multiple_of(1 << e) => {
            format!("{} {unit}", thousands(&(bytes >> e).to_string()))
        }
        Some(_) => self::bytes(bytes as f64),
        None => format!("{bytes} B"),
    }
}

/// A clock, `1,365 MHz`.
pub fn megahertz(mhz: f64) -> String {
    format!("{} MHz", thousands(&format!("{mhz:.0}")))
}

/// A whole number, rounded to three digits.
pub fn count(value: f64) -> String {
    match value.round() {
        v if v.abs() < 100.0 => format!("{v:.0}"),
        v => number(v),
    }
}

/// `1 thread`, `16 threads`.
pub fn counted(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{} {what}s", size(n as u64)),
    }
}

/// A number as an exponent.
pub fn superscript(n: u32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    n.to_string()
        .bytes()
        .map(|b| DIGITS[usize::from(b - b'0')])
        .collect()
}

/// Decimal ties are no binary numbers: this moves the nearest number to one above it.
const TIES_UP: f64 = 1.0 + 1e-12;

/// A ratio as a factor: `26×`, `1.4×`. A tie is rounded up, as the script of the page does it.
pub fn factor(ratio: f64) -> String {
    match ratio * TIES_UP {
        r if r.abs() < 9.95 => format!("{r:.1}×").replace(".0×", "×"),
        r => format!("{}×", count(r)),
    }
}

/// A factor near one, `1.12×`.
pub fn factor_fine(ratio: f64) -> String {
    match ratio {
        r if r.abs() < 1.995 => format!("{r:.2}×"),
        r => factor(r),
    }
}

/// A speedup in words: `2.5× faster`, `1.2× slower` where it is below one, or `as fast`.
pub fn speedup(ratio: f64) -> String {
    let (by, word) = match ratio {
        r if r >= 1.0 => (factor(r), "faster"),
        r => (factor(1.0 / r), "slower"),
    };
    if by == factor(1.0) {
        "as fast".to_owned()
    } else {
        format!("{by} {word}")
    }
}

/// A fraction as `94 %`; finer near the ends.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    match percent.abs() {
        p if !p.is_finite() => "?".into(),
        p if p >= 1e6 => format!("{} %", number(percent)),
        p if p != 0.0 && p < 0.995 => {
            let decimals = (1.0 - p.log10().floor()).min(12.0) as usize;
            format!("{percent:.decimals$} %")
        }
        p if p < 9.95 || (99.0..99.95).contains(&p) => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A small fraction in percent, `0.075 %`, without zeros at its end.
pub fn percent_fine(fraction: f64) -> String {
    let percent = 100.0 * fraction;
    if percent.abs() >= 1e6 {
        return format!("{} %", number(percent));
    }
    let digits = if percent < 0.1 { 3 } else { 2 };
    let text = format!("{percent:.digits$}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Bytes, decimal.
pub fn bytes(bytes: f64) -> String {
    rate(bytes, "B")
}

/// A number and its unit without zeros behind the point: `20 µs` of `20.0 µs`.
pub fn short(text: &str) -> String {
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            let (digits, exponent) = number.split_at(number.find('e').unwrap_or(number.len()));
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits}{exponent} {unit}")
        }
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_significant_digits() {
        assert_eq!(significant(1234.5, 3), 1230.0);
        assert_eq!(significant(0.000_123_46, 4), 0.000_123_5);
        assert_eq!(significant(999_999.5, 4), 1e6);
        assert_eq!(significant(f64::INFINITY, 4), f64::INFINITY);
        // As text, also where digits end in a half or a decade begins.
        let halves = (1..2000).flat_map(|n| [n, 10 * n + 5].map(f64::from));
        let values = halves.flat_map(|n| [n, -n / 64.0, n.powi(9), n.powi(-9), n * 0.1]);
        for value in values.chain([0.0, 5e-324, f64::MAX, 999.5, 9.999_999_999_999_999]) {
            for digits in [2, 3, 5] {
                let text = format!("{value:.*e}", usize::from(digits) - 1);
                let parsed: f64 = text.parse().unwrap();
                assert_eq!(significant(value, digits), parsed, "{value:e}");
            }
        }
    }

    fn check(write: fn(f64) -> String, written: &[(f64, &str)]) {
        for (value, text) in written {
            assert_eq!(write(*value), *text);
        }
    }

    /// Values carry into the next unit, and prefixes are powers of 1,000.
    #[test]
    fn quantities_have_three_digits_and_a_unit() {
        check(time, &[(0.5, "0.500 ns"), (999.6, "1.00 µs")]);
        check(time, &[(1380.0, "1.38 µs"), (21.5e6, "21.5 ms")]);
        check(time, &[(2.5e12, "2,500 s"), (1e308, "1.00e299 s")]);
        check(time_fine, &[(999.97, "1.000 µs"), (34_567.0, "34.57 µs")]);
        check(time_fine, &[(1380.04, "1.380 µs"), (f64::NAN, "? s")]);
        check(change, &[(0.5, "-50.0 %"), (0.99999, "0.00 %")]);
        check(change, &[(1.9994, "+99.9 %"), (3.32, "+232 %")]);
        check(change, &[(12.0, "×12.00"), (f64::INFINITY, "×∞")]);
        check(speedup, &[(1.0, "as fast"), (1.01, "as fast")]);
        check(speedup, &[(0.99, "as fast"), (0.5, "2× slower")]);
        check(speedup, &[(2.5, "2.5× faster")]);
        check(bytes, &[(512.0, "512 B"), (2.5e3, "2.50 kB")]);
        check(bytes, &[(2.5e6, "2.50 MB"), (2.5e9, "2.50 GB")]);
        check(bytes, &[(2.5e12, "2.50 TB"), (2.5e15, "2.50 PB")]);
        check(factor, &[(25.6, "26×"), (2.0, "2×")]);
        check(percent, &[(0.94, "94 %"), (0.9996, "100 %")]);
        check(percent, &[(0.9994, "99.9 %"), (0.0021, "0.21 %")]);
        check(percent, &[(0.000264, "0.026 %")]);
        check(percent_fine, &[(1e300, "1.00e302 %")]);
        check(energy, &[(1.2451, "1.25 J"), (0.9996, "1.00 J")]);
        check(energy, &[(0.146, "146 mJ"), (93.4e-6, "93.4 µJ")]);
        check(number, &[(f64::NAN, "?"), (1234567.0, "1,230,000")]);
        check(count, &[(3.0, "3")]);
    }

    #[test]
    fn sizes_and_figures() {
        assert_eq!([1024, 1 << 14].map(size), ["1,024", "16,384"]);
        let powers = [1 << 20, 1 << 10, 64, (1 << 20) + 4].map(power);
        assert_eq!(powers, ["2²⁰", "2¹⁰", "64", "1,048,580"]);
        let binaries = [1 << 28, 1536 << 10, 512].map(binary);
        assert_eq!(binaries, ["256 MiB", "1.57 MB", "512 B"]);
        assert_eq!(figure("pool_peak_bytes", 33554432.0), "pool peak 32 MiB");
        assert_eq!(figure("pool_peak_bytes", -1e3), "pool peak -1.00 kB");
        assert_eq!(figure("kernel_share", 0.3), "kernel 30 % of the time");
        assert_eq!(figure("misses", 12.0), "misses 12.0");
    }

    /// A damaged file, or a routine that measures itself, may have any number.
    #[test]
    fn absurd_numbers_stay_short() {
        let write = [
            number,
            time,
            time_fine,
            change,
            energy,
            count,
            factor,
            factor_fine,
            percent,
            percent_fine,
            bytes,
            |value| rate(value, "FLOP/s"),
            |value| figure("misses", value),
        ];
        let extremes = [f64::MAX, -f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e15, 1e6];
        for value in extremes.into_iter().chain([f64::INFINITY, f64::NAN, 0.0]) {
            for text in write.map(|write: fn(f64) -> String| write(value)) {
                assert!(text.chars().count() <= 32, "{value:e}: {text}");
            }
        }
    }
}
