//! Conditions of this machine that make measurements slower or less steady.

use crossover_results::model::environment::{Cpu, GpuInfo};

/// Possible disturbances of a measurement, besides the processor and the GPU themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conditions {
    /// Processes of others with a compute context on the GPU.
    pub(super) other_processes: u32,
    /// The executable was built with the profile `dev`, without full optimisation.
    pub(super) for_editing: bool,
    /// `CUDA_LAUNCH_BLOCKING` is set.
    pub(super) launch_blocking: bool,
    /// The process may only run at another NUMA node than the GPU's.
    pub(super) far_from_gpu: bool,
}

/// The disturbances of measurements here, each in a sentence with its remedy.
pub(super) fn find(cpu: &Cpu, gpu: Option<&GpuInfo>, conditions: Conditions) -> Vec<String> {
    let of_gpu = gpu.map(|gpu| of_gpu(gpu, conditions));
    let possible = of_cpu(cpu, conditions).into_iter();
    let possible = possible.chain(of_gpu.into_iter().flatten());
    let found = possible.filter(|(is_found, _)| *is_found);
    found.map(|(_, sentence)| sentence).collect()
}

/// Whether each possible disturbance of work on the CPU is there, and its sentence.
fn of_cpu(cpu: &Cpu, conditions: Conditions) -> [(bool, String); 3] {
    let allowed = cpu.allowed_cores.unwrap_or(cpu.logical_cores);
    let quota = cpu.quota_cores.unwrap_or(f64::INFINITY);
    let governor = cpu.governor.as_deref().unwrap_or("performance");
    [
        (
            conditions.for_editing,
            "this executable is not fully optimised, so its CPU times are too long: measure with `cargo bench`"
                .to_owned(),
        ),
        (
            quota < allowed as f64,
            format!(
                "a CPU quota of {quota:.1} cores on {allowed} processors stops all threads for part of each period: \
                 raise the container's CPU limit, or pin it to whole processors (cpuset)"
            ),
        ),
        (
            governor != "performance",
            format!(
                "the CPU's frequency governor is {governor}, so its clock depends on what ran before: `sudo cpupower \
                 frequency-set -g performance`"
            ),
        ),
    ]
}

/// Whether each possible disturbance of work on the GPU is there, and its sentence.
fn of_gpu(gpu: &GpuInfo, conditions: Conditions) -> [(bool, String); 6] {
    let contexts = conditions.other_processes;
    let limits = gpu.power_limit_w.zip(gpu.power_limit_default_w);
    let (limit, default) = limits.unwrap_or_default();
    let uuid = gpu.uuid.as_deref().unwrap_or("0");
    [
        (
            gpu.recorded,
            "recorded, not measured: a driver that executes nothing stands in for the GPU's, so every time on the \
             device is made up and no output was verified; take it off LD_LIBRARY_PATH"
                .to_owned(),
        ),
        (
            conditions.far_from_gpu,
            "this process may not run at the GPU's NUMA node, so copies cross the link between the sockets: start it \
             at that node (`numactl`, or a container's cpuset)"
                .to_owned(),
        ),
        (
            contexts > 0,
            format!(
                "other processes have a context on the GPU ({contexts}) and may run kernels in between: end them \
                 (`nvidia-smi` lists them), or choose another GPU with CROSSOVER_DEVICE"
            ),
        ),
        (
            gpu.mig == Some(true),
            "MIG mode is on: results are of a slice, which shares the GPU's clock and power with other slices; `sudo \
             nvidia-smi -mig 0` gives the whole GPU"
                .to_owned(),
        ),
        (
            default - limit > 0.5,
            format!(
                "the GPU's power limit is {limit:.0} W, below its default of {default:.0} W, so its clock falls \
                 earlier: `sudo nvidia-smi -i {uuid} -pl {default:.0}` restores it"
            ),
        ),
        (
            conditions.launch_blocking,
            "CUDA_LAUNCH_BLOCKING makes each launch wait for its kernel, so times include the launch: unset it"
                .to_owned(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> (Cpu, GpuInfo) {
        let cpu = Cpu {
            logical_cores: 64,
            usable_cores: 16,
            allowed_cores: Some(16),
            quota_cores: Some(16.0),
            governor: Some("performance".to_owned()),
            ..Cpu::default()
        };
        let gpu = GpuInfo {
            mig: Some(false),
            power_limit_w: Some(700.0),
            power_limit_default_w: Some(700.0),
            ..GpuInfo::default()
        };
        (cpu, gpu)
    }

    #[test]
    fn each_disturbance_is_named_once() {
        type Change = fn(&mut Cpu, &mut GpuInfo, &mut Conditions);
        let cases: [(&str, Change); 8] = [
            ("not fully optimised", |_, _, a| a.for_editing = true),
            ("CPU quota of 2.5 cores on 16", |c, _, _| {
                c.quota_cores = Some(2.5)
            }),
            ("governor is powersave", |c, _, _| {
                c.governor = Some("powersave".to_owned())
            }),
            ("context on the GPU (1)", |_, _, a| a.other_processes = 1),
            ("the GPU's NUMA node", |_, _, a| a.far_from_gpu = true),
            ("MIG mode is on", |_, g, _| g.mig = Some(true)),
            ("power limit is 400 W", |_, g, _| {
                g.power_limit_w = Some(400.0)
            }),
            ("CUDA_LAUNCH_BLOCKING", |_, _, a| a.launch_blocking = true),
        ];
        let none = |cpu: &Cpu, gpu: &GpuInfo| find(cpu, Some(gpu), Conditions::default());
        let (cpu, gpu) = quiet();
        assert_eq!(none(&cpu, &gpu), [""; 0]);
        assert_eq!(none(&Cpu::default(), &GpuInfo::default()), [""; 0]);
        for (text, change) in cases {
            let (mut cpu, mut gpu) = quiet();
            let mut conditions = Conditions::default();
            change(&mut cpu, &mut gpu, &mut conditions);
            let found = find(&cpu, Some(&gpu), conditions);
            assert!(
                found.len() == 1 && found[0].contains(text),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn without_a_gpu_only_the_processor_counts() {
        let conditions = Conditions {
            other_processes: 2,
            launch_blocking: true,
            far_from_gpu: true,
            for_editing: false,
        };
        assert_eq!(find(&quiet().0, None, conditions), [""; 0]);
    }
}
