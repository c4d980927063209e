use super::*;
use crate::workload::prepare::Threads;
use crate::workload::routine::Workload;

/// The longest chain of a sum in tasks.
const LONGEST: usize = 519;

fn sum_of(x: &[f32]) -> f32 {
    cpu::in_tasks(&Threads::up_to(2), 3, x)
}

#[test]
fn a_lost_term_is_found_wherever_it_is() {
    let n = (1 << 20) + 129;
    let sum = Sum::new(n as u64);
    assert!(sum.check(LONGEST, &[sum_of(&sum.x)]).passed());
    // At the ends of the whole, of a vector, of a chain and of a task, and behind the last vector.
    for lost in [0, 15, 127, 128, (1 << 16) - 1, 1 << 16, n - 129, n - 1] {
        // A term that is small may be lost: the nearest one that is not.
        let lost = (0..n)
            .map(|i| (lost + i) % n)
            .find(|&i| sum.x[i].abs() > 0.05);
        let mut x = sum.x.clone();
        x[lost.unwrap()] = 0.0;
        let wrong = sum.check(LONGEST, &[sum_of(&x)]);
        assert!(!wrong.passed(), "without {lost:?}");
    }
}

#[test]
fn a_sum_whose_terms_cancel_is_judged_by_its_condition() {
    let sum = Sum::edge_cases().unwrap();
    let reference = sum.check(LONGEST, &[0.75]);
    assert!(reference.error < 1e-15, "{reference:?}");
    // Terms are up to 2^20, so a plain sum may be off by more than its value, and is.
    let in_chains = sum_of(&sum.x);
    assert!((in_chains - 0.75).abs() > 0.01, "{in_chains}");
    assert!(sum.check(LONGEST, &[in_chains]).passed());
    assert!(!sum.check(1, &[100.0 * in_chains + 1e6]).passed());
    assert!(!sum.check(LONGEST, &[f32::NAN]).passed());
}
