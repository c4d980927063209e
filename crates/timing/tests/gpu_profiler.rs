//! Known answers of the profiler on a real device: kernels that spin for an exact time, copies of
//! known size, a graph, two streams, ranges.
#![cfg(feature = "profiler")]

mod activity;
#[allow(dead_code, reason = "profiles need a part of it")]
mod device;

use std::ptr::null_mut;
use std::time::{Duration, Instant};

use crossover_timing::criterion::Criterion;
use crossover_timing::cudarc::driver::{CudaSlice, DevicePtrMut, result, sys};
use crossover_timing::profile::{Place, Profile, Work};
use crossover_timing::profiler::CudaProfiler;
use crossover_timing::{BoxError, Clock, CudaBencherExt, CudaError, bind, range};

use crate::device::{Opened, TestResult, middle, nothing, spins};

impl Opened {
    /// Profiles `routine` as Criterion does, and prints what comes of it.
    fn profile<E: Into<BoxError>>(
        &self,
        clock: Clock,
        launches: u32,
        mut routine: impl FnMut() -> Result<(), E>,
    ) -> TestResult<Profile> {
        let root = tempfile::tempdir()?;
        let mut criterion = Criterion::default()
            .with_measurement(self.time.clone())
            .with_profiler(CudaProfiler::new(&self.time))
            .output_directory(root.path())
            .without_plots()
            .profile_time(Some(Duration::from_secs(1)));
        criterion.bench_function("known", |b| {
            b.iter_on(&self.time, clock, launches, &mut routine);
        });
        let folder = root.path().join("known/profile");
        let profile = serde_json::from_slice(&std::fs::read(folder.join("profile.json"))?)?;
        assert!(folder.join("trace.json").is_file());
        Ok(profile)
    }
}

fn near(what: &str, measured: f64, known: f64) {
    let tolerance = 0.01 * known + 1_500.0;
    assert!(
        (measured - known).abs() <= tolerance,
        "{what}: {measured:.0} where {known:.0} is known"
    );
}

