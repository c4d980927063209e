//! The pages, the plots and the tables as files.

use std::fs;

use crate::readme;
use crate::report::{self, Options};
use crate::tests::committed::{
    alone, benchmark, commit, machines, measured, newest, of_one_process, without_gpu,
};
use crate::tests::{folder, holds, pages, record, written};
use crate::write::write;
use crossover_results::model::record::Skip;
use crossover_results::model::{Energy, Telemetry, TelemetryEvent, TelemetryEventKind};
use crossover_results::store::machine_record;
use crossover_results::store::profiles::Profiled;
use serde_json::Value;

/// The part of a page from an id to the end of its section.
fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let (_, section) = page.split_once(&format!("id=\"{id}\"")).expect(id);
    section.split("</section>").next().unwrap()
}

#[test]
fn several_gpus_are_compared_with_one() {
    let dir = folder();
    let of_two = "nvidia-h200--intel-xeon-processor/20261127T071753Z--814a689129d8.json.gz";
    let results = machine_record::read(&machines().join(of_two)).unwrap();
    written(results, dir.path());
    let read = |page: &str| fs::read_to_string(dir.path().join(page)).unwrap();
    let answer = "Matrix product on several GPUs, 2 GPUs against one: from N = 892 on";
    holds(&read("index.html"), &[answer]);
    let group = read("groups/matmul_devices.html");
    holds(&group, &["against one GPU", "A speedup is over one GPU"]);
    assert!(!group.contains("the CPU"), "{group}");
}

#[test]
fn a_report_has_pages_plots_and_tables() {
    let dir = folder();
    let mut results = measured(&["matmul", "cold_start"]);
    // Criterion's own page of one benchmark.
    let own = dir.path().join("criterion/matmul/cpu_best/64");
    fs::create_dir_all(own.join("report")).unwrap();
    fs::write(own.join("report/index.html"), "").unwrap();
    benchmark(&mut results, "matmul/cpu/best/64").dir = own;
    let report = written(results.clone(), dir.path());
    let html = report.pages();
    let link = "href=\"../criterion/matmul/cpu_best/64/report/index.html\"";
    // No benchmark without one has a link.
    assert_eq!(html.matches(link).count(), 1);
    assert_eq!(html.matches("report/index.html").count(), 1);
    holds(
        &html,
        &[
            "NVIDIA H200",
            "Intel(R) Xeon(R) Processor",
            "Matrix product",
            "Bandwidth over the working set",
            "events-gated",
        ],
    );
    assert_eq!(report.plots().len(), 3, "{:?}", report.plots());
    holds(
        &report.to_string(),
        &["Matrix product", " firm, ", " benchmarks, 0 failed"],
    );
    // Every benchmark is a line with its time in full.
    let record = record(dir.path());
    let csv = fs::read_to_string(dir.path().join("results.csv")).unwrap();
    let all = record["benchmarks"].as_array().unwrap();
    assert_eq!(csv.lines().count(), 1 + all.len());
    holds(
        &csv,
        &["NVIDIA H200,matmul/cpu/best/64,matmul,cpu/best,64,wall,"],
    );
    let limits = |row: &Value| {
        let share = row["limit_share"]
            .as_f64()
            .map_or(String::new(), |share| share.to_string());
        format!("{},{share}", row["limit"].as_str().unwrap_or_default())
    };
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let row = all.iter().find(|row| row["id"] == cells[1]).expect(line);
        assert_eq!(cells[11..13].join(","), limits(row), "{line}");
        let times = line.split(',').skip(6).take(3);
        let times: Vec<f64> = times.map(|cell| cell.parse().unwrap()).collect();
        let [median, low, high] = times[..] else {
            panic!("{line}");
        };
        assert!(low < median && median < high, "{line}");
    }
    // The page of a group that is gone goes, and that of somebody else stays.
    let groups = dir.path().join("groups");
    fs::copy(groups.join("matmul.html"), groups.join("gone.html")).unwrap();
    fs::write(groups.join("mine.html"), "<title>mine</title>").unwrap();
    written(results, dir.path());
    let is_there = |name: &str| groups.join(name).is_file();
    assert!(is_there("matmul.html") && is_there("mine.html") && !is_there("gone.html"));
}

