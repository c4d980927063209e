//! Multiplies ndarray matrices, and asks before each product which is worth it: one thread, all threads, or
//! the GPU.
//!
//! `cargo run --release --example ask_first [FILE]`
//!
//! The first run on a machine times the three ways at a few sizes, for two seconds at most, and keeps the
//! result. With FILE, which `crossover export --thresholds FILE` writes, the suite's results decide between
//! all threads and the GPU.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossover_advice::calibration::{Calibrated, Calibration};
use crossover_advice::{Advice, Choice, HostInfo, Question, Residency};
use crossover_suite::timing::probe;
use cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{CudaContext, CudaStream};
use gemm_common::Parallelism;
use ndarray::Array2;

type Matrix = Array2<f32>;

/// Runs of each product.
const RUNS: u32 = 5;

/// Questions in a run, and runs: short ones, so that some of them are not interrupted.
const ASKED: u32 = 1_000;

/// Orders of the square products that a calibration times.
const ORDERS: [usize; 7] = [16, 32, 64, 128, 256, 512, 1024];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Executor {
    OneThread,
    AllThreads,
    Gpu,
}

/// The source of the decisions.
enum Basis {
    /// The three ways of this program, timed on this machine.
    Calibration(Calibrated),
    /// The operations of the suite.
    Thresholds(Advice),
}

/// The libraries that compute the products.
struct Products {
    basis: Basis,
    device: Option<Cublas>,
}

impl Products {
    /// A · B in the fastest way, or by all threads where that is not known.
    fn multiply(&self, a: &Matrix, b: &Matrix) -> Result<Matrix, Box<dyn Error>> {
        match (self.choice(a, b), &self.device) {
            (Executor::Gpu, Some(device)) => device.multiply(a, b),
            (Executor::OneThread, _) => Ok(on_cpu(a, b, Parallelism::None)),
            _ => Ok(on_cpu(a, b, ALL_THREADS)),
        }
    }

    fn choice(&self, a: &Matrix, b: &Matrix) -> Executor {
        let ((m, k), n) = (a.dim(), b.ncols());
        match &self.basis {
            Basis::Calibration(calibrated) => {
                // The order of the square product with as much arithmetic.
                let order = ((m * n * k) as f64).cbrt() as usize;
                match calibrated.fastest(order) {
                    Some(0) => Executor::OneThread,
                    Some(2) => Executor::Gpu,
                    _ => Executor::AllThreads,
                }
            }
            Basis::Thresholds(advice) => {
                // The matrices of ndarray lie in ordinary memory.
                let question = Question::new("matmul", (m, n, k)).data(Residency::Ordinary);
                match advice.decide(&question).choice {
                    Choice::Gpu => Executor::Gpu,
                    Choice::Cpu | Choice::Unsure => Executor::AllThreads,
                }
            }
        }
    }
}

fn calibrate(device: Option<&Cublas>) -> Calibrated {
    let calibration = Calibration::new("ask_first/product")
        .names(["one thread", "all threads", "GPU"])
        .sizes(ORDERS)
        .budget(Duration::from_secs(2))
        .prepare(|n| Matrix::from_elem((n, n), 1.0));
    let mut one_thread = |a: &Matrix| {
        black_box(on_cpu(a, a, Parallelism::None));
        Ok(())
    };
    let mut all_threads = |a: &Matrix| {
        black_box(on_cpu(a, a, ALL_THREADS));
        Ok(())
    };
    match device {
        Some(device) => calibration.among([&mut one_thread, &mut all_threads, &mut |a| {
            device.multiply(a, a).map(|product| _ = black_box(product))
        }]),
        None => calibration.among([&mut one_thread, &mut all_threads]),
    }
}

/// The library takes one thread where a product is small.
const ALL_THREADS: Parallelism = Parallelism::Rayon(0);

/// By the library that the suite's thresholds are based on. With a slower one, moving to the GPU would pay
/// earlier than they say.
fn on_cpu(a: &Matrix, b: &Matrix, threads: Parallelism) -> Matrix {
    let ((m, k), n) = (a.dim(), b.ncols());
    let mut c = Matrix::zeros((m, n));
    let (to, of_a, of_b) = (c.as_mut_ptr(), a.as_ptr(), b.as_ptr());
    let (row_of_a, row_of_b) = (k as isize, n as isize);
    let multiply = gemm_f32::gemm::f32::get_gemm_fn();
    // SAFETY: the matrices lie in memory row by row and have these shapes. It computes Cᵀ = Bᵀ · Aᵀ.
    unsafe {
        multiply(
            n, m, k, to, row_of_b, 1, false, of_b, row_of_b, 1, of_a, row_of_a, 1, 0.0, 1.0, false,
            false, false, threads,
        );
    }
    c
}

/// A GPU with cuBLAS.
struct Cublas {
    stream: Arc<CudaStream>,
    blas: CudaBlas,
}

impl Cublas {
    fn open() -> Result<Self, Box<dyn Error>> {
        probe(0)?;
        // SAFETY: opens the library and closes it again; its initialisers are the vendor's.
        if !unsafe { cudarc::cublas::sys::is_culib_present() } {
            return Err("there is no cuBLAS here".into());
        }
        let stream = CudaContext::new(0)?.default_stream();
        let blas = CudaBlas::new(stream.clone())?;
        Ok(Self { stream, blas })
    }

