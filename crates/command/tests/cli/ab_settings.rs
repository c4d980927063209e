//! `crossover ab` with cargo itself: both sides are built with the settings that `cargo bench` would find
//! in the user's folder, and each runs its own code.

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::ab::kept;
use crate::compare::{compared, verdict};
use crate::printed::{ended, holds, text};
use crate::repositories::{
    BOTH, ONE_PAIR, Project, builds, clean, commit, crossover, executable, git, harness,
};

/// A repository of one package in `around/top`, whose bench target has a factor of its times compiled in.
struct Package(TempDir);

impl Package {
    /// The manifest gets these lines.
    fn new(manifest: &str) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        let top = this.top();
        let manifest = format!(
            "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{manifest}\n\
             [[bench]]\nname = \"x\"\nharness = false\n"
        );
        this.write("around/top/Cargo.toml", &manifest);
        this.write("around/top/src/lib.rs", "");
        this.write("around/top/.gitignore", "Cargo.lock\ntarget*\ntmp\n");
        this.factor("\"1\"");
        let body =
            r#"ns=$(awk "BEGIN { print $ns * $FACTOR }"); echo "$ADDED $PLACE $SIDE" >> $log"#;
        harness(&this.path("run"), &this.path("log"), &BOTH[..1], body);
        git(&top, &["init", "--quiet"]);
        commit(&top, "first");
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn top(&self) -> PathBuf {
        self.path("around/top")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn factor(&self, factor: &str) {
        let run = self.path("run");
        let main = format!(
            "fn main() {{
    use std::os::unix::process::CommandExt;
    let mut run = std::process::Command::new({run:?});
    let error = run.args(std::env::args().skip(1)).env(\"FACTOR\", {factor}).exec();
    panic!(\"{{error}}\");
}}"
        );
        self.write("around/top/benches/x.rs", &main);
    }

    fn ab(&self, options: &str, set: impl FnOnce(&mut Command)) -> Output {
        let mut command = crossover(&self.top());
        command
            .args(options.split_whitespace())
            .env("TMPDIR", self.path("tmp"))
            .env_remove("CARGO_BUILD_BUILD_DIR");
        fs::create_dir_all(self.path("tmp")).unwrap();
        set(&mut command);
        let output = command.output().unwrap();
        assert_eq!(fs::read_dir(self.path("tmp")).unwrap().count(), 0);
        output
    }
}

const FOUR: &str = "--json --pairs 4 --budget 0";

pub(crate) fn sides_never_share_an_executable_whatever_folder_the_settings_name() {
    let package = Package::new("");
    // The path of what a build script wrote is in the executable, and the file is read when it runs.
    let build = |factor| {
        let main = "fn main() { std::fs::write(std::env::var(\"OUT_DIR\").unwrap() + \"/factor\", ";
        let build = format!("{main}\"{factor}\").unwrap() }}");
        package.write("around/top/build.rs", &build);
    };
    build(1);
    package.factor("std::fs::read_to_string(concat!(env!(\"OUT_DIR\"), \"/factor\")).unwrap()");
    commit(&package.top(), "build script");
    let braces = package.path("{braces}");
    let equal = package.ab("HEAD HEAD", |ab| {
        ab.env("CARGO_TARGET_DIR", braces);
    });
    holds(&text(&equal.stdout), "equal");
    let slower = |output: &Output, are_equal: bool| {
        let json = compared(output, 1);
        assert_eq!(verdict(&json, "sort/100"), "slower", "{json:#}");
        let warnings = json["warnings"].to_string();
        assert_eq!(
            warnings.contains("equal executables"),
            are_equal,
            "{json:#}"
        );
    };
    build(3);
    slower(&package.ab(FOUR, |_| {}), true);
    build(1);
    package.factor("\"3\"");
    let shared = package.path("shared");
    let output = package.ab(FOUR, |ab| {
        ab.env("CARGO_BUILD_BUILD_DIR", shared);
    });
    slower(&output, false);
    package.write(
        "around/.cargo/config.toml",
        "[build]\nbuild-dir = \"built/{workspace-path-hash}\"\n",
    );
    slower(&package.ab(FOUR, |_| {}), false);
    // A relative one that both sides have.
    package.write("around/top/.gitignore", "Cargo.lock\ntarget*\ntmp\nbuilt\n");
    package.write(
        "around/top/.cargo/config.toml",
        "[build]\nbuild-dir = \"built\"\n",
    );
    commit(&package.top(), "settings");
    slower(&package.ab(&format!("{FOUR} HEAD~1 HEAD"), |_| {}), false);
    package.factor("\"1\"");
    let json = compared(&package.ab(FOUR, |_| {}), 0);
    assert_eq!(verdict(&json, "sort/100"), "faster", "{json:#}");
}

pub(crate) fn sides_that_were_built_to_one_file_are_refused() {
    let project = Project::new(&BOTH, "");
    project.write("file", "changed\n");
    let built = "export CARGO_TARGET_DIR=$(dirname \"$CARGO_TARGET_DIR\")\n";
    project.cargo(&(built.to_owned() + &builds(&project.path("target-bench/run"))));
    let output = project.ab(ONE_PAIR).output().unwrap();
    let said = ended(&output, 2, "both sides would be built to one file, ");
    holds(&said, "target/ab/run: ");
    clean(project.top());
}

/// Settings lie in a folder above the repository and in a file that git ignores, later in one that is
/// committed and differs; a package lies beside the repository, and both are in a workspace.
pub(crate) fn both_sides_are_built_with_what_cargo_finds_around_the_repository() {
    let manifest =
        "license.workspace = true\n[dev-dependencies]\nsibling = { path = \"../sibling\" }";
    let package = Package::new(manifest);
    package.write(
        "around/Cargo.toml",
        "[workspace]\nmembers = [\"top\", \"sibling\"]\nresolver = \"2\"\n\
         [workspace.package]\nlicense = \"MIT\"\n",
    );
    package.write("around/Cargo.lock", "version = 4\n");
    package.write(
        "around/sibling/src/lib.rs",
        "pub const FACTOR: &str = \"3\";",
    );
    package.write(
        "around/sibling/Cargo.toml",
        "[package]\nname = \"sibling\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    package.write(
        "around/.cargo/config.toml",
        "[build]\nrustflags = [\"--cfg\", \"fast\"]\n\
         [env]\nPLACE = { value = \"here\", relative = true }\nSIDE = \"around\"\n",
    );
    let factor = "if cfg!(fast) { sibling::FACTOR } else { \"100\" }";
    package.factor(factor);
    let ignores = "Cargo.lock\ntarget*\ntmp\n/.cargo/config.toml\n";
    package.write("around/top/.gitignore", ignores);
    commit(&package.top(), "second");
    let settings = |text: &str| package.write("around/top/.cargo/config.toml", text);
    settings("[env]\nADDED = \"added\"\n");
    package.factor(&format!("{factor} /* changed */"));
    let seen = || {
        let json = compared(&package.ab(ONE_PAIR, |_| {}), 0);
        let time = json["benchmarks"][0]["base_ns"].as_f64().unwrap();
        assert!((290.0..310.0).contains(&time), "{json:#}");
        let log = fs::read_to_string(package.path("log")).unwrap();
        fs::remove_file(package.path("log")).unwrap();
        let mut seen = BTreeSet::new();
        for line in log.lines().filter(|line| line.contains("/here ")) {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(words[1].ends_with("/around/here"), "{log}");
            seen.insert(format!("{} {}", words[0], words[2]));
        }
        Vec::from_iter(seen).join(", ")
    };
    assert_eq!(seen(), "added around");
    settings("[env]\nSIDE = \"old\"\n");
    git(&package.top(), &["add", "--force", ".cargo/config.toml"]);
    commit(&package.top(), "third");
    settings("[env]\nSIDE = \"new\"\n");
    assert_eq!(seen(), " new,  old");
    let lock = fs::read_to_string(package.path("around/Cargo.lock")).unwrap();
    assert_eq!(lock, "version = 4\n");
}

/// One of rustup's overrides is for the repository, the other for a folder above it, which a side's
/// toolchain file precedes. A cargo that starts `ab` names its own toolchain.
pub(crate) fn both_sides_get_the_toolchain_of_the_users_shell() {
    let project = Project::new(&BOTH[..1], "");
    let top = project.top().canonicalize().unwrap();
    project.write("rust-toolchain", "stable\n");
    project.cargo(&format!(
        "echo \"${{RUSTUP_TOOLCHAIN-none}}\" >> {}\n{}",
        project.path("target-toolchains").display(),
        builds(&project.path("target-bench/run")),
    ));
    let outside = top.parent().unwrap();
    let cargo = project.path("target-bin/cargo");
    let by_cargo = ["CARGO", "RUSTUP_TOOLCHAIN"].map(|name| (name, cargo.to_str().unwrap()));
    let by_user = ("RUSTUP_TOOLCHAIN_SOURCE", "env");
    for (folder, set, toolchains) in [
        (top.as_path(), &[][..], "pinned\npinned\n"),
        (outside, &[], "pinned\nnone\n"),
        (outside, &by_cargo[1..], "set\nset\n"),
        (outside, &by_cargo, "pinned\nnone\n"),
        (&top, &[by_cargo[0], by_cargo[1], by_user], "set\nset\n"),
    ] {
        let shows = format!(
            "echo \"pinned (${{RUSTUP_TOOLCHAIN+not a }}directory override for '{}')\"",
            folder.display()
        );
        executable(&project.path("target-bin/rustup"), &shows);
        let mut ab = project.ab(ONE_PAIR);
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTUP_TOOLCHAIN_SOURCE"] {
            ab.env_remove(name);
        }
        ended(&ab.envs(set.iter().copied()).output().unwrap(), 0, "");
        let log = project.path("target-toolchains");
        let logged = fs::read_to_string(&log)
            .unwrap()
            .replace(by_cargo[1].1, "set");
        assert_eq!(logged, toolchains, "{folder:?} {set:?}");
        fs::remove_file(log).unwrap();
    }
}

