//! New orders of an executable's functions and constants, so that a verdict is about the code and not about
//! where the linker put it: each process is linked anew with its sections in a random order.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use object::{Object, ObjectSymbol, SymbolKind};

use crate::ab::linker::Link;
use crossover_words::text::visible;

/// The layouts that a user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LayoutChoice {
    /// A new order of functions for each process
    Random,
    /// The order in which cargo links them
    Fixed,
}

/// The file with the seed of the order, in the folder of a process's results.
pub(super) const SEED: &str = "layout-seed";
/// Seconds of a core that a link may take, since other work of the machine delays it.
const LONGEST: f64 = 1.0;

/// How a linker is asked for another order of sections.
#[derive(Clone, Copy, Debug)]
enum Shuffle {
    /// lld: the sections of code and of constants, each with a seed. Where constants lie changes times as much.
    CodeAndConstants,
    /// mold: a seed.
    All,
    /// GNU ld: a script that names the section of each function.
    Script,
}

/// An executable that is linked in a new order of its functions whenever it is asked for.
#[derive(Debug)]
pub(super) struct Ordered {
    link: Link,
    /// Seconds of a core that a link takes.
    seconds: f64,
    shuffle: Shuffle,
    /// Its functions, for a linker that gets a list.
    functions: Vec<String>,
}

impl Ordered {
    /// Links an executable again as cargo linked it, and then in two orders, and checks that its functions
    /// move.
    ///
    /// # Errors
    /// Why it keeps its order; an interrupt.
    pub(super) fn of(built: &Path) -> anyhow::Result<Self> {
        let (kept, link) = Link::kept_for(built)?.context(
            "rustc did not start its linker through `ab`, as where RUSTFLAGS name the linker or `build.target` \
             another target, and elsewhere than on Linux",
        )?;
        if let Some(chosen) = link.chosen_order() {
            bail!("the project chooses the order, with {}", visible(chosen));
        }
        let output = path(built);
        let ordered = Self::checked(link, &kept, built, &output);
        if ordered.is_err() {
            let _ = fs::remove_file(&output);
        }
        ordered
    }

    fn checked(link: Link, kept: &Path, built: &Path, output: &Path) -> anyhow::Result<Self> {
        let own = functions_within(kept)?;
        if own.is_empty() {
            bail!("its objects have no machine code, as with linker-plugin LTO");
        }
        let seconds = link.repeat(built, output)?;
        if seconds > LONGEST {
            bail!("a link takes {seconds:.1} s");
        }
        let mut functions = Vec::from_iter(addresses(output)?.into_keys());
        functions.sort_unstable();
        let mut ordered = Self {
            link,
            seconds,
            shuffle: Shuffle::CodeAndConstants,
            functions,
        };
        for shuffle in [Shuffle::CodeAndConstants, Shuffle::All, Shuffle::Script] {
            ordered.shuffle = shuffle;
            let linked = [1, 2].map(|seed| {
                ordered.run(output, seed, false)?;
                anyhow::Ok(addresses(output)?)
            });
            if let [Ok(one), Ok(other)] = linked {
                if moved(&own, &one, &other) > 0.5 {
                    return Ok(ordered);
                }
                bail!(
                    "its functions stay where they are in other orders, as with a profile or one section for \
                     all of them"
                );
            }
        }
        bail!("its linker, {}, takes no order", ordered.link.linker)
    }

    /// Why links take too much of the time of a pair of processes, if they do.
    pub(super) fn too_slow(&self, pair: f64) -> Option<String> {
        /// The share of a pair's time that a link may take.
        const SHARE: f64 = 0.1;
        /// Seconds that it may take in any case, as where a filter selects one benchmark.
        const ALWAYS: f64 = 0.2;
        let seconds = self.seconds;
        (seconds > (SHARE * pair).max(ALWAYS))
            .then(|| format!("a link takes {seconds:.1} s beside a pair of {pair:.1} s"))
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
        let options = match self.shuffle {
            Shuffle::CodeAndConstants => [".text*", ".rodata*"]
                .map(|sections| format!("--shuffle-sections={sections}={seed}"))
                .to_vec(),
            Shuffle::All => vec![format!("--shuffle-sections={seed}")],
            Shuffle::Script => {
                let file = output.with_extension("script");
                fs::write(&file, script(&self.functions, seed))?;
                vec![format!("--script={}", file.display())]
            }
        };
        self.link.run(output, &self.link.passed(options), strips)
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
