//! Every implementation of every group, at small and odd sizes: an output that was not written
//! fails the check, and the computed one passes. Every listed group is tested; there is no table
//! here.

use std::cell::OnceCell;
use std::rc::Rc;

use crossover::device::Gpu;
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
        for function in group.functions() {
            let name = format!("{}/{function}", group.name());
            let on_gpu = function.starts_with("gpu/");
            let trial = Trial::test(name, move || verify(at, &function, on_gpu));
            trials.push(match on_gpu {
                true => trial.with_ignored_flag(true).with_kind("CUDA device"),
                false => trial,
            });
        }
    }
    trials
}

fn verify(group: usize, function: &str, on_gpu: bool) -> Result<(), Failed> {
    thread_local! {
        /// Opened once; all tests of a GPU run on one thread.
        static GPU: OnceCell<Rc<Gpu>> = const { OnceCell::new() };
    }
    let gpu = match on_gpu {
        true => Some(GPU.with(|cell| -> Result<Rc<Gpu>, Failed> {
            if cell.get().is_none() {
                let _ = cell.set(Rc::new(Gpu::named()?));
            }
            Ok(cell.get().expect("set right above").clone())
        })?),
        false => None,
    };
    let absent = groups()[group].verify(function, gpu.as_ref())?;
    for reason in absent {
        println!("left out: {reason}");
    }
    Ok(())
}
