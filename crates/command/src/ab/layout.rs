//! New orders of an executable's functions, so that a verdict is about the code and not about where the
//! linker put it: rustc starts this command in place of the linker, which keeps what it linked an executable
//! from, and each process is linked anew with sections in an order of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, bail};
use object::{Object, ObjectSymbol, SymbolKind};
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::ab::executable::Executable;
use crate::ab::subject::Version;
use crate::ab::worktree::Copies;
use crate::ab::{Args, child};
use crossover_compare::verdict::Layout;
use crossover_system::process::seconds_of_children;
use crossover_words::text::{visible, with_causes};

/// The layouts that a user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LayoutChoice {
    /// A new order of functions for each process
    Random,
    /// The order in which cargo links them
    Fixed,
}

/// The user's linker, where rustc starts this command in its place.
const LINKER: &str = "CROSSOVER_AB_LINKER";
/// The folder for what executables were linked from.
const LINKS: &str = "CROSSOVER_AB_LINKS";
/// The name of that folder in a target folder.
const KEPT_LINKS: &str = "links";
/// The file with a [`Link`], beside the files that it names.
const KEPT: &str = "link.json";
/// The file with the seed of the order, in the folder of a process's results.
pub(super) const SEED: &str = "layout-seed";
/// Seconds of a core that a link may take, since other work of the machine delays it.
const LONGEST: f64 = 1.0;
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
struct Link {
    linker: String,
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
            let is_theirs = name.starts_with("rustc") && name.len() == "rustcXXXXXX".len();
            is_theirs.then(|| (folder.to_owned(), name))
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

    /// Links to `output` with more arguments, without symbols only if `strips` and the command says so.
    ///
    /// # Errors
    /// An interrupt, or that it does not link, as the linker says.
    fn run(&self, output: &Path, more: &[String], strips: bool) -> anyhow::Result<()> {
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
    fn passed(&self, option: String) -> Vec<String> {
        let by_compiler = self.arguments.iter().any(|it| it.starts_with("-Wl,"));
        match by_compiler {
            true => vec!["-Xlinker".to_owned(), option],
            false => vec![option],
        }
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

/// How a linker is asked for another order of sections.
#[derive(Clone, Copy, Debug)]
enum Shuffle {
    /// lld: the sections of code, with a seed.
    Code,
    /// mold: a seed.
    All,
    /// GNU ld: a script that names the section of each function.
    Script,
}

/// An executable that is linked in a new order of its functions whenever it is asked for.
#[derive(Debug)]
pub(super) struct Ordered {
    link: Link,
    shuffle: Shuffle,
    /// Its functions, where the linker gets a list.
    functions: Vec<String>,
}

/// Why there is one order.
type Fixed = String;

impl Ordered {
    /// Links an executable again as cargo linked it, and then in two orders, and checks that its functions
    /// move.
    ///
    /// # Errors
    /// An interrupt; inside, why it keeps its order.
    fn of(built: &Path) -> anyhow::Result<Result<Self, Fixed>> {
        let kept = built.ancestors().find_map(|folder| {
            let kept = folder.join(KEPT_LINKS).join(built.file_name()?);
            fs::read(kept.join(KEPT)).ok().map(|bytes| (kept, bytes))
        });
        let Some((kept, link)) = kept else {
            return Ok(Err(
                "rustc did not start its linker through `ab`, as where RUSTFLAGS name the linker or `build.target` \
                 another target, and elsewhere than on Linux"
                    .to_owned(),
            ));
        };
        let link: Link = serde_json::from_slice(&link)?;
        static CHOSEN: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"-ordering-file|--shuffle-sections|(?:^|,)(?:-T|--script)")
                .expect("it is valid")
        });
        if let Some(chosen) = link.arguments.iter().find(|it| CHOSEN.is_match(it)) {
            return Ok(Err(format!(
                "the project chooses the order, with {}",
                visible(chosen)
            )));
        }
        let output = path(built);
        let ordered = Self::checked(link, &kept, built, &output)?;
        if ordered.is_err() {
            let _ = fs::remove_file(&output);
        }
        Ok(ordered)
    }

