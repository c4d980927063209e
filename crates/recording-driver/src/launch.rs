//! Launching a kernel: the device's limits, and the arguments as text.

use crate::fault::{Fault, code};
use crate::image::{Kernel, Parameter};
use crate::log;
use crate::memory::{Memory, Region};
use crate::objects::{KernelEffect, Work};
use crate::state::{Outcome, State, known};

/// Threads of a block at most, in all and in z.
const THREADS: u64 = 1024;
const THREADS_Z: u32 = 64;
/// Blocks of a grid at most in y and z.
const BLOCKS_YZ: u32 = 65_535;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
}

/// An argument: its first eight bytes, its text, and the memory at this address, if it is one.
struct Argument {
    value: u64,
    text: String,
    place: Option<Region>,
}

impl State {
    /// Enqueues a kernel with the arguments that lie at `arguments`.
    ///
    /// # Safety
    /// There is an argument for each parameter, readable for the parameter's size.
    pub(crate) unsafe fn launch(
        &mut self,
        handle: u64,
        shape: Shape,
        stream: u64,
        arguments: *const *const u8,
    ) -> Outcome {
        let stream = self.usable_stream(stream)?;
        let function = known(&mut self.functions, handle, "function")?;
        let dynamic = function.dynamic_shared;
        let kernel = &function.kernel;
        check(kernel, shape, dynamic)?;
        if arguments.is_null() && !kernel.parameters.is_empty() {
            let why = format!("{} has parameters, and no arguments are given", kernel.name);
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        let mut given = Vec::with_capacity(kernel.parameters.len());
        for (at, parameter) in kernel.parameters.iter().enumerate() {
            // SAFETY: the caller's promise.
            let argument = unsafe { argument(&self.memory, parameter, *arguments.add(at)) };
            given.push(argument.map_err(|fault| Fault {
                why: format!("argument {} of {}: {}", at + 1, kernel.name, fault.why),
                ..fault
            })?);
        }
        let values: Vec<u64> = given.iter().map(|argument| argument.value).collect();
        let mut places: Vec<_> = given
            .iter()
            .map(|argument| argument.place.clone())
            .collect();
        if kernel.name == "crossover_gate"
            && let Some(&words) = values.first()
        {
            // PTX does not mark this number as an address.
            places[0] = Some(self.memory.check(words, 8)?);
        }
        let effect = KernelEffect::of(&kernel.name, &values, &places);
        let text = match log::enabled() {
            true => described(&kernel.name, shape),
            false => String::new(),
        };
        self.clock.host += self.description.launch_ns;
        let addresses = given.iter().filter(|argument| argument.place.is_some());
        let work = Work::Kernel {
            function: handle,
            effect,
            used: addresses.map(|argument| argument.value).collect(),
        };
        self.enqueue(stream, work, |on| {
            let texts: Vec<&str> = given
                .iter()
                .map(|argument| argument.text.as_str())
                .collect();
            format!("{text} on {on} ({})", texts.join(", "))
        })
    }
}

fn described(name: &str, shape: Shape) -> String {
    let [gx, gy, gz] = shape.grid;
    let [bx, by, bz] = shape.block;
    let shared = shape.shared;
    format!("launch {name} grid ({gx},{gy},{gz}) block ({bx},{by},{bz}) shared {shared}")
}

/// Checks the device's limits.
fn check(kernel: &Kernel, shape: Shape, dynamic: i32) -> Outcome {
    let Shape {
        grid,
        block,
        shared,
        ..
    } = shape;
    let threads: u64 = block.iter().map(|&threads| u64::from(threads)).product();
    let is_block = (1..=THREADS).contains(&threads) && block[2] <= THREADS_Z;
    let is_grid = !grid.contains(&0) && grid[1..].iter().all(|&blocks| blocks <= BLOCKS_YZ);
    let most = kernel.threads;
    let (code, why) = if !is_block || !is_grid {
        let why = format!("no grid has {grid:?} blocks, or no block {block:?} threads");
        (code::INVALID_VALUE, why)
    } else if threads > u64::from(most) {
        let why = format!("a block of {threads} threads, compiled for {most}");
        (code::LAUNCH_OUT_OF_RESOURCES, why)
    } else if i64::from(shared) > i64::from(dynamic) {
        let why = format!("{shared} B of dynamic shared memory, and it may have {dynamic} B");
        (code::INVALID_VALUE, why)
    } else {
        return Ok(());
    };
    Err(Fault::new(code, format!("{}: {why}", kernel.name)))
}

/// # Safety
/// `at` is readable for the parameter's size.
unsafe fn argument(memory: &Memory, parameter: &Parameter, at: *const u8) -> Outcome<Argument> {
    let mut first = [0; 8];
    let read = parameter.size.min(8);
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(at, first.as_mut_ptr(), read) };
    let value = u64::from_le_bytes(first);
    let is_pointer = parameter.type_name.ends_with('*');
    let place = match is_pointer && value != 0 {
        true => Some(memory.check(value, 1)?),
        false => None,
    };
    let text = match log::enabled() {
        false => String::new(),
        true if is_pointer => memory.name_of(value),
        true => number(memory, parameter, value),
    };
    Ok(Argument { value, text, place })
}

fn number(memory: &Memory, parameter: &Parameter, value: u64) -> String {
    match (parameter.type_name.as_str(), parameter.size) {
        ("float", 4) => f32::from_bits(value as u32).to_string(),
        ("double", 8) => f64::from_bits(value).to_string(),
        ("int" | "long long", size) => {
            let unused = 64 - 8 * size as u32;
            ((value << unused) as i64 >> unused).to_string()
        }
        // PTX gives only the size of an address; numbers are never so large.
        (_, 8) if memory.check(value, 1).is_ok() => memory.name_of(value),
        (_, 1 | 2 | 4 | 8) => value.to_string(),
        (_, size) => format!("{size} B"),
    }
}
