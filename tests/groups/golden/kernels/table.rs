//! The table by which the recording driver knows the kernels and their parameters.

use std::path::Path;

use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

use crate::golden::hold_file;
use crate::golden::kernels::sources;

/// Without `extern "C"` a kernel's name in PTX has the types of its parameters in it.
pub(crate) fn the_recording_driver_knows_every_kernel() {
    let options = ["--gpu-architecture=compute_90", "--std=c++17"];
    let mut modules = vec![(
        "gate.ptx",
        include_str!("../../../../crates/timing/src/gate.ptx").to_owned(),
    )];
    for source in sources() {
        let options = CompileOptions {
            options: options.map(str::to_owned).into(),
            ..CompileOptions::default()
        };
        let text = source.text.replace("extern \"C\" ", "");
        let ptx = compile_ptx_with_opts(text, options);
        let ptx = ptx.unwrap_or_else(|error| panic!("{}: {error:?}", source.name));
        modules.push((source.name, ptx.to_src()));
    }
    modules.sort();
    let mut table = Vec::new();
    for (name, ptx) in &modules {
        table.push((*name).to_owned());
        table.extend(ptx.split(".entry ").skip(1).map(kernel));
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    hold_file(&package.join("crates/recording-driver/kernels.txt"), &table);
}

/// Name, threads of a block, and types of the parameters.
fn kernel(entry: &str) -> String {
    let (mangled, rest) = entry.split_once('(').expect("an entry has parameters");
    let (header, _) = rest.split_once('{').expect("an entry has a body");
    let threads = header.split_once(".maxntid ").map_or(1024, |(_, bounds)| {
        let bounds = bounds.lines().next().unwrap_or_default().split(", ");
        bounds
            .map(|bound| bound.parse::<u32>().expect("a number"))
            .product()
    });
    let count = header.matches(".param").count();
    let (name, types) = match mangled.strip_prefix("_Z") {
        Some(mangled) => {
            let (name, types) = named(mangled);
            (name, parameters(types))
        }
        None => (mangled, vec!["u64"; count]),
    };
    assert_eq!(types.len(), count, "{mangled}");
    [&[name, &threads.to_string()], &types[..]]
        .concat()
        .join(" ")
        .replace(name, &format!("  {name}"))
}

/// A name of this length, and what follows it: `4spiny` is `spin` and `y`.
fn named(mangled: &str) -> (&str, &str) {
    let digits = mangled.find(|c: char| !c.is_ascii_digit()).expect("a name");
    let (length, rest) = mangled.split_at(digits);
    rest.split_at(length.parse().expect("the length of a name"))
}

/// The types of the Itanium ABI: <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling-type>
fn parameters(mut types: &str) -> Vec<&'static str> {
    let mut all = Vec::new();
    while let Some(first) = types.chars().next() {
        let of = types.trim_start_matches(['P', 'K']);
        let is_pointer = first == 'P';
        let (number, rest) = match of.chars().next() {
            // A type that came before: numbers have none of these.
            Some('S') => (Some("ptr"), of.split_once('_').expect("its number").1),
            Some(c) if c.is_ascii_digit() => (None, named(of).1),
            Some(c) => (number(c), &of[1..]),
            None => (None, of),
        };
        let number = if is_pointer { Some("ptr") } else { number };
        all.push(
            number
                .unwrap_or_else(|| panic!("a parameter of a type that has no name here: {types}")),
        );
        types = rest;
    }
    match all[..] {
        ["void"] => Vec::new(),
        _ => all,
    }
}

fn number(letter: char) -> Option<&'static str> {
    Some(match letter {
        'v' => "void",
        'f' => "f32",
        'd' => "f64",
        'i' => "i32",
        'j' => "u32",
        'l' | 'x' => "i64",
        'm' | 'y' => "u64",
        't' => "u16",
        'h' | 'b' => "u8",
        _ => return None,
    })
}
