//! Modules, functions and launches.

use std::ffi::c_char;

use super::DRIVER;
use crate::call::{exported, make, text};
use crate::launch::Shape;

exported! { DRIVER:
    fn cuModuleLoadData(to: *mut u64, image: *const c_char) = |state| {
        make(to, state.load_module(&text(image)?)?)
    };

    fn cuModuleUnload(module: u64) = |state| state.unload_module(module);

    fn cuModuleGetFunction(to: *mut u64, module: u64, name: *const c_char) = |state| make(to, state.function(module, &text(name)?)?);

    fn cuFuncSetAttribute(function: u64, attribute: i32, value: i32) = |state| {
        state.set_function_attribute(function, attribute, value)
    };

    fn cuLaunchKernel(
        function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: u64, arguments: *const *const u8, _extra: u64,
    ) = |state| {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
        };
        // SAFETY: the caller promises the arguments that the kernel declares.
        unsafe { state.launch(function, shape, stream, arguments) }
    };
}
