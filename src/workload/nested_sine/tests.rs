//! The sine against float64, in every instruction set.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::workload::nested_sine::problem::NestedSine;
use crate::workload::nested_sine::*;
use crate::workload::routine::Workload;
use crossover_arithmetic::number::ulp_error;
use crossover_arithmetic::sine::{HALF_PI, LARGE, PI_0, PI_1, PI_2, SIN_1, Stores};

type Compute = Box<dyn Fn(&[f32], &mut [f32]) + Sync>;
type InFloat64 = fn(f64) -> f64;

/// One sine on every path of this machine; the last computes as the kernel does.
fn one_sine() -> Vec<(&'static str, Compute)> {
    let path = |isa: Isa| -> (_, Compute) { (isa.name(), Box::new(move |x, y| isa.sine(x, y))) };
    Isa::available().into_iter().map(path).collect()
}

/// Four sines on every path.
fn four_sines() -> Vec<(&'static str, Compute)> {
    let mut paths: Vec<(&'static str, Compute)> = Vec::new();
    for isa in Isa::available() {
        for stores in [Stores::Streamed, Stores::Cached] {
            let four = move |x: &[f32], y: &mut [f32]| isa.nested_sine(x, y, stores);
            paths.push((isa.name(), Box::new(four)));
        }
    }
    paths
}

fn apply(compute: &Compute, x: &[f32]) -> Vec<f32> {
    let mut y = vec![7.0; x.len()];
    y.par_chunks_mut(4096)
        .zip(x.par_chunks(4096))
        .for_each(|(y, x)| compute(x, y));
    y
}

/// Largest error in ulp, with its input; a result beyond [-1, 1] counts as infinite.
fn worst(x: &[f32], y: &[f32], expected: impl Fn(f64) -> f64 + Sync) -> (f64, f32) {
    x.par_iter()
        .zip(y)
        .map(|(&x, &y)| {
            let error = ulp_error(y, expected(x.into()));
            (if y.abs() > 1.0 { f64::INFINITY } else { error }, x)
        })
        .reduce(|| (0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
}

fn nested(x: f64) -> f64 {
    x.sin().sin().sin().sin()
}

/// Some of all float32, more of them where four sines live, and what is adversarial.
fn dense() -> Vec<f32> {
    let everywhere = (0..=u32::MAX).step_by(4093).map(f32::from_bits);
    let unit = (0.125f32.to_bits()..=1.6f32.to_bits())
        .step_by(127)
        .map(f32::from_bits);
    let multiples = (1..=u32::from(u16::MAX)).flat_map(|k| {
        let x = (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32;
        [x, x.next_up(), x.next_down(), -x]
    });
    everywhere
        .chain(unit)
        .chain(multiples)
        .chain(NestedSine::adversarial())
        .collect()
}

/// The largest errors of one sine and of four, with their inputs, of every path: all give the same bits.
fn worst_of_every_path(x: &[f32]) -> [(f64, f32); 2] {
    let bits = |y: &[f32]| -> Vec<u32> {
        // The bits of a NaN may differ, its place may not.
        let bits = |y: &f32| if y.is_nan() { f32::NAN } else { *y }.to_bits();
        y.iter().map(bits).collect()
    };
    let sides = [(one_sine(), f64::sin as InFloat64), (four_sines(), nested)];
    sides.map(|(mut paths, expected)| {
        let (_, model) = paths.pop().unwrap();
        let model = apply(&model, x);
        for (name, compute) in paths {
            assert!(bits(&model) == bits(&apply(&compute, x)), "{name}");
        }
        worst(x, &model, expected)
    })
}

#[test]
fn every_path_computes_what_the_kernel_computes_and_as_well_as_the_c_library() {
    let x = dense();
    let [(one, at), (four, at_four)] = worst_of_every_path(&x);
    assert!(one <= 2.0, "{one} ulp at {at:e}");
    let std: Vec<f32> = x.iter().map(|x| x.sin().sin().sin().sin()).collect();
    let (reference, _) = worst(&x, &std, nested);
    assert!(
        four <= reference + 1.0,
        "{four} ulp at {at_four:e}, the C library {reference}"
    );
}

/// Of four sines the error is printed alone.
#[test]
#[ignore = "takes minutes: every float32 through every path"]
fn every_float32_is_within_2_ulp_per_pass() {
    for high in 0..1u32 << 8 {
        let x: Vec<f32> = (0..1 << 24)
            .map(|low| f32::from_bits(high << 24 | low))
            .collect();
        let errors = worst_of_every_path(&x);
        println!("from {:e} on: {errors:?}", x[0]);
        assert!(errors[0].0 <= 2.0, "{errors:?}");
    }
}

#[test]
fn a_result_does_not_depend_on_its_place() {
    let x: Vec<f32> = NestedSine::adversarial()
        .into_iter()
        .skip(9)
        .take(400)
        .collect();
    for (name, four) in four_sines() {
        let mut whole = vec![0.0; x.len()];
        four(&x, &mut whole);
        for length in 0..x.len() {
            let mut part = vec![7.0; length];
            four(&x[..length], &mut part);
            assert!(
                part.iter()
                    .zip(&whole)
                    .all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()),
                "{name}, {length} elements"
            );
        }
    }
}

#[test]
fn the_kernel_has_these_constants() {
    for c in [PI_0, PI_1, PI_2, LARGE]
        .iter()
        .chain(&HALF_PI)
        .chain(&SIN_1)
    {
        assert!(NESTED_SINE.text.contains(&format!("{c:?}f")), "{c:?}");
    }
}

#[test]
fn a_check_finds_one_wrong_element() {
    let problem = NestedSine::of(vec![0.5, f32::NAN, 2.0, 4.0]);
    let right: Vec<f32> = problem
        .input()
        .iter()
        .map(|&x| nested(x.into()) as f32)
        .collect();
    let passes = |y: &[f32]| problem.check_output(y).passed();
    assert!(passes(&right));
    for (i, wrong) in [(0, right[0] + 1e-5), (1, 0.0), (3, f32::NAN), (3, 1.5)] {
        let mut y = right.clone();
        y[i] = wrong;
        assert!(!passes(&y), "{wrong} at {i}");
    }
}

#[test]
fn an_element_outside_the_windows_must_be_written() {
    let problem = NestedSine::new(1 << 21);
    let mut y = vec![0.0; problem.len()];
    Isa::best().nested_sine(problem.input(), &mut y, Stores::Cached);
    assert!(problem.check_output(&y).passed());
    let windows = problem.windows();
    assert!(windows.windows(2).all(|w| w[0].start < w[1].start));
    assert_eq!(windows[0].start, 0);
    assert_eq!(windows.last().unwrap().end, problem.len());
    let outside = windows[0].end;
    assert!(outside < windows[1].start);
    for unwritten in [POISON, f32::NAN] {
        y[outside] = unwritten;
        assert!(!problem.check_output(&y).passed(), "{unwritten}");
    }
}

#[test]
fn edge_cases_have_the_adversarial_elements() {
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<BTreeSet<_>>();
    let edge_cases = NestedSine::edge_cases().unwrap().x;
    assert!(bits(&NestedSine::adversarial()).is_subset(&bits(&edge_cases)));
}
