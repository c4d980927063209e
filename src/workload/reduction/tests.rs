use super::problem::Order;
use super::*;
use crate::workload::prepare::Threads;
use crate::workload::routine::Workload;

/// Every order, with what it adds up.
fn sums(x: &[f32]) -> [(Order, f32); 2] {
    [
        (Order::Chains(519), cpu::in_tasks(&Threads::up_to(2), 3, x)),
        (Order::Compensated, cpu::neumaier(x)),
    ]
}

#[test]
fn a_lost_term_is_found_wherever_it_is() {
    let n = (1 << 20) + 129;
    let sum = Sum::new(n as u64);
    // At the ends of the whole, of a vector, of a chain and of a task, and behind the last vector.
    for lost in [
        0,
        15,
        127,
        128,
        (1 << 16) - 1,
        1 << 16,
        3 << 16,
        n - 129,
        n - 1,
    ] {
        // A term that is small may be lost: the nearest one that is not.
        let lost = (0..n)
            .map(|i| (lost + i) % n)
            .find(|&i| sum.x[i].abs() > 0.05);
        let mut x = sum.x.clone();
        x[lost.unwrap()] = 0.0;
        for ((order, right), (_, wrong)) in sums(&sum.x).into_iter().zip(sums(&x)) {
            assert!(sum.check(order, &[right]).passed(), "{order:?}");
            assert!(
                !sum.check(order, &[wrong]).passed(),
                "{order:?} without {lost:?}"
            );
        }
    }
}

#[test]
fn a_sum_whose_terms_cancel_is_judged_by_its_condition() {
    let sum = Sum::edge_cases().unwrap();
    let reference = sum.check(Order::Compensated, &[0.75]);
    assert!(reference.error < 1e-15, "{reference:?}");
    // Terms are up to 2^20, so a plain sum may be off by more than its value, and is.
    let [(chains, in_chains), (_, compensated)] = sums(&sum.x);
    assert!((in_chains - 0.75).abs() > 0.01, "{in_chains}");
    assert!(sum.check(chains, &[in_chains]).passed());
    assert!(!sum.check(Order::Compensated, &[in_chains]).passed());
    assert!(sum.check(Order::Compensated, &[compensated]).passed());
}

#[test]
fn what_is_no_number_never_passes() {
    for n in [1, 1000] {
        for order in [Order::Chains(512), Order::Compensated] {
            assert!(!Sum::new(n).check(order, &[f32::NAN]).passed());
        }
    }
}
