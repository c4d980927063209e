use super::*;

fn span(start_ns: f64, end_ns: f64, name: &str) -> Span {
    Span {
        start_ns,
        end_ns,
        name: name.to_owned(),
    }
}

fn lane(kind: LaneKind, name: &str, spans: Vec<Span>) -> Lane {
    Lane {
        kind,
        name: name.to_owned(),
        spans,
    }
}

fn timeline(length_ns: f64, lanes: Vec<Lane>) -> Timeline {
    Timeline {
        length_ns,
        lanes,
        left_out: 0,
    }
}

fn draw(timelines: &[Timeline]) -> String {
    let iteration = |timeline| Iteration {
        name: "gpu/one".to_owned(),
        remark: "a remark".to_owned(),
        timeline,
    };
    let iterations: Vec<Iteration> = timelines.iter().map(iteration).collect();
    svg(&iterations).map_or(String::new(), Markup::into_string)
}

/// What an attribute is in each element of a kind.
fn values(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
    svg.split(&format!("<{element} "))
        .skip(1)
        .map(|rest| {
            let tag = rest.split('>').next().unwrap();
            let value = tag.split(&format!("{attribute}=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().parse().unwrap()
        })
        .collect()
}

/// The blocks: left edge, top and width, without the empty lanes.
fn drawn(svg: &str) -> Vec<(f64, f64, f64)> {
    let [x, y, width] = ["x", "y", "width"].map(|name| values(svg, "rect", name));
    let all = x.into_iter().zip(y).zip(width).map(|((x, y), w)| (x, y, w));
    // A lane's own rectangle begins where time does and comes first at its height.
    let mut lanes = Vec::new();
    all.filter(|(_, y, _)| {
        let known = lanes.contains(&y.to_bits());
        lanes.push(y.to_bits());
        known
    })
    .collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 0.7
}

#[test]
fn places_are_as_the_times_on_one_scale_for_all() {
    let of = |length: f64| {
        let kernels = vec![span(0.25 * length, 0.75 * length, "half")];
        timeline(length, vec![lane(LaneKind::Kernels, "stream 1", kernels)])
    };
    let svg = draw(&[of(1000.0), of(500.0)]);
    let blocks = drawn(&svg);
    let all = RIGHT - LEFT;
    let [long, short] = blocks[..] else {
        panic!("{blocks:?}")
    };
    assert!(
        near(long.0, LEFT + 0.25 * all) && near(long.2, 0.5 * all),
        "{long:?}"
    );
    assert!(
        near(short.0, LEFT + 0.125 * all) && near(short.2, 0.25 * all),
        "{short:?}"
    );
    assert!(short.1 > long.1 + BLOCK);
    assert!(svg.contains(">500 ns<") && svg.contains(">half<"), "{svg}");
}

#[test]
fn lanes_stand_below_each_other_in_their_order_with_their_names() {
    let one = || vec![span(10.0, 20.0, "x")];
    let svg = draw(&[timeline(
        100.0,
        vec![
            lane(LaneKind::Calls, "thread 7", one()),
            lane(LaneKind::Kernels, "stream 13", one()),
            lane(LaneKind::Kernels, "stream 14", Vec::new()),
            lane(LaneKind::Copies, "host to device", one()),
            lane(LaneKind::Sets, "memory sets", one()),
        ],
    )]);
    let places: Vec<usize> = [
        "driver calls",
        "kernels, stream 13",
        "copies, host to device",
        "memory sets",
    ]
    .iter()
    .map(|label| svg.find(&format!(">{label}<")).expect(label))
    .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!svg.contains("stream 14"), "an empty lane");
    let tops: Vec<f64> = drawn(&svg).iter().map(|block| block.1).collect();
    let apart: Vec<f64> = tops.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(apart, [LANE; 3]);
    // Each kind of lane has a colour of its own.
    let mut colours: Vec<&str> = svg.split("<g fill=\"").skip(3).collect();
    colours
        .iter_mut()
        .for_each(|c| *c = c.split('"').next().unwrap());
    colours.dedup();
    assert_eq!(colours.len(), 4, "{colours:?}");
}

#[test]
fn ranges_within_ranges_have_rows_of_their_own() {
    let ranges = vec![
        span(0.0, 90.0, "step"),
        span(0.0, 40.0, "forward"),
        span(50.0, 80.0, "backward"),
    ];
    let svg = draw(&[timeline(
        100.0,
        vec![lane(LaneKind::Ranges, "ranges", ranges)],
    )]);
    let blocks = drawn(&svg);
    let rows: Vec<f64> = blocks.iter().map(|block| block.1).collect();
    assert_eq!(rows[1] - rows[0], LANE);
    assert_eq!(rows[1], rows[2]);
    for name in ["step", "forward", "backward"] {
        assert!(svg.contains(&format!(">{name}<")), "{name}");
    }
}

#[test]
fn what_is_narrower_than_a_pixel_is_seen_and_never_a_thousand_elements() {
    let short = |i: u32| span(f64::from(i) * 10.0, f64::from(i) * 10.0 + 4.0, "k");
    let many = timeline(
        1e6,
        vec![lane(
            LaneKind::Kernels,
            "stream 1",
            (0..100_000).map(short).collect(),
        )],
    );
    let svg = draw(&[many]);
    let blocks = drawn(&svg);
    assert_eq!(blocks.len(), 1, "one after the other without a visible gap");
    assert!(near(blocks[0].2, RIGHT - LEFT));
    // As pale as it is idle.
    assert!(svg.contains("fill-opacity=\"0.40\""), "{svg}");
    assert!(svg.contains("100000 in 400 µs"), "{svg}");

    let lonely = |at: f64| span(at, at + 1.0, "k");
    let few = vec![lonely(0.0), lonely(5e5), lonely(1e6 - 1.0)];
    let svg = draw(&[timeline(1e6, vec![lane(LaneKind::Kernels, "", few)])]);
    let blocks = drawn(&svg);
    assert_eq!(blocks.len(), 3);
    assert!(
        blocks
            .iter()
            .all(|(x, _, width)| *width >= 1.0 && x + width <= RIGHT + 0.1)
    );
}

#[test]
fn names_are_escaped_and_shortened() {
    let name = "a<b & c>";
    let kernels = vec![span(0.0, 100.0, name), span(100.0, 104.0, "too narrow")];
    let svg = draw(&[timeline(
        1000.0,
        vec![lane(LaneKind::Kernels, "<s>", kernels)],
    )]);
    assert!(svg.contains("a&lt;b &amp; c&gt;, 100 ns"), "{svg}");
    assert!(svg.contains(">a&lt;b &amp; c&gt;<"), "{svg}");
    assert!(svg.contains("kernels, &lt;s&gt;"), "{svg}");
    assert!(!svg.contains(">too narrow<"), "{svg}");
}

#[test]
fn whatever_a_file_says_stays_within_the_drawing() {
    let times = [
        -1e308,
        -1.0,
        0.0,
        1e-300,
        1.0,
        50.0,
        99.0,
        100.0,
        1e300,
        f64::MAX,
    ];
    let pairs = times.iter().flat_map(|a| times.map(|b| span(*a, b, "x")));
    let spans: Vec<Span> = pairs.collect();
    let kinds = [LaneKind::Ranges, LaneKind::Calls, LaneKind::Copies];
    for length in [1e-300, 1e-3, 1.0, 100.0, 1e15, f64::MAX, 0.0, -1.0] {
        let lanes = kinds.iter().map(|kind| lane(*kind, "x", spans.clone()));
        let many = lanes.cycle().take(40).collect();
        let svg = draw(&[timeline(length, many), timeline(100.0, Vec::new())]);
        if !TIMES.contains(&length) {
            assert_eq!(svg, "");
            continue;
        }
        let view = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
        let height: f64 = view.split([' ', '"']).nth(1).unwrap().parse().unwrap();
        for (x, y, width) in drawn(&svg) {
            assert!(
                (LEFT..=RIGHT).contains(&x) && x + width <= RIGHT + 0.1,
                "{x} {width}"
            );
            assert!((0.0..height).contains(&(y + BLOCK)), "{y}");
        }
        assert!(svg.contains("28 more lanes are not drawn"));
        assert!(svg.len() < 60_000, "{}", svg.len());
    }
}

#[test]
fn an_axis_has_few_round_times() {
    for longest in [1e-3, 0.7, 1.0, 83.9, 84_000.0, 1.6e6, 9.99e9, 1e15] {
        let ticks = Scale { longest }.ticks();
        assert!((4..=10).contains(&ticks.len()), "{longest}: {ticks:?}");
        assert!(ticks.iter().all(|tick| *tick <= longest * 1.001));
        let labels: Vec<String> = ticks.iter().map(|tick| time(*tick)).collect();
        assert!(labels.iter().all(|label| label.len() <= 12), "{labels:?}");
    }
}
