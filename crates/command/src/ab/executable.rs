//! Bench executables: how cargo builds and starts them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::ab::layout::{self, Ordered};
use crate::ab::linker::{UserLinker, is_own_variable};
use crate::ab::{BuildArgs, child};
use crossover_system::files::forget_cached;

/// A bench executable, and how cargo would start it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Executable {
    /// Its package and its bench target, `package/target`.
    pub(super) name: String,
    program: OsString,
    /// `None` for a bundle, which gets our folder and environment.
    started: Option<Started>,
    /// How it is linked anew for each process; `None` where all have one order of functions.
    #[serde(skip)]
    pub(super) order: Option<Rc<Order>>,
}

/// New orders of an executable's functions.
#[derive(Debug)]
pub(super) enum Order {
    /// It is linked anew.
    Linked(Ordered),
    /// The files of a bundle, one for each pair.
    Kept(Vec<PathBuf>),
}

impl Order {
    /// Puts the executable in a new order where it is started. Returns the seed, or the number of the kept order.
    ///
    /// # Errors
    /// An interrupt, or that it cannot be linked or copied.
    pub(super) fn place(
        &self,
        built: &Path,
        pair: u32,
        side: usize,
        seed: u32,
    ) -> anyhow::Result<u32> {
        match self {
            Self::Linked(ordered) => ordered.link(built, seed).map(|()| seed),
            Self::Kept(files) => {
                // Far apart where one bundle is compared with itself.
                let at = pair as usize - 1 + side * files.len() / 2;
                let output = layout::path(built);
                let at = at % files.len();
                fs::copy(&files[at], &output)?;
                File::open(output)?.sync_all()?;
                Ok(u32::try_from(at)?)
            }
        }
    }

    /// The number of pairs that it has orders for.
    pub(super) fn most_pairs(&self) -> u32 {
        match self {
            Self::Linked(_) => u32::MAX,
            Self::Kept(files) => u32::try_from(files.len()).unwrap_or(u32::MAX),
        }
    }
}

/// The folder and the environment in which cargo started an executable.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Started {
    folder: OsString,
    environment: Vec<(OsString, OsString)>,
    /// Whether the environment is in addition to ours.
    #[serde(default)]
    adds: bool,
}

/// Names the file that [`record`] writes to.
const BUILT: &str = "CROSSOVER_AB_BUILT";
/// The first argument where cargo starts this command in place of an executable.
const RECORD: &str = "record";

/// If cargo starts this command instead of an executable, records how it would have started the
/// executable.
pub(crate) fn record() -> Option<anyhow::Result<ExitCode>> {
    let file = std::env::var_os(BUILT)?;
    let mut arguments = std::env::args_os().skip(1);
    let program = (arguments.next()? == RECORD).then(|| arguments.next())??;
    let written = Executable::recorded(program).and_then(|executable| {
        let mut file = File::options().append(true).open(&file)?;
        file.write_all(&serde_json::to_vec(&executable)?)
    });
    let written = written.with_context(|| file.display().to_string());
    Some(written.map(|()| ExitCode::SUCCESS))
}

/// Builds bench executables with `cargo bench` into the folder `target`, whatever cargo's settings name, and
/// returns those that it would start, in its order. It writes them to the file `record`.
///
/// # Errors
/// An interrupt, or that they do not build.
pub(super) fn build(
    mut command: Command,
    record: &Path,
    target: &Path,
    flags: &[String],
    linker: Option<&UserLinker>,
) -> anyhow::Result<Vec<Executable>> {
    fs::write(record, "")?;
    let own = crossover_system::own_executable()?;
    let own = own
        .to_str()
        .context("the path of this command is not UTF-8; move it to another folder")?;
    let runner = serde_json::json!([own, RECORD]);
    command
        .arg("bench")
        .args(flags)
        .arg("--config")
        .arg(format!("target.\"cfg(all())\".runner={runner}"));
    if let Some(linker) = linker {
        linker.replace(&mut command, target)?;
    }
    command
        // All that an executable does where a runner of the user's takes precedence.
        .args(["--", "--list"])
        .env("CARGO_TARGET_DIR", target)
        .env(BUILT, record);
    // There, braces are variables of cargo's. What both sides would share is refused later.
    if !target.to_string_lossy().contains('{') {
        command.env("CARGO_BUILD_BUILD_DIR", target);
    }
    let status = child::run(&mut command)?;
    if !status.success() {
        bail!(
            "does not build ({status}), as cargo says above; if a file is missing: copies contain no files \
             that git ignores, and none of a repository inside this one that is not a submodule"
        );
    }
    let recorded = fs::read(record)?;
    let executables = serde_json::Deserializer::from_slice(&recorded).into_iter();
    Ok(executables.collect::<Result<_, _>>()?)
}

