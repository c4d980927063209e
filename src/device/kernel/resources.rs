//! What the compiler gave a kernel: registers, shared memory, spills.

/// What a kernel needs of a multiprocessor, as the assembler reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Name of the kernel.
    pub kernel: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes that spilling registers writes to memory, including functions that the kernel calls.
    pub spill_stores: u32,
    /// Bytes of spilled registers that are read back, including functions that the kernel calls.
    pub spill_loads: u32,
    /// Bytes of stack per thread.
    pub stack: u32,
    /// Bytes of static shared memory per block.
    pub shared: u32,
}

/// Reads the log that `--ptxas-options=-v` leaves. Each kernel begins with a line
/// `Compiling entry function '<name>' for 'sm_90'`; what follows, up to the next, belongs to
/// it and to the functions it calls without inlining.
pub(super) fn parse(log: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernels.push(Resources {
                kernel: rest.split('\'').next().unwrap_or_default().to_owned(),
                ..Resources::default()
            });
            continue;
        }
        let Some(kernel) = kernels.last_mut() else {
            continue;
        };
        // Both lines are lists such as `Used 10 registers, used 1 barriers, 1024 bytes smem`.
        for item in line.split(',') {
            let amount = |unit: &str| {
                let before = item.trim().strip_suffix(unit)?;
                before.split_whitespace().next_back()?.parse::<u32>().ok()
            };
            if let Some(n) = amount(" registers") {
                kernel.registers = n;
            } else if let Some(n) = amount(" bytes spill stores") {
                kernel.spill_stores += n;
            } else if let Some(n) = amount(" bytes spill loads") {
                kernel.spill_loads += n;
            } else if let Some(n) = amount(" bytes stack frame") {
                kernel.stack = kernel.stack.max(n);
            } else if let Some(n) = amount(" bytes cumulative stack size") {
                kernel.stack = n;
            } else if let Some(n) = amount(" bytes smem") {
                kernel.shared = n;
            }
        }
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NVRTC 13.0 on four kernels made to differ, for sm_90; `calls` calls a function that
    /// is not inlined, whose spills were raised by hand from 0 to 8 and 4.
    const LOG: &str = "\
ptxas info    : 24 bytes gmem
ptxas info    : Compiling entry function 'spills' for 'sm_90'
ptxas info    : Function properties for spills
ptxas         .     264 bytes stack frame, 312 bytes spill stores, 316 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 264 bytes cumulative stack size
ptxas info    : Compile time = 16.891 ms
ptxas info    : Compiling entry function 'shared_mem' for 'sm_90'
ptxas info    : Function properties for shared_mem
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compile time = 1.788 ms
ptxas info    : Compiling entry function 'calls' for 'sm_90'
ptxas info    : Function properties for calls
ptxas         .     32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 0 barriers, 32 bytes cumulative stack size
ptxas info    : Compile time = 7.043 ms
ptxas info    : Function properties for _Z6helperf
ptxas         .     0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'plain' for 'sm_90'
ptxas info    : Function properties for plain
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 22 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compile time = 6.761 ms
";

    #[test]
    fn a_log_gives_each_kernel_its_own() {
        let kernel = |kernel: &str, numbers: [u32; 5]| Resources {
            kernel: kernel.to_owned(),
            registers: numbers[0],
            spill_stores: numbers[1],
            spill_loads: numbers[2],
            stack: numbers[3],
            shared: numbers[4],
        };
        assert_eq!(
            parse(LOG),
            [
                kernel("spills", [32, 312, 316, 264, 0]),
                kernel("shared_mem", [10, 0, 0, 0, 1024]),
                kernel("calls", [18, 8, 4, 32, 0]),
                kernel("plain", [22, 0, 0, 0, 0]),
            ]
        );
    }

    #[test]
    fn a_log_without_kernels_gives_none() {
        assert!(parse("").is_empty());
        assert!(parse("ptxas info    : Used 10 registers").is_empty());
    }
}