/// The places of a row may have been measured up to different sizes.
#[test]
fn a_speedup_names_its_size_where_the_row_has_others() {
    let dir = folder();
    let mut results = of_one_process(&["matmul", "nested_sine"]);
    results
        .benchmarks
        .retain(|b| b.id != "matmul/gpu/transfer-pinned/2048");
    let readme = dir.path().join("README.md");
    fs::write(&readme, format!("{}\n{}\n", readme::BEGIN, readme::END)).unwrap();
    let alone = alone(commit(results.clone(), dir.path()));
    readme::refresh(&readme, dir.path(), dir.path(), &alone).unwrap();
    let readme = fs::read_to_string(&readme).unwrap();
    let terminal = written(results, dir.path()).to_string();
    let page = fs::read_to_string(dir.path().join("index.html")).unwrap();
    let tables = [
        (&page, "</a> <small>N</small>", "</tr>"),
        (&readme, " |", "\n"),
        (&terminal, " ", "\n"),
    ];
    for (text, beside, end) in tables {
        let row = |title: &str, beside: &str| {
            let from = text.find(&format!("{title}{beside}")).expect(title);
            text[from..].split(end).next().unwrap().to_owned()
        };
        let products = row("Matrix product", beside);
        assert_eq!(products.matches("at 1,024").count(), 1, "{products}");
        assert!(products.matches("at 2,048").count() >= 1, "{products}");
        let sines = row("Nested sine", &beside.replace('N', "n"));
        assert!(sines.contains("× ") && !sines.contains(" at "), "{sines}");
    }
}

/// A row that was left out is named on the page of its group, and not on those of others.
#[test]
fn each_group_names_what_was_left_out_of_it() {
    let dir = folder();
    let mut results = measured(&["matmul", "nested_sine"]);
    benchmark(&mut results, "matmul/gpu/tiled/64").unsteady = Some("it has two modes".into());
    written(results.clone(), dir.path());
    let index = fs::read_to_string(dir.path().join("index.html")).unwrap();
    assert!(!index.contains("Not reached"));
    // It was killed.
    let run = newest(&mut results);
    run.finished = None;
    run.planned = ["matmul/cpu/rayon/3", "matmul/cpu/rayon/5"]
        .map(str::to_owned)
        .into();
    run.skipped = vec![Skip {
        id: run.planned[0].clone(),
        reason: "does not fit".into(),
    }];
    written(results, dir.path());
    let left_out = |page: &str| {
        let page = fs::read_to_string(dir.path().join(page)).unwrap();
        let (_, section) = page.split_once("id=\"left-out\"").unwrap_or_default();
        [
            "<code>matmul/gpu/tiled/64</code></dt><dd>it has two modes",
            "Not reached: 1",
            "<code>matmul/cpu/rayon/5</code></dt><dd>the run ended before it",
        ]
        .map(|shown| section.contains(shown))
    };
    let pages = [
        "index.html",
        "groups/matmul.html",
        "groups/nested_sine.html",
    ];
    assert_eq!(pages.map(left_out), [[true; 3], [true; 3], [false; 3]]);
}

