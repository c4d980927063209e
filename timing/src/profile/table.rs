//! A profile as text for a terminal.

use std::fmt;

use super::report::{Place, Profile, Summary, Work};
use crate::format::{amount, time};

/// A table of text: the first column is aligned left, the others right.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(str::to_owned).to_vec()],
        }
    }

    fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |c: usize| {
            let cells = self.rows.iter().map(|r| r[c].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        writeln!(f)?;
        for row in &self.rows {
            let mut line = format!("  {:<1$}", row[0], widths[0]);
            for (cell, &width) in row.iter().zip(&widths).skip(1) {
                line += &format!("  {cell:>width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Letters of a name. A longer one is cut in the middle: the names of templates differ at both
/// ends.
const NAME: usize = 60;

/// A table for a terminal, several lines long.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.benchmark, self.summary.sentence)?;
        if !self.device.is_empty() {
            let head = [
                "on the device",
                "per iteration",
                "time",
                "share",
                "each",
                "rate",
            ];
            let mut table = Table::new(head);
            for row in &self.device {
                table.row([
                    shortened(&row.work.to_string()),
                    count(row.per_iteration),
                    time(row.ns_per_iteration),
                    percent(row.share),
                    time(row.median_ns),
                    row.work.rate(row.median_ns).unwrap_or_default(),
                ]);
            }
            table.write(f)?;
        }
        if !self.calls.is_empty() {
            let mut table = Table::new(["driver calls", "per iteration", "host time"]);
            for row in &self.calls {
                let name = row.name.clone();
                table.row([name, count(row.per_iteration), time(row.ns_per_iteration)]);
            }
            table.write(f)?;
        }
        if !self.ranges.is_empty() {
            let head = [
                "ranges",
                "per iteration",
                "host time",
                "device time",
                "share",
            ];
            let mut table = Table::new(head);
            for row in &self.ranges {
                table.row([
                    shortened(&row.name),
                    count(row.per_iteration),
                    time(row.host_ns_per_iteration),
                    time(row.device_ns_per_iteration),
                    percent(row.share),
                ]);
            }
            table.write(f)?;
        }
        writeln!(f)?;
        self.summary.write(f)?;
        writeln!(
            f,
            "  {} iterations, {} records of work; {}, CUPTI {}",
            self.iterations, self.records, self.gpu, self.cupti
        )?;
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        Ok(())
    }
}

impl Summary {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  iteration {} ({} when not recorded): device busy {}, idle {}",
            time(self.iteration_ns),
            time(self.unrecorded_ns),
            time(self.busy_ns),
            time(self.idle_ns)
        )?;
        if self.gaps > 0.0 {
            writeln!(
                f,
                "  gaps between work: {} per iteration, median {}",
                count(self.gaps),
                time(self.median_gap_ns)
            )?;
        }
        if self.copies_ns > 0.0 {
            writeln!(
                f,
                "  copies {}, of which {} behind kernels",
                time(self.copies_ns),
                time(self.hidden_ns)
            )?;
        }
        if let Some(first) = self.first_kernel_ns {
            writeln!(f, "  the first kernel starts after {}", time(first))?;
        }
        Ok(())
    }
}

impl Work {
    /// The rate of a copy or a memory set that takes `ns` nanoseconds, such as `24.3 GB/s`;
    /// `None` for a kernel, or where `ns` is not positive.
    pub fn rate(&self, ns: f64) -> Option<String> {
        let (Work::Copy { bytes, .. } | Work::Set { bytes }) = self else {
            return None;
        };
        (ns > 0.0).then(|| amount(*bytes as f64 / (ns * 1e-9), "B/s"))
    }
}

/// A kernel with its grid, block and registers, a copy with its direction and size.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Kernel {
                name,
                grid,
                block,
                registers,
                ..
            } => {
                let name = shortened(name);
                let (grid, block) = (dimensions(*grid), dimensions(*block));
                write!(f, "{name} <<<{grid}, {block}>>> {registers} registers")
            }
            Work::Copy { from, to, bytes } => {
                write!(f, "copy {from} to {to}, {}", amount(*bytes as f64, "B"))
            }
            Work::Set { bytes } => write!(f, "memory set, {}", amount(*bytes as f64, "B")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Place::Device => "device",
            Place::Pinned => "pinned",
            Place::Pageable => "pageable",
            Place::Managed => "managed",
            Place::Peer => "peer",
            Place::Unknown => "unknown",
        })
    }
}

