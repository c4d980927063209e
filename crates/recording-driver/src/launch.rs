//! Launching a kernel: the device's limits, and the arguments as text.

use crate::fault::{Fault, code};
use crate::kernels::{Kernel, bytes};
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
        let device = self.streams[&stream].device;
        let function = known(&mut self.functions, handle, "function")?;
        let kernel = &function.kernel;
        let name = kernel.name;
        if function.device != device {
            let of = function.device;
            return Err(fault!(
                INVALID_HANDLE,
                "{name} was loaded on device {of}, and the stream is of device {device}"
            ));
        }
        check(kernel, shape, function.dynamic_shared)?;
        if arguments.is_null() && !kernel.parameters.is_empty() {
            return Err(fault!(
                INVALID_VALUE,
                "{name} has parameters, and no arguments are given"
            ));
        }
        let mut given = Vec::with_capacity(kernel.parameters.len());
        for (at, parameter) in kernel.parameters.iter().enumerate() {
            // SAFETY: the caller's promise.
            let argument = unsafe { argument(&self.memory, parameter, *arguments.add(at)) };
            given.push(argument.map_err(|fault| Fault {
                why: format!("argument {} of {name}: {}", at + 1, fault.why),
                ..fault
            })?);
        }
        if name == "crossover_gate" {
            // PTX does not mark this number as an address.
            given[0].place = Some(self.memory.check(given[0].value, 8)?);
        }
        let addresses = given.iter().filter(|argument| argument.place.is_some());
        let used: Vec<u64> = addresses.map(|argument| argument.value).collect();
        for &address in &used {
            self.check_access(device, address)?;
        }
        let values: Vec<u64> = given.iter().map(|argument| argument.value).collect();
        let place = |at: usize| given.get(at).and_then(|argument| argument.place.clone());
        self.clock.host += self.devices[device].description.launch_ns;
        let work = Work::Kernel {
            name,
            effect: KernelEffect::of(name, &values, place),
            used,
        };
        self.enqueue(stream, work, |on| {
            let texts: Vec<&str> = given.iter().map(|a| a.text.as_str()).collect();
            let [gx, gy, gz] = shape.grid;
            let [bx, by, bz] = shape.block;
            format!(
                "launch {name} grid ({gx},{gy},{gz}) block ({bx},{by},{bz}) shared {} on {on} ({})",
                shape.shared,
                texts.join(", ")
            )
        })
    }
}

/// Checks the device's limits.
fn check(kernel: &Kernel, shape: Shape, dynamic: i32) -> Outcome {
    let (grid, block, shared) = (shape.grid, shape.block, shape.shared);
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
unsafe fn argument(memory: &Memory, parameter: &str, at: *const u8) -> Outcome<Argument> {
    let mut first = [0; 8];
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(at, first.as_mut_ptr(), bytes(parameter)) };
    let value = u64::from_le_bytes(first);
    let is_pointer = parameter == "ptr";
    let place = match is_pointer && value != 0 {
        true => Some(memory.check(value, 1)?),
        false => None,
    };
    let text = match log::enabled() {
        true => number(memory, parameter, value),
        false => String::new(),
    };
    Ok(Argument { value, text, place })
}

fn number(memory: &Memory, parameter: &str, value: u64) -> String {
    match parameter {
        "ptr" => memory.name_of(value),
        "f32" => f32::from_bits(value as u32).to_string(),
        "f64" => f64::from_bits(value).to_string(),
        "i32" => (value as i32).to_string(),
        "i64" => (value as i64).to_string(),
        // PTX gives only the size of an address; numbers are never so large.
        "u64" if memory.check(value, 1).is_ok() => memory.name_of(value),
        _ => value.to_string(),
    }
}
