//! NUMA: at which node the GPU's link hangs, and on which nodes this process may run and allocate.
//! A copy whose memory lies at another node crosses the link between the sockets first.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::affinity::OnCores;
use crossover_results::model::environment::Numa;

/// The nodes of a machine that have cores.
pub struct Nodes {
    /// The cores of each node.
    cores: BTreeMap<u32, Vec<usize>>,
    /// The node that the GPU's link hangs at, where it is one of these.
    gpu: Option<u32>,
}

/// Where a process shall run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At the node that the GPU's link hangs at.
    Gpu,
    /// At this node.
    Node(u32),
}

/// Why a process cannot run where it shall.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// The system names no nodes.
    #[error("the NUMA nodes cannot be read from /sys/devices/system/node: unset CROSSOVER_NUMA")]
    Unknown,
    /// There is no such node, or it has no cores.
    #[error("CROSSOVER_NUMA={node}: the NUMA nodes with cores are {nodes}")]
    NoSuchNode {
        /// The node that was asked for.
        node: u32,
        /// Those that there are.
        nodes: String,
    },
    /// It is not known where the GPU is.
    #[error(
        "CROSSOVER_NUMA=gpu: the system does not say at which NUMA node the GPU is; \
         `nvidia-smi topo -m` may, and CROSSOVER_NUMA takes the node's number"
    )]
    GpuUnknown,
    /// This process may not use the cores of the node.
    #[error(
        "CROSSOVER_NUMA: this process may not use any core of NUMA node {node} \
         (`taskset`, a container's cpuset): {source}"
    )]
    NotAllowed {
        /// The node.
        node: u32,
        /// What the system says.
        source: nix::Error,
    },
}

impl Nodes {
    /// The nodes of this machine, with the device at this address of the PCI bus
    /// (`0000:65:00.0`); `None` where the system does not name them.
    pub fn of_this_machine(pci_bus_id: Option<&str>) -> Option<Self> {
        Self::below(Path::new("/sys"), pci_bus_id)
    }

    /// As [`of_this_machine`](Self::of_this_machine), from what is mounted at `sys`.
    fn below(sys: &Path, pci_bus_id: Option<&str>) -> Option<Self> {
        let nodes = fs::read_dir(sys.join("devices/system/node")).ok()?;
        let cores: BTreeMap<u32, Vec<usize>> = nodes
            .flatten()
            .filter_map(|entry| {
                let node = entry.file_name().to_str()?.strip_prefix("node")?.parse();
                let list = fs::read_to_string(entry.path().join("cpulist")).ok()?;
                Some((node.ok()?, numbers(&list)?))
            })
            // A node without cores is memory alone, such as that of a GPU beside a Grace CPU.
            .filter(|(_, cores)| !cores.is_empty())
            .collect();
        let gpu = pci_bus_id.and_then(|id| {
            let device = sys.join("bus/pci/devices").join(id.to_lowercase());
            let node = fs::read_to_string(device.join("numa_node")).ok()?;
            // -1 where the firmware does not say it.
            let node = node.trim().parse().ok()?;
            cores.contains_key(&node).then_some(node)
        });
        (!cores.is_empty()).then_some(Self { cores, gpu })
    }

    /// What results keep, given `/proc/self/status`.
    pub(crate) fn described(&self, status: &str) -> Numa {
        let field = |name: &str| {
            let mut lines = status.lines();
            numbers(lines.find_map(|line| line.strip_prefix(name))?)
        };
        let allowed = field("Cpus_allowed_list:");
        let memory = field("Mems_allowed_list:").unwrap_or_default();
        let is_used = |cores: &[usize]| {
            let allowed = allowed.as_ref();
            allowed.is_none_or(|allowed| cores.iter().any(|core| allowed.contains(core)))
        };
        let used = self.cores.iter().filter(|(_, cores)| is_used(cores));
        Numa {
            nodes: self.cores.keys().copied().collect(),
            gpu: self.gpu,
            threads: used.map(|(node, _)| *node).collect(),
            memory: memory.into_iter().map(|node| node as u32).collect(),
        }
    }

    /// The cores of the node that the GPU hangs at, on a machine that has others too.
    pub fn cores_of_gpu(&self) -> Option<&[usize]> {
        let cores = self.cores.get(&self.gpu?)?;
        (self.cores.len() > 1).then_some(cores)
    }