#[test]
fn each_finding_stands_in_its_group_and_each_technique_leads_there() {
    let dir = folder();
    let page = written(measured(&["matmul", "nested_sine"]), dir.path()).pages();
    let record = record(dir.path());
    let techniques = section(&page, "findings");
    holds(
        techniques,
        &["Move the work to the GPU", "Keep the data on the device"],
    );
    let links: Vec<&str> = techniques
        .split("<td><a href=\"groups/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next()?.split_once('#'))
        .map(|(_, anchor)| anchor)
        .collect();
    assert!(links.len() >= 2, "{techniques}");
    for link in links {
        holds(&page, &[&format!("id=\"{link}\"")]);
    }
    // What an answer says stands with the answers alone.
    let findings = record["findings"].as_array().unwrap();
    assert!(findings.iter().any(|f| f["id"] == "winner.matmul.queued"));
    assert!(!page.contains("id=\"finding-matmul-winner"));
    let share = "finding-matmul-transfers.matmul.transfer\"";
    holds(section(&page, "group-matmul"), &[&format!("id=\"{share}")]);
    holds(&page, &[&format!("#{share}")]);
    assert!(!techniques.contains("NaN"));
}

/// Matrix products, of which one was held down: in half a second the clock falls under the power cap.
#[test]
fn the_page_marks_what_was_held_down_and_says_why() {
    let dir = folder();
    let mut results = measured(&["matmul"]);
    for benchmark in &mut results.benchmarks {
        benchmark.telemetry = None;
    }
    let event = |kind, detail: &str| TelemetryEvent {
        time_ms: 200,
        kind,
        detail: detail.into(),
    };
    let held = benchmark(&mut results, "matmul/gpu/cublas/2048");
    held.telemetry = Some(Telemetry {
        events: vec![
            event(TelemetryEventKind::ThrottlingSetIn, "power cap"),
            event(TelemetryEventKind::ClockFell, "from 1980 to 1500 MHz"),
        ],
        energy: Some(Energy {
            joules: 4200.0,
            seconds: 0.5,
            iterations: 1400,
        }),
        ..Telemetry::default()
    });
    held.extra = [("pool_peak_bytes".into(), f64::from(32 << 20))].into();
    let html = written(results.clone(), dir.path()).pages();
    holds(
        &html,
        &[
            "at 200 ms throttling set in: power cap; at 200 ms SM clock fell from 1980 to 1500 MHz",
            "3.00 J, 5.73 GFLOP/J",
            "pool peak 32 MiB",
        ],
    );
    benchmark(&mut results, "matmul/gpu/cublas/2048").telemetry = None;
    let html = written(results, dir.path()).pages();
    assert!(!html.contains("power cap"));
    assert!(!html.contains(">energy<"), "no column without a figure");
}

/// A group, an implementation and a GPU whose names are HTML.
#[test]
fn names_from_files_stay_text() {
    let dir = folder();
    let mut results = of_one_process(&["matmul"]);
    let gpu = &mut newest(&mut results).environment.gpu;
    gpu.as_mut().unwrap().name = "<img src=x id=gpu>".into();
    let mut odd = benchmark(&mut results, "matmul/cpu/best/64").clone();
    odd.group = "</script><img src=x>".into();
    // The group with the answers.
    for benchmark in &mut results.benchmarks {
        benchmark.group = "\"><img src=x>".into();
        benchmark.id = benchmark.id.replacen("matmul", &benchmark.group, 1);
    }
    odd.implementation = "\"><img src=x>".into();
    odd.id = format!("{}/cpu/{}/64", odd.group, odd.implementation);
    results.benchmarks.push(odd);
    let written = written(results, dir.path());
    let map = fs::read_to_string(dir.path().join("index.html")).unwrap();
    holds(section(&map, "map"), &["&gt;&lt;img src=x"]);
    let pages = written.pages();
    holds(
        &pages,
        &[
            "&lt;img src=x id=gpu",
            "&lt;/script&gt;&lt;img src=x",
            "&quot;&gt;&lt;img src=x",
        ],
    );
    // Scripts put the names into the page as text.
    for parser in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
    ] {
        assert!(!pages.contains(parser), "{parser}");
    }
    // A script ends where it does for a browser, and what follows is the page.
    let ends = |part: &'_ str| part.find("</script>").unwrap_or(0);
    let mut parts = pages.split("<script").map(|part| &part[ends(part)..]);
    let element = parts.find(|part| part.contains("<img src=x"));
    assert_eq!(element, None);
}

