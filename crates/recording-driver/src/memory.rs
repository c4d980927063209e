//! Allocations, and the meaning of addresses.
//!
//! Device memory has addresses that no host has, so that a host that reads it faults, as with a real
//! device; its content is elsewhere. Memory that the host may read has one address for both.

use std::collections::BTreeMap;

use crate::fault::{Fault, code};
use crate::log::Names;
use crate::objects::Used;

/// The first address of device memory: above all that a process of this architecture may map.
const DEVICE: u64 = 0xd_0000_0000_0000;
/// The driver aligns every allocation by this.
const ALIGNMENT: u64 = 512;
/// Bytes between two allocations, so that an access beyond the end of one is in none.
const GAP: u64 = 1 << 16;

/// The kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Pinned,
}

#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    pub(crate) device: usize,
    /// The pool that it is from.
    pub(crate) pool: Option<u64>,
    pub(crate) name: String,
    pub(crate) freed: bool,
    /// Address of the content on the host.
    content: usize,
}

/// A range that a copy, a set or a kernel may use.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// Address of the content on the host.
    pub(crate) content: usize,
    /// The allocation, unless it is ordinary memory of the host.
    pub(crate) base: Option<u64>,
    pub(crate) kind: Option<Kind>,
    pub(crate) name: String,
}

#[derive(Default)]
pub(crate) struct Memory {
    table: BTreeMap<u64, Allocation>,
    next: u64,
}

impl Memory {
    /// Allocates `bytes` bytes, whose content is undefined (here zero).
    pub(crate) fn allocate(
        &mut self,
        kind: Kind,
        bytes: u64,
        (device, pool): (usize, Option<u64>),
        names: &mut Names,
    ) -> Result<&Allocation, Fault> {
        let content = map(bytes)?;
        let mut base = content as u64;
        let noun = if kind == Kind::Device { "d" } else { "pinned" };
        if kind == Kind::Device {
            base = DEVICE + self.next;
            self.next += (bytes + GAP).next_multiple_of(ALIGNMENT);
        }
        let allocation = Allocation {
            base,
            bytes,
            kind,
            device,
            pool,
            name: names.next(noun),
            freed: false,
            content,
        };
        self.table.insert(base, allocation);
        Ok(&self.table[&base])
    }

    /// From now on, no call may use the allocation. Its content stays until [`Self::release`].
    pub(crate) fn free(&mut self, base: u64) {
        if let Some(allocation) = self.table.get_mut(&base) {
            allocation.freed = true;
        }
    }

    /// Releases the content, once no enqueued work uses it.
    pub(crate) fn release(&mut self, base: u64) {
        if let Some(allocation) = self.table.get_mut(&base) {
            unmap(allocation);
            allocation.content = 0;
        }
    }

    /// Frees and releases all memory of a device.
    pub(crate) fn release_all(&mut self, device: usize) {
        let of_device = self.live().filter(|a| a.device == device);
        for base in of_device.map(|a| a.base).collect::<Vec<_>>() {
            self.free(base);
            self.release(base);
        }
    }