    /// With plain copies of ordinary memory.
    fn multiply(&self, a: &Matrix, b: &Matrix) -> Result<Matrix, Box<dyn Error>> {
        let ((m, k), n) = (a.dim(), b.ncols());
        let rows = "the matrices lie in memory row by row";
        let device_a = self.stream.clone_htod(a.as_slice().ok_or(rows)?)?;
        let device_b = self.stream.clone_htod(b.as_slice().ok_or(rows)?)?;
        let mut device_c = self.stream.alloc_zeros::<f32>(m * n)?;
        // cuBLAS counts by columns, so this is the transposed product: Cᵀ = Bᵀ · Aᵀ.
        let config = GemmConfig {
            transa: CUBLAS_OP_N,
            transb: CUBLAS_OP_N,
            m: n as i32,
            n: m as i32,
            k: k as i32,
            alpha: 1.0,
            lda: n as i32,
            ldb: k as i32,
            beta: 0.0,
            ldc: n as i32,
        };
        // SAFETY: the buffers have the sizes that the configuration names.
        unsafe {
            self.blas
                .gemm(config, &device_b, &device_a, &mut device_c)?
        };
        Ok(Matrix::from_shape_vec(
            (m, n),
            self.stream.clone_dtoh(&device_c)?,
        )?)
    }
}

/// The shortest of so many runs, as the least disturbed, and the result of the last.
fn timed<T>(runs: u32, mut run: impl FnMut() -> T) -> (Duration, T) {
    let mut shortest = Duration::MAX;
    let mut once = || {
        let start = Instant::now();
        let value = black_box(run());
        shortest = shortest.min(start.elapsed());
        value
    };
    for _ in 1..runs {
        once();
    }
    let value = once();
    (shortest, value)
}

/// Multiplies shapes on the CPU, on the GPU and as asked, and prints a line for each. Returns the sum of each time.
fn multiply_all(products: &Products) -> Result<[Duration; 3], Box<dyn Error>> {
    let shapes = [32, 64, 128, 256, 512, 1024, 2048].map(|n| (n, n, n));
    let shapes = shapes.into_iter().chain([(700, 900, 800), (1, 2048, 2048)]);
    let (mut cpu, mut gpu, mut asked) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    println!("m x k times k x n     answer     CPU          GPU          asked");
    for (m, n, k) in shapes {
        let a = Matrix::from_shape_fn((m, k), |(i, j)| ((7 * i + 3 * j) % 11) as f32 - 5.0);
        let b = Matrix::from_shape_fn((k, n), |(i, j)| ((5 * i + 9 * j) % 13) as f32 - 6.0);
        let expected = a.dot(&b);
        let (on_cpu, result) = timed(RUNS, || on_cpu(&a, &b, ALL_THREADS));
        assert_eq!(result, expected, "sums of small whole numbers are exact");
        let on_gpu = match &products.device {
            Some(device) => {
                let (time, result) = timed(RUNS, || device.multiply(&a, &b));
                assert_eq!(result?, expected);
                Some(time)
            }
            None => None,
        };
        let (time, result) = timed(RUNS, || products.multiply(&a, &b));
        assert_eq!(result?, expected);
        cpu += on_cpu;
        gpu += on_gpu.unwrap_or_default();
        asked += time;
        let shape = format!("{m} x {k} x {n}");
        let on_gpu = on_gpu.map_or("-".into(), |time| format!("{time:.1?}"));
        let choice = format!("{:?}", products.choice(&a, &b));
        println!(
            "{shape:21} {choice:10} {:12} {on_gpu:12} {time:.1?}",
            format!("{on_cpu:.1?}")
        );
    }
    Ok([cpu, gpu, asked])
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1);
    let device = Cublas::open()
        .inspect_err(|absence| eprintln!("always the CPU: {absence}"))
        .ok();
    let basis = match file {
        Some(file) => Basis::Thresholds(Advice::open(file)?.check(&HostInfo::detect())),
        None => Basis::Calibration(calibrate(device.as_ref())),
    };
    if let Basis::Thresholds(advice) = &basis {
        for concern in advice.concerns() {
            eprintln!("note: {concern}");
        }
    }
    let products = Products { basis, device };
    let [cpu, gpu, asked] = multiply_all(&products)?;
    let always = |side, time: Duration| {
        let ratio = time.div_duration_f64(asked);
        println!(
            "always on the {side} {time:.1?}, asked first {asked:.1?}: {ratio:.2} times as fast"
        );
    };
    println!();
    always("CPU", cpu);
    if products.device.is_some() {
        always("GPU", gpu);
    }
    let (a, b) = (Matrix::zeros((500, 600)), Matrix::zeros((600, 700)));
    let (time, ()) = timed(ASKED, || {
        (0..ASKED).for_each(|_| _ = black_box(products.choice(black_box(&a), &b)))
    });
    println!(
        "asking takes {:.1} ns, the shortest mean of {ASKED} times {ASKED} questions",
        time.as_nanos() as f64 / f64::from(ASKED)
    );
    Ok(())
}
