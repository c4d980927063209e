//! The page and the table of profiled benchmarks.

use std::fs;
use std::path::Path;

use crate::model::Cost;
use crate::report::assemble::Options;
use crate::report::tests::fixture::{Fixture, Planted};
use crate::report::{profile, write};
use crate::results::profiles::planted::{eager, graph, pieces, plant, product};
use crate::timing::Clock;
use crate::timing::profile::Place;

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
        ("product/gpu/from-ordinary/2048", 4.0e6),
        ("product/gpu/from-pinned/2048", 1.3e6),
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
        product("product/gpu/from-ordinary/2048", Place::Pageable),
        product("product/gpu/from-pinned/2048", Place::Pinned),
    ] {
        plant(root, &profile);
    }
    f
}

#[test]
fn look() {
    let dir = Path::new("/tmp/hB-look");
    let _ = fs::remove_dir_all(dir);
    let root = dir.join("criterion");
    profiled(&root);
    write::refresh(&root, dir, &Options::default()).unwrap();
    for p in [
        eager("chain/gpu/each/1024"),
        pieces("parts/gpu/part-4/16777216", 4),
        product("product/gpu/from-ordinary/2048", Place::Pageable),
    ] {
        println!("{}", profile::text(&p, dir));
    }
}
