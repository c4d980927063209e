//! `crossover ab [A [B]]`: two revisions or bundles, run together in turns and compared pair by
//! pair.
//! With `--null` a revision is compared with itself, which shows how far to trust verdicts of these benchmarks on
//! this machine.

pub(crate) mod bundle;
mod bundled;
mod child;
mod driven;
pub(crate) mod executable;
mod layout;
mod linker;
mod pairs;
mod probe;
mod processes;
mod repository;
mod subject;
mod turns;
mod worktree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context;

use crossover_compare::comparison::Comparison;
use crossover_compare::verdict::{Options, Verdict};
use crossover_results::statistics::median::median;
use crossover_results::store::runs;
use crossover_results::store::whole_file::write_atomic;
use crossover_words::text::visible;

use crate::ab::layout::LayoutChoice;
pub(crate) use crate::ab::linker::link;
use crate::ab::pairs::{Sampling, check_room};
use crate::ab::probe::BenchArgs;
pub(crate) use crate::ab::repository::{git_around, git_line};
use crate::ab::subject::Version;
use crate::ab::worktree::Copies;
use crossover_words::units;

use crate::compare::VerdictArgs;
use crate::number;

pub(crate) use crate::ab::executable::record;

/// The sides, in the names of runs.
const NAMES: [char; 2] = ['a', 'b'];

/// Build two versions, run them in turns, and compare them
///
/// Works for any Criterion project. Two processes of the same code differ, so `ab` runs many pairs
/// of short processes, one benchmark each, in the order A B B A. The first pairs (`--pairs`) run all
/// benchmarks. Later pairs run the undecided ones until the time is spent (`--budget`); only these
/// pairs can make a verdict slower or faster. A suite of `crossover` takes turns sample by sample.
///
/// A and B are git revisions, or else bundle folders (each with an executable `run`). By default A is
/// HEAD, and B is the work tree with its uncommitted changes. Revisions are built in work trees of
/// their own, so you may go on editing yours. Arguments after `--` go to the benchmarks: a filter,
/// `--sample-size`, and so on.
///
/// Exit code: 0 nothing is slower, 1 something is slower (see --fail-on) or a run failed, 2 nothing
/// could be compared, 130 interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The old code: a revision (HEAD by default) or a bundle folder
    a: Option<String>,
    /// The new code: a revision (the work tree by default) or a bundle folder
    b: Option<String>,
    /// Pairs of processes at the start, which run all benchmarks [default: 8; 2 where they take
    /// turns sample by sample]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pairs: Option<u32>,
    /// Minutes after which no further pair is started; 0 judges by the first pairs alone
    #[arg(
        long,
        value_name = "MINUTES",
        default_value_t = 7.0,
        value_parser = number(0.0..=1e4, "give minutes, from 0 to 10000")
    )]
    budget: f64,
    /// Seconds that a side may take for one turn, including set-up and analysis, before it is
    /// ended as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    turn_limit: u32,
    #[command(flatten)]
    build: BuildArgs,
    /// Compare A with itself so many times, each within the budget: how many verdicts are false, the
    /// resolution of each class, and the time that finding a change of 2 % and of 5 % takes
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(conflicts_with_all = ["b", "json", "markdown", "html"])]
    null: Option<u32>,
    /// Whether each process is linked anew, with its functions and constants in a random order, so that a
    /// verdict does not depend on where the linker puts them
    #[arg(long, value_enum, default_value_t = LayoutChoice::Random)]
    layout: LayoutChoice,
    /// Run also what has equal executables on both sides
    #[arg(long)]
    run_equal: bool,
    /// Folder for the results of all runs
    #[arg(long, value_name = "FOLDER", default_value = "target-reports/ab")]
    results: PathBuf,
    #[command(flatten)]
    verdict: VerdictArgs,
    /// Arguments of the benchmarks
    #[arg(last = true, value_name = "BENCH_ARGS")]
    bench_args: Vec<String>,
}

