//! What the machine code of each kernel has to be like on Hopper.

use std::collections::BTreeMap;

use crossover::device::kernel::Resources;

use crate::golden::kernels::occupancy::warps;
use crate::golden::kernels::sass::{self, Code, is, on_tensor_core};
use crate::golden::kernels::{HOPPER, PLANTED, compile, nvrtc, on_hopper};

/// Of each kernel: threads per block, as `src/workload` launches it; the most registers per
/// thread; the fewest warps that a multiprocessor holds of it (at most 64); the fewest
/// instructions in the listing; and instructions that must not occur, not even in a function that
/// it calls. Where the numbers come from:
///
/// - Nested sine: 8 FFMA per element and pass with a range reduction, 4 for |x| <= pi/2, twice
///   3 for |x| <= sin 1, for the one or two vectors of a thread and for a single element of
///   the last block. MUFU is the special-function unit, whose sine is not accurate.
///   In float64 32 DFMA per element, and local memory for the reduction of CUDA's own sine above 65536.
/// - Sums: eight loads at once in the loop and eight after it, their additions, those of a thread's sums, and
///   the shuffles of a warp and of its block; both once more where one kernel also adds up the parts, and one atomic operation.
/// - Tiled products: the multiply-adds of one tile, in the loop and after it, and the 16-byte
///   loads of shared memory that feed them: 16 per load with tiles of 128, 32/3 with 64, 8 with
///   32. An FMUL would be a product left unfused. `_any` is for rows that are not aligned.
/// - Steps between the products of a network: four values per thread, in 16 bytes of f32 or 8 of
///   BF16. Sums over rows issue four such loads before they use the first. The update and the loss
///   move several values for each and have registers for them instead of more warps.
/// - Attention: two loads of four values of a row at a time, each for half of a warp's queries and
///   eight keys, then two loads of four shares; and shared memory for four blocks of 32 queries. On
///   tensor cores, per warp and 32 keys, two products of 16 instructions each in BF16, and twice as
///   many in TF32.
/// - Linear layers: the multiply-adds of a stage, a slice's part of it; copies of 16 bytes to
///   shared memory, in the loop and before it for each stage; loads of 16 bytes from there, 16
///   multiply-adds for each with 8 x 8 per thread, 19 with 8 x 12, 21 with 16 x 8 and 11 with 8 x
///   4, and in the first four of those a stage's first loads once more before the loop. Few warps
///   are resident: they have the registers instead.
/// - The machine's limits: four loads at once and one for the rest; the multiply-adds of a round.
const TABLE: &str = "
| kernel                  | block | registers | warps | at least                                            | none                   |
| ----------------------- | ----- | --------- | ----- | --------------------------------------------------- | ---------------------- |
| sine_pass               | 128   | 32        | 64    | 1 LDG.128, 1 STG.128, 40 FFMA                       | MUFU                   |
| sine_pass_backwards     | 128   | 32        | 64    | 1 LDG.128, 1 STG.128, 40 FFMA                       | MUFU                   |
| sine_fused              | 128   | 32        | 64    | 2 LDG.128, 2 STG.128, 162 FFMA                      | MUFU                   |
| sine_fused_sinf         | 128   | 32        | 64    | 1 LDG.128, 1 STG.128                                | MUFU                   |
| sine_fused_fast         | 128   | 32        | 64    | 2 LDG.128, 2 STG.128, 32 MUFU.SIN                   | FFMA                   |
| sine_fused_f64          | 128   | 40        | 48    | 2 LDG.128, 2 STG.128, 160 DFMA, 0 LDL, 0 STL        | MUFU                   |
| sum_shares              | 256   | 64        | 32    | 16 LDG.128, 91 FADD, 11 SHFL, 1 STG                 |                        |
| sum_parts               | 256   | 32        | 64    | 8 LDG, 18 FADD, 11 SHFL, 1 STG                      |                        |
| sum_last_block          | 256   | 64        | 32    | 16 LDG.128, 108 FADD, 22 SHFL, 1 ATOMG.INC, 2 STG   |                        |
| sum_cooperative         | 256   | 64        | 32    | 16 LDG.128, 108 FADD, 22 SHFL, 1 ATOMG.ADD, 2 STG   |                        |
| matmul_naive            | 256   | 40        | 48    | 2 LDG, 1 FFMA                                       | FMUL                   |
| matmul_tiled_128        | 256   | 128       | 16    | 4 LDG.128, 2 STS.128, 64 LDS.128, 1024 FFMA         | FMUL                   |
| matmul_tiled_64         | 128   | 128       | 16    | 8 LDG.128, 4 STS.128, 96 LDS.128, 1024 FFMA         | FMUL                   |
| matmul_tiled_32         | 64    | 128       | 16    | 8 LDG.128, 4 STS.128, 64 LDS.128, 512 FFMA          | FMUL                   |
| matmul_tiled_128_any    | 256   | 128       | 16    | 64 LDS.128, 1024 FFMA                               | FMUL, LDG.128, STG.128 |
| matmul_tiled_64_any     | 128   | 128       | 16    | 96 LDS.128, 1024 FFMA                               | FMUL, LDG.128, STG.128 |
| matmul_tiled_32_any     | 64    | 128       | 16    | 64 LDS.128, 512 FFMA                                | FMUL, LDG.128, STG.128 |
| matmul_fetch            | 256   | 32        | 64    | 1 LDG.128, 1 LDG, 1 STG.128                         |                        |
| to_tf32                 | 256   | 32        | 64    | 1 LDG, 1 STG                                        |                        |
| to_f16                  | 256   | 32        | 64    | 1 LDG, 1 STG.U16                                    |                        |
| to_bf16                 | 256   | 32        | 64    | 1 LDG, 1 STG.U16                                    |                        |
| to_e4m3                 | 256   | 32        | 64    | 1 LDG, 1 STG.U8                                     |                        |
| to_i8                   | 256   | 32        | 64    | 1 LDG, 1 STG.U8                                     |                        |
| split_tf32              | 256   | 32        | 64    | 1 LDG.128, 2 STG.128                                |                        |
| split_bf16              | 256   | 32        | 64    | 1 LDG.128, 3 STG.64                                 |                        |
| split_tf32_any          | 256   | 32        | 64    | 1 LDG, 2 STG                                        | LDG.128, STG.128       |
| split_bf16_any          | 256   | 32        | 64    | 1 LDG, 3 STG.U16                                    | LDG.128, STG.64        |
| add_bias_f32            | 256   | 32        | 64    | 2 LDG.128, 1 STG.128                                |                        |
| add_bias_bf16           | 256   | 32        | 64    | 2 LDG.64, 1 STG.64                                  |                        |
| relu_f32                | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| relu_bf16               | 256   | 32        | 64    | 1 LDG.64, 1 STG.64                                  |                        |
| relu_backward_f32       | 256   | 32        | 64    | 2 LDG.128, 1 STG.128                                |                        |
| sum_rows_f32            | 256   | 32        | 64    | 4 LDG.128, 1 STG.128                                |                        |
| sum_rows_bf16           | 256   | 32        | 64    | 4 LDG.64, 1 STG.128                                 |                        |
| relu_backward_sums_f32  | 256   | 48        | 40    | 8 LDG.128, 5 STG.128                                |                        |
| relu_backward_sums_bf16 | 256   | 48        | 40    | 8 LDG.64, 4 STG.64                                  |                        |
| cross_entropy_f32       | 256   | 48        | 40    | 4 LDG.128, 4 STG.128, 30 SHFL                       |                        |
| cross_entropy_bf16      | 256   | 48        | 40    | 4 LDG.128, 4 STG.64, 30 SHFL                        |                        |
| log_softmax             | 256   | 48        | 40    | 4 LDG.128, 4 STG.128, 10 SHFL                       |                        |
| mean_loss               | 256   | 32        | 64    | 2 LDG, 5 SHFL                                       |                        |
| loss_gradient           | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| adamw_f32               | 256   | 48        | 40    | 4 LDG.128, 3 STG.128                                | DFMA                   |
| adamw_bf16              | 256   | 48        | 40    | 4 LDG.128, 3 STG.128, 1 STG.64                      | DFMA                   |
| adamw_advance           | 1     | 32        | 32    | 5 STG.64                                            |                        |
| adamw_decay             | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| adamw_first             | 256   | 32        | 64    | 2 LDG.128, 4 FFMA, 1 STG.128                        |                        |
| adamw_age               | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| adamw_second            | 256   | 32        | 64    | 2 LDG.128, 4 FFMA, 1 STG.128                        |                        |
| adamw_root              | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| adamw_denominator       | 256   | 32        | 64    | 1 LDG.128, 4 FFMA, 1 STG.128                        |                        |
| adamw_move              | 256   | 48        | 40    | 3 LDG.128, 1 STG.128                                |                        |
| linear_128x128_8x8_1_1  | 256   | 255       | 8     | 32 LDGSTS, 144 LDS.128, 2048 FFMA, 16 STG.128       | FMUL                   |
| linear_64x128_16x8_2_1  | 128   | 255       | 8     | 48 LDGSTS, 128 LDS.128, 2048 FFMA, 16 STG.128       | FMUL                   |
| linear_64x96_8x12_2_1   | 128   | 255       | 8     | 40 LDGSTS, 104 LDS.128, 1536 FFMA, 12 STG.128       | FMUL                   |
| linear_64x96_8x12_4_1   | 256   | 255       | 8     | 20 LDGSTS, 64 LDS.128, 768 FFMA, 6 STG.128          | FMUL                   |
| linear_64x64_8x8_2_1    | 128   | 255       | 8     | 40 LDGSTS, 96 LDS.128, 1024 FFMA, 8 STG.128         | FMUL                   |
| linear_32x32_8x4_4_1    | 128   | 136       | 12    | 20 LDGSTS, 44 LDS.128, 256 FFMA, 2 STG.128          | FMUL                   |
| linear_32x32_8x4_8_1    | 256   | 96        | 16    | 8 LDGSTS, 20 LDS.128, 128 FFMA, 1 STG.128           | FMUL                   |
| linear_64x64_8x8_2_2    | 128   | 255       | 8     | 40 LDGSTS, 96 LDS.128, 1024 FFMA, 4 STG.128         | FMUL                   |
| linear_32x32_8x4_4_2    | 128   | 136       | 12    | 20 LDGSTS, 44 LDS.128, 256 FFMA, 1 STG.128          | FMUL                   |
| linear_32x32_8x4_4_4    | 128   | 136       | 12    | 20 LDGSTS, 44 LDS.128, 256 FFMA, 1 STG.128          | FMUL                   |
| embed                   | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| embed_norm_f32          | 256   | 40        | 48    | 6 LDG.128, 4 STG.128, 10 SHFL                       |                        |
| embed_norm_bf16         | 256   | 40        | 48    | 6 LDG.128, 2 STG.128, 2 STG.64, 10 SHFL             |                        |
| layer_norm_f32          | 256   | 40        | 48    | 6 LDG.128, 2 STG.128, 10 SHFL                       |                        |
| layer_norm_bf16         | 256   | 40        | 48    | 6 LDG.128, 2 STG.64, 10 SHFL                        |                        |
| narrow                  | 256   | 32        | 64    | 1 LDG.128, 1 STG.64                                 |                        |
| attention_16_f32        | 128   | 128       | 16    | 8 LDG.128, 32 LDS.128, 256 FFMA, 2 STG.128, 16 SHFL |                        |
| attention_32_f32        | 64    | 224       | 8     | 8 LDG.128, 56 LDS.128, 1024 FFMA, 8 STG.128         |                        |
| attention_32_tf32       | 256   | 128       | 16    | 16 LDG.128, 64 HMMA, 8 SHFL                         |                        |
| attention_64_tf32       | 256   | 128       | 16    | 16 LDG.128, 128 HMMA, 8 SHFL                        |                        |
| attention_32_bf16       | 256   | 80        | 24    | 8 LDG.128, 16 LDSM, 32 HMMA, 8 SHFL                 |                        |
| attention_64_bf16       | 256   | 80        | 24    | 8 LDG.128, 32 LDSM, 64 HMMA, 8 SHFL                 |                        |
| split_heads             | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| merge_heads             | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| softmax                 | 256   | 32        | 64    | 1 LDG.128, 1 STG.128, 10 SHFL                       |                        |
| add                     | 256   | 32        | 64    | 2 LDG.128, 1 STG.128                                |                        |
| copy_bytes              | 256   | 32        | 64    | 1 LDG.128, 1 STG.128                                |                        |
| consume                 | 256   | 32        | 64    | 1 LDG, 8 FFMA, 1 DADD                               | DMUL, DFMA             |
| chain_link              | 256   | 32        | 64    | 1 LDG.128, 5 FFMA, 1 STG.128                        | FMUL                   |
| chain_link_dependent    | 256   | 32        | 64    | 1 LDG.128, 5 FFMA, 1 STG.128, 1 ACQBULK             | FMUL                   |
| chain_fused             | 256   | 48        | 40    | 1 LDG.128, 160 FFMA, 1 STG.128                      | FMUL                   |
| step                    | 256   | 32        | 64    | 1 LDG.128, 5 FFMA, 1 STG.128                        | FMUL                   |
| fill                    | 256   | 32        | 64    | 1 STG                                               | LDG                    |
| spin                    | 1     | 32        | 32    | 2 CS2R                                              | LDG, STG               |
| spin_timed              | 1     | 32        | 32    | 2 CS2R, 1 STG                                       | LDG                    |
| empty                   | 1     | 32        | 32    | 1 EXIT                                              | LDG, STG               |
| read_again              | 256   | 32        | 64    | 5 LDG.128                                           | STG.128                |
| copy_again              | 256   | 32        | 64    | 5 LDG.128, 5 STG.128                                |                        |
| fma_chains              | 1024  | 32        | 64    | 512 FFMA                                            | FMUL, LDG              |
";

