//! Benchmarks that cheat or slip, each in its own way, and the sentence that the guard has for it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crossover_timing::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, result};
use crossover_timing::cudarc::nvrtc::Ptx;
use crossover_timing::{
    Announce, BoxError, Claim, Clock, CudaError, CudaTime, DeviceMemory, Doubt, GateMode, Guarded,
    Launch, TimingError, bind,
};

use super::device::{is_virtual, nothing, spins};

/// Each cheat, and a part of the sentence that it gets.
pub(crate) const CHEATS: [(&str, &str); 13] = [
    ("second stream", "work is on another stream or was put off"),
    ("iteration before", "it depends on the output of the first"),
    ("by address", "the benchmark times a stored result"),
    ("fingerprint", "the benchmark times a stored result"),
    (
        "once per fifteen",
        "a second iteration leaves a wrong output",
    ),
    // In the first and the last of the iterations that the guard compares.
    ("once per five", "a second iteration leaves a wrong output"),
    ("changed input", "input 0 changed"),
    (
        "half",
        "on new inputs the output is wrong: 524288 of 1048576",
    ),
    ("put off", "work is on another stream or was put off"),
    ("reference", "on new inputs the output is wrong: 1048576 of"),
    ("less than said", "it does less work than it declares"),
    ("early clock", "its clock was read before the work was done"),
    ("busy", "other work shares the device"),
];

/// Honest: a second stream writes its inputs.
const RENEWED: &str = "renewed elsewhere";

const BYTES: usize = 1 << 20;
const WORK: Duration = Duration::from_millis(1);

/// Works for a while, and copies its input to its output; or pretends to.
struct Code {
    cheat: &'static str,
    stream: Arc<CudaStream>,
    other: Arc<CudaStream>,
    work: Launch,
    /// What another process would run.
    slice: Launch,
    empty: Launch,
    input: CudaSlice<u8>,
    output: CudaSlice<u8>,
    /// The first output.
    reference: CudaSlice<u8>,
    /// Outputs by the address or the values of their input.
    kept: BTreeMap<u64, CudaSlice<u8>>,
    value: u8,
    runs: usize,
}

fn address(memory: &CudaSlice<u8>) -> u64 {
    memory.device_ptr(memory.stream()).0
}

impl Code {
    fn new(cheat: &'static str, time: &CudaTime) -> Result<Self, BoxError> {
        let stream = time.stream().ok_or("no device")?.clone();
        let module = stream
            .context()
            .load_module(Ptx::from_src(include_str!("../../src/gate.ptx")))?;
        let spin = module.load_function("crossover_spin")?;
        let spin = |time: Duration| {
            Launch::new(spin.clone(), (1, 1, 1), (1, 1, 1)).arg(time.as_nanos() as u64)
        };
        Ok(Self {
            cheat,
            other: stream.context().new_stream()?,
            work: spin(WORK),
            slice: spin(20 * WORK),
            empty: time.empty_kernel().ok_or("no device")?,
            input: stream.clone_htod(&vec![1u8; BYTES])?,
            output: stream.alloc_zeros(BYTES)?,
            reference: stream.clone_htod(&vec![1u8; BYTES])?,
            kept: BTreeMap::new(),
            value: 1,
            runs: 0,
            stream,
        })
    }

    /// Works on a stream, and copies that much.
    fn compute(&self, on: &CudaStream, bytes: usize) -> Result<(), BoxError> {
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { self.work.launch(on) }?;
        self.copy(&self.input, on, bytes)
    }

    fn copy(&self, from: &CudaSlice<u8>, on: &CudaStream, bytes: usize) -> Result<(), BoxError> {
        let (from, to) = (address(from), address(&self.output));
        // SAFETY: both slices have `BYTES` bytes. `all` drops them when the device is idle.
        Ok(unsafe { result::memcpy_dtod_async(to, from, bytes, on.cu_stream()) }?)
    }

    fn pretend(&self) -> Result<(), CudaError> {
        // SAFETY: the kernel takes no arguments.
        unsafe { self.empty.launch(&self.stream) }
    }
}