#[test]
fn profiles_of_one_size_are_drawn_on_one_scale_in_the_order_of_the_rows() {
    let dir = folder();
    let mut results = measured(&["graph_replay"]);
    // Names whose order is not that of the alphabet.
    for (old, new) in [("fused", "part-4"), ("graph", "part-16")] {
        for benchmark in &mut results.benchmarks {
            if benchmark.implementation == old {
                benchmark.implementation = new.into();
                benchmark.id = format!("graph_replay/gpu/{new}/{}", benchmark.size);
            }
        }
        for profiled in &mut results.profiles {
            if profiled.id.function == format!("gpu/{old}") {
                profiled.id.function = format!("gpu/{new}");
            }
        }
    }
    let folder = dir.path().join("criterion/graph_replay/gpu_eager/1024");
    fs::create_dir_all(folder.join("profile")).unwrap();
    fs::write(folder.join("profile/trace.json"), "{}").unwrap();
    let eager = |p: &&mut Profiled| p.id.function == "gpu/eager";
    results.profiles.iter_mut().find(eager).unwrap().dir = folder;
    let page = written(results.clone(), dir.path()).pages();
    let (_, part) = page.split_once("Where the time goes").unwrap();
    assert_eq!(part.matches("<figure class=\"timeline").count(), 1);
    let drawn = part.split("</figure>").next().unwrap();
    let heading = |name| drawn.find(&format!("<b>gpu/{name}</b>")).expect(name);
    let names = [
        "eager",
        "graph-programmatic",
        "part-4",
        "part-16",
        "sync-each",
    ];
    let places = names.map(heading);
    assert!(places.is_sorted(), "{places:?}");
    assert!(drawn.matches("class=\"lane ").count() >= 2 * names.len());
    let tables = part.matches("<details class=\"profile\"").count();
    assert_eq!(tables, names.len());
    // The trace is linked where it is there.
    let trace = "href=\"../criterion/graph_replay/gpu_eager/1024/profile/trace.json\"";
    holds(&page, &[trace]);
    assert_eq!(page.matches("ui.perfetto.dev").count(), 1);
    // A record carries them, and another machine's are shown.
    commit(results, dir.path());
    let page = written(without_gpu(&["matmul"]), dir.path()).pages();
    holds(&page, &["Where the time goes, NVIDIA H200"]);
    assert!(!page.contains("trace.json"));
}

/// On a machine without a GPU the reference answers, and says whose it is; what no result has is said.
#[test]
fn a_page_without_a_gpu_names_the_reference_or_says_that_none_measured() {
    let dir = folder();
    let pages = || {
        let report = written(without_gpu(&["matmul"]), dir.path());
        (report.pages(), report.to_string())
    };
    let (page, table) = pages();
    let unknown = "These results have no GPU times of matmul, so it is unknown from which size on a GPU wins.";
    assert!(page.contains(unknown) && table.contains(unknown), "{table}");
    let row = "<code>matmul/gpu/naive</code></dt><dd>sizes 1, 2, ";
    holds(&page, &[row]);
    commit(measured(&["matmul", "graph_replay"]), dir.path());
    let (page, table) = pages();
    assert!(!page.contains(unknown) && !table.contains(unknown));
    let whose = "There is no GPU here. The GPU figures are of another machine: NVIDIA H200";
    assert!(page.contains(whose) && table.contains(whose), "{table}");
    holds(
        &page,
        &[
            "With data in ordinary memory an NVIDIA H200 wins at ",
            "from which on the GPU of another machine, NVIDIA H200, wins",
        ],
    );

    let section = section(&page, "texts");
    let claims: Vec<&str> = section.split("<article").skip(1).collect();
    assert!(claims.len() >= 50, "{}", claims.len());
    let answered = |claim: &&&str| claim.contains("Measured: ");
    for claim in &claims {
        let reason = claim.split_once("<strong>Not answered</strong>: ");
        let has_reason = reason.is_some_and(|(_, why)| why.len() > 10);
        assert!(answered(&claim) != has_reason, "{claim}");
    }
    let of_reference = claims.iter().filter(answered);
    let named = of_reference.filter(|claim| claim.contains("NVIDIA H200, another machine"));
    assert!(named.count() >= 3);
    holds(section, &["<code>num_workers</code>"]);
}

