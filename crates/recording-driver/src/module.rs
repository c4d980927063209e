//! Modules and the functions in them.

use crate::fault::{Fault, code};
use crate::kernels;
use crate::objects::{Function, Module};
use crate::state::{Outcome, State, known, removed};

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED: i32 = 8;

impl State {
    pub(crate) fn load_module(&mut self, text: &str) -> Outcome<u64> {
        let device = self.current()?;
        let of_module = kernels::of_module(text);
        let (source, kernels) = of_module.map_err(|why| Fault::new(code::INVALID_IMAGE, why))?;
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name).collect();
        log!("load the kernels of {source}: {}", names.join(", "));
        let handle = self.made();
        self.modules.insert(handle, Module { device, kernels });
        Ok(handle)
    }

    pub(crate) fn unload_module(&mut self, handle: u64) -> Outcome {
        removed(&mut self.modules, handle, "module")?;
        self.functions.retain(|_, of| of.module != handle);
        Ok(())
    }

    /// The same handle for the same kernel, whose attributes persist.
    pub(crate) fn function(&mut self, module: u64, name: &str) -> Outcome<u64> {
        let Module { device, kernels } = known(&mut self.modules, module, "module")?;
        let Some(kernel) = kernels.iter().find(|kernel| kernel.name == name).cloned() else {
            return Err(fault!(NOT_FOUND, "the module has no kernel {name}"));
        };
        let device = *device;
        let mut functions = self.functions.iter();
        let found = functions.find(|(_, f)| f.module == module && f.kernel.name == name);
        if let Some((&handle, _)) = found {
            return Ok(handle);
        }
        let handle = self.made();
        let dynamic_shared = self.devices[device].description.shared_per_block;
        let function = Function {
            module,
            device,
            kernel,
            dynamic_shared,
        };
        self.functions.insert(handle, function);
        Ok(handle)
    }

    pub(crate) fn set_function_attribute(
        &mut self,
        handle: u64,
        attribute: i32,
        value: i32,
    ) -> Outcome {
        let function = known(&mut self.functions, handle, "function")?;
        let most = self.devices[function.device]
            .description
            .shared_per_block_optin;
        let name = &function.kernel.name;
        if attribute != MAX_DYNAMIC_SHARED {
            log!("set attribute {attribute} of {name} to {value}");
            return Ok(());
        }
        if value < 0 || value > most {
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