/// cargo, in that folder, with another toolchain than that of the folder if one is named.
pub(super) fn cargo(folder: &Path, toolchain: Option<&str>) -> Command {
    let mut command = Command::new("cargo");
    without_outer_cargo(command.current_dir(folder));
    command.envs(toolchain.map(|name| ("RUSTUP_TOOLCHAIN", name)));
    command
}

/// Has `command` use the toolchain of its folder, as in the user's shell: a cargo that started this command,
/// perhaps through other programs, names its own toolchain.
pub(super) fn without_outer_cargo(command: &mut Command) -> &mut Command {
    let is_users =
        std::env::var_os("RUSTUP_TOOLCHAIN_SOURCE").is_some_and(|source| source == "env");
    if std::env::var_os("CARGO").is_some() && !is_users {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    command.env_remove("CARGO")
}

/// The bench target of an executable, whose name has a hash behind it.
fn target(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    match name.rsplit_once('-') {
        Some((target, hash)) if hash.len() == 16 => target.to_owned(),
        _ => name.into_owned(),
    }
}

impl Executable {
    /// One that cargo would start in our folder and environment.
    fn recorded(program: OsString) -> io::Result<Self> {
        let package = std::env::var("CARGO_PKG_NAME").map(|name| name + "/");
        let is_theirs = |(name, _): &(OsString, OsString)| name != BUILT && !is_own_variable(name);
        Ok(Self {
            name: package.unwrap_or_default() + &target(Path::new(&program)),
            program,
            started: Some(Started {
                folder: std::env::current_dir()?.into(),
                environment: std::env::vars_os().filter(is_theirs).collect(),
                adds: false,
            }),
            order: None,
        })
    }

    /// The executable `run` of a bundle.
    pub(super) fn of_bundle(run: PathBuf) -> Self {
        Self {
            name: "run".to_owned(),
            program: run.into(),
            started: None,
            order: None,
        }
    }

    /// Whether the other side's executable has the same bytes. (A bundle may start other files.)
    pub(super) fn equals(&self, other: &Self) -> bool {
        let read = |one: &Self| fs::read(one.built()?).ok();
        self.name == other.name && read(self).is_some_and(|bytes| Some(bytes) == read(other))
    }

    /// The file that cargo built; `None` for a bundle.
    pub(super) fn built(&self) -> Option<PathBuf> {
        self.started.as_ref()?;
        let program = PathBuf::from(&self.program);
        Some(program.canonicalize().unwrap_or(program))
    }

    /// Its program, and the folder and the variables with which it is started.
    pub(super) fn parts(&self) -> (&Path, &Path, &[(OsString, OsString)]) {
        let started = self.started.as_ref();
        let folder = started.map_or(OsStr::new("."), |started| &started.folder);
        let environment = started.map_or(&[][..], |started| &started.environment);
        (Path::new(&self.program), Path::new(folder), environment)
    }

    /// The same executable for another machine, with the variables that cargo set for it alone.
    pub(super) fn carried(mut self) -> Self {
        /// Variables of the machine that it was built on.
        const HERE: &str = "PATH LD_LIBRARY_PATH CARGO CARGO_HOME CARGO_TARGET_DIR CARGO_BUILD_BUILD_DIR PWD OLDPWD";
        if let Some(started) = &mut self.started {
            started.adds = true;
            started.environment.retain(|(name, value)| {
                let is_ours = std::env::var_os(name).is_some_and(|ours| ours == *value);
                let is_here = HERE.split(' ').any(|here| here == name)
                    || name.as_encoded_bytes().starts_with(b"RUSTUP_");
                !is_ours && !is_here
            });
        }
        self
    }

    /// Whether it is a bench target of that package.
    pub(super) fn is_of(&self, package: &str) -> bool {
        self.name
            .split_once('/')
            .is_some_and(|(owner, _)| owner == package)
    }

    /// Links it in the order of this seed, which goes to the folder of the results, `home`; or else has its
    /// file read anew.
    ///
    /// # Errors
    /// An interrupt, or that it does not link.
    pub(super) fn renew(
        &self,
        pair: u32,
        side: usize,
        seed: u32,
        home: &Path,
    ) -> anyhow::Result<()> {
        match &self.order {
            Some(order) => {
                let seed = order.place(Path::new(&self.program), pair, side, seed)?;
                Ok(fs::write(home.join(layout::SEED), format!("{seed}\n"))?)
            }
            None => {
                self.read_anew();
                Ok(())
            }
        }
    }

    /// Makes its file, or those beside the `run` of a bundle, be read into other pages of memory. A
    /// cached file keeps its pages, and with some pages all its processes are slower: by 1.6 % than
    /// those of an equal executable. Files that cannot leave the cache keep their pages.
    fn read_anew(&self) {
        let program = Path::new(&self.program);
        let beside = (self.started.is_none())
            .then(|| fs::read_dir(program.parent()?).ok())
            .flatten();
        let beside = beside.into_iter().flatten().flatten();
        let beside = beside.map(|entry| entry.path());
        for path in beside.chain([program.to_owned()]) {
            // A pipe would wait for a writer.
            if path.is_file() {
                let _ = File::open(&path).map(|file| forget_cached(&file));
            }
        }
    }

    /// Starts it as `cargo bench` would, with no arguments yet.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(match self.order {
            Some(_) => layout::path(Path::new(&self.program)).into(),
            None => self.program.clone(),
        });
        match &self.started {
            None => command.arg("bench"),
            Some(started) => {
                command.arg("--bench").current_dir(&started.folder);
                if !started.adds {
                    command.env_clear();
                }
                command.envs(started.environment.iter().cloned())
            }
        };
        // A comparison needs no telemetry, whose thread would run in the other side's turn, and no
        // answers, for which a run starts child processes.
        command
            .env("CROSSOVER_MONITOR", "off")
            .env("CROSSOVER_PROCESSES", "0")
            .env("AB_PADDING", padding());
        command
    }

    /// The same executable after each of these folders moved from its first path to its second.
    pub(super) fn moved(&self, places: &[[PathBuf; 2]]) -> Self {
        let mut moved = self.clone();
        let started = moved.started.iter_mut().flat_map(|started| {
            let values = started.environment.iter_mut().map(|(_, value)| value);
            values.chain([&mut started.folder])
        });
        for value in started.chain([&mut moved.program]) {
            let inner = |path: &Path| {
                let mut places = places.iter();
                places.find_map(|[from, to]| Some(to.join(path.strip_prefix(from).ok()?)))
            };
            // Also a list of paths, such as those of libraries.
            let paths = Vec::from_iter(std::env::split_paths(&*value));
            if paths.iter().any(|path| inner(path).is_some()) {
                let paths = paths.into_iter().map(|path| inner(&path).unwrap_or(path));
                *value = std::env::join_paths(paths).unwrap_or_else(|_| value.clone());
            }
        }
        moved
    }
}