/// Options that `cargo bench` also has, the same on both sides.
#[derive(Debug, clap::Args)]
pub(super) struct BuildArgs {
    /// Only this bench target (may be repeated; one of two revisions may lack it)
    #[arg(long = "bench", value_name = "NAME", help_heading = BUILD)]
    benches: Vec<String>,
    /// Only this package of the workspace (may be repeated; one of two revisions may lack it)
    #[arg(short, long = "package", value_name = "NAME", help_heading = BUILD)]
    packages: Vec<String>,
    /// All packages of the workspace
    #[arg(long, help_heading = BUILD, conflicts_with = "packages")]
    workspace: bool,
    /// Features of the packages
    #[arg(short = 'F', long, value_name = "FEATURES", help_heading = BUILD)]
    features: Vec<String>,
    /// All features
    #[arg(long, help_heading = BUILD)]
    all_features: bool,
    /// Without the default features
    #[arg(long, help_heading = BUILD)]
    no_default_features: bool,
}

/// The heading of these options.
const BUILD: &str = "Build (of revisions)";

impl BuildArgs {
    /// The flags of cargo that do not name a package or a target.
    fn build_flags(&self, workspace: bool) -> Vec<String> {
        let flags = [
            ("--workspace", workspace),
            ("--all-features", self.all_features),
            ("--no-default-features", self.no_default_features),
        ];
        let given = flags.into_iter().filter(|(_, given)| *given);
        let features = self.features.iter().flat_map(|names| ["--features", names]);
        given
            .map(|(flag, _)| flag)
            .chain(features)
            .map(str::to_owned)
            .collect()
    }
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // From here on interrupts only set a flag, so that worktrees are removed on the way out.
    crossover_system::interrupt::hold();
    match ab(args) {
        // After an interrupt, any failure is due to it.
        Err(_) if child::interrupted() => {
            eprintln!("{}", child::INTERRUPTED);
            Ok(ExitCode::from(130))
        }
        other => other,
    }
}

fn ab(args: &Args) -> anyhow::Result<ExitCode> {
    args.verdict.check_page()?;
    let mut options = args.verdict.options();
    let a = args.a.as_deref();
    let itself = || a.unwrap_or("HEAD");
    let mut sides = subject::named(a, args.b.as_deref().or(args.null.map(|_| itself())))?;
    let bench_args = BenchArgs::parse(&args.bench_args)?;
    let results = fresh_folder(&args.results)?;

    let repository = sides.iter().find_map(Version::repository);
    let copies = Copies::new(repository, subject::place(&sides)?)?;
    let has_new = sides.iter().any(Version::is_work_tree);
    for (side, subject) in sides.iter_mut().enumerate() {
        subject.copy(side, &copies, has_new)?;
    }
    subject::check_names(&sides, &args.build)?;
    // Both are built before either runs, so that no run follows a hot compiler.
    for (side, subject) in sides.iter_mut().enumerate() {
        subject.build(side, &copies, &args.build)?;
    }
    let mut remarks = subject::differences(&mut sides, &args.build);
    let is_equal = || subject::are_equal(&sides, &copies);
    if args.null.is_none() && !args.run_equal && is_equal()? {
        let Some(remark) = subject::equal_but(&copies.different_files()?) else {
            let labels = sides.map(|side| vec![side.label]);
            let comparison = Comparison::of_equal(labels, &options);
            return pairs::show(args, &results, &comparison);
        };
        remarks.push(remark);
    }
    options.layout = subject::order_functions(args, &copies, &mut sides)?;
    if let Some(times) = args.null {
        let label = sides[0].label.clone();
        let choose = || probe::choose(args, &bench_args, &copies, &sides, &mut Vec::new());
        return compare_with_itself(args, times, &results, &label, choose, &options);
    }
    let sampling = probe::choose(args, &bench_args, &copies, &sides, &mut remarks)?;
    let labels = sides.map(|side| side.label);
    let (comparison, _) = pairs::judge(args, &results, labels, sampling, remarks, options)?;
    pairs::show(args, &results, &comparison)
}

