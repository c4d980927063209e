//! Launching a kernel: the device's limits, and the arguments as text.

use crate::call::{DRIVER, exported};
use crate::effects::Effect;
use crate::fault::{self, Fault, code};
use crate::kernels::{Kernel, bytes};
use crate::log;
use crate::memory::Memory;
use crate::objects::Used;
use crate::state::{Outcome, known};

/// Threads of a block at most, in all and in z.
const THREADS: u64 = 1024;
const THREADS_Z: u32 = 64;
/// Blocks of a grid at most in y and z.
const BLOCKS_YZ: u32 = 65_535;

exported! { DRIVER:
    fn cuLaunchKernel(
        state, function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: u64, arguments: *const *const u8, _extra: u64,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let (device, current) = (state.stream_device(stream)?, state.current()?);
        if device != current {
            return Err(fault!(
                INVALID_HANDLE,
                "a kernel is launched on device {device} while the context of device {current} is current"
            ));
        }
        let function = known(&mut state.functions, function, "function")?;
        let kernel = &function.kernel;
        let name = kernel.name;
        if function.device != device {
            let owner = function.device;
            return Err(fault!(
                INVALID_HANDLE,
                "{name} was loaded on device {owner}, and the stream is of device {device}"
            ));
        }
        check(kernel, grid, block, (shared, function.dynamic_shared))?;
        fault::of_launch(name).map_or(Ok(()), Err)?;
        if arguments.is_null() && !kernel.parameters.is_empty() {
            return Err(fault!(
                INVALID_VALUE,
                "{name} has parameters, and no arguments are given"
            ));
        }
        let (mut values, mut texts, mut used) = (Vec::new(), Vec::new(), Vec::new());
        for (at, parameter) in kernel.parameters.iter().enumerate() {
            let mut value = [0; 8];
            // SAFETY: the caller promises an argument for each parameter that the kernel declares,
            // readable for the parameter's size.
            unsafe {
                let argument = *arguments.add(at);
                std::ptr::copy_nonoverlapping(argument, value.as_mut_ptr(), bytes(parameter));
            }
            let value = u64::from_le_bytes(value);
            // PTX does not mark the gate's address as one.
            let is_gate = name == "crossover_gate" && at == 0;
            if is_gate || *parameter == "ptr" && value != 0 {
                let bytes = if is_gate { 8 } else { 1 };
                let located = |why| format!("argument {} of {name}: {why}", at + 1);
                let checked = state.memory.check(value, bytes);
                checked.map_err(|fault| Fault::corrupts(located(fault.why)))?;
                used.push(Used { name, address: value, bytes });
            }
            if log::enabled() {
                texts.push(number(&state.memory, parameter, value));
            }
            values.push(value);
        }
        let effect = Effect::of(name, &values, &state.memory)?;
        state.launch(stream, effect, used, |on| {
            let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
            format!(
                "launch {name} grid ({gx},{gy},{gz}) block ({bx},{by},{bz}) shared {shared} on {on} ({})",
                texts.join(", ")
            )
        })
    }
}

/// Checks the device's limits; `shared` has the bytes that are asked for, and those that are allowed.
fn check(
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    (shared, allowed): (u32, i32),
) -> Outcome {
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
    } else if i64::from(shared) > i64::from(allowed) {
        let why = format!("{shared} B of dynamic shared memory, and it may have {allowed} B");
        (code::INVALID_VALUE, why)
    } else {
        return Ok(());
    };
    Err(Fault::new(code, format!("{}: {why}", kernel.name)))
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
