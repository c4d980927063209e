//! `crossover advise`: whether an operation, or work that was never measured, belongs on the GPU.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use crossover_advice::{Advice, Here, Question, Residency, Size, Work};

use crossover_protocol::filter::nearest;
use crossover_protocol::settings::Settings;
use crossover_report::report::{self, Options};
use crossover_report::thresholds::{decision_in_words, thresholds};
use crossover_words::text::{visible, visible_lines};

/// Decide from measured times whether an operation belongs on the GPU
///
/// For a measured operation (`crossover advise matmul 1000`) it prints the decision and both times;
/// without an operation it lists all. For other work give its amounts (`crossover advise --flop 2e9
/// --bytes 3e6 --upload 4e6 --download 4e6 --launches 12`): from the limits of this machine it
/// computes the least and the typical time.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("amounts").multiple(true).conflicts_with("operation"))]
pub(crate) struct Arguments {
    /// The operation, a group of the report
    operation: Option<String>,
    /// Its size; for a matrix product also M N K (M x K times K x N)
    #[arg(num_args = 1..=3, requires = "operation")]
    size: Vec<u64>,
    /// Where the data start and end
    #[arg(
        long,
        default_value = "ordinary",
        value_parser = PossibleValuesParser::new(Residency::ALL.map(Residency::name)).try_map(|name| Residency::named(&name).ok_or("no such place"))
    )]
    data: Residency,
    /// Number of operations on the same data, which are moved once
    #[arg(
        long,
        value_name = "TIMES",
        default_value_t = 1,
        requires = "operation"
    )]
    reuse: u32,
    /// Include the cold start: the call is the first one of its process on the GPU
    #[arg(long)]
    cold: bool,
    /// Floating-point operations of the work
    #[arg(long, value_name = "COUNT", group = "amounts")]
    flop: Option<f64>,
    /// Bytes that the work must move through memory
    #[arg(long, value_name = "BYTES", group = "amounts")]
    bytes: Option<f64>,
    /// Bytes to the device
    #[arg(long, value_name = "BYTES", group = "amounts")]
    upload: Option<f64>,
    /// Bytes back to the host
    #[arg(long, value_name = "BYTES", group = "amounts")]
    download: Option<f64>,
    /// Kernel launches of the work
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    launches: u32,
    /// Time that the work takes on the CPU now
    #[arg(long, value_name = "MS", requires = "amounts")]
    cpu_ms: Option<f64>,
    /// Use this file of thresholds [default: CROSSOVER_THRESHOLDS, or else the stored results]
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let named = arguments.thresholds.clone();
    let (advice, groups) = match named.or_else(|| crate::path_in("CROSSOVER_THRESHOLDS")) {
        Some(file) => (Advice::open(&file)?, Vec::new()),
        None => of_the_results()?,
    };
    // As `Advice::of_this_machine`: the same question has the same answer everywhere.
    let advice = advice.check(&Here::detect());
    let amounts = [
        arguments.flop,
        arguments.bytes,
        arguments.upload,
        arguments.download,
    ];
    let said = match &arguments.operation {
        Some(operation) => measured(&advice, &groups, operation, arguments)?,
        None if amounts.iter().any(Option::is_some) => unmeasured(&advice, arguments)?,
        None => decision_in_words::operations(advice.thresholds()),
    };
    println!("{}", visible_lines(&said));
    println!(
        "{}",
        visible_lines(&decision_in_words::holds_for(advice.thresholds()))
    );
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
    arguments: &Arguments,
) -> anyhow::Result<String> {
    let operations = &advice.thresholds().operations;
    let Some(operation) = operations.iter().find(|operation| operation.name == name) else {
        let names = || operations.iter().map(|operation| operation.name.as_str());
        if groups.iter().any(|group| group == name) {
            bail!(
                "{name} was measured without an answer: it needs rows on the CPU and on a GPU that do the same"
            );
        }
        let meant = nearest(name, names()).map(|near| format!(", is {near} meant?"));
        bail!(
            "no operation {name}{} There are: {}",
            meant.unwrap_or_else(|| ".".into()),
            names().collect::<Vec<_>>().join(", ")
        );
    };
    let size: Size = match arguments.size[..] {
        [size] => size.into(),
        [m, n, k] => (m, n, k).into(),
        _ => bail!(
            "name a size of {name}: {}; or of a product M N K",
            operation.size
        ),
    };
    let question = Question {
        operation: name,
        size,
        data: arguments.data,
        reuse: arguments.reuse,
        warm: !arguments.cold,
    };
    Ok(decision_in_words::measured(advice, operation, &question))
}

fn unmeasured(advice: &Advice, arguments: &Arguments) -> anyhow::Result<String> {
    let amount = |amount: Option<f64>| amount.unwrap_or(0.0);
    let work = Work {
        flop: amount(arguments.flop),
        bytes: amount(arguments.bytes),
        upload: amount(arguments.upload),
        download: amount(arguments.download),
        launches: arguments.launches,
        cpu_ns: arguments.cpu_ms.map(|ms| ms * 1e6),
    };
    let data = match work.upload + work.download > 0.0 {
        true => arguments.data,
        // Nothing is moved.
        false => Residency::Awaited,
    };
    let moved = advice.moved(&work, data).context(
        "amounts are numbers from zero on, and the limits of the machine have to be known: run \
         the groups transfer and cold_start with a GPU, or name a file with --thresholds",
    )?;
    Ok(decision_in_words::unmeasured(&work, data, &moved))
}