    fn checked(
        link: Link,
        kept: &Path,
        built: &Path,
        output: &Path,
    ) -> anyhow::Result<Result<Self, Fixed>> {
        let own = functions_within(kept)?;
        if own.is_empty() {
            return Ok(Err(
                "its objects have no machine code, as with linker-plugin LTO".to_owned(),
            ));
        }
        let mut seconds = f64::INFINITY;
        for strips in [true, false] {
            let before = seconds_of_children();
            match link.run(output, &[], strips) {
                Err(error) if child::interrupted() => return Err(error),
                Err(error) => return Ok(Err(format!("it cannot be linked again: {error}"))),
                Ok(()) if strips && fs::read(output)? != fs::read(built)? => {
                    return Ok(Err("linked again it is another executable".to_owned()));
                }
                Ok(()) => seconds = seconds.min(seconds_of_children() - before),
            }
        }
        if seconds > LONGEST {
            return Ok(Err(format!("a link takes {seconds:.1} s")));
        }
        let first = addresses(output)?;
        let mut ordered = Self {
            link,
            shuffle: Shuffle::Code,
            functions: Vec::new(),
        };
        for shuffle in [Shuffle::Code, Shuffle::All, Shuffle::Script] {
            ordered.shuffle = shuffle;
            if matches!(shuffle, Shuffle::Script) {
                ordered.functions = first.keys().cloned().collect();
                ordered.functions.sort_unstable();
            }
            let mut linked = Vec::new();
            for seed in [1, 2] {
                match ordered.run(output, seed, false) {
                    Err(error) if child::interrupted() => return Err(error),
                    Err(_) => break,
                    Ok(()) => linked.push(addresses(output)?),
                }
            }
            if let [one, other] = &linked[..] {
                return Ok(match moved(&own, one, other) > 0.5 {
                    true => Ok(ordered),
                    false => Err(
                        "its functions stay where they are in other orders, as with a profile or one section for \
                         all of them"
                            .to_owned(),
                    ),
                });
            }
        }
        Ok(Err(format!(
            "its linker, {}, takes no order",
            ordered.link.linker
        )))
    }

    /// Links it for a process, and sees to it that nothing of it is still to be written while the process runs.
    ///
    /// # Errors
    /// An interrupt, or that it does not link.
    pub(super) fn link(&self, built: &Path, seed: u32) -> anyhow::Result<()> {
        let output = path(built);
        self.run(&output, seed, true)?;
        Ok(File::open(output)?.sync_all()?)
    }

    fn run(&self, output: &Path, seed: u32, strips: bool) -> anyhow::Result<()> {
        let option = match self.shuffle {
            Shuffle::Code => format!("--shuffle-sections=.text*={seed}"),
            Shuffle::All => format!("--shuffle-sections={seed}"),
            Shuffle::Script => {
                let file = output.with_extension("script");
                fs::write(&file, script(&self.functions, seed))?;
                format!("--script={}", file.display())
            }
        };
        self.link.run(output, &self.link.passed(option), strips)
    }
}

/// Where an executable that was built here is linked again: beside it, since some look for files beside them.
pub(super) fn path(built: &Path) -> PathBuf {
    let mut name = built.file_name().unwrap_or_default().to_owned();
    name.push(".ordered");
    built.with_file_name(name)
}

/// A script for GNU ld with the functions in a random order, before those that it does not name.
fn script(functions: &[String], seed: u32) -> String {
    let mut functions = Vec::from_iter(functions);
    fastrand::Rng::with_seed(seed.into()).shuffle(&mut functions);
    let names = functions
        .iter()
        .map(|name| format!("*(.text.{name} .text.unlikely.{name})\n"));
    let names: String = names.collect();
    format!("SECTIONS {{ .text.ordered : {{\n{names}}} }} INSERT BEFORE .text;\n")
}

/// The functions in the objects of a folder.
fn functions_within(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut functions = BTreeSet::new();
    let paths = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    for object in paths.filter(|path| path.is_file()) {
        functions.extend(addresses(&object)?.into_keys());
    }
    Ok(functions)
}

