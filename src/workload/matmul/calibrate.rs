//! Which CPU method is fastest at an order on this machine.

use std::time::{Duration, Instant};

use super::Matmul;
use super::cpu::Method;

/// Larger products are calibrated on a corner of this order: by then the methods have
/// settled, and the calibration takes a second at most where the product takes minutes.
const LARGEST_ORDER: usize = 2048;
/// A measurement takes at least this long, so that the clock's own cost does not count.
const SHORTEST: Duration = Duration::from_micros(200);
/// A method this much slower than the fastest at first sight is not looked at again.
const HOPELESS: f64 = 2.0;
/// The fastest of this many measurements counts; rare disturbances only ever add time.
const ROUNDS: u32 = 7;
/// No more rounds once this much time has gone into them.
const LONGEST: Duration = Duration::from_millis(500);

/// The fastest method for `problem`; `output` is overwritten.
pub(super) fn fastest(problem: &Matmul, output: &mut [f32]) -> Method {
    let n = problem.order().min(LARGEST_ORDER);
    let run = |method: &Method, times: u32| {
        let start = Instant::now();
        for _ in 0..times {
            method.multiply(n, problem.order(), &problem.a, &problem.b, output);
        }
        start.elapsed()
    };
    fastest_of(&candidates(n, rayon::current_num_threads()), run)
}

/// What is worth a try at order `n`. One thread is left out where `threads` share the work
/// of a large product, and several where waking them costs more than the product.
fn candidates(n: usize, threads: usize) -> Vec<Method> {
    let mut methods = Vec::new();
    if n <= 32 {
        methods.push(Method::Naive);
    }
    if n < 1024 || threads == 1 {
        methods.extend([Method::Ndarray, Method::Gemm { threads: 1 }]);
    }
    if n >= 32 && threads > 1 {
        methods.push(Method::RowBlocks);
        // All, half, a quarter: hyper-threads and a second socket can do harm.
        let mut split = threads;
        while split > 1 {
            methods.push(Method::Gemm { threads: split });
            split /= 2;
        }
    }
    methods
}

/// The method with the shortest time of one iteration. `run` runs a method a number of
/// times and says how long that took.
fn fastest_of(methods: &[Method], mut run: impl FnMut(&Method, u32) -> Duration) -> Method {
    struct Entry {
        method: Method,
        times: u32,
        seconds: f64,
    }
    let mut entries: Vec<Entry> = methods
        .iter()
        .map(|&method| {
            let mut times = 1;
            // The first run touches memory, wakes threads and detects the CPU.
            let mut took = run(&method, times);
            if took < 10 * SHORTEST {
                took = run(&method, times);
            }
            while took < SHORTEST && times < 1 << 20 {
                times *= 2;
                took = run(&method, times);
            }
            let seconds = took.as_secs_f64() / f64::from(times);
            Entry {
                method,
                times,
                seconds,
            }
        })
        .collect();
    let best = |entries: &[Entry]| entries.iter().map(|e| e.seconds).fold(f64::MAX, f64::min);
    let limit = HOPELESS * best(&entries);
    entries.retain(|e| e.seconds <= limit);

    let mut spent = Duration::ZERO;
    for _ in 0..ROUNDS {
        if entries.len() < 2 || spent >= LONGEST {
            break;
        }
        // In turn, so that a slow moment of the machine meets each method alike.
        for entry in &mut entries {
            let took = run(&entry.method, entry.times);
            spent += took;
            let seconds = took.as_secs_f64() / f64::from(entry.times);
            entry.seconds = entry.seconds.min(seconds);
        }
    }
    let fastest = entries
        .iter()
        .min_by(|x, y| x.seconds.total_cmp(&y.seconds));
    fastest.map_or(Method::Gemm { threads: 1 }, |e| e.method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanoseconds(method: &Method) -> u32 {
        match method {
            Method::Naive => 900,
            Method::Ndarray => 120,
            Method::RowBlocks => 5000,
            Method::Gemm { threads } => 90 + 10 * *threads as u32,
        }
    }

    #[test]
    fn the_shortest_time_wins() {
        let methods = candidates(32, 8);
        let chosen = fastest_of(&methods, |m, times| {
            Duration::from_nanos(nanoseconds(m).into()) * times
        });
        assert_eq!(chosen, Method::Gemm { threads: 1 });
    }

    #[test]
    fn a_slow_moment_does_not_decide() {
        let methods = [Method::Ndarray, Method::Gemm { threads: 1 }];
        let mut calls = 0;
        let chosen = fastest_of(&methods, |m, times| {
            calls += 1;
            let disturbed = if matches!(m, Method::Gemm { .. }) && calls % 3 == 0 {
                Duration::from_micros(40)
            } else {
                Duration::ZERO
            };
            Duration::from_nanos(nanoseconds(m).into()) * times + disturbed
        });
        assert_eq!(chosen, Method::Gemm { threads: 1 });
    }

    #[test]
    fn a_hopeless_method_is_dropped_after_the_first_look() {
        let mut slow = 0;
        fastest_of(&[Method::Ndarray, Method::Naive], |m, times| {
            slow += u32::from(*m == Method::Naive);
            times
                * if *m == Method::Naive {
                    3 * SHORTEST
                } else {
                    SHORTEST
                }
        });
        assert_eq!(slow, 2);
    }

    #[test]
    fn candidates_by_order_and_threads() {
        assert!(candidates(4, 16).contains(&Method::Naive));
        assert!(!candidates(4, 16).contains(&Method::RowBlocks));
        assert!(!candidates(2048, 16).contains(&Method::Ndarray));
        assert!(candidates(2048, 1).contains(&Method::Gemm { threads: 1 }));
        let splits = [16, 8, 4, 2].map(|threads| Method::Gemm { threads });
        assert!(splits.iter().all(|m| candidates(2048, 16).contains(m)));
    }
}