    /// The allocation that starts at `address` and was not freed.
    pub(crate) fn starting_at(&self, address: u64) -> Result<&Allocation, Fault> {
        match self.table.get(&address) {
            Some(allocation) if !allocation.freed => Ok(allocation),
            _ => Err(fault!(
                INVALID_VALUE,
                "no allocation starts at {}",
                self.name_of(address)
            )),
        }
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &Allocation> {
        self.table.values().filter(|a| !a.freed)
    }

    /// The allocation that ends after `address` and starts at or before it, or the last before it.
    fn nearest(&self, address: u64) -> Option<&Allocation> {
        self.table.range(..=address).next_back().map(|(_, a)| a)
    }

    /// The allocation that has this address.
    pub(crate) fn holding(&self, address: u64) -> Option<&Allocation> {
        self.nearest(address)
            .filter(|a| address < a.base + a.bytes.max(1))
    }

    /// The name of the allocation that `address` is in, with the offset in it, such as `d3+0x100`;
    /// `host` for ordinary memory and `null` for no address.
    pub(crate) fn name_of(&self, address: u64) -> String {
        if address == 0 {
            return "null".to_owned();
        }
        // An address close behind device memory is told by its distance.
        let is_near = |a: &&Allocation| address < a.base + a.bytes + GAP / 2 && a.base >= DEVICE;
        let near = self.nearest(address).filter(is_near);
        match self.holding(address).or(near) {
            Some(a) => {
                let freed = if a.freed { " (freed)" } else { "" };
                match address - a.base {
                    0 => format!("{}{freed}", a.name),
                    offset => format!("{}+{offset:#x}{freed}", a.name),
                }
            }
            None if address >= DEVICE => "an address that no allocation has".to_owned(),
            None => "host".to_owned(),
        }
    }

    /// The memory that a kernel uses from `address` on.
    ///
    /// # Errors
    /// The mistake that the kernel would make, such as writing beyond the end of an allocation.
    pub(crate) fn check(&self, address: u64, bytes: u64) -> Result<Region, Fault> {
        let name = self.name_of(address);
        let Some(allocation) = self.holding(address) else {
            let why = match name.as_str() {
                "host" => "ordinary memory of the host is used on the device".to_owned(),
                _ => format!("{name} is used on the device"),
            };
            return Err(Fault::corrupts(why));
        };
        if allocation.freed {
            return Err(Fault::corrupts(format!(
                "{name} is used after it was freed"
            )));
        }
        let past = (address + bytes).saturating_sub(allocation.base + allocation.bytes);
        if past > 0 {
            let (held, of) = (allocation.bytes, &allocation.name);
            let why = format!("{bytes} B at {name} end {past} B past {of} of {held} B");
            return Err(Fault::corrupts(why));
        }
        Ok(Region {
            content: allocation.content + (address - allocation.base) as usize,
            base: Some(allocation.base),
            kind: Some(allocation.kind),
            name,
        })
    }

    /// The same for all memory that a kernel uses.
    pub(crate) fn check_used(&self, used: &[Used]) -> Result<(), Fault> {
        used.iter().try_for_each(|used| {
            let checked = self.check(used.address, used.bytes);
            let why = |fault: Fault| Fault::corrupts(format!("{}: {}", used.name, fault.why));
            checked.map(drop).map_err(why)
        })
    }

    /// Whether memory that was checked when work was enqueued still exists when the work runs. (A free
    /// that is later in its stream has only marked it.)
    ///
    /// # Errors
    /// The memory was released.
    pub(crate) fn check_there(&self, address: u64) -> Result<(), Fault> {
        match self.holding(address) {
            Some(allocation) if allocation.content != 0 => Ok(()),
            _ => {
                let name = self.name_of(address);
                Err(Fault::corrupts(format!("{name} was given back before")))
            }
        }
    }

    /// The memory of one side of a copy. The driver checks known memory, and refuses.
    pub(crate) fn side(&self, address: u64, bytes: u64, on_device: bool) -> Result<Region, Fault> {
        let known = self.holding(address).is_some();
        if !on_device && !known && address < DEVICE && address != 0 {
            return Ok(Region {
                content: address as usize,
                base: None,
                kind: None,
                name: "host".to_owned(),
            });
        }
        self.check(address, bytes).map_err(|fault| Fault {
            code: code::INVALID_VALUE,
            corrupts: false,
            ..fault
        })
    }
}

/// Pages of zeros, which take memory only once they are written.
fn map(bytes: u64) -> Result<usize, Fault> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let length = bytes.max(1) as usize;
    // SAFETY: a new mapping, at an address that the system chooses.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(fault!(
            OUT_OF_MEMORY,
            "this machine has no {bytes} B of addresses"
        ));
    }
    Ok(address as usize)
}

/// Gives pages back. The addresses of pinned memory stay taken, so that what still uses them is noticed.
fn unmap(allocation: &Allocation) {
    let (content, length) = (allocation.content, allocation.bytes.max(1) as usize);
    let content = content as *mut libc::c_void;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    match allocation.kind {
        _ if content.is_null() => {}
        // SAFETY: made by `map` with this length, and given back once.
        Kind::Device => drop(unsafe { libc::munmap(content, length) }),
        // SAFETY: as for memory of a device.
        Kind::Pinned => drop(unsafe { libc::mmap(content, length, libc::PROT_NONE, flags, -1, 0) }),
    }
}
