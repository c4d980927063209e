//! The page and the table of profiled benchmarks.

use std::fs;
use std::path::Path;

use crate::tests::fixture::{Fixture, Planted};
use crate::tests::machines::{commit, laptop};
use crate::tests::refreshed;
use crossover_results::model::Cost;
use crossover_results::store::profiles::planted::{eager, graph, pieces, plant};
use crossover_words::Clock;

/// Groups of any names, with profiles that are worth comparing.
pub(crate) fn profiled(root: &Path) -> Fixture {
    let f = Fixture::new(root, Some("NVIDIA H200"));
    for (id, ns) in [
        ("chain/cpu/all-at-once/1024", 20e3),
        ("chain/gpu/each/1024", 82e3),
        ("chain/gpu/replayed/1024", 44e3),
        ("chain/gpu/each/65536", 84e3),
        ("parts/gpu/part-1/16777216", 2.9e6),
        ("parts/gpu/part-4/16777216", 1.6e6),
        ("parts/gpu/part-16/16777216", 1.4e6),
    ] {
        let clock = Clock::Wall;
        f.plant(&Planted::new(id, clock, ns).cost(Cost::default()));
    }
    for profile in [
        eager("chain/gpu/each/1024"),
        graph("chain/gpu/replayed/1024"),
        pieces("parts/gpu/part-1/16777216", 1),
        pieces("parts/gpu/part-4/16777216", 4),
        pieces("parts/gpu/part-16/16777216", 16),
    ] {
        plant(root, &profile);
    }
    f
}

fn page(root: &Path, out: &Path) -> String {
    refreshed(root, out).0
}

/// The part of the page with what was recorded of a group.
fn part<'a>(page: &'a str, group: &str) -> &'a str {
    let section = page.split(&format!("id=\"group-{group}\"")).nth(1);
    let section = section.expect(group).split("</section>").next().unwrap();
    section.split("Where the time goes").nth(1).expect(group)
}

#[test]
fn those_of_one_size_are_drawn_on_one_scale_in_the_order_of_the_rows() {
    let (dir, root) = crate::tests::folders();
    profiled(&root);
    let page = page(&root, dir.path());
    for (group, names, lanes) in [
        ("chain", &["gpu/each", "gpu/replayed"][..], 4),
        (
            "parts",
            &["gpu/part-1", "gpu/part-4", "gpu/part-16"],
            4 + 6 + 6,
        ),
    ] {
        let part = part(&page, group);
        assert_eq!(
            part.matches("<figure class=\"timeline").count(),
            1,
            "{group}"
        );
        let drawn = part.split("</figure>").next().unwrap();
        let heading = |name: &&str| drawn.find(&format!("<b>{name}</b>")).expect(name);
        let places: Vec<usize> = names.iter().map(heading).collect();
        assert!(places.is_sorted(), "{group}: {places:?}");
        assert_eq!(drawn.matches("class=\"lane ").count(), lanes, "{group}");
        assert_eq!(
            part.matches("<details class=\"profile\"").count(),
            names.len()
        );
    }
    // What was not profiled has nothing of it, and neither has a page without profiles.
    assert!(!part(&page, "chain").contains("65,536"));
    fs::remove_dir_all(root.join("chain/gpu_each/1024/profile")).unwrap();
    fs::remove_dir_all(root.join("chain/gpu_replayed/1024/profile")).unwrap();
    let page = self::page(&root, dir.path());
    assert_eq!(page.matches("Where the time goes").count(), 1);
}

#[test]
fn the_trace_is_linked_where_it_is_there() {
    let (dir, root) = crate::tests::folders();
    profiled(&root);
    assert!(!page(&root, dir.path()).contains("trace.json"));
    fs::write(root.join("chain/gpu_each/1024/profile/trace.json"), "{}").unwrap();
    let page = page(&root, dir.path());
    assert!(page.contains("href=\"../criterion/chain/gpu_each/1024/profile/trace.json\""));
    assert_eq!(page.matches("ui.perfetto.dev").count(), 1);
}

#[test]
fn a_record_carries_profiles_and_another_machines_are_shown() {
    let dir = crate::tests::folder();
    let here = dir.path().join("here");
    commit(&here, profiled);
    let own = here.join("criterion");
    laptop(&own);
    let page = page(&own, &here);
    assert_eq!(page.matches("Where the time goes, NVIDIA H200").count(), 2);
}
