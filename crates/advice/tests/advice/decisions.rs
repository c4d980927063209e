//! Decisions and their reasons.

use crossover_advice::Choice::{Cpu, Gpu, Unsure};
use crossover_advice::Reason::{
    Above, Below, Between, Close, Measured, NoFirstCall, NoOperation, NoPlace, NoReuse, NoShape,
    NoSize, OtherMachine, Outside, Shape,
};
use crossover_advice::{
    Advice, Answer, Choice, Error, HostInfo, Question, Reason, Residency, Thresholds,
};

use crossover_advice::thresholds::{Operation, Place, Point};

use crate::planted::{point, thresholds};

fn advice() -> Advice {
    Advice::new(thresholds()).unwrap()
}

fn of(answer: Answer) -> (Choice, Reason) {
    (answer.choice, answer.reason)
}

fn asked(question: Question) -> (Choice, Reason) {
    of(advice().decide(&question))
}

#[track_caller]
fn near(value: f64, truth: f64) {
    let ratio = value / truth;
    assert!((ratio - 1.0).abs() < 1e-9, "{value}, not {truth}");
}

fn product(size: u64) -> Question<'static> {
    Question::new("product", size).data(Residency::Queued)
}

#[test]
fn a_small_difference_decides_nothing_however_certain_it_is() {
    for (speedup, choice) in [(0.9, Cpu), (0.99, Unsure), (1.01, Unsure), (1.1, Gpu)] {
        let mut thresholds = thresholds();
        let place = &mut thresholds.operations[0].places[0];
        place.points[3] = Point {
            low: 0.999 * speedup,
            high: 1.001 * speedup,
            ..point(32.0, 1e3 * speedup, 1e3)
        };
        let answer = Advice::new(thresholds).unwrap().decide(&product(32));
        assert_eq!(answer.choice, choice, "{speedup}");
    }
}

#[test]
fn between_two_sizes_the_truth_lies_in_the_interval() {
    let advice = advice();
    for size in 5..2048u64 {
        let n = size as f64;
        let answer = advice.decide(&product(size));
        let estimate = answer.estimate.unwrap();
        let truth = n.powi(3) / (1000.0 + n.powi(3) / 100.0);
        let holds = (estimate.low..=estimate.high).contains(&truth);
        assert!(holds, "{size}: {truth} {estimate:?}");
        let wrong = if truth > 1.0 { Cpu } else { Gpu };
        assert_ne!(answer.choice, wrong, "{size}");
    }
    assert_eq!(asked(product(300)), (Gpu, Between));
    assert_eq!(asked(product(10)), (Unsure, Close));
}

#[test]
fn outside_the_measured_sizes_only_a_steady_end_answers() {
    assert_eq!(asked(product(1)), (Cpu, Below));
    assert_eq!(asked(product(1 << 20)), (Gpu, Above));
    let mut thresholds = thresholds();
    for place in &mut thresholds.operations[0].places {
        (place.below, place.above) = (None, Some(Cpu));
    }
    let advice = Advice::new(thresholds).unwrap();
    for size in [1, 4096] {
        let answer = advice.decide(&product(size));
        assert_eq!(of(answer), (Unsure, Outside));
        assert!(answer.estimate.is_some(), "that of the nearest end");
    }
}

/// Where the CPU's time changes much between two sizes, the interval spans both of them.
#[test]
fn a_wide_gap_answers_only_where_both_its_ends_agree() {
    let mut thresholds = thresholds();
    thresholds.operations[0].places[0].points = vec![
        point(8.0, 1e3, 1e4),
        point(16.0, 1e4, 1e5),
        point(512.0, 1e8, 1e7),
        point(1024.0, 1e9, 1e8),
        point(8192.0, 1e12, 1e11),
    ];
    let advice = Advice::new(thresholds).unwrap();
    assert_eq!(advice.decide(&product(500)).choice, Unsure);
    assert_eq!(advice.decide(&product(4000)).choice, Gpu);
}