/// Instructions that no kernel may have but where a row names them (0 where a function that it calls has
/// them): those that keep registers in memory (spills), and products on tensor cores, which the suite
/// leaves to cuBLAS and cuBLASLt.
const LOCAL_MEMORY: [&str; 2] = ["LDL", "STL"];

/// A row of [`TABLE`].
struct Expected {
    block: u32,
    registers: u32,
    warps: u32,
    at_least: Vec<(usize, &'static str)>,
    none: Vec<&'static str>,
}

impl Expected {
    fn of(row: &'static str) -> (&'static str, Self) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [kernel, block, registers, warps, at_least, none] = cells[..] else {
            panic!("six cells: {row}");
        };
        let list = |cell: &'static str| cell.split(", ").filter(|item| !item.is_empty());
        let counted = |item: &'static str| {
            let (count, kind) = item.split_once(' ').unwrap();
            (count.parse().unwrap(), kind)
        };
        let expected = Self {
            block: block.parse().unwrap(),
            registers: registers.parse().unwrap(),
            warps: warps.parse().unwrap(),
            at_least: list(at_least).map(counted).collect(),
            none: list(none).collect(),
        };
        (kernel, expected)
    }

    /// What is wrong with what a kernel takes of a multiprocessor.
    fn faults_of_resources(&self, found: &Resources) -> Vec<String> {
        let mut faults = Vec::new();
        if found.registers > self.registers {
            faults.push(format!("{} registers", found.registers));
        }
        let resident = warps(found, self.block);
        if resident < self.warps {
            faults.push(format!("{resident} warps"));
        }
        faults
    }

    /// What is wrong with a kernel's instructions.
    fn faults_of_code(&self, code: &Code) -> Vec<String> {
        let mut faults = Vec::new();
        for &(least, kind) in &self.at_least {
            let found = code.count(kind);
            if found < least {
                faults.push(format!("{found} {kind}"));
            }
        }
        let meant = |kind: &&&str| self.at_least.iter().any(|(_, meant)| meant == *kind);
        let local = LOCAL_MEMORY.iter().filter(|kind| !meant(kind));
        for kind in self.none.iter().chain(local) {
            if code.all().any(|name| is(name, kind)) {
                faults.push(format!("has {kind}"));
            }
        }
        let meant = self.at_least.iter().any(|(_, kind)| on_tensor_core(kind));
        let mut on_tensor_cores = code.all().filter(|name| on_tensor_core(name));
        if let (false, Some(name)) = (meant, on_tensor_cores.next()) {
            faults.push(format!("has {name}"));
        }
        faults
    }
}