/// The functions in an object or an executable, with their addresses; none in another file.
fn addresses(file: &Path) -> io::Result<HashMap<String, u64>> {
    let bytes = fs::read(file)?;
    let Ok(file) = object::File::parse(&*bytes) else {
        return Ok(HashMap::new());
    };
    let functions = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let named = functions.filter_map(|it| Some((it.name().ok()?.to_owned(), it.address())));
    Ok(named.collect())
}

/// The share of these functions whose distance from the one before them differs between two orders.
fn moved(own: &BTreeSet<String>, one: &HashMap<String, u64>, other: &HashMap<String, u64>) -> f64 {
    let mut places: Vec<[u64; 2]> = (own.iter())
        .filter_map(|name| Some([*one.get(name)?, *other.get(name)?]))
        .collect();
    places.push([0, 0]);
    places.sort_unstable();
    let distances = places
        .windows(2)
        .map(|pair| [0, 1].map(|i| pair[1][i].wrapping_sub(pair[0][i])));
    let count = distances.clone().count();
    let moved = distances.filter(|[one, other]| one != other).count();
    moved as f64 / count.max(1) as f64
}

/// A new order: neither 0, which is another one in each link, nor beyond what each linker takes.
pub(super) fn seed() -> u32 {
    1 + RandomState::new().hash_one(()) as u32 / 2
}

/// Removes what no executable of a side was linked from: programs, and executables of earlier builds.
fn remove_others(links: &Path, executables: &[Executable]) {
    let built = Vec::from_iter(executables.iter().filter_map(Executable::built));
    for entry in fs::read_dir(links).into_iter().flatten().flatten() {
        let is_of = |built: &PathBuf| built.file_name() == Some(&entry.file_name());
        if !built.iter().any(is_of) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Finds which executables can be linked in new orders, and has both sides of these be.
///
/// # Errors
/// An interrupt, or that a file cannot be read or written.
pub(super) fn prepare(
    args: &Args,
    copies: &Copies,
    sides: &mut [Version; 2],
) -> anyhow::Result<Layout> {
    if args.layout == LayoutChoice::Fixed {
        return Ok(Layout::Fixed("`--layout fixed`".to_owned()));
    }
    let mut reasons = BTreeMap::<Fixed, BTreeSet<String>>::new();
    for (side, version) in sides.iter_mut().enumerate() {
        copies.bring(Some(side))?;
        remove_others(&copies.target().join(KEPT_LINKS), &version.executables);
        for executable in &mut version.executables {
            let ordered = match executable.built() {
                Some(built) => match Ordered::of(&built) {
                    Err(error) if child::interrupted() => return Err(error),
                    other => other.unwrap_or_else(|error| Err(with_causes(error.as_ref()))),
                },
                None => Err("a bundle is not linked again".to_owned()),
            };
            match ordered {
                Ok(ordered) => executable.order = Some(Rc::new(ordered)),
                // The other side's may say the same of files of other names.
                Err(_)
                    if reasons
                        .values()
                        .any(|names| names.contains(&executable.name)) => {}
                Err(why) => {
                    let names = reasons.entry(why).or_default();
                    names.insert(executable.name.clone());
                }
            }
        }
    }
    let fixed: BTreeSet<&String> = reasons.values().flatten().collect();
    let mut executables = sides.iter_mut().flat_map(|side| &mut side.executables);
    let mut has_random = false;
    for executable in &mut executables {
        if fixed.contains(&executable.name) {
            executable.order = None;
        }
        has_random |= executable.order.is_some();
    }
    let reasons = reasons.iter().map(|(why, names)| match has_random {
        true => format!(
            "{}: {why}",
            Vec::from_iter(names.iter().map(String::as_str)).join(", ")
        ),
        false => why.clone(),
    });
    let reasons = Vec::from_iter(reasons).join("; ");
    Ok(match reasons.is_empty() {
        true => Layout::Random,
        false => Layout::Fixed(reasons),
    })
}