/// Processes differ in the time of the same CPU code, and places in their sizes.
#[test]
fn each_place_has_the_two_times_that_were_measured_for_it() {
    let mut thresholds = thresholds();
    let places = &mut thresholds.operations[0].places;
    places[1].points.remove(5);
    for point in &mut places[2].points {
        (point.cpu_ns, point.gpu_ns) = (1.3 * point.cpu_ns, 1.3 * point.gpu_ns);
        point.processes += 1;
    }
    let places = places.clone();
    let advice = Advice::new(thresholds).unwrap();
    let sizes = |place| [4, 128, 2048].map(|size| (place, size));
    for (place, size) in places.iter().flat_map(sizes) {
        assert_eq!(Residency::named(place.data.name()), Some(place.data));
        let answer = advice.decide(&product(size).data(place.data));
        let estimate = answer.estimate.unwrap();
        let point = place.points.iter().find(|point| point.size == size as f64);
        let Some(point) = point else {
            assert_ne!(answer.reason, Measured);
            continue;
        };
        assert_eq!(answer.reason, Measured);
        near(estimate.cpu_ns, point.cpu_ns);
        near(estimate.gpu_ns, point.gpu_ns);
    }
}

/// In ordinary memory a takes 10 ns per unit and b 14, on the device 1 and 0.2.
#[test]
fn two_programs_have_times_of_their_own_in_each_place() {
    let place = |data, [a, b]: [f64; 2]| Place {
        data,
        points: [50.0, 100.0, 200.0].map(|n| point(n, a * n, b * n)).into(),
        ..Place::default()
    };
    let operation = Operation {
        name: "op".into(),
        sides: Some(["a", "b"].map(str::to_owned)),
        places: vec![
            place(Residency::Queued, [1.0, 0.2]),
            place(Residency::Ordinary, [10.0, 14.0]),
        ],
        ..Operation::default()
    };
    let advice = Advice::new(Thresholds {
        operations: vec![operation],
        ..Thresholds::default()
    });
    let answer = advice.unwrap().decide(&Question::new("op", 100).reuse(2));
    let estimate = answer.estimate.unwrap();
    assert_eq!(answer.choice, Cpu);
    near(estimate.cpu_ns, 1100.0);
    near(estimate.gpu_ns, 1420.0);
}

#[test]
fn data_that_are_used_again_are_moved_once() {
    let from_host = |reuse| {
        let question = product(32).data(Residency::Ordinary).reuse(reuse);
        advice().decide(&question)
    };
    let n3 = 32f64.powi(3);
    let (there, moved) = (1000.0 + n3 / 100.0, 21_000.0 + n3 / 100.0 + 10.0 * 1024.0);
    for reuse in [1u32, 2, 10, 1000] {
        let k = f64::from(reuse);
        let truth = k * n3 / (moved + (k - 1.0) * there);
        let estimate = from_host(reuse).estimate.unwrap();
        near(estimate.speedup, truth);
        near(estimate.gpu_ns, moved + (k - 1.0) * there);
        near(estimate.cpu_ns, k * n3);
    }
    assert_eq!(from_host(1).choice, Unsure);
    assert_eq!(from_host(2).choice, Gpu);
    assert_eq!(asked(Question::new("plain", 8).reuse(2)), (Unsure, NoReuse));
    assert_eq!(asked(product(32).reuse(0)), (Unsure, NoSize));
}

#[test]
fn the_first_call_of_a_process_pays_for_its_start() {
    let answer = advice().decide(&product(256).cold());
    let estimate = answer.estimate.unwrap();
    let gpu_ns = 1e8 + 1000.0 + 256f64.powi(3) / 100.0;
    assert_eq!(answer.choice, Cpu);
    near(estimate.gpu_ns, gpu_ns);
    near(estimate.speedup / estimate.low, 1.1);
    assert_eq!(asked(product(256).reuse(1000).cold()).0, Gpu);
    let plain = Question::new("plain", 8).cold();
    assert_eq!(asked(plain), (Unsure, NoFirstCall));
}

