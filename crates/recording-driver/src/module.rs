//! Modules and the functions in them.

use std::ffi::c_char;

use crate::call::{DRIVER, exported, text};
use crate::kernels;
use crate::objects::{Function, Module};
use crate::state::{known, removed};

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED: i32 = 8;

exported! { DRIVER:
    fn cuModuleLoadData(state, image: *const c_char) -> u64 {
        let (device, image) = (state.current()?, text(image)?);
        let of_module = kernels::of_module(&image);
        let (source, kernels) = of_module.map_err(|why| fault!(INVALID_IMAGE, "{why}"))?;
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name).collect();
        log!("load the kernels of {source}: {}", names.join(", "));
        let handle = state.made();
        state.modules.insert(handle, Module { device, kernels });
        Ok(handle)
    }

    fn cuModuleUnload(state, module: u64) {
        removed(&mut state.modules, module, "module")?;
        state.functions.retain(|_, of| of.module != module);
        Ok(())
    }

    // The same handle for the same kernel, whose attributes persist.
    fn cuModuleGetFunction(state, module: u64, name: *const c_char) -> u64 {
        let name = text(name)?;
        let Module { device, kernels } = known(&mut state.modules, module, "module")?;
        let Some(kernel) = kernels.iter().find(|kernel| kernel.name == name).cloned() else {
            return Err(fault!(NOT_FOUND, "the module has no kernel {name}"));
        };
        let device = *device;
        let mut functions = state.functions.iter();
        let found = functions.find(|(_, f)| f.module == module && f.kernel.name == name);
        if let Some((&handle, _)) = found {
            return Ok(handle);
        }
        let function = Function {
            module,
            device,
            kernel,
            dynamic_shared: state.devices[device].description.shared_per_block,
        };
        let handle = state.made();
        state.functions.insert(handle, function);
        Ok(handle)
    }

    fn cuFuncSetAttribute(state, function: u64, attribute: i32, value: i32) {
        let function = known(&mut state.functions, function, "function")?;
        let on = state.devices[function.device].description;
        let name = &function.kernel.name;
        if attribute != MAX_DYNAMIC_SHARED {
            log!("set attribute {attribute} of {name} to {value}");
            return Ok(());
        }
        if !(0..=on.shared_per_block_optin).contains(&value) {
            return Err(fault!(
                INVALID_VALUE,
                "{name} may not have {value} B of dynamic shared memory"
            ));
        }
        log!("let {name} have {value} B of dynamic shared memory");
        function.dynamic_shared = value;
        Ok(())
    }
}
