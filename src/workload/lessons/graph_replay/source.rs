//! The kernels of a chain: that of a link, which takes its factor and term as arguments, and all
//! links in one, whose text is written at run time with the factors and terms in it. The second
//! is what a compiler of tensor expressions does with such a chain.

use std::fmt::Write;
use std::sync::LazyLock;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::kernel::Source;
use crate::workload::prepare::kernels;

/// Kernels of a chain.
pub const LINKS: usize = 32;

const SEED: u64 = 0x0063_6861_696e;

/// y = factor * y + term.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    pub(super) factor: f32,
    pub(super) term: f32,
}

/// Values in [-1, 1), the same in every run.
pub(super) struct Units(Xoshiro256PlusPlus);

impl Iterator for Units {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        Some((self.0.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0)
    }
}

/// The links of every chain, with factors of magnitude 0.75 to 1.25 and terms in [-1, 1), and
/// the values that are drawn after them.
pub(super) fn draw() -> ([Link; LINKS], Units) {
    let mut units = Units(Xoshiro256PlusPlus::seed_from_u64(SEED));
    let mut unit = || units.next().unwrap_or_default();
    let links = std::array::from_fn(|_| {
        let u = unit();
        Link {
            factor: u.signum() * (0.75 + 0.5 * u.abs()),
            term: unit(),
        }
    });
    (links, units)
}

/// The kernel of a link.
pub static CHAIN: Source = kernels!("elementwise.cuh", "chain.cu");

/// All links in one kernel. NVRTC compiles it when it is first asked for, as every source.
pub(super) static FUSED: LazyLock<Source> = LazyLock::new(|| Source {
    name: "chain_fused.cu",
    // Leaked once: it is needed as long as the process lives.
    text: fused(&draw().0).leak(),
    ..CHAIN
});

/// Both.
pub(super) fn all() -> &'static [&'static Source] {
    static ALL: LazyLock<[&'static Source; 2]> = LazyLock::new(|| [&CHAIN, &FUSED]);
    &*ALL
}

/// One kernel of these links, in order.
fn fused(links: &[Link]) -> String {
    let mut body = String::new();
    for link in links {
        let (factor, term) = (literal(link.factor), literal(link.term));
        // Writing to a string does not fail.
        let _ = writeln!(body, "        v = __fmaf_rn({factor}, v, {term});");
    }
    format!(
        "{}\nextern \"C\" __global__ void chain_fused(const float *x, float *y, unsigned long long n) {{\n    \
         elementwise(x, y, n, [](float v) {{\n{body}        return v;\n    }});\n}}\n",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/kernels/elementwise.cuh"
        )),
    )
}

/// Every bit of a value: a decimal number would be rounded once more.
fn literal(value: f32) -> String {
    format!("__uint_as_float({:#010x}u)", value.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_is_in_the_fused_kernel_and_in_order() {
        let links = draw().0;
        let mut rest = FUSED.text;
        for link in &links {
            let step = format!("({}, v, {})", literal(link.factor), literal(link.term));
            rest = rest.split_once(&step).expect("the link is there").1;
        }
        assert_eq!(FUSED.text.matches("__fmaf_rn").count(), LINKS);
        assert_eq!(literal(-1.5), "__uint_as_float(0xbfc00000u)");
    }
}