impl Guarded for Code {
    fn renew(&mut self) -> Result<(), BoxError> {
        self.value += 1;
        self.runs = 0;
        if self.cheat == RENEWED {
            // The timed stream waits for it in each run.
            let input = self.other.alloc_zeros(BYTES)?;
            // SAFETY: the input has `BYTES` bytes, which are used by nothing else yet.
            unsafe {
                result::memset_d8_async(address(&input), self.value, BYTES, self.other.cu_stream())
            }?;
            self.stream.synchronize()?;
            self.input = input;
            self.output = self.stream.alloc_zeros(BYTES)?;
            return Ok(());
        }
        self.input = self.stream.clone_htod(&vec![self.value; BYTES])?;
        let output = self.stream.alloc_zeros(BYTES)?;
        self.output = output;
        Ok(())
    }

    fn poison(&mut self) -> Result<(), BoxError> {
        // SAFETY: the output has `BYTES` bytes, and is freed on this stream.
        Ok(unsafe {
            result::memset_d8_async(address(&self.output), 0xFF, BYTES, self.stream.cu_stream())
        }?)
    }

    fn run(&mut self) -> Result<(), BoxError> {
        self.runs += 1;
        if self.cheat == RENEWED {
            self.stream.join(&self.other)?;
        }
        match self.cheat {
            "second stream" => {
                self.pretend()?;
                self.compute(&self.other, BYTES)
            }
            "iteration before" if self.runs > 1 => Ok(self.pretend()?),
            "once per fifteen" if self.runs % 15 != 1 => Ok(self.pretend()?),
            "once per five" if self.runs % 5 != 1 => Ok(self.pretend()?),
            cheat @ ("by address" | "fingerprint") => {
                let at = match cheat {
                    "by address" => address(&self.input),
                    _ => self.value.into(),
                };
                if let Some(kept) = self.kept.get(&at) {
                    self.pretend()?;
                    return self.copy(kept, &self.stream, BYTES);
                }
                self.compute(&self.stream, BYTES)?;
                let kept = self.stream.clone_htod(&vec![self.value; BYTES])?;
                self.kept.insert(at, kept);
                Ok(())
            }
            "changed input" => {
                self.compute(&self.stream, BYTES)?;
                let (at, stream) = (address(&self.input), self.stream.cu_stream());
                // SAFETY: the input has a byte, and is freed on this stream.
                Ok(unsafe { result::memset_d8_async(at, 0x55, 1, stream) }?)
            }
            "half" => self.compute(&self.stream, BYTES / 2),
            "put off" => Ok(self.pretend()?),
            "reference" => {
                self.pretend()?;
                self.copy(&self.reference, &self.stream, BYTES)
            }
            "less than said" => {
                self.pretend()?;
                self.copy(&self.input, &self.stream, BYTES)
            }
            "busy" if self.runs.is_multiple_of(3) => {
                // SAFETY: the kernel takes one 64-bit number.
                unsafe { self.slice.launch(&self.stream) }?;
                self.copy(&self.input, &self.stream, BYTES)
            }
            _ => self.compute(&self.stream, BYTES),
        }
    }

    fn check(&mut self) -> Result<(), BoxError> {
        if self.cheat == "put off" {
            self.compute(&self.stream, BYTES)?;
        }
        let output = self.stream.clone_dtoh(&self.output)?;
        let wrong = output.iter().filter(|byte| **byte != self.value).count();
        match wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} of {BYTES} bytes").into()),
        }
    }

    fn inputs(&self) -> Vec<DeviceMemory<'_>> {
        vec![(&self.input).into()]
    }

    fn output(&self) -> Vec<DeviceMemory<'_>> {
        vec![(&self.output).into()]
    }
}

/// What the guard says of a cheat; any other name is honest.
pub(crate) fn doubts(time: &CudaTime, cheat: &'static str) -> Result<Vec<Doubt>, BoxError> {
    // Else the second stream would end the measurement, and the guard must see it by itself.
    time.ignore_other_streams(true);
    let mut code = Code::new(cheat, time)?;
    let clock = Clock::EventsGated;
    time.measure_launches(clock, 1, 1, || code.run())?;
    let mut ns = time.measure_launches(clock, 10, 1, || code.run())? / 10.0;
    if cheat == "early clock" {
        code.run()?;
        // As if it had been read after the launch.
        ns = 0.01 * WORK.as_nanos() as f64;
    }
    time.settle()?;
    let mut claim = Claim::new(clock, 1, ns);
    claim.bytes = Some(if cheat == "less than said" { 64.0 } else { 2.0 } * BYTES as f64);
    Ok(time.guard(&claim, &mut code)?)
}

