//! `crossover ab` with cargo itself: both sides are built with the settings that `cargo bench` would find
//! in the user's folder, and each runs its own code.

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::compare::{compared, verdict};
use crate::printed::{expect, holds, text, with_line};
use crate::repositories::{BOTH, ONE_PAIR, Place, commit, executable, starts};

/// A repository of one package in `around/top`, whose bench target has a factor of its times compiled in.
struct Package(Place);

impl Package {
    /// The manifest gets these lines.
    fn new(manifest: &str) -> Self {
        let place = Place::new("around/top");
        // cargo need not build the tests of its library.
        let lines = format!("{manifest}\n[lib]\nbench = false");
        place.package("around/top", &lines, &["x"], "");
        place.write("around/top/.gitignore", "Cargo.lock\ntarget*\n");
        let body = r#"sleep ${NAP-0}; ns=$(awk "BEGIN { print $ns * $FACTOR }")
            echo "$ADDED $PLACE $SIDE" >> $log"#;
        place.harness("run", &BOTH[..1], body);
        let this = Self(place);
        this.factor("\"1\"");
        this.0.git("init --quiet");
        this.commit();
        this
    }

    fn write(&self, name: &str, text: &str) {
        self.0.write(&format!("around/{name}"), text);
    }

    fn commit(&self) {
        commit(&self.0.top, "next");
    }

    fn factor(&self, factor: &str) {
        let run = format!("{:?}", self.0.path("run"));
        self.write("top/benches/x.rs", &starts(&run, factor));
    }

    fn compared(&self, line: &str, code: i32) -> Value {
        let json = self.0.compared(line, code);
        assert_eq!(self.0.work_trees(), 0);
        json
    }
}

/// In one order of functions, since linking each process anew takes most of the time.
const FOUR: &str = "--pairs 4 --budget 0 --layout fixed";

pub(crate) fn sides_never_share_an_executable_whatever_folder_the_settings_name() {
    let package = Package::new("");
    // The path of what a build script wrote is in the executable, and the file is read when it runs.
    let build = |factor| {
        let main = "fn main() { std::fs::write(std::env::var(\"OUT_DIR\").unwrap() + \"/factor\", ";
        let build = format!("{main}\"{factor}\").unwrap() }}");
        package.write("top/build.rs", &build);
    };
    build(1);
    package.factor("std::fs::read_to_string(concat!(env!(\"OUT_DIR\"), \"/factor\")).unwrap()");
    package.commit();
    let dir = package.0.dir();
    let braces = format!("CARGO_TARGET_DIR={dir}/{{braces}} HEAD HEAD");
    package.0.ends(&braces, 0, "equal");
    let slower = |line: &str, are_equal: bool| {
        let json = package.compared(&format!("{FOUR} {line}"), 1);
        assert_eq!(verdict(&json, "sort/100"), "slower", "{json:#}");
        let warnings = json["warnings"].to_string();
        assert_eq!(warnings.contains("equal executables"), are_equal);
    };
    build(3);
    slower("", true);
    build(1);
    package.factor("\"3\"");
    slower(&format!("CARGO_BUILD_BUILD_DIR={dir}/shared"), false);
    let settings = "[build]\nbuild-dir = \"built/{workspace-path-hash}\"\n";
    package.write(".cargo/config.toml", settings);
    slower("", false);
    // A relative one that both sides have.
    package.write("top/.gitignore", "Cargo.lock\ntarget*\nbuilt\n");
    package.write("top/.cargo/config.toml", "[build]\nbuild-dir = \"built\"\n");
    package.commit();
    slower("HEAD~1 HEAD", false);
}

pub(crate) fn sides_that_were_built_to_one_file_are_refused() {
    let place = Place::project(&BOTH, "");
    place.write("top/file", "changed\n");
    place.cargo(
        "export CARGO_TARGET_DIR=$(dirname \"$CARGO_TARGET_DIR\")",
        "",
    );
    let says = "both sides would be built to one file, … target/ab/run: ";
    place.ends(ONE_PAIR, 2, says);
    place.is_clean();
}

