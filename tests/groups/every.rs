//! Every implementation of every group, at small and odd sizes: an output that was not written
//! fails the check, and the computed one passes. Every listed group is tested; there is no table
//! here.

use std::cell::OnceCell;
use std::rc::Rc;

use crossover_suite::device::Gpu;
use libtest_mimic::{Failed, Trial};

use crate::groups;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (at, group) in groups().iter().enumerate() {
        let contradictions = group.contradictions();
        let name = format!("{}/does_not_contradict_itself", group.name());
        trials.push(Trial::test(name, move || match contradictions.first() {
            None => Ok(()),
            Some(text) => Err(text.into()),
        }));
        let doubts = format!("{}/has_other_inputs_with_another_seed", group.name());
        trials.push(Trial::test(doubts, move || {
            match groups()[at].doubtful_inputs() {
                None => Ok(()),
                Some(text) => Err(text.into()),
            }
        }));
        let (gpu, cpu): (Vec<_>, Vec<_>) =
            (group.functions().into_iter()).partition(|function| function.starts_with("gpu/"));
        // These share inputs and references.
        let name = format!("{}/cpu", group.name());
        trials.push(Trial::test(name, move || verify(at, &cpu, None)));
        for function in gpu {
            let name = format!("{}/{function}", group.name());
            let trial = Trial::test(name, move || verify(at, &[function], Some(device()?)));
            trials.push(trial.with_ignored_flag(true).with_kind("CUDA device"));
        }
    }
    trials
}

/// Opened once; all tests of a GPU run on one thread.
fn device() -> Result<Rc<Gpu>, Failed> {
    thread_local! {
        static GPU: OnceCell<Rc<Gpu>> = const { OnceCell::new() };
    }
    GPU.with(|cell| {
        if cell.get().is_none() {
            let _ = cell.set(Rc::new(Gpu::named()?));
        }
        Ok(cell.get().expect("set right above").clone())
    })
}

/// Names all that are wrong.
fn verify(group: usize, functions: &[String], gpu: Option<Rc<Gpu>>) -> Result<(), Failed> {
    let (group, mut wrong) = (&groups()[group], String::new());
    for function in functions {
        match group.verify(function, gpu.as_ref()) {
            Ok(absent) => absent
                .iter()
                .for_each(|reason| println!("left out: {reason}")),
            Err(error) => wrong += &format!("{error}\n"),
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.into())
    }
}