fn rows() -> impl Iterator<Item = (&'static str, Expected)> {
    TABLE.trim().lines().skip(2).map(Expected::of)
}

/// Compares each kernel with its row, and lets no row and no kernel be without the other.
fn compare<T>(
    kernels: impl Iterator<Item = (String, T)>,
    faults: impl Fn(&Expected, &T) -> Vec<String>,
) {
    let mut table: BTreeMap<_, _> = rows().collect();
    for (name, kernel) in kernels {
        let expected = table.remove(&*name);
        let expected = expected.unwrap_or_else(|| panic!("no row for {name}"));
        let faults = faults(&expected, &kernel);
        assert!(faults.is_empty(), "{name}: {faults:?}");
    }
    let left: Vec<_> = table.keys().collect();
    assert!(left.is_empty(), "no kernels for the rows {left:?}");
}

pub(crate) fn registers_and_occupancy_are_those_of_the_table() {
    if !nvrtc() {
        return;
    }
    let kernels = on_hopper().iter().flat_map(|(_, cubin)| cubin.resources());
    compare(
        kernels.map(|kernel| (kernel.kernel.clone(), kernel)),
        Expected::faults_of_resources,
    );
}

pub(crate) fn instructions_are_those_of_the_table() {
    if !nvrtc() {
        return;
    }
    let Some(nvdisasm) = sass::nvdisasm() else {
        return;
    };
    let kernels =
        (on_hopper().iter()).flat_map(|(name, cubin)| sass::disassemble(&nvdisasm, name, cubin));
    compare(
        kernels.map(|code| (code.kernel.clone(), code)),
        Expected::faults_of_code,
    );
}

pub(crate) fn faults_are_found_where_there_are_some() {
    if !nvrtc() {
        return;
    }
    let cubin = compile(&PLANTED, HOPPER);
    let row = "| planted | 1024 | 31 | 65 | 1 LDG.128, 1 STG.128, 999 FFMA | FMUL |";
    let (_, expected) = Expected::of(row);
    let faults = expected.faults_of_resources(&cubin.resources()[0]);
    assert_eq!(faults, ["32 registers", "64 warps"]);

    let Some(nvdisasm) = sass::nvdisasm() else {
        return;
    };
    let [code] = &sass::disassemble(&nvdisasm, PLANTED.name, &cubin)[..] else {
        panic!("one kernel");
    };
    let faults = expected.faults_of_code(code).join(", ");
    for fault in [
        "0 LDG.128",
        "0 STG.128",
        " FFMA",
        "has LDL",
        "has STL",
        "has HMMA",
    ] {
        assert!(faults.contains(fault), "{fault}: {faults}");
    }
}
