//! What each GPU row asks of the driver, as a text: a part of `tests/golden/<group>.txt`.
//!
//! A section is a row at a size, with the choices that are handed over to it in place of a
//! calibration, and then its phases. Those rows are recorded whose headings are in a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::model::Devices::{Divided, Gathered};
use crossover_suite::model::{FurtherGpu, GpuLink};
use crossover_suite::suite::{AnyGroup, Planned, SizeSet};

use crate::stand_in::{leave_out_children, mark, phases, plan};
use crate::text::{asked, copied, kernels, sections, text};
use crate::{part, suite};

/// A row at a size, and what it asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// Its heading: the row, and a number where the row was there before with other choices.
    pub(crate) name: String,
    /// Such as `gpu/cublas/64`.
    pub(crate) row: String,
    /// The candidate of each choice. One that was read has those of the sections before it too.
    pub(crate) chosen: BTreeMap<String, String>,
    /// Their names and calls.
    pub(crate) phases: Vec<(String, Vec<String>)>,
}

impl Section {
    /// Such as `gpu/cublas` and 64.
    pub(crate) fn function_and_size(&self) -> (&str, u64) {
        let (function, size) = self.row.rsplit_once('/').expect("a size");
        (function, size.parse().expect("a number"))
    }
}

/// The first device, and the second one for rows that use several.
pub(crate) fn open() -> Rc<Gpu> {
    let second = FurtherGpu {
        ordinal: 1,
        name: String::new(),
        link: GpuLink::Nvlink,
        broken_with: Vec::new(),
    };
    let gpu = Gpu::open(0).expect("the recording driver opens");
    Rc::new(gpu.with_further(vec![second]))
}

/// Runs the rows of sections. As in a run, a row takes what those before it chose.
fn recorded(group: &AnyGroup, sections: &[Section]) -> Vec<Section> {
    let mut known = BTreeMap::new();
    let mut recorded: Vec<Section> = Vec::new();
    for section in sections {
        known.extend(section.chosen.clone());
        // Tells which row ends the process, if one does.
        println!("{}", section.row);
        let (function, size) = section.function_and_size();
        if function == "gpu/first-transformer" {
            // These calibrate, and calibrations have no place in the texts.
            leave_out_children();
        }
        // Names of its own, and a device: no row depends on what the one before has left.
        plan("");
        mark("before");
        let gpu = open();
        let mut begin = |phase: &'static str| mark(phase);
        let made = group.in_phases(function, size, &gpu, known.clone(), &mut begin);
        mark("after");
        drop(gpu);
        let made = made.unwrap_or_else(|error| panic!("{}: {error}", section.row));
        known.extend(made.clone());
        recorded.push(Section {
            chosen: made,
            phases: phases().split_off(1),
            ..section.clone()
        });
    }
    recorded
}

pub(crate) const PART: &str = "recorded calls";

/// Compares the text of a group with what its rows ask now, or writes it. Every line goes to a file, which
/// a failed test names beside that of the last test that passed.
pub(crate) fn group(at: usize) {
    let group = &suite::groups()[at];
    let (name, planned) = (group.name(), group.planned(SizeSet::Full));
    let wanted = sections(&part::read(name, PART));
    let mut missing = group.functions();
    missing.retain(|function| {
        let is_of = |section: &Section| section.function_and_size().0 == function;
        function.starts_with("gpu/") && !wanted.iter().any(is_of)
    });
    assert!(
        missing.is_empty(),
        "write `## <row>/<size>` into [{PART}] of {}, in the order of the rows, for {missing:?}",
        part::path(name).display()
    );
    let mut now = recorded(group, &wanted);
    now.iter().for_each(|row| check_cost(name, &planned, row));
    if part::writes() && now.iter().any(|row| !row.chosen.is_empty()) {
        // What was calibrated is handed over, so that the text has no calibration in it.
        now = recorded(group, &now);
    }
    let now_text = text(&now);
    let is_same = part::read(name, PART).trim_end() == now_text.trim_end();
    let phases = (now.iter()).flat_map(|row| row.phases.iter().map(|phase| (&row.name, phase)));
    let lines =
        phases.map(|(row, (name, lines))| format!("{row}, {name}:\n{}\n", lines.join("\n")));
    let file = format!("{name}{}.txt", if is_same { "" } else { ".now" });
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    fs::write(&file, lines.collect::<String>()).expect("cargo has made the folder");
    let hint = format!("; every line is in {}", file.display());
    part::hold(name, PART, &now_text, &hint);
}

/// A row declares what an iteration asks: bytes over the link, and kernels. Kernels on the host's memory copy
/// nothing, a choice may cut the work into more kernels, and each of several devices launches as many.
fn check_cost(group: &str, planned: &[Planned], section: &Section) {
    let id = format!("{group}/{}", section.row);
    let Some(planned) = planned.iter().find(|planned| planned.id == id) else {
        return;
    };
    let (cost, on_both) = (planned.cost, [Some(Divided), Some(Gathered)]);
    let devices = 1 + u32::from(on_both.contains(&planned.role.devices));
    let calls = asked(&section.phases);
    let copied = ["copy H2D ", "copy D2H "].map(|direction| copied(&calls, direction));
    let made = kernels(&calls) / devices;
    let is_copied = cost
        .link_bytes
        .is_none_or(|bytes| copied == [bytes.to_device, bytes.to_host]);
    let is_made = |n| n == made || n < made && !section.chosen.is_empty();
    let is_right = (is_copied || copied == [0.0; 2]) && cost.launches.is_none_or(is_made);
    assert!(
        is_right,
        "{id} copies {copied:?} B, launches {made} kernels, and declares {cost:?}"
    );
}