/// The number of pairs that all executables have orders for.
pub(super) fn most_pairs<'a>(executables: impl Iterator<Item = &'a Executable>) -> u32 {
    let orders = executables.filter_map(|executable| executable.order.as_ref());
    orders
        .map(|order| order.most_pairs())
        .min()
        .unwrap_or(u32::MAX)
}

/// Has executables whose links take too much of the `seconds` of a pair keep their order, and says why, by their
/// names.
pub(super) fn keep_slow_orders<'a>(
    executables: impl Iterator<Item = &'a mut Executable>,
    seconds: impl Fn(&str) -> f64,
) -> BTreeMap<String, String> {
    let executables = Vec::from_iter(executables);
    let slow = executables.iter().filter_map(|executable| {
        let Order::Linked(ordered) = executable.order.as_deref()? else {
            return None;
        };
        let why = ordered.too_slow(seconds(&executable.name))?;
        Some((executable.name.clone(), why))
    });
    let slow: BTreeMap<_, _> = slow.collect();
    for executable in executables {
        if slow.contains_key(&executable.name) {
            executable.order = None;
        }
    }
    slow
}

/// Environment to move the stack of a process by up to a page. Its start depends on the length of the
/// environment and of the executable's path, and some code is slower from some places (Mytkowicz and
/// others 2009): without address space layout randomization an iteration over the powerset in itertools
/// varied by 2.6 %. Otherwise two sides whose paths differ in length would always differ.
fn padding() -> String {
    const PAGE: u64 = 4096;
    let drawn = RandomState::new().hash_one(()) % PAGE;
    "x".repeat(usize::try_from(drawn).unwrap_or_default())
}

