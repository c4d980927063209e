//! The results that tests report on: those of a committed record, with small changes. The figures change
//! with the record, so tests assert what kind of figure a report shows.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::report::Options;
use crossover_results::export::record;
use crossover_results::model::id::Device;
use crossover_results::model::record::RunRecord;
use crossover_results::store::curves::Benchmark;
use crossover_results::store::machine_record::{self, MACHINES};
use crossover_results::store::machine_results::MachineResults;
use crossover_results::store::stored_results::StoredResults;

/// Three runs with the size set `default` on an H200, with profiles.
pub(crate) const RECORD: &str =
    "nvidia-h200--intel-xeon-processor/20261125T022932Z--38f947a0e118.json.gz";

/// The folder of the committed records.
pub(crate) fn machines() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target-reports");
    assert!(root.is_dir(), "only a checkout has the committed records");
    root.join(MACHINES)
}

/// The results of these groups, as if this machine had measured them.
pub(crate) fn measured(groups: &[&str]) -> StoredResults {
    // Reading them takes as long as a page.
    static RESULTS: LazyLock<StoredResults> =
        LazyLock::new(|| machine_record::read(&machines().join(RECORD)).unwrap());
    let mut results = RESULTS.clone();
    results.benchmarks.retain(|b| groups.contains(&&*b.group));
    results.profiles.retain(|p| groups.contains(&&*p.id.group));
    results
}

/// These results as one process measured them.
pub(crate) fn of_one_process(groups: &[&str]) -> StoredResults {
    let mut results = measured(groups);
    for run in &mut results.runs {
        run.confirmations.clear();
    }
    results
}

/// The results of the same machine without its GPU.
pub(crate) fn without_gpu(groups: &[&str]) -> StoredResults {
    let mut results = of_one_process(groups);
    results.benchmarks.retain(|b| b.device == Device::Cpu);
    results.profiles.clear();
    for run in &mut results.runs {
        run.environment.gpu = None;
        run.limits.retain(|name, _| name.starts_with("cpu_"));
        run.curves.retain(|name, _| name.starts_with("cpu_"));
    }
    results
}

/// A report on a record alone.
pub(crate) fn alone(record: PathBuf) -> Options {
    Options {
        with: vec![record],
        no_reference: true,
    }
}

/// The newest run.
pub(crate) fn newest(results: &mut StoredResults) -> &mut RunRecord {
    results.runs.last_mut().unwrap()
}

/// The benchmark with this id.
pub(crate) fn benchmark<'a>(results: &'a mut StoredResults, id: &str) -> &'a mut Benchmark {
    let mut all = results.benchmarks.iter_mut();
    all.find(|b| b.id == id).expect(id)
}

/// Writes the record of these results beside the page in `out`, as that of a committed machine.
pub(crate) fn commit(results: StoredResults, out: &Path) -> PathBuf {
    let machine = MachineResults::of_results(results, "", false);
    let record = record(&machine, &[], &[], &[]).unwrap();
    let name = format!("one/{}.json.gz", machine.run.unwrap().run);
    let path = out.join(MACHINES).join(name);
    machine_record::write(&path, &record).unwrap();
    path
}