/// With as many FLOP as a square product and more elements, on either side.
#[test]
fn a_product_of_another_shape_lies_between_two_square_ones() {
    let shaped = |m: u64, n: u64, k: u64| {
        let question = Question::new("product", (m, n, k)).data(Residency::Queued);
        advice().decide(&question)
    };
    assert_eq!(shaped(256, 256, 256), advice().decide(&product(256)));
    let mild = shaped(200, 300, 400);
    assert_eq!(of(mild), (Gpu, Shape));
    assert_eq!(shaped(300, 400, 200).choice, mild.choice);
    // It has the arithmetic of N = 256, and the elements of N = 276.5.
    let between = shaped(128, 256, 512).estimate.unwrap();
    let side = (229_376f64 / 3.0).sqrt();
    near(between.cpu_ns, (256.0 * side).powf(1.5));
    // The CPU at its fastest and the GPU at its slowest, and the reverse.
    let square = |n| Question::new("product", n).data(Residency::Queued);
    let [small, large] = [256.0, side].map(|n| advice().decide(&square(n)).estimate.unwrap());
    near(between.low, small.low * small.gpu_ns / large.gpu_ns);
    near(between.high, large.high * large.gpu_ns / small.gpu_ns);
    // One row: it has the arithmetic of N = 256, and the elements of N = 2,365, outside the range.
    let skinny = shaped(1, 4096, 4096);
    assert_eq!(of(skinny), (Unsure, Outside));
    let skinny = shaped(1, 1024, 1024);
    assert_eq!(of(skinny), (Unsure, Close));
    let plain = Question::new("plain", (8u64, 8, 8));
    assert_eq!(asked(plain), (Unsure, NoShape));
    assert_eq!(shaped(0, 1, 1).reason, NoSize);
}

#[test]
fn an_unmeasured_operation_has_no_answer() {
    assert_eq!(asked(Question::new("other", 8)), (Unsure, NoOperation));
    let staged = product(8).data(Residency::Awaited);
    assert_eq!(asked(staged), (Unsure, NoPlace));
    for size in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(asked(Question::new("product", size)), (Unsure, NoSize));
    }
}

#[test]
fn thresholds_of_another_machine_decide_nothing() {
    let mut thresholds = thresholds();
    thresholds.machine.cpu = "this".into();
    let advice = Advice::new(thresholds).unwrap();
    let mut other = HostInfo::default();
    other.cpu = Some("that".into());
    let advice = advice.check(&other);
    assert_eq!(advice.concerns().len(), 1);
    let answer = advice.decide(&product(256));
    assert_eq!(of(answer), (Unsure, Measured));
    assert!(answer.estimate.is_some(), "what was measured there");
    let reasons = |question: &Question| advice.decide(question).reasons().collect::<Vec<_>>();
    assert_eq!(reasons(&product(1 << 20)), [OtherMachine, Above]);
    let unknown = Question::new("other", 8);
    assert_eq!(reasons(&unknown), [OtherMachine, NoOperation]);
    let mut old = HostInfo::default();
    old.today = Some(30_000);
    let advice = advice.check(&old);
    assert_eq!(advice.concerns().len(), 1, "too old");
    assert_eq!(advice.decide(&product(256)).choice, Gpu);
}

/// Outside the measured sizes, 4 to 2,048, an answer has the times of an end, and says which.
#[test]
fn times_of_another_size_are_named() {
    let nearest = |question: Question| {
        let estimate = advice().decide(&question).estimate.unwrap();
        (estimate.nearest, estimate.cpu_ns)
    };
    let (first, last) = (4f64.powi(3), 2048f64.powi(3));
    let cold = product(3000).data(Residency::Ordinary).reuse(5).cold();
    let shaped = Question::new("product", (3000u64, 3000, 3000));
    for (question, at, cpu_ns) in [
        (product(1), Some(4.0), first),
        (product(4), None, first),
        (product(2048), None, last),
        (product(1_000_000_000), Some(2048.0), last),
        (cold, Some(2048.0), 5.0 * last),
        (shaped, Some(2048.0), last),
    ] {
        let (named, ns) = nearest(question);
        assert_eq!(named, at, "{question:?}");
        near(ns, cpu_ns);
    }
    // Both squares that bound a flat product lie at or beyond the end.
    let (named, _) = nearest(Question::new("product", (1u64, 4096, 4096)).data(Residency::Queued));
    assert_eq!(named, Some(2048.0));
}

