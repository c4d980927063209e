//! Times and rates as Criterion prints them.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};

use crossover_words::Clock;

/// The unit of a benchmark's throughput, and the work of one iteration at a size.
///
/// Criterion's throughput number doubles as the x axis of its plots, so it is best the
/// problem size; the work done at that size is computed from it here. For a matrix product
/// of size N, `Throughput::Elements(N)` with `Rate::flop(|n| 2.0 * n.powi(3))` plots against
/// N and prints FLOP/s.
///
/// ```
/// use crossover_timing::{CudaTime, Rate};
///
/// let time = CudaTime::host_only();
/// let rate = Rate::flop(|n| 2.0 * n.powi(3));
/// assert_eq!((rate.amount(10.0), rate.unit()), (2000.0, "FLOP"));
/// let _rate = time.set_rate(rate);
/// ```
#[derive(Clone)]
pub struct Rate {
    pub(super) unit: Unit,
    work: Rc<dyn Fn(f64) -> f64>,
    /// The most work of a second that a device can do.
    pub(super) peak: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    Flop,
    Bytes,
    Elements,
    Inputs,
}

impl Rate {
    /// Floating-point operations per second; `work` gives those of one iteration at a size.
    pub fn flop(work: impl Fn(f64) -> f64 + 'static) -> Self {
        Self {
            unit: Unit::Flop,
            work: Rc::new(work),
            peak: None,
        }
    }

    /// Bytes per second, in decimal units (1 GB = 10⁹ bytes); `work` gives the bytes of one
    /// iteration at a size.
    pub fn bytes(work: impl Fn(f64) -> f64 + 'static) -> Self {
        Self {
            unit: Unit::Bytes,
            work: Rc::new(work),
            peak: None,
        }
    }

    /// Elements per second; the size is the number of elements, single values, of one iteration.
    pub fn elements() -> Self {
        Self {
            unit: Unit::Elements,
            work: Rc::new(|n| n),
            peak: None,
        }
    }

    /// Inputs per second; the size is the number of rows, sequences or images that one iteration takes.
    pub fn inputs() -> Self {
        Self {
            unit: Unit::Inputs,
            ..Self::elements()
        }
    }

    /// The work of one iteration at a size, in [`unit`](Self::unit)s.
    pub fn amount(&self, size: f64) -> f64 {
        (self.work)(size)
    }

    /// The unit: `FLOP`, `B`, `elem` or `input`.
    pub fn unit(&self) -> &'static str {
        match self.unit {
            Unit::Flop => "FLOP",
            Unit::Bytes => "B",
            Unit::Elements => "elem",
            Unit::Inputs => "input",
        }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rate")
            .field("unit", &self.unit)
            .finish_non_exhaustive()
    }
}

/// Prints times, and throughput in the unit of the [`Rate`] that is set.
#[derive(Debug)]
pub(crate) struct Formatter {
    pub(super) rate: RefCell<Rate>,
    /// The clock of the benchmark. A time that does not [measure the work](Clock::measures_work) has no rate.
    pub(super) clock: Cell<Clock>,
}

impl Default for Formatter {
    fn default() -> Self {
        Self {
            rate: RefCell::new(Rate::elements()),
            clock: Cell::new(Clock::Wall),
        }
    }
}

impl Formatter {
    /// Returns the earlier rate.
    pub(crate) fn set(&self, rate: Rate) -> Rate {
        self.rate.replace(rate)
    }

    /// The work of an iteration.
    fn work(&self, throughput: &Throughput) -> (f64, Unit) {
        match *throughput {
            Throughput::Bits(n) => (n as f64 / 8.0, Unit::Bytes),
            Throughput::Bytes(n) | Throughput::BytesDecimal(n) => (n as f64, Unit::Bytes),
            Throughput::ElementsAndBytes { elements: n, .. } | Throughput::Elements(n) => {
                let rate = self.rate.borrow();
                (rate.amount(n as f64), rate.unit)
            }
        }
    }
}

impl ValueFormatter for Formatter {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        WallTime.formatter().scale_values(typical, values)
    }

    fn format_throughput(&self, throughput: &Throughput, value: f64) -> String {
        if !self.clock.get().measures_work() {
            return "none".to_owned();
        }
        let mut values = [value];
        let unit = self.scale_throughputs(value, throughput, &mut values);
        // As many digits as Criterion prints.
        let decimals = 4 - (values[0].max(1.0).log10() as usize).min(4);
        let rate = format!("{:>6.decimals$} {unit}", values[0]);
        let (work, unit) = self.work(throughput);
        let shown = self.rate.borrow();
        let peak = shown
            .peak
            .filter(|_| shown.unit == unit && self.clock.get().is_of_events());
        match peak {
            Some(peak) => format!(
                "{rate}, {:.0} % of the peak",
                100.0 * work / (value / 1e9 * peak)
            ),
            None => rate,
        }
    }

    fn scale_throughputs(
        &self,
        typical: f64,
        throughput: &Throughput,
        values: &mut [f64],
    ) -> &'static str {
        let (work, unit) = self.work(throughput);
        // Values are nanoseconds, so work / value is in units of 10⁹ per second.
        let (factor, step) = match work / typical {
            r if r < 1e-6 => (1e9, 0),
            r if r < 1e-3 => (1e6, 1),
            r if r < 1.0 => (1e3, 2),
            r if r < 1e3 => (1.0, 3),
            _ => (1e-3, 4),
        };
        for value in values {
            *value = work / *value * factor;
        }
        let names = match unit {
            Unit::Flop => ["FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"],
            Unit::Bytes => ["B/s", "KB/s", "MB/s", "GB/s", "TB/s"],
            Unit::Elements => ["elem/s", "Kelem/s", "Melem/s", "Gelem/s", "Telem/s"],
            Unit::Inputs => ["input/s", "Kinput/s", "Minput/s", "Ginput/s", "Tinput/s"],
        };
        names[step]
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "ns"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_in_the_unit_that_is_set() {
        let f = Formatter::default();
        let scaled = |throughput, ns| {
            let mut values = [ns];
            let unit = f.scale_throughputs(ns, &throughput, &mut values);
            (values[0], unit)
        };
        // 1024³ multiply-adds in 1 ms: 2.147 TFLOP/s.
        f.set(Rate::flop(|n| 2.0 * n.powi(3)));
        let (value, unit) = scaled(Throughput::Elements(1024), 1e6);
        assert!((value - 2.147_483_648).abs() < 1e-9);
        assert_eq!(unit, "TFLOP/s");
        // Eight bytes per element, decimal units.
        f.set(Rate::bytes(|n| 8.0 * n));
        assert_eq!(scaled(Throughput::Elements(1000), 1000.0), (8.0, "GB/s"));
        f.set(Rate::inputs());
        assert_eq!(scaled(Throughput::Elements(5), 1e6), (5.0, "Kinput/s"));
        // Bytes given as bytes need no rate.
        assert_eq!(scaled(Throughput::Bytes(2000), 1e9), (2.0, "KB/s"));
        assert_eq!(scaled(Throughput::Bytes(2), 1e9), (2.0, "B/s"));
    }
}
