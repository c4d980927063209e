//! Machine instructions (SASS), as nvdisasm lists them.

use std::path::Path;
use std::process::Command;

use crossover::device::kernel::Cubin;

/// Instructions of one kernel, by their names with modifiers, such as `LDG.E.128`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Code {
    pub(crate) kernel: String,
    /// Of the kernel itself.
    pub(crate) body: Vec<String>,
    /// Of the functions that it calls.
    pub(crate) called: Vec<String>,
}

impl Code {
    /// How many instructions of the kernel itself are of this kind.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.body.iter().filter(|name| is(name, kind)).count()
    }

    /// All instructions, including those of called functions.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.body.iter().chain(&self.called)
    }
}

/// Whether an instruction is of a kind: the same operation with at least its modifiers.
/// `LDG.E.128.CONSTANT` is an `LDG.128`.
pub(crate) fn is(name: &str, kind: &str) -> bool {
    let mut kind = kind.split('.');
    let mut name = name.split('.');
    name.next() == kind.next() && {
        let modifiers: Vec<&str> = name.collect();
        kind.all(|modifier| modifiers.contains(&modifier))
    }
}

/// Whether an instruction multiplies matrices on a tensor core: `HMMA`, `IMMA`, `HGMMA` and so
/// on. `HFMA2.MMA` is none of them: it is how Hopper loads some constants.
pub(crate) fn on_tensor_core(name: &str) -> bool {
    name.split('.').next().is_some_and(|op| op.ends_with("MMA"))
}

/// The disassembler. Where CI asks for it, its absence is a failure.
pub(crate) fn nvdisasm() -> Option<String> {
    let program = std::env::var("NVDISASM").unwrap_or_else(|_| "nvdisasm".to_owned());
    let works = |program: &String| {
        let ran = Command::new(program).arg("--version").output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    if works(&program) {
        return Some(program);
    }
    let required = std::env::var_os("CROSSOVER_REQUIRE_NVDISASM").is_some_and(|v| v == "1");
    assert!(
        !required,
        "CROSSOVER_REQUIRE_NVDISASM=1 and {program} does not run"
    );
    eprintln!(
        "skipped: {program} does not run; it comes with the CUDA toolkit, NVDISASM says where it is"
    );
    None
}

/// The instructions of each kernel. The listing stays in `target/tmp/<name>.sass`.
pub(crate) fn disassemble(nvdisasm: &str, name: &str, cubin: &Cubin) -> Vec<Code> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let image = folder.join(format!("{name}.cubin"));
    std::fs::write(&image, &cubin.image).unwrap();
    let ran = Command::new(nvdisasm)
        .arg("--print-code")
        .arg(&image)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{name}: {error}");
    let listing = String::from_utf8_lossy(&ran.stdout);
    std::fs::write(folder.join(format!("{name}.sass")), &*listing).unwrap();
    parse(&listing)
}

/// Reads a listing. A kernel's code begins with the label of its section, that of a function
/// it calls with a label of the function's own.
fn parse(listing: &str) -> Vec<Code> {
    let mut kernels: Vec<Code> = Vec::new();
    let mut in_body = true;
    for line in listing.lines() {
        if let Some(label) = line.strip_suffix(':') {
            if let Some(kernel) = label.strip_prefix(".text.") {
                kernels.push(Code {
                    kernel: kernel.to_owned(),
                    ..Code::default()
                });
                in_body = true;
            } else if label.starts_with('$') {
                in_body = false;
            }
            continue;
        }
        let Some((offset, instruction)) = line.trim().split_once("*/") else {
            continue;
        };
        let mut words = instruction.split_whitespace();
        let name = words.find(|word| !word.starts_with('@'));
        if let (Some(kernel), Some(name), true) =
            (kernels.last_mut(), name, offset.starts_with("/*"))
        {
            let code = if in_body {
                &mut kernel.body
            } else {
                &mut kernel.called
            };
            code.push(name.trim_end_matches(';').to_owned());
        }
    }
    kernels
}

/// Shortened from what nvdisasm 13.2 lists.
const LISTING: &str = "\
\t.section\t.text.sine,\"ax\",@progbits
        .global         sine
sine:
.text.sine:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0090*/               @P0 BRA `(.L_x_0) ;
        /*02b0*/                   CALL.REL.NOINC `($sine$_Z5largef) ;
.L_x_0:
        /*04d0*/                   LDG.E.128.CONSTANT R12, desc[UR4][R16.64] ;
        /*1840*/                   EXIT ;
        .type           $sine$_Z5largef,@function
$sine$_Z5largef:
        /*1850*/              @!P0 DMUL R4, R4, R6 ;
        /*1860*/                   NOP;
.text.other:
        /*0000*/                   EXIT ;
";

pub(crate) fn a_listing_gives_each_kernel_its_instructions() {
    let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let [sine, other] = &parse(LISTING)[..] else {
        panic!("two kernels");
    };
    assert_eq!(
        (sine.kernel.as_str(), other.kernel.as_str()),
        ("sine", "other")
    );
    assert_eq!(
        sine.body,
        names("LDC BRA CALL.REL.NOINC LDG.E.128.CONSTANT EXIT")
    );
    assert_eq!(sine.called, names("DMUL NOP"));
    assert_eq!(other.body, names("EXIT"));
    assert_eq!((sine.count("LDG.128"), sine.count("DMUL")), (1, 0));
}

pub(crate) fn an_instruction_is_of_a_kind_by_its_modifiers() {
    assert!(is("LDS.U.128", "LDS.128") && is("MUFU.SIN", "MUFU") && is("FFMA", "FFMA"));
    assert!(!is("LDG.E", "LDG.128") && !is("LDGSTS.128", "LDG.128") && !is("LDG.E.128", "LD"));
    assert!(on_tensor_core("HMMA.1688.F32.TF32") && on_tensor_core("HGMMA.64x8x16.F32"));
    assert!(!on_tensor_core("HFMA2.MMA") && !on_tensor_core("FFMA"));
}