#[test]
fn files_that_are_none_are_named() {
    let error = |text: &str| Advice::parse(text.as_bytes()).unwrap_err();
    assert!(matches!(error(""), Error::Form(_)));
    // A program that returns it from `main` prints the sentence.
    let debug = format!("{:?}", Error::NotFound);
    assert_eq!(debug, Error::NotFound.to_string());
    let text = serde_json::to_string(&thresholds()).unwrap();
    let unknown = error(&text.replace(":\"gpu\"", ":\"\\u001b[2J\"")).to_string();
    assert!(unknown.contains("unknown variant"), "{unknown}");
    assert!(!unknown.contains('\u{1b}'), "{unknown}");
    assert!(matches!(error(r#"{"schema": 1}"#), Error::Form(_)));
    let newer = error(r#"{"schema": 2, "of": "another form"}"#);
    assert!(matches!(newer, Error::Newer(2)), "{newer}");
    let parse = |thresholds: &Thresholds| Advice::parse(&serde_json::to_vec(thresholds).unwrap());
    assert!(parse(&thresholds()).is_ok());
    let [mut twice, mut descending, mut unmeasured] = [(); 3].map(|()| thresholds());
    twice.operations[1].name = "product".into();
    descending.operations[0].places[0].points[3].size = 1.0;
    unmeasured.operations[0].places[0].points[3].high = 0.0;
    for (wrong, says) in [
        (twice, "is there twice"),
        (descending, "do not ascend"),
        (unmeasured, "no measurement"),
    ] {
        let error = parse(&wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(matches!(Advice::open("there/is/none"), Err(Error::Io(..))));
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len((16 << 20) + 1).unwrap();
    let error = Advice::open(large.path()).unwrap_err().to_string();
    let named = format!("{}: too large", large.path().display());
    assert!(error.starts_with(&named), "{error}");
}

/// The generated schema requires no field that a file lacks, and names each that it has.
#[cfg(feature = "schema")]
#[test]
fn the_schema_of_the_types_names_each_field_of_a_file() {
    use serde_json::Value;

    fn names_each_field(schema: &Value, root: &Value, value: &Value) -> bool {
        let schema = schema["$ref"]
            .as_str()
            .map_or(schema, |at| root.pointer(&at[1..]).unwrap());
        match value {
            Value::Object(fields) => {
                let mut required = schema["required"].as_array().into_iter().flatten();
                required.all(|name| fields.contains_key(name.as_str().unwrap()))
                    && fields.iter().all(|(name, value)| {
                        let property = schema["properties"].get(name);
                        property.is_some_and(|property| names_each_field(property, root, value))
                    })
            }
            Value::Array(elements) => elements
                .iter()
                .all(|element| names_each_field(&schema["items"], root, element)),
            _ => true,
        }
    }
    let schema = schemars::schema_for!(Thresholds).to_value();
    let file = serde_json::to_value(thresholds()).unwrap();
    assert!(names_each_field(&schema, &schema, &file), "{schema:#}");
    let other = file.to_string().replace("\"date\"", "\"day\"");
    let other = serde_json::from_str(&other).unwrap();
    assert!(!names_each_field(&schema, &schema, &other));
    let choices = schema["$defs"]["Choice"].to_string();
    for choice in ["cpu", "gpu", "unsure"] {
        assert!(choices.contains(&format!("\"{choice}\"")), "{choices}");
    }
    assert!(schema["required"].to_string().contains("\"operations\""));
    let point = &schema["$defs"]["Point"]["properties"]["processes"];
    assert_eq!(point["type"], "integer");
}