/// A workspace as cargo describes it.
#[derive(Deserialize)]
pub(crate) struct Workspace {
    packages: Vec<Package>,
    #[serde(default)]
    pub(crate) target_directory: PathBuf,
    #[serde(default)]
    workspace_default_members: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Package {
    id: String,
    manifest_path: PathBuf,
    pub(super) name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    #[serde(default, rename = "required-features")]
    required_features: Vec<String>,
}

impl Package {
    fn benches(&self) -> impl Iterator<Item = &Target> {
        (self.targets.iter()).filter(|target| target.kind == ["bench"])
    }

    /// Whether a package specification, `name` or `name@version`, means it.
    fn is(&self, spec: &str) -> bool {
        spec.split('@').next() == Some(&self.name)
    }
}

impl Workspace {
    /// # Errors
    /// That cargo cannot read the manifest.
    pub(crate) fn read(mut cargo: Command) -> anyhow::Result<Self> {
        /// It may fetch an index.
        const LIMIT: Duration = Duration::from_secs(600);
        cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
        let output = child::output(&mut cargo, LIMIT)?;
        if !output.succeeded() {
            bail!("`cargo metadata` {}", output.failure());
        }
        serde_json::from_str(&output.stdout).context("`cargo metadata` printed no such JSON")
    }

    /// The folders of its packages.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        (self.packages.iter()).filter_map(|package| package.manifest_path.parent())
    }

    /// The packages with bench targets whose benchmarks `cargo bench` runs.
    pub(super) fn packages(&self, args: &BuildArgs) -> impl Iterator<Item = &Package> {
        let is_wanted =
            |target: &Target| args.benches.is_empty() || args.benches.contains(&target.name);
        self.packages.iter().filter(move |package| {
            let is_chosen = if args.packages.is_empty() {
                args.workspace || self.workspace_default_members.contains(&package.id)
            } else {
                args.packages.iter().any(|spec| package.is(spec))
            };
            is_chosen && package.benches().any(is_wanted)
        })
    }

    /// The flags of cargo for the packages and bench targets that the user named and that exist here, `None`
    /// if none of them exists; and the names of the others, which may exist on the other side.
    pub(super) fn selected(&self, args: &BuildArgs) -> (Option<Vec<String>>, BTreeSet<String>) {
        let is = |package: &Package| args.packages.iter().any(|spec| package.is(spec));
        let chosen = (self.packages.iter()).filter(|one| args.packages.is_empty() || is(one));
        let benches: BTreeSet<&String> = (chosen.flat_map(Package::benches))
            .map(|target| &target.name)
            .collect();
        let has = |flag: &str, name: &String| match flag {
            "--bench" => benches.contains(name),
            _ => self.packages.iter().any(|package| package.is(name)),
        };
        let (mut flags, mut missing, mut lacks_all) = (Vec::new(), BTreeSet::new(), false);
        for (names, flag, what) in [
            (&args.packages, "--package", "package"),
            (&args.benches, "--bench", "bench target"),
        ] {
            let (there, absent): (Vec<&String>, Vec<_>) =
                names.iter().partition(|name| has(flag, name));
            lacks_all |= there.is_empty() && !absent.is_empty();
            flags.extend((there.into_iter()).flat_map(|name| [flag.to_owned(), name.clone()]));
            missing.extend(absent.into_iter().map(|name| format!("{what} `{name}`")));
        }
        ((!lacks_all).then_some(flags), missing)
    }

    /// The bench targets that cargo skipped when it built `built`, since they need features.
    pub(super) fn skipped(&self, args: &BuildArgs, built: &[Executable]) -> Vec<String> {
        let mut remarks = Vec::new();
        for package in self.packages(args) {
            for target in package.benches() {
                let name = format!("{}/{}", package.name, target.name);
                let features = target.required_features.join(",");
                if !features.is_empty() && built.iter().all(|it| it.name != name) {
                    remarks.push(format!(
                        "left out: {name}, which cargo builds with `--features {features}`"
                    ));
                }
            }
        }
        remarks
    }
}