pub(crate) fn settings_above_the_temporary_folder_are_named() {
    let package = Package::new("");
    package.factor("\"3\"");
    package.write("elsewhere/.cargo/config.toml", "[env]\nA = \"b\"\n");
    fs::create_dir(package.path("elsewhere/tmp")).unwrap();
    let output = package.ab(ONE_PAIR, |ab| {
        ab.env("TMPDIR", package.path("elsewhere/tmp"));
    });
    let named = "elsewhere/.cargo/config.toml lies above the temporary folder";
    holds(&text(&output.stderr), named);
}

pub(crate) fn a_runner_that_replaces_that_of_ab_is_named() {
    let package = Package::new("");
    package.factor("\"3\"");
    let rustc = Command::new(option_env!("RUSTC").unwrap_or("rustc"))
        .arg("-vV")
        .output()
        .unwrap();
    let said = text(&rustc.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    let settings = format!("[target.{}]\nrunner = \"env\"\n", host.unwrap());
    package.write("around/.cargo/config.toml", &settings);
    let output = package.ab(ONE_PAIR, |_| {});
    ended(&output, 2, "settings name a `runner` for this target");
}

/// A file that git ignores is in no copy.
pub(crate) fn a_build_that_lacks_an_ignored_file_says_so() {
    let package = Package::new("");
    package.write("around/top/target-generated", "");
    package.write(
        "around/top/src/lib.rs",
        "pub const TEXT: &str = include_str!(\"../target-generated\");",
    );
    let output = package.ab(ONE_PAIR, |_| {});
    let says = "copies contain no files that git ignores, and none of a repository inside this one";
    ended(&output, 2, says);
}

/// An executable that logs how far apart two of its functions lie, by each linker that is installed.
pub(crate) fn each_process_has_an_order_of_functions_of_its_own() {
    let package = Package::new("");
    let main = fs::read_to_string(package.path("around/top/benches/x.rs")).unwrap();
    let functions = "#[inline(never)]
fn one(x: usize) -> usize { std::hint::black_box(x) * 3 }
#[inline(never)]
fn other(x: usize) -> usize { std::hint::black_box(x) + 5 }
";
    let distance = "one(1); other(1);
    let distance = (one as fn(usize) -> usize as usize).wrapping_sub(other as fn(usize) -> usize as usize);
    run.env(\"ADDED\", distance.to_string()); let error";
    let main = functions.to_owned() + &main.replacen("let error", distance, 1);
    package.write("around/top/benches/x.rs", &main);
    commit(&package.top(), "distance");
    let log = package.path("log");
    // Unless empty, what the user's linker does first where it links again.
    let run = |options: &str, flags: &str, again: &str| {
        let _ = fs::remove_file(&log);
        let _ = fs::remove_dir_all(package.top().join("target-reports"));
        let options = format!("{FOUR} --run-equal HEAD HEAD {options}");
        let json = compared(
            &package.ab(&options, |ab| {
                ab.env("RUSTFLAGS", flags);
                if !again.is_empty() {
                    let linker = package.path("cc");
                    let script =
                        format!("case \"$*\" in *.ordered*) {again};; esac; exec cc \"$@\"");
                    executable(&linker, &script);
                    let triple = ARCH.to_uppercase() + "_UNKNOWN_LINUX_GNU";
                    ab.env(format!("CARGO_TARGET_{triple}_LINKER"), linker);
                }
            }),
            0,
        );
        let ran = fs::read_to_string(&log).unwrap();
        let numbers = ran
            .lines()
            .filter(|line| line.trim().parse::<usize>().is_ok());
        let distances = Vec::from_iter(numbers);
        assert_eq!(distances.len(), 8, "{ran}");
        let distances = BTreeSet::from_iter(distances).len();
        (distances, json)
    };
    let is_there = |linker: &str| {
        let mut link = Command::new("cc");
        link.args([linker, "-Wl,--version"]);
        link.output().is_ok_and(|output| output.status.success())
    };
    let mut linked = 0;
    for linker in ["-fuse-ld=bfd", "-fuse-ld=lld", "-fuse-ld=mold"] {
        if !cfg!(target_os = "linux") || !is_there(linker) {
            println!("not tried: no linker for {linker}");
            continue;
        }
        linked += 1;
        // Without symbols, as some are released.
        let flags = match linker {
            "-fuse-ld=bfd" => "-Cstrip=symbols",
            "-fuse-ld=lld" => "-Clto=fat -Cembed-bitcode=yes",
            _ => "-Cstrip=debuginfo",
        };
        let (orders, json) = run("", &format!("-Clink-arg={linker} {flags}"), "");
        assert_eq!(json["layout"], "random", "{linker}: {json:#}");
        assert!(orders > 6, "{linker}: {orders}");
        let seeds = ["a1", "b1", "a2", "b4"].map(|run| {
            let seed = kept(&package.top()).join(run).join("layout-seed");
            fs::read_to_string(seed).unwrap()
        });
        assert_eq!(BTreeSet::from(seeds).len(), 4);
    }
    let (orders, json) = run("--layout fixed", "", "");
    assert_eq!(orders, 1);
    holds(
        &json["layout_note"].to_string(),
        "in one order of functions (`--layout fixed`): up to 15 %",
    );
    const WORK: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done";
    for (flags, again, why) in [
        (
            "",
            "exit 3",
            "it cannot be linked again: the linker failed (exit status: 3)",
        ),
        ("", WORK, "p/x: a link takes 0."),
        (
            "-Clinker=cc",
            "",
            "rustc did not start its linker through `ab`",
        ),
        (
            "-Clink-arg=-Wl,-Ttext=0x40000",
            "",
            "the project chooses the order, with -Wl,-Ttext=0x40000",
        ),
    ] {
        if linked > 0 {
            let (orders, json) = run("", flags, again);
            assert_eq!(json["layout"], "fixed", "{json:#}");
            // The first pair shows that links take too long.
            assert_eq!(orders, if again == WORK { 3 } else { 1 }, "{json:#}");
            holds(&json["layout_note"].to_string(), why);
        }
    }
}