/// Settings lie in a folder above the repository and in a file that git ignores, later in one that is
/// committed and differs; a package lies beside the repository, and both are in a workspace.
pub(crate) fn both_sides_are_built_with_what_cargo_finds_around_the_repository() {
    let manifest =
        "license.workspace = true\n[dev-dependencies]\nsibling = { path = \"../sibling\" }";
    let package = Package::new(manifest);
    package.0.package("around/sibling", "", &[], "");
    for (file, text) in [
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"top\", \"sibling\"]\nresolver = \"2\"\n\
             [workspace.package]\nlicense = \"MIT\"\n",
        ),
        ("Cargo.lock", "version = 4\n"),
        ("sibling/src/lib.rs", "pub const FACTOR: &str = \"3\";"),
        (
            ".cargo/config.toml",
            "[build]\nrustflags = [\"--cfg\", \"fast\"]\n\
             [env]\nPLACE = { value = \"here\", relative = true }\nSIDE = \"around\"\n",
        ),
        (
            "top/.gitignore",
            "Cargo.lock\ntarget*\n/.cargo/config.toml\n",
        ),
    ] {
        package.write(file, text);
    }
    let factor = "if cfg!(fast) { sibling::FACTOR } else { \"100\" }";
    package.factor(factor);
    package.commit();
    let settings = |text: &str| package.write("top/.cargo/config.toml", text);
    settings("[env]\nADDED = \"added\"\n");
    package.factor(&format!("{factor} /* changed */"));
    let seen = || {
        let json = package.compared(ONE_PAIR, 0);
        let time = json["benchmarks"][0]["base_ns"].as_f64().unwrap();
        assert!((290.0..310.0).contains(&time), "{json:#}");
        let log = package.0.take("log");
        let seen = log.lines().filter(|line| line.contains("/here "));
        let seen = seen.map(|line| {
            let words = Vec::from_iter(line.split(' '));
            assert!(words[1].ends_with("/around/here"), "{log}");
            format!("{} {}", words[0], words[2])
        });
        Vec::from_iter(BTreeSet::from_iter(seen)).join(", ")
    };
    assert_eq!(seen(), "added around");
    settings("[env]\nSIDE = \"old\"\n");
    package.0.git("add --force .cargo/config.toml");
    package.commit();
    settings("[env]\nSIDE = \"new\"\n");
    assert_eq!(seen(), " new,  old");
    assert_eq!(package.0.read("around/Cargo.lock"), "version = 4\n");
}

/// One of rustup's overrides is for the repository, the other for a folder above it, which a side's
/// toolchain file precedes. A cargo that starts `ab` names its own toolchain.
pub(crate) fn both_sides_get_the_toolchain_of_the_users_shell() {
    let place = Place::project(&BOTH[..1], "");
    let top = place.top.canonicalize().unwrap();
    place.write("top/rust-toolchain", "stable\n");
    place.cargo("echo \"${RUSTUP_TOOLCHAIN-none}\" >> $dir/toolchains", "");
    let outside = top.parent().unwrap();
    let by_cargo = "CARGO=/cargo RUSTUP_TOOLCHAIN=set";
    let by_user = format!("{by_cargo} RUSTUP_TOOLCHAIN_SOURCE=env");
    for (folder, set, toolchains) in [
        (&*top, "", "pinned\npinned\n"),
        (outside, "", "pinned\nnone\n"),
        (outside, "RUSTUP_TOOLCHAIN=set", "set\nset\n"),
        (outside, by_cargo, "pinned\nnone\n"),
        (&top, &by_user, "set\nset\n"),
    ] {
        let shows = format!(
            "echo \"pinned (${{RUSTUP_TOOLCHAIN+not a }}directory override for '{}')\"",
            folder.display()
        );
        executable(&place.path("bin/rustup"), &shows);
        let mut ab = place.ab(ONE_PAIR);
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTUP_TOOLCHAIN_SOURCE"] {
            ab.env_remove(name);
        }
        expect(with_line(&mut ab, set), 0, "");
        assert_eq!(place.take("toolchains"), toolchains, "{folder:?} {set}");
    }
}

pub(crate) fn settings_and_files_that_cannot_apply_are_named() {
    let package = Package::new("");
    // A file that git ignores is in no copy.
    package.write("top/target-generated", "");
    let code = "pub const TEXT: &str = include_str!(\"../target-generated\");";
    package.write("top/src/lib.rs", code);
    let says = "copies contain no files that git ignores, and none of a repository inside this one";
    package.0.ends(ONE_PAIR, 2, says);
    package.write("top/src/lib.rs", "");
    package.factor("\"3\"");
    let settings = "[env]\nA = \"b\"\n";
    package.0.write("elsewhere/.cargo/config.toml", settings);
    package.0.write("elsewhere/tmp/file", "");
    let mut ab = package.0.ab(ONE_PAIR);
    let output = ab.env("TMPDIR", package.0.path("elsewhere/tmp")).output();
    let above = "elsewhere/.cargo/config.toml lies above the temporary folder";
    holds(&text(&output.unwrap().stderr), above);
    // A runner that replaces that of `ab`.
    let settings = format!("[target.{ARCH}-unknown-linux-gnu]\nrunner = \"env\"\n");
    package.write(".cargo/config.toml", &settings);
    let runner = "settings name a `runner` for this target";
    package.0.ends(ONE_PAIR, 2, runner);
}

