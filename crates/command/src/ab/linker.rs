//! This command in place of the linker: rustc starts it while cargo builds a side. It starts the user's
//! linker, and keeps the files and the command from which an executable was linked.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, bail};
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::ab::child;
use crossover_system::process::seconds_of_children;

/// The user's linker, where rustc starts this command in its place.
const LINKER: &str = "CROSSOVER_AB_LINKER";
/// The folder for what executables were linked from.
const LINKS: &str = "CROSSOVER_AB_LINKS";
/// The name of that folder in a target folder.
const KEPT_LINKS: &str = "links";
/// The file with a [`Link`], beside the files that it names.
const KEPT: &str = "link.json";
/// Length of a command line from which on its arguments are in a file.
const LONG: usize = 100_000;

/// The linker that cargo's settings name for this machine.
pub(super) struct UserLinker {
    triple: String,
    program: String,
}

impl UserLinker {
    /// Finds the linker by compiling an empty program in a new folder `probe`, with the settings of the
    /// folder of `cargo`. `None` where rustc prints no linker.
    ///
    /// # Errors
    /// An interrupt, or that nothing can be written.
    pub(super) fn find(cargo: impl Fn() -> Command, probe: &Path) -> anyhow::Result<Option<Self>> {
        const LIMIT: Duration = Duration::from_secs(60);
        if !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let version = child::output(cargo().arg("-vV"), LIMIT)?;
        let host = |line: &str| line.strip_prefix("host: ").map(str::to_owned);
        let Some(triple) = version.stdout.lines().find_map(host) else {
            return Ok(None);
        };
        fs::create_dir_all(probe.join("src"))?;
        fs::write(probe.join("src/main.rs"), "fn main() {}\n")?;
        let manifest = "[package]\nname = \"probe\"\nversion = \"0.0.0\"\n[workspace]\n";
        fs::write(probe.join("Cargo.toml"), manifest)?;
        let mut compile = cargo();
        compile
            .args(["rustc", "--quiet", "--manifest-path"])
            .arg(probe.join("Cargo.toml"))
            .args(["--", "--print", "link-args"])
            .env("CARGO_TARGET_DIR", probe)
            .env("CARGO_BUILD_BUILD_DIR", probe);
        let printed = child::output(&mut compile, LIMIT)?.stdout;
        fs::remove_dir_all(probe)?;
        // Variables with their values come before it.
        let program = Regex::new(r#"(?:^|\s)"((?:[^"\\]|\\.)*)""#)?;
        let program = printed.lines().last().and_then(|it| program.captures(it));
        Ok(program.map(|program| Self {
            triple,
            program: program[1].replace("\\\"", "\"").replace("\\\\", "\\"),
        }))
    }

    /// Has rustc start this command in place of the linker where `cargo` builds into the folder `target`.
    ///
    /// # Errors
    /// That nothing can be written there.
    pub(super) fn replace(&self, cargo: &mut Command, target: &Path) -> anyhow::Result<()> {
        // rustc takes the flavour of a linker from its name.
        let name = Path::new(&self.program).file_name().unwrap_or_default();
        let link = target.join("linker").join(name);
        fs::create_dir_all(target.join("linker"))?;
        let _ = fs::remove_file(&link);
        crossover_system::files::symlink(&crossover_system::own_executable()?, &link)?;
        let link = serde_json::json!(link.to_str().context("a path that is not UTF-8")?);
        cargo
            .arg("--config")
            .arg(format!("target.{}.linker={link}", self.triple))
            .env(LINKER, &self.program)
            .env(LINKS, target.join(KEPT_LINKS));
        Ok(())
    }
}

/// Whether this variable is for this command alone, and not for what cargo starts.
pub(super) fn is_own_variable(name: &OsStr) -> bool {
    name == LINKER || name == LINKS
}

/// If rustc starts this command in place of the linker, links, and keeps what an executable of the workspace
/// was linked from.
pub(crate) fn link() -> Option<anyhow::Result<ExitCode>> {
    let (linker, links) = (std::env::var_os(LINKER)?, std::env::var_os(LINKS)?);
    let link = || -> anyhow::Result<ExitCode> {
        let status = Command::new(&linker)
            .args(std::env::args_os().skip(1))
            .env_remove(LINKER)
            .env_remove(LINKS)
            .status()
            .with_context(|| linker.display().to_string())?;
        let is_script =
            std::env::var("CARGO_CRATE_NAME").is_ok_and(|it| it.starts_with("build_script_"));
        if status.success() && !is_script && std::env::var_os("CARGO_PRIMARY_PACKAGE").is_some() {
            // Without it there is one order.
            let _ = Link::keep(linker.into_string().unwrap_or_default(), Path::new(&links));
        }
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    };
    Some(link())
}

/// A linker's command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Link {
    pub(super) linker: String,
    arguments: Vec<String>,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Link {
    /// Keeps the command with which this process was started, and the files that rustc removes after it.
    fn keep(linker: String, links: &Path) -> anyhow::Result<()> {
        let given = std::env::args_os().skip(1).map(|it| it.into_string().ok());
        let given: Option<Vec<String>> = given.collect();
        let mut arguments = Vec::new();
        for argument in given.context("an argument that is not UTF-8")? {
            match argument.strip_prefix('@').map(fs::read_to_string) {
                Some(Ok(file)) => arguments.extend(file.lines().map(unescaped)),
                _ => arguments.push(argument),
            }
        }
        let output = arguments.iter().skip_while(|it| *it != "-o").nth(1);
        let output = PathBuf::from(output.context("no output")?);
        if arguments.iter().any(|it| it == "-shared") {
            return Ok(());
        }
        let kept = links.join(output.file_name().context("no name")?);
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept)?;
        // rustc's folders of files for the linker alone.
        let folder = |argument: &String| {
            let folder = Path::new(argument).parent()?;
            let name = folder.file_name()?.to_str()?.to_owned();
            let is_of_rustc = name.starts_with("rustc") && name.len() == "rustcXXXXXX".len();
            is_of_rustc.then(|| (folder.to_owned(), name))
        };
        for (folder, name) in arguments.iter().filter_map(folder).collect::<BTreeSet<_>>() {
            let to = kept.join(name);
            fs::create_dir_all(&to)?;
            for entry in fs::read_dir(&folder)?.flatten() {
                if entry.path().is_file() {
                    fs::copy(entry.path(), to.join(entry.file_name()))?;
                }
            }
            for argument in &mut arguments {
                *argument = argument.replace(&*folder.to_string_lossy(), &to.to_string_lossy());
            }
        }
        for argument in &mut arguments {
            let path = PathBuf::from(&*argument);
            if path.extension().is_some_and(|it| it == "o") && !path.starts_with(&kept) {
                let to = kept.join(path.file_name().context("no name")?);
                fs::hard_link(&path, &to).or_else(|_| fs::copy(&path, &to).map(drop))?;
                *argument = to.display().to_string();
            }
        }
        let variables = std::env::vars_os().filter(|(name, _)| !is_own_variable(name));
        let link = Self {
            linker,
            arguments,
            folder: std::env::current_dir()?,
            environment: variables.collect(),
        };
        Ok(fs::write(kept.join(KEPT), serde_json::to_vec(&link)?)?)
    }

