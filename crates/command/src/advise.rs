//! `crossover advise`: whether an operation belongs on the GPU.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use crossover_advice::thresholds::Operation;
use crossover_advice::{Advice, HostInfo, Question, Residency, Size};

use crossover_protocol::filter::meant;
use crossover_protocol::settings::Settings;
use crossover_report::report::{self, Options};
use crossover_report::thresholds::{decision_in_words, thresholds};
use crossover_words::text::{visible, visible_lines};

/// Decide from measured times whether an operation belongs on the GPU
///
/// For a measured operation (`crossover advise matmul 1000`) it prints the decision and both times;
/// without an operation it lists all.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The operation; without one, all are listed
    operation: Option<String>,
    /// Its size; for a matrix product also M N K (M x K times K x N)
    #[arg(num_args = 1..=3, requires = "operation", value_parser = size)]
    size: Vec<u64>,
    /// Where the data start and end [default: ordinary; of work on several GPUs: where it was measured]
    #[arg(
        long,
        requires = "operation",
        value_parser = PossibleValuesParser::new(Residency::ALL.map(Residency::name)).try_map(|name| Residency::named(&name).ok_or("no such place"))
    )]
    data: Option<Residency>,
    /// Number of operations on the same data, which are moved once [default: 1]
    #[arg(
        long,
        value_name = "TIMES",
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "operation"
    )]
    reuse: Option<u32>,
    /// Include the cold start: the call is the first one of its process on the GPU
    #[arg(long, requires = "operation")]
    cold: bool,
    /// Use this file of thresholds [default: CROSSOVER_THRESHOLDS, or else the stored results]
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<ExitCode> {
    let named = arguments.thresholds.clone();
    let (advice, groups) = match named.or_else(|| crate::path_in("CROSSOVER_THRESHOLDS")) {
        Some(file) => (Advice::open(&file)?, Vec::new()),
        None => of_the_results()?,
    };
    // As `Advice::of_this_machine`: the same question has the same answer everywhere.
    let advice = advice.check(&HostInfo::detect());
    let answer = match &arguments.operation {
        Some(operation) => measured(&advice, &groups, operation, arguments)?,
        None => decision_in_words::operations(advice.thresholds()),
    };
    let holds_for = decision_in_words::holds_for(advice.thresholds());
    println!("{}\n{}", visible_lines(&answer), visible_lines(&holds_for));
    for concern in advice.concerns() {
        eprintln!("note: {}", visible(&concern.to_string()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The thresholds of this machine, and the names of its groups; without a GPU here, those of its CPU
/// and a reference machine's GPU.
fn of_the_results() -> anyhow::Result<(Advice, Vec<String>)> {
    let settings = Settings::from_env()?;
    let out = settings.report_folder();
    let report = report::read(&settings.results, out, &Options::default())?;
    let thresholds = thresholds(&report)
        .context("the results have no answers: measure an operation on the CPU and on a GPU")?;
    let groups = report.machine.groups.iter().map(|group| group.name.clone());
    Ok((Advice::new(thresholds)?, groups.collect()))
}

fn measured(
    advice: &Advice,
    groups: &[String],
    name: &str,
    arguments: &Args,
) -> anyhow::Result<String> {
    let operations = &advice.thresholds().operations;
    let is_it = |operation: &&Operation| {
        operation.name == name || operation.title.eq_ignore_ascii_case(name)
    };
    let Some(operation) = operations.iter().find(is_it) else {
        let names = || operations.iter().map(|operation| operation.name.as_str());
        let has_divisions = || names().any(|known| known.split('/').next() == Some(name));
        if groups.iter().any(|group| group == name) && !has_divisions() {
            bail!(
                "{name} was measured without an answer: it needs rows on the CPU and on a GPU that do the same"
            );
        }
        let meant = meant(",", name, names());
        let end = if meant.is_empty() { "." } else { &meant };
        let known = Vec::from_iter(names()).join(", ");
        let hint = match name.split('/').next() {
            Some("matmul_devices") if !has_divisions() => {
                "; CROSSOVER_DEVICE=all cargo bench measures it on several GPUs"
            }
            _ => "",
        };
        bail!("no operation {name}{end} There are: {known}{hint}");
    };
    let mut places = operation.places.iter().map(|place| place.data);
    let usual = Residency::default();
    // Two sides other than CPU and GPU that were not measured from ordinary memory, such as one and several GPUs.
    let first = places.clone().next();
    let first = first.filter(|_| operation.sides.is_some() && places.all(|data| data != usual));
    let mut question = Question::new(&operation.name, asked_size(operation, arguments)?)
        .data(arguments.data.or(first).unwrap_or(usual))
        .reuse(arguments.reuse.unwrap_or(1));
    if arguments.cold {
        question = question.cold();
    }
    Ok(decision_in_words::measured(advice, operation, &question))
}

/// Parses a size.
fn size(text: &str) -> Result<u64, &'static str> {
    let size = text.parse().ok().filter(|size| *size > 0);
    size.ok_or("a size is a whole number above zero, such as 700; a product has three, M N K, with spaces between")
}

fn asked_size(operation: &Operation, arguments: &Args) -> anyhow::Result<Size> {
    Ok(match arguments.size[..] {
        [size] => size.into(),
        [m, n, k] => (m, n, k).into(),
        _ => bail!(
            "name a size of {}: {}; or of a product M N K",
            operation.name,
            operation.size
        ),
    })
}