/// Work on a second stream, which is on the device of this number, is an error on every clock.
fn elsewhere(time: &CudaTime, ordinal: usize) -> Result<(), BoxError> {
    let stream = time.stream().ok_or("no device")?;
    let elsewhere = CudaContext::new(ordinal)?;
    let (empty, spin) = (nothing(time), spins(&elsewhere.new_stream()?, 1_000_000)?);
    let spin_there = || -> Result<(), BoxError> {
        bind(&elsewhere)?;
        spin()?;
        Ok(bind(stream.context())?)
    };
    bind(stream.context())?;
    let hidden = || -> Result<(), BoxError> {
        empty()?;
        spin_there()
    };
    time.ignore_other_streams(false);
    // The first measurement finds it. Only the recording driver's host is busy, and late when the devices are idle,
    // too.
    let tries = if is_virtual() { 100 } else { 1 };
    let found = |measure: &dyn Fn() -> Result<f64, TimingError>| {
        let error = (0..tries).find_map(|_| measure().err());
        let error = error.expect("the work is elsewhere");
        let is_found = matches!(error, TimingError::WorkElsewhere { .. });
        assert!(is_found, "{error}");
        println!("device {ordinal}: {error}");
        error.to_string()
    };
    for &clock in Clock::OF_STREAM {
        found(&|| time.measure_launches(clock, 10, 1, hidden));
    }
    for clock in [Clock::EventsGated, Clock::EventsCold] {
        let graph = || time.measure_graph(clock, 10, hidden);
        let error = found(&graph);
        let is_named = error.contains("after the capture, in which nothing runs");
        assert!(is_named, "{error}");
        // Nothing is in the graph.
        let nothing = time.measure_graph(clock, 10, spin_there);
        let is_found = matches!(nothing, Err(TimingError::NothingEnqueued));
        assert!(is_found, "{nothing:?}");
    }
    // Of several processes one may wait for another.
    let announced: Announce = Rc::new(|_| Ok(()));
    time.announcing(Some(announced), || {
        time.measure_launches(Clock::EventsGated, 10, 1, hidden)
    })?;
    time.settle()?;
    time.ignore_other_streams(true);
    time.measure_launches(Clock::EventsGated, 10, 1, hidden)?;
    time.settle()?;
    Ok(())
}

/// Work on another stream, for which the timed one waits, is timed on every clock.
fn joined(time: &CudaTime) -> Result<(), BoxError> {
    const LONG: u64 = 200_000;
    const N: u64 = 20;
    let stream = time.stream().ok_or("no device")?;
    let other = stream.context().new_stream()?;
    let (short, long) = (spins(stream, 1_000)?, spins(&other, LONG)?);
    let (forked, joined) = (stream.record_event(None)?, other.record_event(None)?);
    let routine = || -> Result<(), BoxError> {
        forked.record(stream)?;
        other.wait(&forked)?;
        long()?;
        short()?;
        joined.record(&other)?;
        Ok(stream.wait(&joined)?)
    };
    time.ignore_other_streams(false);
    for &clock in Clock::OF_STREAM {
        time.measure_launches(clock, 1, 1, routine)?;
        let mut times = vec![time.measure_launches(clock, N, 1, routine)?];
        if clock.is_of_events() {
            time.measure_graph(clock, 1, routine)?;
            times.push(time.measure_graph(clock, N, routine)?);
        }
        println!("joined on {clock}: {times:?} ns for {N} iterations");
        // Launches, events and the wait of one stream for the other come on top.
        let expected = (N * LONG) as f64..(N * (LONG + 60_000)) as f64;
        let are_timed = times.iter().all(|ns| expected.contains(ns));
        let is_exempt = clock == Clock::Submit || clock == Clock::Wall && is_virtual();
        assert!(is_exempt || are_timed, "{clock}");
    }
    time.ignore_other_streams(true);
    Ok(())
}

/// A graph that keeps what it allocates is refused before it runs, and the memory exists.
fn kept_by_a_graph(time: &CudaTime) -> Result<(), BoxError> {
    let stream = time.stream().ok_or("no device")?;
    let mut kept = Vec::new();
    for keeps in [false, true] {
        let replayed = time.measure_graph(Clock::EventsGated, 10, || -> Result<(), BoxError> {
            let memory = stream.alloc_zeros::<u8>(1 << 20)?;
            kept.extend(Some(memory).filter(|_| keeps));
            Ok(())
        });
        println!("keeps {keeps}: {replayed:?}");
        match replayed {
            Ok(ns) => assert!(ns > 0.0 && !keeps, "keeps {keeps}: {ns} ns"),
            Err(error) => assert!(
                keeps && error.to_string().contains("it keeps memory"),
                "keeps {keeps}: {error}"
            ),
        }
    }
    for memory in &mut kept {
        stream.memset_zeros(memory)?;
    }
    Ok(stream.synchronize()?)
}

