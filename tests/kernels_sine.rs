//! The kernels of nested sine and the chain, compiled without a GPU. Without NVRTC there is
//! nothing to test.

use crossover::device::kernel::{CompileError, Source};
use crossover::workload::graph_replay::CHAIN;
use crossover::workload::nested_sine::NESTED_SINE;

#[test]
fn kernels_compile_for_every_architecture_without_spills() {
    for source in [NESTED_SINE, CHAIN] {
        for arch in [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)] {
            let Some(log) = compile(&source, arch) else {
                eprintln!("skipped: NVRTC is not installed");
                return;
            };
            println!("{} sm_{}{}\n{log}", source.name, arch.0, arch.1);
            assert!(log.contains("spill"), "no resource usage in the log: {log}");
            for line in log.lines().filter(|line| line.contains("spill")) {
                assert!(
                    line.contains("0 bytes spill stores, 0 bytes spill loads"),
                    "{} sm_{}{}: {line}",
                    source.name,
                    arch.0,
                    arch.1
                );
            }
        }
    }
}

fn compile(source: &Source, arch: (u32, u32)) -> Option<String> {
    match source.compile(arch) {
        Ok(cubin) => {
            if let Some(folder) = std::env::var_os("CROSSOVER_CUBINS") {
                let file = format!("{}.sm_{}{}.cubin", source.name, arch.0, arch.1);
                std::fs::write(std::path::Path::new(&folder).join(file), cubin.image).unwrap();
            }
            Some(cubin.log)
        }
        Err(CompileError::Absent(_)) => None,
        Err(error) => panic!("{error}"),
    }
}