#[test]
fn no_page_has_a_dead_link_or_leaves_a_heading_out() {
    let dir = folder();
    let out = |name| dir.path().join(name);
    written(measured(&["transfer", "cold_start"]), &out("no answers"));
    let mut without_a_run = measured(&["matmul"]);
    (without_a_run.benchmarks.iter_mut()).for_each(|b| b.run = None);
    written(without_a_run, &out("no record"));
    let referred = out("another GPU");
    let groups = ["matmul", "nested_sine", "graph_replay"];
    commit(measured(&groups), &referred);
    written(without_gpu(&["nested_sine"]), &referred);
    let alone = out("another machine");
    commit(measured(&["matmul", "transfer"]), &alone);
    let other = report::read(&alone, &alone, &Options::default()).unwrap();
    write(&other, &alone, &alone).unwrap();
    for out in dir.path().read_dir().unwrap() {
        let out = out.unwrap().path();
        let pages = pages(&out);
        let mut all_links = Vec::new();
        for (page, text) in &pages {
            let levels = text.split("<h").skip(1);
            let levels: Vec<u32> = levels
                .filter_map(|rest| rest.chars().next()?.to_digit(10))
                .collect();
            let is_in_order = levels.windows(2).all(|pair| pair[1] <= pair[0] + 1);
            assert!(is_in_order, "{}: {levels:?}", page.display());
            let links = text.split(" href=\"").skip(1);
            let links = links.filter_map(|rest| rest.split('"').next());
            let own = links.filter(|link| !link.starts_with("http") && *link != "#");
            all_links.extend(own.map(|link| (page, link)));
        }
        assert!(all_links.len() > 20, "{all_links:?}");
        for (page, link) in all_links {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                _ => page.parent().unwrap().join(file),
            };
            let text = fs::read_to_string(&target).unwrap_or_else(|_| match target.is_file() {
                true => String::new(),
                false => panic!("{}: {link}", page.display()),
            });
            let is_there = anchor.is_empty() || text.contains(&format!(" id=\"{anchor}\""));
            assert!(is_there, "{}: {link}", page.display());
        }
    }
}

#[test]
fn plots_stand_alone() {
    let dir = folder();
    commit(measured(&["matmul"]), dir.path());
    let cpu = || without_gpu(&["matmul"]);
    for plot in written(cpu(), dir.path()).plots() {
        let svg = fs::read_to_string(&plot).unwrap();
        assert!(svg.starts_with("<svg width="), "{}", plot.display());
        assert!(svg.trim_end().ends_with("</svg>"));
        holds(&svg, &["prefers-color-scheme:dark"]);
    }
    let time = || fs::read_to_string(dir.path().join("plots/matmul-time.svg")).unwrap();
    let words = ["<polygon", "best CPU code", "on the device, a queue"];
    holds(&time(), &words);
    let off = Options {
        no_reference: true,
        ..Options::default()
    };
    let report = report::of_results(cpu(), dir.path(), dir.path(), &off).unwrap();
    let thresholds = dir.path().join("thresholds.json");
    assert!(thresholds.is_file());
    write(&report, dir.path(), dir.path()).unwrap();
    assert!(!time().contains("on the device"), "it is switched off");
    assert!(!thresholds.exists(), "thresholds without answers are stale");
}

#[test]
fn the_readme_shows_the_reference() {
    let dir = folder();
    let alone = alone(commit(without_gpu(&["matmul"]), &dir.path().join("alone")));
    commit(measured(&["matmul"]), dir.path());
    let path = dir.path().join("README.md");
    let options = Options::default();
    let refresh = |options| readme::refresh(&path, dir.path(), dir.path(), options);
    let error = || refresh(&options).unwrap_err().to_string();
    holds(&error(), &["README.md"]);
    fs::write(&path, "# a\n").unwrap();
    holds(&error(), &[readme::BEGIN]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "# a\n");
    let (begin, end) = (readme::BEGIN, readme::END);
    fs::write(&path, format!("# a\n{begin}\n{end}\nz\n")).unwrap();
    let error = refresh(&alone).unwrap_err().to_string();
    holds(&error, &["have no answers"]);
    refresh(&options).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# a\n") && text.ends_with("\nz\n"));
    let mut results = measured(&["matmul"]);
    let day = &newest(&mut results).started[..10];
    let whose = format!("NVIDIA H200, measured {day}, against 16 threads of ");
    holds(&text, &[&whose]);
    let mut lines = text.lines();
    let row = lines.find(|line| line.starts_with("| Matrix product | N ≥ "));
    assert!(row.is_some_and(|row| row.contains("× faster")), "{text}");
    assert_eq!(text.matches("<img ").count(), 1);
    holds(&text, &["docs/plots/matmul-speedup.svg"]);
    let plot = fs::read_to_string(dir.path().join("docs/plots/matmul-speedup.svg")).unwrap();
    holds(&plot, &["on the device, a queue of calls"]);
}