/// A new folder named by the time; absolute, since the runs have folders of their own.
fn fresh_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    let parent = std::path::absolute(parent)?;
    let dir = parent.join(runs::name(SystemTime::now()));
    let is_new = !parent.exists();
    let remedy = || format!("{}: choose another folder with --results", dir.display());
    std::fs::create_dir_all(&dir).with_context(remedy)?;
    if is_new {
        // The repository around it need not know of results.
        std::fs::write(parent.join(".gitignore"), "*\n").with_context(remedy)?;
    }
    check_room(&dir)?;
    Ok(dir)
}

/// Changes whose time is shown.
const CHANGES: [f64; 2] = [0.02, 0.05];

/// One comparison, and the seconds that a pair of processes of each benchmark took.
type Compared = (Comparison, BTreeMap<String, f64>);

/// Compares the code with itself so many times, each time in a folder of its own.
///
/// # Errors
/// An interrupt, or that no pair can be run.
fn compare_with_itself<'a>(
    args: &Args,
    times: u32,
    results: &Path,
    label: &str,
    mut choose: impl FnMut() -> anyhow::Result<Box<dyn Sampling + 'a>>,
    options: &Options,
) -> anyhow::Result<ExitCode> {
    let mut comparisons = Vec::new();
    for number in 1..=times {
        eprintln!("comparison {number} of {times}");
        let folder = results.join(number.to_string());
        std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let labels = [label, label].map(str::to_owned);
        let sampling = choose()?;
        let (comparison, outcome) =
            pairs::judge(args, &folder, labels, sampling, Vec::new(), options.clone())?;
        args.verdict.keep(&comparison, &folder)?;
        for failure in &comparison.failures {
            eprintln!("error: {}", visible(failure));
        }
        comparisons.push((comparison, outcome.seconds));
    }
    let summary = summary(&comparisons);
    // First, since the process ends where its output cannot be printed.
    let kept = write_atomic(&results.join("summary.txt"), summary.as_bytes());
    eprintln!(
        "results of all comparisons, summary.txt: {}",
        results.display()
    );
    print!("{summary}");
    kept?;
    let codes = comparisons.iter().map(|(comparison, _)| {
        let fails = !comparison.failures.is_empty() || comparison.count(Verdict::Failed) > 0;
        if fails {
            1
        } else {
            2 * u8::from(comparison.drifts.is_empty())
        }
    });
    Ok(codes.max().unwrap_or(0).into())
}

fn summary(compared: &[Compared]) -> String {
    let count = |verdict| -> usize { compared.iter().map(|(of, _)| of.count(verdict)).sum() };
    let [slower, faster, same, unsure] = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::Same,
        Verdict::Unsure,
    ]
    .map(count);
    let mut text = format!(
        "{}: {} of {} false ({slower} slower, {faster} faster); {same} same, {unsure} unsure.\n",
        units::counted(compared.len(), "comparison"),
        slower + faster,
        units::counted(slower + faster + same + unsure, "verdict"),
    );
    let classes = compared.iter().flat_map(|(of, _)| &of.drifts);
    let classes: BTreeMap<_, _> = classes.map(|class| (class.name(), class)).collect();
    for (name, class) in classes {
        let resolution = median(compared.iter().filter_map(|(of, _)| of.resolution(class)));
        let resolution = resolution.map_or("unknown".to_owned(), units::percent_fine);
        let takes = CHANGES.map(|change| {
            let times = compared
                .iter()
                .filter_map(|(of, s)| of.seconds_to_find(change, class, s));
            let seconds = median(times).filter(|seconds| seconds.is_finite());
            let seconds = seconds.map_or("unknown".to_owned(), |s| units::time(s * 1e9));
            format!("{seconds} for a change of {}", units::percent_fine(change))
        });
        text += &format!(
            "{name} ({}): resolution {resolution}; time per benchmark: {}.\n",
            units::counted(class.benchmarks, "benchmark"),
            takes.join(", "),
        );
    }
    text
}
