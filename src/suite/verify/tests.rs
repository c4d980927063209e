use std::cell::Cell;

use super::*;
use crate::model::cost::{Cost, LinkBytes};
use crate::suite::group::{Group, Implementation};
use crate::suite::sizes::Sizes;
use crate::timing::{Clock, Rate};
use crate::workload::Workload;
use crate::workload::simple::{compare, on_cpu};

pub(crate) struct Ones(usize);

impl Workload for Ones {
    fn new(size: u64) -> Self {
        Self(size as usize)
    }
    fn host_bytes(size: u64) -> u64 {
        4 * size
    }
    fn device_bytes(size: u64) -> u64 {
        4 * size
    }
}

/// A group of one implementation, which fills `n` values in this run, counted from 1.
fn group(fill: fn(run: u32, y: &mut [f32])) -> Group<Ones> {
    let sizes = Sizes::new([4], [8], [16]);
    Group::new("ones", sizes, None, |_| Cost::default()).with(Implementation::cpu(
        "fill",
        move |problem: &Rc<Ones>| {
            let n = problem.0;
            let runs = Cell::new(0);
            let compute = move |y: &mut [f32]| {
                runs.set(runs.get() + 1);
                fill(runs.get(), y);
            };
            let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
            Ok(on_cpu(n, compute, check))
        },
    ))
}

fn verified(fill: fn(u32, &mut [f32])) -> Result<Vec<String>, String> {
    AnyGroup::from(group(fill))
        .verify("cpu/fill", None)
        .map_err(|error| error.to_string())
}

#[test]
fn a_wrong_result_is_named_with_its_size() {
    assert_eq!(verified(|_, y| y.fill(1.0)), Ok(Vec::new()));
    let wrong = verified(|_, y| y.fill(2.0)).unwrap_err();
    assert!(
        wrong.starts_with("ones/cpu/fill at size 3: wrong result"),
        "{wrong}"
    );
    // Whole vectors alone, and no remainder.
    let odd = verified(|_, y| y.chunks_exact_mut(4).for_each(|y| y.fill(1.0))).unwrap_err();
    assert!(odd.starts_with("ones/cpu/fill at size 3:"), "{odd}");
    // Right but for the second of several in a row.
    let again = verified(|run, y| y.fill(if run > 2 { 3.0 } else { 1.0 }));
    assert!(again.is_err());
}

#[test]
fn a_bound_that_is_too_wide_is_named() {
    let with = |bound| {
        let sizes = Sizes::new([4], [8], [16]);
        let roots = Implementation::cpu("roots", move |ones: &Rc<Ones>| {
            let roots: Vec<f32> = (2..).map(|i| (i as f32).sqrt()).take(ones.0).collect();
            let reference: Vec<f64> = roots.iter().map(|&root| root.into()).collect();
            let check = move |y: &[f32]| compare(y, reference.iter().copied(), 1.0, bound);
            Ok(on_cpu(ones.0, move |y| y.copy_from_slice(&roots), check))
        });
        let group = Group::new("values", sizes, None, |_| Cost::default()).with(roots);
        AnyGroup::from(group.no_inputs())
            .test()
            .map_err(|error| error.to_string())
    };
    assert_eq!(with(1e-6), Ok(()));
    // 1e-2 rejects the shifted output and zeros.
    for wide in [1e-2, 1.0, 1e3] {
        let error = with(wide).unwrap_err();
        let named = "values/cpu/roots: the bound is too wide";
        assert!(error.starts_with(named), "{error}");
    }
}

#[test]
fn inputs_that_are_absent_or_always_the_same_are_named() {
    let absent = AnyGroup::from(group(|_, y| y.fill(1.0)));
    let doubt = absent.doubtful_inputs().unwrap();
    assert!(doubt.starts_with("ones shows no inputs"), "{doubt}");
    assert!(absent.test().is_err());
    let declared = AnyGroup::from(group(|_, y| y.fill(1.0)).no_inputs());
    assert_eq!(declared.doubtful_inputs(), None);
}

/// Adds one to its state, and gives that back as its output, which is right after one run from restored state.
pub(crate) struct Adds {
    state: f32,
    output: f32,
    poison: f32,
    /// Whether the state is restored where it should be.
    restores: Box<dyn Fn() -> bool>,
}

impl Adds {
    /// A routine whose state was never restored.
    pub(crate) fn restored_by(restores: impl Fn() -> bool + 'static) -> Self {
        Self {
            state: f32::NAN,
            output: f32::NAN,
            poison: f32::NAN,
            restores: Box::new(restores),
        }
    }
}

impl Routine for Adds {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.output = self.poison;
        Ok(())
    }
    fn restore(&mut self) -> Result<(), RoutineError> {
        if (self.restores)() {
            self.state = 0.0;
        }
        Ok(())
    }
    fn run(&mut self) -> Result<(), RoutineError> {
        self.state += 1.0;
        self.output = self.state;
        Ok(())
    }
    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(compare(&[self.output], [1.0], 1.0, 0.0))
    }
}

#[test]
fn state_is_restored_before_each_run() {
    let adds = |restores, poison| {
        let mut routine = Adds {
            state: 0.0,
            poison,
            ..Adds::restored_by(move || restores)
        };
        written(&mut routine, None, ROUNDS).map_err(|error| error.to_string())
    };
    assert_eq!(adds(true, f32::NAN), Ok(()));
    let error = adds(false, f32::NAN).unwrap_err();
    assert!(error.contains("wrong result"), "{error}");
    let error = adds(true, 1.0).unwrap_err();
    assert!(error.contains("never written passes"), "{error}");
}

#[test]
fn a_group_that_contradicts_itself_is_told_so() {
    assert!(AnyGroup::from(group(|_, _| ())).contradictions().is_empty());
    let row = || Implementation::gpu("copies", Clock::Wall, |_, _| Err("never made".into()));
    let cost = |_| Cost {
        link_bytes: Some(LinkBytes::new(8.0, 0.0)),
        ..Cost::default()
    };
    let group = group(|_, _| ())
        .with(row().cost(cost))
        .with(row().cost(cost).data(crate::model::Residency::Pinned));
    let found = AnyGroup::from(group).contradictions();
    assert!(
        found[0].contains("the cost of ones/gpu/copies has bytes"),
        "{found:?}"
    );
    assert!(found[1].contains("two rows are named"), "{found:?}");
    // Two values of f32 for each element, then rows of 1,024 values.
    for (bytes, is_refused) in [(8.0, false), (8192.0, true)] {
        let cost = move |n| Cost::default().bytes(bytes * n as f64);
        let sizes = Sizes::new([4], [8], [16]);
        let row = Implementation::gpu("busy", Clock::Activity, |_, _| Err("never made".into()));
        let group = Group::<Ones>::new("rows", sizes, Rate::elements(), cost).with(row);
        let found = AnyGroup::from(group).contradictions();
        assert!(
            found[0].contains("rows/gpu/busy is timed by `activity`"),
            "{found:?}"
        );
        let is_found = found.iter().any(|fault| fault.contains("bytes for each"));
        assert_eq!(is_found, is_refused, "{found:?}");
    }
}