/// An executable that logs how far apart two of its functions and two of its constants lie, by each linker that is
/// installed.
pub(crate) fn each_process_has_an_order_of_functions_of_its_own() {
    let package = Package::new("");
    let main = package.0.read("around/top/benches/x.rs");
    let functions = "#[inline(never)]
fn one(x: usize) -> usize { std::hint::black_box(x) * 3 }
#[inline(never)]
fn other(x: usize) -> usize { std::hint::black_box(x) + 5 }
static ONE: [usize; 9] = [1; 9];
static OTHER: [usize; 9] = [2; 9];
";
    let distance = "one(1); other(1);
    let distance = (one as fn(usize) -> usize as usize).wrapping_sub(other as fn(usize) -> usize as usize);
    let [one, other] = [&ONE, &OTHER].map(|constant| std::hint::black_box(constant).as_ptr() as usize);
    run.env(\"ADDED\", format!(\"{distance}:{}\", one.wrapping_sub(other))); let error";
    let main = functions.to_owned() + &main.replacen("let error", distance, 1);
    package.write("top/benches/x.rs", &main);
    package.commit();
    let kept = package.0.top.join("target-reports");
    // Unless empty, `again` is what the user's linker does first where it links again.
    let run = |pairs: usize, variables: &str, again: &str| {
        let _ = fs::remove_dir_all(&kept);
        let options = format!("--json --pairs {pairs} --budget 0 --run-equal HEAD HEAD");
        let mut ab = package.0.ab(&format!("{variables} {options}"));
        if !again.is_empty() {
            let linker = package.0.path("cc");
            // Not in an order, since the links before those tell how long one takes.
            let script =
                format!("case \"$*\" in *--s[ch]*) ;; *.ordered*) {again};; esac; exec cc \"$@\"");
            executable(&linker, &script);
            let triple = ARCH.to_uppercase() + "_UNKNOWN_LINUX_GNU";
            ab.env(format!("CARGO_TARGET_{triple}_LINKER"), linker);
        }
        let json = compared(&ab.output().unwrap(), 0);
        let ran = package.0.take("log");
        let (functions, constants): (Vec<_>, Vec<_>) = ran
            .lines()
            .filter_map(|line| line.trim().split_once(':'))
            .unzip();
        assert_eq!(functions.len(), 2 * pairs, "{ran}");
        let orders = [functions, constants].map(|distances| BTreeSet::from_iter(distances).len());
        (orders, json)
    };
    let is_there = |linker: &str| {
        let mut link = Command::new("cc");
        link.args([linker, "-Wl,--version"]);
        link.output().is_ok_and(|output| output.status.success())
    };
    for (linker, variable) in [
        // Without symbols, as some are released. A pair of 3 s allows a link of 0.3 s; it takes 0.12 s here.
        ("-fuse-ld=bfd", "NAP=1.5 CARGO_PROFILE_BENCH_STRIP=symbols"),
        ("-fuse-ld=lld", "CARGO_PROFILE_BENCH_LTO=fat"),
        ("-fuse-ld=mold", "CARGO_PROFILE_BENCH_STRIP=debuginfo"),
    ] {
        if !is_there(linker) {
            println!("not tried: no linker for {linker}");
            continue;
        }
        let variables = format!("RUSTFLAGS=-Clink-arg={linker} {variable}");
        let ([functions, constants], json) = run(2, &variables, "");
        assert_eq!(json["layout"], "random", "{linker}: {json:#}");
        assert!(functions > 2, "{linker}: {functions}");
        // GNU ld gets a list of functions.
        let are_moved = constants > 2;
        assert_eq!(are_moved, linker != "-fuse-ld=bfd", "{linker}: {constants}");
    }
    // 0.45 s of processor time, whatever the processor: field 14 counts hundredths.
    const WORK: &str =
        "work() { while read -r line < /proc/$$/stat; set -- $line; [ ${14} -lt 45 ]; do
        i=0; while [ $i -lt 5000 ]; do i=$((i + 1)); done; done; }; work";
    let failed = "it cannot be linked again: the linker failed (exit status: 3)";
    let other_linker = "rustc did not start its linker through `ab`";
    let chosen = "the project chooses the order, with -Wl,-Ttext=0x40000";
    for (variables, again, why) in [
        ("", "exit 3", failed),
        ("", WORK, "top/x: a link takes "),
        ("RUSTFLAGS=-Clinker=cc", "", other_linker),
        ("RUSTFLAGS=-Clink-arg=-Wl,-Ttext=0x40000", "", chosen),
    ] {
        // The first pair shows that links take too long.
        let (pairs, orders) = if again == WORK { (2, 3) } else { (1, 1) };
        let ([functions, _], json) = run(pairs, variables, again);
        assert_eq!(json["layout"], "fixed", "{json:#}");
        assert_eq!(functions, orders, "{json:#}");
        holds(&json["layout_note"].to_string(), why);
    }
}
