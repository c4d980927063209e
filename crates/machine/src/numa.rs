//! NUMA: the node of the GPU's link, and the nodes on which this process may run and allocate. A copy
//! of memory at another node first crosses the link between the sockets.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The nodes of a machine that have cores.
pub struct Nodes {
    /// The cores of each node.
    cores: BTreeMap<u32, Vec<usize>>,
    /// The node of the GPU's link, if it is one of these.
    gpu: Option<u32>,
}

impl Nodes {
    /// The nodes of this machine, with the device at this address of the PCI bus (`0000:65:00.0`);
    /// `None` if the system does not list them.
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
            // A node without cores is only memory, such as that of a GPU beside a Grace CPU.
            .filter(|(_, cores)| !cores.is_empty())
            .collect();
        let gpu = pci_bus_id.and_then(|id| {
            let device = sys.join("bus/pci/devices").join(id.to_lowercase());
            let node = fs::read_to_string(device.join("numa_node")).ok()?;
            // -1 if the firmware does not tell.
            let node = node.trim().parse().ok()?;
            cores.contains_key(&node).then_some(node)
        });
        (!cores.is_empty()).then_some(Self { cores, gpu })
    }

    /// The only node that has some of these cores, if the machine has others, and whether the GPU is at
    /// another node.
    pub(crate) fn kept_at(&self, allowed: &[usize]) -> Option<(u32, bool)> {
        let is_used = |cores: &[usize]| cores.iter().any(|core| allowed.contains(core));
        let mut used = self.cores.iter().filter(|(_, cores)| is_used(cores));
        let (&node, _) = used.next().filter(|_| self.cores.len() > 1)?;
        let is_far = self.gpu.is_some_and(|gpu| gpu != node);
        used.next().is_none().then_some((node, is_far))
    }

    /// The cores of the GPU's node, if the machine has others too.
    pub fn cores_of_gpu(&self) -> Option<&[usize]> {
        let cores = self.cores.get(&self.gpu?)?;
        (self.cores.len() > 1).then_some(cores)
    }
}

/// The numbers of a list of the kernel, such as `0-3,8`. It numbers no more than 65,536.
fn numbers(list: &str) -> Option<Vec<usize>> {
    let numbers_of = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(usize::from(first)..=usize::from(last))
    };
    let ranges = list.trim().split(',').filter(|range| !range.is_empty());
    let ranges: Option<Vec<_>> = ranges.map(numbers_of).collect();
    Some(ranges?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

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

    fn kept_at(nodes: &[&str], gpu: Option<&str>, cores: &str) -> Option<(u32, bool)> {
        let (_dir, sys) = machine(nodes, gpu);
        let allowed = numbers(cores).unwrap();
        Nodes::below(&sys, Some(GPU)).unwrap().kept_at(&allowed)
    }

    #[test]
    fn two_sockets() {
        let nodes = ["0-7,16-23", "8-15,24-31"];
        assert_eq!(kept_at(&nodes, Some("1"), "0-31"), None);
        assert_eq!(kept_at(&nodes, Some("1"), "3,17"), Some((0, true)));
        assert_eq!(kept_at(&nodes, Some("1"), "8-9"), Some((1, false)));
        let (_dir, sys) = machine(&nodes, Some("1"));
        let nodes = Nodes::below(&sys, Some(GPU)).unwrap();
        assert_eq!(nodes.cores_of_gpu().unwrap()[..2], [8, 9]);
    }

    /// A node without cores is the memory of a GPU.
    #[test]
    fn a_missing_fact_is_unknown() {
        for gpu in [None, Some("-1"), Some("7"), Some("x"), Some("2")] {
            assert_eq!(
                kept_at(&["0", "1", ""], gpu, "0"),
                Some((0, false)),
                "{gpu:?}"
            );
        }
        assert_eq!(kept_at(&["0-1"], Some("0"), "0"), None);
        let empty = tempfile::tempdir().unwrap();
        assert!(Nodes::below(empty.path(), None).is_none());
        // One node leaves no choice.
        let (_dir, sys) = machine(&["0-1"], Some("0"));
        assert_eq!(Nodes::below(&sys, Some(GPU)).unwrap().cores_of_gpu(), None);
        let (_dir, sys) = machine(&["3-1"], None);
        assert!(Nodes::below(&sys, None).is_none(), "no list of cores");
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
