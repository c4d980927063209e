//! A decision allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use crossover_advice::{Advice, Question, Residency};

use crate::planted;

struct Counting;

thread_local! {
    // Each test has a thread of its own.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller promises a layout of at least one byte.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller promises memory of `alloc` with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_decision_allocates_nothing() {
    let advice = Advice::new(planted::thresholds()).unwrap();
    let plain = Question::new("product", 300);
    let questions = [
        plain,
        plain.data(Residency::Queued),
        plain.reuse(10).cold(),
        Question::new("product", (300usize, 200, 400)),
        Question::new("there is none", 300),
    ];
    let before = ALLOCATIONS.get();
    for question in &questions {
        black_box(advice.decide(black_box(question)));
    }
    assert_eq!(ALLOCATIONS.get(), before);
    // It does count.
    black_box(Vec::<u8>::with_capacity(black_box(1)));
    assert!(ALLOCATIONS.get() > before);
}
