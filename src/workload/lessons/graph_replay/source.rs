//! The kernels of a chain: that of a link, which takes its factor and term as arguments, and all
//! links in one, whose text is written at run time with the factors and terms in it. The second
//! is what a compiler of tensor expressions does with such a chain.

use std::fmt::Write;
use std::sync::LazyLock;

use crate::device::kernel::Source;
use crate::workload::lessons::graph_replay::chain::{self, Link};
use crate::workload::prepare::kernels;

/// The kernel of a link.
pub static CHAIN: Source = kernels!("elementwise.cuh", "chain.cu");

/// All links in one kernel. NVRTC compiles it when it is first asked for, as every source.
pub(super) static FUSED: LazyLock<Source> = LazyLock::new(|| Source {
    name: "chain_fused.cu",
    // Leaked once: it is needed as long as the process lives.
    text: fused(&chain::draw().0).leak(),
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
    use crate::workload::lessons::graph_replay::chain::LINKS;

    #[test]
    fn every_link_is_in_the_fused_kernel_and_in_order() {
        let links = chain::draw().0;
        let mut rest = FUSED.text;
        for link in &links {
            let step = format!("({}, v, {})", literal(link.factor), literal(link.term));
            rest = rest.split_once(&step).expect("the link is there").1;
        }
        assert_eq!(FUSED.text.matches("__fmaf_rn").count(), LINKS);
        assert_eq!(literal(-1.5), "__uint_as_float(0xbfc00000u)");
    }
}