    /// Keeps this thread, and those that it starts from now on, at a node. The system places what
    /// they write first there too, as long as the node has room. The remark says where it changes
    /// nothing.
    ///
    /// # Errors
    /// What keeps it from doing so.
    pub fn place(&self, placement: Placement) -> Result<Option<String>, Misplaced> {
        if let (1, Placement::Gpu) = (self.cores.len(), placement) {
            return Ok(Some(
                "this machine has one NUMA node, so CROSSOVER_NUMA changes nothing".to_owned(),
            ));
        }
        let node = match placement {
            Placement::Gpu => self.gpu.ok_or(Misplaced::GpuUnknown)?,
            Placement::Node(node) => node,
        };
        let cores = self.cores.get(&node).ok_or_else(|| Misplaced::NoSuchNode {
            node,
            nodes: self
                .cores
                .keys()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        match OnCores::try_new(cores) {
            // As long as the process lives.
            Ok(kept) => std::mem::forget(kept),
            Err(source) => return Err(Misplaced::NotAllowed { node, source }),
        }
        Ok(None)
    }
}

/// The numbers of a list of the kernel, such as `0-3,8`.
pub(crate) fn numbers(list: &str) -> Option<Vec<usize>> {
    /// More than any kernel numbers.
    const MOST: usize = 1 << 16;
    let mut numbers = Vec::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= MOST {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;

    use super::*;

    const GPU: &str = "0000:65:00.0";

    /// A machine whose nodes have these cores, with the GPU where `gpu` says.
    fn machine(nodes: &[&str], gpu: Option<&str>) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path().to_owned();
        let write = |path: String, text: &str| {
            let path = sys.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        write("devices/system/node/online".to_owned(), "0-1");
        for (node, cores) in nodes.iter().enumerate() {
            write(format!("devices/system/node/node{node}/cpulist"), cores);
        }
        if let Some(node) = gpu {
            write(format!("bus/pci/devices/{GPU}/numa_node"), node);
        }
        (dir, sys)
    }

    fn described(nodes: &[&str], gpu: Option<&str>, cores: &str) -> Numa {
        let (_dir, sys) = machine(nodes, gpu);
        let status = format!("Name:\tx\nCpus_allowed_list:\t{cores}\nMems_allowed_list:\t0\n");
        Nodes::below(&sys, Some("0000:65:00.0"))
            .unwrap()
            .described(&status)
    }

    #[test]
    fn two_sockets() {
        let nodes = ["0-7,16-23", "8-15,24-31"];
        let numa = described(&nodes, Some("1"), "0-31");
        assert_eq!((&numa.nodes[..], numa.gpu), (&[0, 1][..], Some(1)));
        assert_eq!(
            (&numa.threads[..], &numa.memory[..]),
            (&[0, 1][..], &[0][..])
        );
        assert_eq!(described(&nodes, Some("1"), "3,17").threads, [0]);
        let (_dir, sys) = machine(&nodes, Some("1"));
        let nodes = Nodes::below(&sys, Some("0000:65:00.0")).unwrap();
        assert_eq!(nodes.cores_of_gpu().unwrap()[..2], [8, 9]);
    }

    /// A socket in four parts, of which one is the GPU's, and a node that is the memory of a GPU.
    #[test]
    fn clusters_and_memory_alone() {
        let numa = described(&["0-3", "4-7", "8-11", "12-15", ""], Some("2"), "0-15");
        assert_eq!((&numa.nodes[..], numa.gpu), (&[0, 1, 2, 3][..], Some(2)));
        assert_eq!(described(&["0-3", ""], Some("1"), "0-3").gpu, None);
    }

    #[test]
    fn what_is_not_said_is_not_known() {
        for gpu in [None, Some("-1"), Some("7"), Some("x")] {
            assert_eq!(described(&["0", "1"], gpu, "0-1").gpu, None, "{gpu:?}");
        }
        let empty = tempfile::tempdir().unwrap();
        assert!(Nodes::below(empty.path(), None).is_none());
        let (_dir, sys) = machine(&["3-1"], None);
        assert!(Nodes::below(&sys, None).is_none(), "no list of cores");
    }

    #[test]
    fn a_process_is_kept_where_it_can_be() {
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let first = (0..CpuSet::count()).find(|&core| usable.is_set(core).unwrap());
        let (_dir, sys) = machine(&[&first.unwrap().to_string(), "60000"], Some("0"));
        let nodes = Nodes::below(&sys, Some(GPU)).unwrap();
        let placed = std::thread::spawn(move || {
            let missing = nodes.place(Placement::Node(5)).unwrap_err().to_string();
            assert!(missing.contains("are 0, 1"), "{missing}");
            assert_eq!(nodes.place(Placement::Gpu), Ok(None));
            let kept = sched_getaffinity(Pid::from_raw(0)).unwrap();
            let other = nodes.place(Placement::Node(1)).unwrap_err().to_string();
            assert!(other.contains("node 1"), "{other}");
            (0..CpuSet::count())
                .filter(|&core| kept.is_set(core).unwrap())
                .count()
        });
        assert_eq!(placed.join().unwrap(), 1);
        let (_dir, sys) = machine(&["0", "1"], None);
        let nodes = Nodes::below(&sys, Some(GPU)).unwrap();
        assert_eq!(nodes.place(Placement::Gpu), Err(Misplaced::GpuUnknown));
        let (_dir, sys) = machine(&["0-1"], None);
        let one = Nodes::below(&sys, None).unwrap();
        assert!(
            one.place(Placement::Gpu)
                .unwrap()
                .unwrap()
                .contains("one NUMA node")
        );
        assert_eq!(one.cores_of_gpu(), None);
    }

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(numbers("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(numbers("\n"), Some(vec![]));
        for text in ["3-1", "a", "0-18446744073709551615", "-1"] {
            assert_eq!(numbers(text), None, "{text}");
        }
    }
}