    /// The command that linked an executable, and the folder of the files that it names. `None` if it was linked
    /// in another way.
    ///
    /// # Errors
    /// That the command cannot be read.
    pub(super) fn kept_for(built: &Path) -> anyhow::Result<Option<(PathBuf, Self)>> {
        let kept = built.ancestors().find_map(|folder| {
            let kept = folder.join(KEPT_LINKS).join(built.file_name()?);
            fs::read(kept.join(KEPT)).ok().map(|bytes| (kept, bytes))
        });
        let link = kept.map(|(kept, bytes)| Ok((kept, serde_json::from_slice(&bytes)?)));
        link.transpose()
    }

    /// The argument by which the project chooses the order of its functions.
    pub(super) fn chosen_order(&self) -> Option<&str> {
        static CHOSEN: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"-ordering-file|--shuffle-sections|(?:^|,)(?:-T|--script)")
                .expect("it is valid")
        });
        let mut arguments = self.arguments.iter().map(String::as_str);
        arguments.find(|it| CHOSEN.is_match(it))
    }

    /// Links to `output` as cargo did, then with symbols, and returns the seconds of a core that a link takes.
    ///
    /// # Errors
    /// An interrupt, or that `output` would not be the executable that was `built`.
    pub(super) fn repeat(&self, built: &Path, output: &Path) -> anyhow::Result<f64> {
        let mut seconds = f64::INFINITY;
        for strips in [true, false] {
            let before = seconds_of_children();
            (self.run(output, &[], strips)).context("it cannot be linked again")?;
            seconds = seconds.min(seconds_of_children() - before);
            if strips && fs::read(output)? != fs::read(built)? {
                bail!("linked again it is another executable");
            }
        }
        Ok(seconds)
    }

    /// Links to `output` with more arguments, without symbols only if `strips` and the command says so.
    ///
    /// # Errors
    /// An interrupt, or that it does not link, as the linker says.
    pub(super) fn run(&self, output: &Path, more: &[String], strips: bool) -> anyhow::Result<()> {
        let mut arguments = self.arguments.clone();
        // mold strips all symbols with those of debuggers.
        let strip = ["-s", "-S", "--strip-all", "--strip-debug"];
        arguments.retain(|it| strips || !strip.contains(&it.trim_start_matches("-Wl,")));
        if let Some(at) = arguments.iter().position(|it| it == "-o") {
            arguments[at + 1] = output.display().to_string();
        }
        arguments.extend_from_slice(more);
        if arguments.iter().map(String::len).sum::<usize>() > LONG {
            let file = output.with_extension("arguments");
            fs::write(
                &file,
                arguments.iter().map(|it| escaped(it)).collect::<String>(),
            )?;
            arguments = vec![format!("@{}", file.display())];
        }
        let mut command = Command::new(&self.linker);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().cloned());
        let linked = child::output(&mut command, Duration::from_secs(60))?;
        if !linked.succeeded() {
            bail!("the linker {}", linked.failure());
        }
        Ok(())
    }

    /// Arguments for the linker itself, which a compiler may stand before.
    pub(super) fn passed(&self, options: Vec<String>) -> Vec<String> {
        let by_compiler = self.arguments.iter().any(|it| it.starts_with("-Wl,"));
        if !by_compiler {
            return options;
        }
        let passed = |option| ["-Xlinker".to_owned(), option];
        options.into_iter().flat_map(passed).collect()
    }
}

/// An argument in rustc's file of arguments: a line, with a backslash before spaces and backslashes.
fn unescaped(line: &str) -> String {
    let mut characters = line.chars();
    let mut argument = String::new();
    while let Some(character) = characters.next() {
        let escaped = (character == '\\').then(|| characters.next()).flatten();
        argument.push(escaped.unwrap_or(character));
    }
    argument
}

fn escaped(argument: &str) -> String {
    argument.replace('\\', "\\\\").replace(' ', "\\ ") + "\n"
}

/// Removes what none of the executables was linked from, such as programs and earlier builds.
pub(super) fn remove_others(target: &Path, built: &[PathBuf]) {
    let links = fs::read_dir(target.join(KEPT_LINKS));
    for entry in links.into_iter().flatten().flatten() {
        let is_of = |built: &PathBuf| built.file_name() == Some(&entry.file_name());
        if !built.iter().any(is_of) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