/// A program as candle's are: cudarc orders the streams of its context by events, so nothing can be captured, and
/// memory comes from a pool. Work on the other stream is refused on each clock. So is work that runs although the gate
/// is closed, unless its time is right. Work on the timed stream is timed.
fn tracked() -> Result<(), BoxError> {
    // On a device, one size that is written before the gate opens, and a larger one. Each trial has one outcome,
    // however often it is made.
    let (sizes, repeats): (&[usize], usize) = match is_virtual() {
        true => (&[4 << 20], 1),
        false => (&[8 << 20, 128 << 20], 10),
    };
    for &bytes in sizes {
        let context = CudaContext::new(0)?;
        let [stream, other] = &[context.new_stream()?, context.new_stream()?];
        let time = CudaTime::on_stream(stream, GateMode::Auto)?;
        time.ignore_other_streams(is_virtual());
        time.wake()?;
        let mut memory = other.alloc_zeros::<u8>(bytes)?;
        let times_own = |memory: &mut CudaSlice<u8>| -> Result<f64, BoxError> {
            let mut gated_ns = 0.0;
            for &clock in Clock::OF_STREAM {
                let ns = time.measure(clock, 10, || stream.memset_zeros(memory))?;
                println!("{bytes} B, {clock}: {ns:.0} ns for 10 iterations");
                // At no more than 20 TB/s, from the cache.
                assert!(clock == Clock::Submit || ns > 10.0 * bytes as f64 / 20e3);
                if clock == Clock::EventsGated {
                    gated_ns = ns;
                }
            }
            Ok(gated_ns)
        };
        let gated_ns = times_own(&mut memory)?;
        for clock in Clock::OF_STREAM.repeat(repeats) {
            for launches in [None, Some(1)] {
                let mut beside = || other.memset_zeros(&mut memory);
                let measured = match launches {
                    None => time.measure(clock, 10, &mut beside),
                    Some(launches) => time.measure_launches(clock, 10, launches, &mut beside),
                };
                let is_found = matches!(measured, Err(TimingError::NothingEnqueued));
                assert!(is_found, "{bytes} B beside, {clock}: {measured:?}");
                time.settle()?;
            }
            // The free waits for the other stream, and the memory set for nothing.
            let freed = || {
                // SAFETY: nothing reads it before it is written.
                let mut memory = unsafe { stream.alloc::<u8>(bytes) }?;
                other.memset_zeros(&mut memory)
            };
            let measured = time.measure(clock, 10, freed);
            println!("{bytes} B beside and freed, {clock}: {measured:?}");
            let is_gated = matches!(clock, Clock::EventsGated | Clock::EventsCold);
            let is_early = is_gated && bytes == 8 << 20;
            match measured {
                Err(TimingError::NotHeld | TimingError::NothingEnqueued) => assert!(is_gated),
                Err(error) => return Err(error.into()),
                Ok(ns) => assert!(clock == Clock::Submit || is_early || ns > 0.8 * gated_ns),
            }
            time.settle()?;
        }
        // The stream works again after a trial.
        times_own(&mut memory)?;
    }
    Ok(())
}

/// Every cheat gets its sentence, and what is honest none. Work elsewhere is an error unless it joins, and memory that
/// a graph keeps is refused.
pub(crate) fn all(time: &CudaTime) -> Result<(), BoxError> {
    for (cheat, sentence) in CHEATS {
        let found = doubts(time, cheat)?;
        let said: Vec<String> = found.iter().map(Doubt::to_string).collect();
        println!("{cheat}: {}", said.join(" | "));
        assert!(
            said.iter().any(|said| said.contains(sentence)),
            "{cheat}: {said:?}"
        );
    }
    for honest in ["none", RENEWED] {
        assert_eq!(doubts(time, honest)?, [], "{honest}");
    }
    joined(time)?;
    kept_by_a_graph(time)?;
    tracked()?;
    elsewhere(time, 0)?;
    if CudaContext::device_count()? == 1 {
        println!("(skipped: there is one device)");
        return Ok(());
    }
    elsewhere(time, 1)
}