/// The clocks of host and device agree, and nothing was lost.
fn no_warnings(profile: &Profile) {
    for word in ["disagree", "lost", "could not time"] {
        let found = profile.notes.iter().find(|n| n.contains(word));
        assert_eq!(found, None);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn kernels_are_counted_and_timed() -> TestResult {
    let bench = Opened::new()?;
    let (short, long) = (
        spins(&bench.stream, 20_000)?,
        spins(&bench.stream, 100_000)?,
    );
    for clock in [
        Clock::EventsGated,
        Clock::Wall,
        Clock::Events,
        Clock::Submit,
    ] {
        let profile = bench.profile(clock, 3, || {
            short()?;
            short()?;
            long()
        })?;
        no_warnings(&profile);
        assert_eq!(profile.clock, clock.name());
        assert!(profile.iterations >= 10, "{}", profile.iterations);
        assert_eq!(profile.records, 3 * profile.iterations);
        // One name, grid and block: one row, whatever the argument.
        let [row] = &profile.device[..] else {
            panic!("{:?}", profile.device);
        };
        assert_eq!(row.per_iteration, 3.0);
        near("shortest", row.shortest_ns, 20_000.0);
        near("longest", row.longest_ns, 100_000.0);
        near("busy", profile.summary.busy_ns, 140_000.0 + 3_000.0);
        assert!(
            matches!(&row.work, Work::Kernel { name, grid: [1, 1, 1], block: [1, 1, 1], .. } if name == "crossover_spin"),
            "{:?}",
            row.work
        );
        let launches = profile.calls.iter().find(|c| c.name == "cuLaunchKernel");
        assert_eq!(launches.map(|c| c.per_iteration), Some(3.0));
        assert!(
            profile.summary.sentence.starts_with("one kernel"),
            "{}",
            profile.summary.sentence
        );
        let first = profile.summary.first_kernel_ns.expect("there are kernels");
        assert!(first > 0.0, "the first kernel starts before its iteration");
        let gated = profile.notes.iter().any(|n| n.contains("gate"));
        assert_eq!(gated, clock == Clock::EventsGated);
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_kernels_of_a_graph_are_its_launchs() -> TestResult {
    let bench = Opened::new()?;
    let spin = spins(&bench.stream, 20_000)?;
    // It is loaded before the capture.
    spin()?;
    bench.stream.synchronize()?;
    let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    bench.stream.begin_capture(mode)?;
    (0..7).try_for_each(|_| spin())?;
    let flags = sys::CUgraphInstantiate_flags(0);
    let graph = bench.stream.end_capture(flags)?.ok_or("nothing captured")?;
    graph.upload()?;
    let profile = bench.profile(Clock::EventsGated, 1, || {
        let _step = range("replay");
        graph.launch()
    })?;
    no_warnings(&profile);
    assert_eq!(profile.records, 7 * profile.iterations);
    assert_eq!(profile.device.len(), 1);
    near("a node", profile.device[0].median_ns, 20_000.0);
    let launches = profile.calls.iter().find(|c| c.name == "cuGraphLaunch");
    assert_eq!(launches.map(|c| c.per_iteration), Some(1.0));
    assert_eq!(
        profile.ranges[0].share, 1.0,
        "the graph was launched in the range"
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn copies_have_their_bytes_direction_and_memory() -> TestResult {
    let bench = Opened::new()?;
    let n = 8 << 20;
    // SAFETY: written before it is read, below.
    let mut pinned = unsafe { bench.stream.context().alloc_pinned::<u8>(n) }?;
    pinned.as_mut_slice()?.fill(1);
    let mut pageable = vec![0u8; n];
    let mut device: CudaSlice<u8> = bench.stream.alloc_zeros(n)?;
    let profile = bench.profile(Clock::Wall, 3, || -> Result<(), BoxError> {
        bench.stream.memcpy_htod(&pinned, &mut device)?;
        bench.stream.memset_zeros(&mut device)?;
        bench.stream.memcpy_dtoh(&device, &mut pageable)?;
        Ok(())
    })?;
    no_warnings(&profile);
    let bytes = |from, to| -> f64 {
        (profile.device.iter())
            .filter_map(|row| match row.work {
                Work::Copy {
                    from: f,
                    to: t,
                    bytes,
                } if f == from && t == to => Some(bytes as f64 * row.per_iteration),
                _ => None,
            })
            .sum()
    };
    assert_eq!(bytes(Place::Pinned, Place::Device), n as f64);
    assert_eq!(bytes(Place::Device, Place::Pageable), n as f64);
    let set = profile
        .device
        .iter()
        .find(|r| matches!(r.work, Work::Set { .. }));
    assert_eq!(
        set.map(|r| (&r.work, r.per_iteration)),
        Some((&Work::Set { bytes: n as u64 }, 1.0))
    );
    let copies = profile.summary.copies_ns;
    assert!(copies > 0.0 && profile.summary.hidden_ns == 0.0);
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn overlapping_copies_are_hidden() -> TestResult {
    let bench = Opened::new()?;
    let other = bench.stream.context().new_stream()?;
    let n = 16 << 20;
    // SAFETY: written before it is read, below.
    let mut pinned = unsafe { bench.stream.context().alloc_pinned::<u8>(n) }?;
    pinned.as_mut_slice()?.fill(1);
    let mut device: CudaSlice<u8> = other.alloc_zeros(n)?;
    let (address, _guard) = device.device_ptr_mut(&other);
    let source = pinned.as_slice()?;
    // Far longer than the copy takes on any link from PCIe 3 on.
    let long = spins(&bench.stream, 5_000_000)?;
    let profile = bench.profile(Clock::Wall, 2, || -> Result<(), BoxError> {
        long()?;
        // SAFETY: both ends are alive and of that length until the streams are done, below.
        unsafe { result::memcpy_htod_async(address, source, other.cu_stream()) }?;
        other.synchronize()?;
        bench.stream.synchronize()?;
        Ok(())
    })?;
    no_warnings(&profile);
    let s = &profile.summary;
    near("the kernel", s.kernels_ns, 5_000_000.0);
    // The copy may begin before the kernel, which is launched first, does.
    assert!(
        s.copies_ns > 0.0 && s.copies_ns - s.hidden_ns <= 20_000.0,
        "{s:?}"
    );
    near("busy", s.busy_ns, 5_000_000.0);
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn ranges_have_the_device_time_launched_in_them() -> TestResult {
    let bench = Opened::new()?;
    let (forward, backward) = (
        spins(&bench.stream, 50_000)?,
        spins(&bench.stream, 150_000)?,
    );
    let profile = bench.profile(Clock::EventsGated, 2, || {
        let _step = range("step");
        {
            let _forward = range("forward");
            forward()?;
        }
        let _backward = range("backward");
        backward()
    })?;
    let seen: Vec<_> = (profile.ranges.iter())
        .map(|r| (r.name.as_str(), r.per_iteration))
        .collect();
    let names = ["step", "step / forward", "step / backward"];
    assert_eq!(seen, names.map(|name| (name, 1.0)));
    near(
        "forward",
        profile.ranges[1].device_ns_per_iteration,
        50_000.0,
    );
    near(
        "backward",
        profile.ranges[2].device_ns_per_iteration,
        150_000.0,
    );
    assert_eq!(profile.ranges[0].share, 1.0);
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn cold_iterations_are_recorded_without_their_eviction() -> TestResult {
    let bench = Opened::new()?;
    let profile = bench.profile(Clock::EventsCold, 1, spins(&bench.stream, 30_000)?)?;
    assert_eq!(profile.records, profile.iterations);
    assert_eq!(profile.device.len(), 1, "{:?}", profile.device);
    near("the kernel", profile.device[0].median_ns, 30_000.0);
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn after_a_profile_the_gate_and_its_times_are_as_before() -> TestResult {
    let bench = Opened::new()?;
    let spin = spins(&bench.stream, 20_000)?;
    let off = bench.time.gate_off_reason();
    let gated = || {
        let clock = Clock::EventsGated;
        middle(9, || bench.time.measure_launches(clock, 200, 1, &spin))
    };
    let before = gated()? / 200.0;
    for _ in 0..2 {
        let profile = bench.profile(Clock::EventsGated, 1, &spin)?;
        assert_eq!(
            profile.records, profile.iterations,
            "the second as the first"
        );
    }
    assert_eq!(bench.time.gate_off_reason(), off);
    let after = gated()? / 200.0;
    println!("gated: {before:.0} ns before, {after:.0} ns after a profile");
    near("gated after a profile", after, before);
    Ok(())
}

/// Names lie in modules: where one goes during the recording, CUPTI must tell, and no name is read.
#[test]
#[ignore = "needs a CUDA device"]
fn names_are_not_read_once_their_module_is_gone() -> TestResult {
    let bench = Opened::new()?;
    let code = concat!(include_str!("../src/gate.ptx"), "\0")
        .as_ptr()
        .cast();
    let launch = |function, stream| -> Result<(), BoxError> {
        let mut ns = 1_000u64;
        let mut arguments = [(&raw mut ns).cast()];
        // SAFETY: the kernel takes one 64-bit number, which the driver copies.
        unsafe {
            result::launch_kernel(function, (1, 1, 1), (1, 1, 1), 0, stream, &mut arguments)
        }?;
        Ok(())
    };
    let library = || -> Result<(), BoxError> {
        let (mut library, mut kernel, mut function) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the image is whole, no option is given, and the address is valid for the write.
        unsafe {
            sys::cuLibraryLoadData(
                &mut library,
                code,
                null_mut(),
                null_mut(),
                0,
                null_mut(),
                null_mut(),
                0,
            )
        }
        .result()?;
        // SAFETY: the library is loaded, and the address is valid for the write.
        unsafe { sys::cuLibraryGetKernel(&mut kernel, library, c"crossover_spin".as_ptr()) }
            .result()?;
        // SAFETY: as above.
        unsafe { sys::cuKernelGetFunction(&mut function, kernel) }.result()?;
        launch(function, bench.stream.cu_stream())?;
        bench.stream.synchronize()?;
        // SAFETY: its kernel has run.
        Ok(unsafe { sys::cuLibraryUnload(library) }.result()?)
    };
    let context = || -> Result<(), BoxError> {
        let mut own = null_mut();
        let of = bench.stream.context().cu_device();
        // SAFETY: the address is valid for the write.
        unsafe { sys::cuCtxCreate_v4(&mut own, null_mut(), 0, of) }.result()?;
        // SAFETY: the image is whole.
        let module = unsafe { result::module::load_data(code) }?;
        // SAFETY: the module is loaded.
        let function =
            unsafe { result::module::get_function(module, c"crossover_spin".to_owned()) }?;
        launch(function, null_mut())?;
        result::ctx::synchronize()?;
        // SAFETY: its work is done, and nobody else uses it.
        unsafe { sys::cuCtxDestroy_v2(own) }.result()?;
        Ok(bind(bench.stream.context())?)
    };
    let gone = |routine: &dyn Fn() -> Result<(), BoxError>, what: &str| -> TestResult {
        let profile = bench.profile(Clock::Wall, 1, routine)?;
        let names = profile.device.iter().filter_map(|row| match &row.work {
            Work::Kernel { name, .. } => Some(name.clone()),
            _ => None,
        });
        let names: Vec<String> = names.collect();
        println!("{what}: {names:?}");
        assert!(
            !names.is_empty()
                && names
                    .iter()
                    .all(|name| name.contains("a module was unloaded")),
            "{what}"
        );
        Ok(())
    };
    gone(&library, "a library that is unloaded")?;
    gone(&context, "a context that ends")
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_clock_activity_finds_known_times_on_hidden_streams() -> TestResult {
    activity::all(&Opened::new()?.time).map_err(|error| error as _)
}

#[test]
#[ignore = "needs a CUDA device, and the argument --test, which the clock asks for"]
fn work_outside_of_the_window_is_named() -> TestResult {
    if !std::env::args().any(|argument| argument == "--test") {
        println!("(skipped: without --test nothing looks)");
        return Ok(());
    }
    activity::within(&Opened::new()?.time).map_err(|error| error as _)
}

/// Records make a launch behind the gate and a node of a graph up to 0.4 µs longer, and a kernel reads up to 0.8 µs
/// longer than behind the gate. What they cost the host is printed. On an H200: 0.26, 0.3 and 0.4 to 0.6 µs.
#[test]
#[ignore = "needs a CUDA device"]
fn records_lengthen_a_launch_by_400_ns_at_most() -> TestResult {
    const N: u64 = 400;
    let bench = Opened::new()?;
    let (time, spin, empty) = (
        &bench.time,
        spins(&bench.stream, 2_000)?,
        nothing(&bench.time),
    );
    let gated = Clock::EventsGated;
    for (clock, nodes) in [
        (gated, 1),
        (gated, 32),
        (Clock::Submit, 1),
        (Clock::Wall, 1),
    ] {
        let each = || match nodes {
            1 => middle(9, || time.measure_launches(clock, N, 1, &spin)),
            _ => middle(9, || {
                time.measure_graph(clock, N, || (0..nodes).try_for_each(|_| spin()))
            }),
        };
        let (without, mut recorded) = (each()?, 0.0);
        time.measure_activity(1, || each().map(|ns| recorded = ns))?;
        let kernels = (N * nodes) as f64;
        let [without, more] = [without, recorded - without].map(|ns| ns / kernels);
        println!("{clock}, {nodes} kernels: {without:.0} ns each, recorded {more:+.0} ns");
        assert!(
            clock != gated || more.abs() <= 400.0,
            "{clock}, {nodes} kernels: recorded {more:+.0} ns each"
        );
    }
    let gated_ns = |routine: &dyn Fn() -> Result<(), CudaError>| {
        middle(9, || time.measure_launches(gated, N, 1, routine)).map(|ns| ns / N as f64)
    };
    let known = gated_ns(&spin)? - gated_ns(&empty)?;
    let busy = time.measure_activity(N, &spin)?.busy_ns as f64 / N as f64;
    println!("a kernel: {known:.0} ns behind the gate, {busy:.0} ns busy");
    assert!(
        (-500.0..800.0).contains(&(busy - known)),
        "a kernel: {known:.0} ns on {gated}, {busy:.0} ns busy"
    );
    let begun = Instant::now();
    (0..10).try_for_each(|_| time.measure_activity(1, &spin).map(drop))?;
    println!("a sample of one iteration takes {:?}", begun.elapsed() / 10);
    Ok(())
}