/// `x`, `(x, y)` or `(x, y, z)`: trailing dimensions of one are left out.
fn dimensions([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (y, 1) => format!("({x}, {y})"),
        (y, z) => format!("({x}, {y}, {z})"),
    }
}

fn shortened(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    // A kernel's name is cut before its grid is added, so that the grid is always whole.
    if letters.len() <= NAME || name.contains(" <<<") {
        return name.to_owned();
    }
    let (front, back) = (NAME / 2, NAME - NAME / 2 - 1);
    let text = |letters: &[char]| letters.iter().collect::<String>();
    let tail = &letters[letters.len() - back..];
    format!("{}…{}", text(&letters[..front]), text(tail))
}

fn count(per_iteration: f64) -> String {
    if (per_iteration - per_iteration.round()).abs() < 5e-3 {
        format!("{per_iteration:.0}")
    } else {
        format!("{per_iteration:.2}")
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::super::report::{CallRow, DeviceRow, RangeRow, SCHEMA, Timeline};
    use super::*;

    fn profile() -> Profile {
        let row = |work, ns, share| DeviceRow {
            work,
            per_iteration: 2.0,
            ns_per_iteration: 2.0 * ns,
            share,
            median_ns: ns,
            shortest_ns: ns,
            longest_ns: ns,
        };
        Profile {
            schema: SCHEMA,
            benchmark: "matmul/gpu/transfer/2048".to_owned(),
            clock: "wall".to_owned(),
            gpu: "NVIDIA H200".to_owned(),
            cupti: "13.0".to_owned(),
            recorded: "2026-11-22T10:00:00Z".to_owned(),
            iterations: 25,
            records: 100,
            notes: vec!["the gate is off".to_owned()],
            device: vec![
                row(
                    Work::Copy {
                        from: Place::Pinned,
                        to: Place::Device,
                        bytes: 16_777_216,
                    },
                    301_750.0,
                    0.61,
                ),
                row(
                    Work::Kernel {
                        name: "sgemm<128>".to_owned(),
                        grid: [16, 16, 1],
                        block: [256, 1, 1],
                        registers: 90,
                        shared_bytes: 0,
                    },
                    190_000.0,
                    0.39,
                ),
            ],
            calls: vec![CallRow {
                name: "cuLaunchKernel".to_owned(),
                per_iteration: 2.0,
                ns_per_iteration: 4_100.0,
            }],
            ranges: vec![RangeRow {
                name: "step / forward".to_owned(),
                per_iteration: 1.0,
                host_ns_per_iteration: 5_000.0,
                device_ns_per_iteration: 380_000.0,
                share: 0.39,
            }],
            summary: Summary {
                iteration_ns: 1e6,
                unrecorded_ns: 0.99e6,
                busy_ns: 0.98e6,
                idle_ns: 2e4,
                gaps: 1.96,
                median_gap_ns: 1_200.0,
                kernels_ns: 3.8e5,
                copies_ns: 6e5,
                hidden_ns: 0.0,
                first_kernel_ns: Some(312_000.0),
                sentence: "61 % copies: bound by the link".to_owned(),
            },
            timeline: Timeline::default(),
        }
    }

    #[test]
    fn a_profile_reads_as_tables() {
        let expected = "\
matmul/gpu/transfer/2048: 61 % copies: bound by the link

  on the device                                per iteration    time   share    each       rate
  copy pinned to device, 16.8 MB                           2  604 µs  61.0 %  302 µs  55.6 GB/s
  sgemm<128> <<<(16, 16), 256>>> 90 registers              2  380 µs  39.0 %  190 µs

  driver calls    per iteration  host time
  cuLaunchKernel              2    4.10 µs

  ranges          per iteration  host time  device time   share
  step / forward              1    5.00 µs       380 µs  39.0 %

  iteration 1.00 ms (990 µs when not recorded): device busy 980 µs, idle 20.0 µs
  gaps between work: 1.96 per iteration, median 1.20 µs
  copies 600 µs, of which 0 ns behind kernels
  the first kernel starts after 312 µs
  25 iterations, 100 records of work; NVIDIA H200, CUPTI 13.0
  note: the gate is off
";
        assert_eq!(profile().to_string(), expected);
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        let name = format!("cutlass::{}::end", "x".repeat(100));
        let short = shortened(&name);
        assert_eq!(short.chars().count(), NAME);
        assert!(
            short.starts_with("cutlass::") && short.ends_with("::end"),
            "{short}"
        );
        assert_eq!(dimensions([2, 3, 4]), "(2, 3, 4)");
    }
}
