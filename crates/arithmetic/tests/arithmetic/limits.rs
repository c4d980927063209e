//! The loops of limits, in every instruction set.

use crossover_arithmetic::Isa;
use crossover_arithmetic::limits::{BLOCK_BYTES, CHAINS};

#[test]
#[cfg_attr(miri, ignore = "Miri has no fence behind stores past the caches")]
fn every_instruction_set_writes_every_word() {
    #[repr(align(64))]
    struct Lines([u64; 2 * BLOCK_BYTES / 8]);
    for (isa, past_caches) in Isa::available()
        .into_iter()
        .flat_map(|isa| [(isa, false), (isa, true)])
    {
        let mut lines = Lines([0; 2 * BLOCK_BYTES / 8]);
        isa.write(&mut lines.0, past_caches);
        assert!(lines.0.iter().all(|word| *word == 1), "{}", isa.name());
    }
}

#[test]
fn every_instruction_set_counts_its_lanes() {
    assert_eq!(Isa::PORTABLE.multiply_add(10), 2.0 * CHAINS as f64 * 10.0);
    for isa in Isa::available() {
        let lanes = isa.multiply_add(10) / Isa::PORTABLE.multiply_add(10);
        let expected = match isa.name() {
            "AVX-512" => 16.0,
            "AVX2" => 8.0,
            "NEON" => 4.0,
            _ => 1.0,
        };
        assert_eq!(lanes, expected, "{}", isa.name());
    }
}
