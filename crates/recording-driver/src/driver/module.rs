//! Modules, functions, launches and occupancy.

use std::ffi::c_char;

use super::DRIVER;
use crate::call::{exported, make, text};
use crate::fault::Fault;
use crate::launch::Shape;
use crate::nvrtc;

/// `CUlaunchConfig`.
#[repr(C)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: u64,
    attributes: *const Attribute,
    count: u32,
}

/// `CUlaunchAttribute`.
#[repr(C)]
struct Attribute {
    id: u32,
    pad: u32,
    value: [u32; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE` and `_PROGRAMMATIC_STREAM_SERIALIZATION`.
const COOPERATIVE: u32 = 2;
const PROGRAMMATIC: u32 = 6;

exported! { DRIVER:
    fn cuModuleLoadData(to: *mut u64, image: *const c_char) = |state| {
        let compiled = nvrtc::source_of(state, image).map_or_else(|| text(image), Ok)?;
        make(state, to, |state| state.load_module(&compiled))
    };

    fn cuModuleUnload(module: u64) = |state| state.unload_module(module);

    fn cuModuleGetFunction(to: *mut u64, module: u64, name: *const c_char) = |state| make(state, to, |state| state.function(module, &text(name)?));

    fn cuFuncSetAttribute(function: u64, attribute: i32, value: i32) = |state| {
        state.set_function_attribute(function, attribute, value)
    };

    fn cuLaunchKernel(
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: u64,
        arguments: *const *const u8,
        _extra: u64,
    ) = |state| {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            programmatic: false,
            cooperative: false,
        };
        // SAFETY: the caller promises the arguments that the kernel declares.
        unsafe { state.launch(function, shape, stream, arguments) }
    };

    fn cuLaunchKernelEx(
        config: *const Config,
        function: u64,
        arguments: *const *const u8,
        _extra: u64,
    ) = |state| {
        // SAFETY: the caller promises that the configuration and its attributes are valid.
        let config = unsafe { &*config };
        let mut shape = Shape {
            grid: config.grid,
            block: config.block,
            shared: config.shared,
            programmatic: false,
            cooperative: false,
        };
        for at in 0..config.count as usize {
            // SAFETY: as above.
            let attribute = unsafe { &*config.attributes.add(at) };
            let value = &attribute.value;
            match attribute.id {
                COOPERATIVE => shape.cooperative = value[0] != 0,
                PROGRAMMATIC => shape.programmatic = value[0] != 0,
                other => return Err(Fault::unknown("the attribute of a launch", other)),
            }
        }
        // SAFETY: as above.
        unsafe { state.launch(function, shape, config.stream, arguments) }
    };
}
