//! Calls of the exported functions, wrong ones too.

use std::ffi::{c_int, c_void};

use super::algorithm::*;
use super::description::*;
use super::matmul::*;
use crate::cublas;
use crate::fault::Fault;
use crate::library::testing::{allocated, freed, stream};
use crate::product::status;
use crate::state::lock;
use crate::work::Used;

static SCALARS: [f32; 2] = [1.0, 0.0];

/// D = A B of f32, 16 x 32 x 48, in memory of just that size.
struct Call {
    handle: u64,
    description: u64,
    layouts: [u64; 4],
    addresses: [u64; 4],
    workspace: (u64, usize),
    algorithm: Algorithm,
}

fn layout(element: c_int, rows: u64, columns: u64) -> u64 {
    let mut layout = 0;
    // SAFETY: the address of a handle.
    let status =
        unsafe { cublasLtMatrixLayoutCreate(&mut layout, element, rows, columns, rows as i64) };
    assert_eq!(status, 0);
    layout
}

fn describe<T>(call: &Call, which: c_int, value: T) -> c_int {
    let value = &raw const value;
    let description = call.description;
    // SAFETY: the address of a value of its size.
    unsafe { cublasLtMatmulDescSetAttribute(description, which, value.cast(), size_of::<T>()) }
}

fn call() -> Call {
    let (mut handle, mut description) = (0, 0);
    // SAFETY: the addresses of handles.
    unsafe {
        assert_eq!(cublas::cublasCreate_v2(&mut handle), 0);
        assert_eq!(cublasLtMatmulDescCreate(&mut description, 68, 0), 0);
    }
    let [a, b, d] = [(16, 48), (48, 32), (16, 32)].map(|(m, n)| (layout(0, m, n), m * n * 4));
    let result = allocated(d.1);
    Call {
        handle,
        description,
        layouts: [a.0, b.0, d.0, d.0],
        addresses: [allocated(a.1), allocated(b.1), result, result],
        workspace: (0, 0),
        algorithm: Algorithm::all()[0],
    }
}

fn matmul(call: &Call) -> c_int {
    let [of_a, of_b, of_c, of_d] = call.layouts;
    let [a, b, c, d] = call.addresses;
    let [alpha, beta] = [0, 1].map(|i| (&raw const SCALARS[i]).cast());
    let Call {
        handle,
        description,
        ..
    } = *call;
    let (workspace, bytes) = call.workspace;
    // SAFETY: the scalars live as long as the process, the algorithm as long as the call.
    unsafe {
        cublasLtMatmul(
            handle,
            description,
            alpha,
            a,
            of_a,
            b,
            of_b,
            beta,
            c,
            of_c,
            d,
            of_d,
            &call.algorithm,
            workspace,
            bytes,
            stream(),
        )
    }
}

/// Status and algorithms for a workspace of at most so many bytes.
fn heuristic(call: &Call, workspace: usize, asked: usize) -> (c_int, Vec<(Algorithm, usize)>) {
    let [a, b, c, d] = call.layouts;
    let Call {
        handle,
        description,
        ..
    } = *call;
    let (mut preference, mut count) = (0, -1);
    let mut results: Vec<HeuristicResult> = Vec::with_capacity(asked);
    // SAFETY: there is room for as many results as are asked for, and as many as the call counts
    // were written.
    unsafe {
        assert_eq!(cublasLtMatmulPreferenceCreate(&mut preference), 0);
        let value = (&raw const workspace).cast();
        let set = cublasLtMatmulPreferenceSetAttribute(preference, 1, value, 8);
        assert_eq!(set, 0);
        let (out, asked) = (results.as_mut_ptr(), asked as c_int);
        let status = cublasLtMatmulAlgoGetHeuristic(
            handle,
            description,
            a,
            b,
            c,
            d,
            preference,
            asked,
            out,
            &mut count,
        );
        assert_eq!(cublasLtMatmulPreferenceDestroy(preference), 0);
        results.set_len(count as usize);
        let found = results
            .iter()
            .map(|result| (result.algorithm, result.workspace));
        (status, found.collect())
    }
}

#[test]
fn the_structures_have_the_sizes_of_the_library() {
    assert_eq!(size_of::<Algorithm>(), 64);
    assert_eq!(size_of::<HeuristicResult>(), 96);
}

#[test]
fn the_heuristic_gives_what_the_workspace_allows() {
    let call = call();
    let partial = 4 * 16 * 32 * 4;
    let (status, all) = heuristic(&call, partial, 24);
    assert_eq!(status, 0);
    let workspaces: Vec<usize> = all.iter().map(|(_, bytes)| *bytes).collect();
    assert_eq!(workspaces, [0, 0, partial]);
    assert_eq!(heuristic(&call, partial - 1, 24).1, all[..2]);
    assert_eq!(heuristic(&call, partial, 1).1, all[..1]);
    let setting = |which, bytes| {
        let (mut value, mut written) = (0u32, 0);
        let out = (&raw mut value).cast();
        // SAFETY: the algorithm lives, and the addresses are those of numbers.
        let status = unsafe {
            cublasLtMatmulAlgoConfigGetAttribute(&all[2].0, which, out, bytes, &mut written)
        };
        (status, value, written)
    };
    assert_eq!(
        [0, 1, 6, 2].map(|which| setting(which, 4).1),
        [66, 20, 11, 4]
    );
    assert_eq!(setting(0, 4), (0, 66, 4));
    assert_eq!(setting(0, 2).0, status::INVALID_VALUE);
}

/// Why the product of `call` is not enqueued with such a workspace.
fn fault(call: &Call, address: u64, bytes: u64) -> Fault {
    let described = Described::new(call.handle, call.description, call.layouts).unwrap();
    let mut product = described.product(call.addresses, [1.0, 0.0]).unwrap();
    let name = "workspace";
    product.beside.push(Used {
        name,
        address,
        bytes,
    });
    product.enqueue(stream()).unwrap_err()
}

#[test]
fn a_workspace_is_large_enough_aligned_and_there() {
    let mut call = call();
    call.algorithm = Algorithm::all()[2];
    let whole = allocated(8192);
    for (workspace, status) in [
        ((whole, 8191), status::INVALID_VALUE),
        ((whole + 8, 8184), status::INVALID_VALUE),
        ((whole, 8192), 0),
    ] {
        call.workspace = workspace;
        assert_eq!(matmul(&call), status, "{workspace:?}");
    }
    let gone = fault(&call, freed(64), 64);
    assert!(gone.corrupts, "{gone:?}");
    assert!(
        gone.why.starts_with("workspace: ") && gone.why.ends_with("freed"),
        "{gone:?}"
    );
    let past = fault(&call, whole, 8193);
    assert!(
        past.corrupts && past.why.contains("end 1 B past"),
        "{past:?}"
    );
}

#[test]
fn what_the_library_refuses_is_refused_with_its_status() {
    let mut foreign = call();
    foreign.algorithm = Algorithm { data: [1; 8] };
    assert_eq!(matmul(&foreign), status::INVALID_VALUE);
    let wrong = call();
    assert_eq!(describe(&wrong, 3, 1i32), 0);
    assert_eq!(matmul(&wrong), status::INVALID_VALUE, "shapes do not fit");
    assert_eq!(heuristic(&wrong, 0, 1).0, status::INVALID_VALUE);
    assert_eq!(
        describe(&wrong, 3, 1u8),
        status::INVALID_VALUE,
        "size of the attribute"
    );
    let bias = call();
    assert_eq!(describe(&bias, 7, 4u32), 0);
    assert_eq!(matmul(&bias), status::INVALID_VALUE, "no bias");
    assert_eq!(heuristic(&bias, 0, 1).0, 0, "the bias may come later");
    let batch = call();
    let (value, layout) = (2i32, batch.layouts[0]);
    // SAFETY: the address of a value of its size.
    let set = |which, value: *const c_void, bytes| unsafe {
        cublasLtMatrixLayoutSetAttribute(layout, which, value, bytes)
    };
    assert_eq!(set(5, (&raw const value).cast(), 4), 0);
    assert_eq!(matmul(&batch), status::INVALID_VALUE, "batches differ");
    let mut null = call();
    null.handle = 0;
    assert_eq!(matmul(&null), status::NOT_INITIALIZED);
}

#[test]
fn e4m3_is_multiplied_by_columns_of_both_alone() {
    let mut call = call();
    let square = [layout(28, 32, 32), layout(28, 32, 32), layout(0, 32, 32)];
    call.layouts = [square[0], square[1], square[2], square[2]];
    assert_eq!(heuristic(&call, 0, 1).0, status::NOT_SUPPORTED);
    assert_eq!(describe(&call, 3, 1i32), 0);
    assert_eq!(heuristic(&call, 0, 1).0, 0);
    call.layouts[0] = layout(28, 24, 32);
    call.layouts[1] = layout(28, 24, 32);
    assert_eq!(
        heuristic(&call, 0, 1).0,
        status::NOT_SUPPORTED,
        "24 is not of 16"
    );
}

#[test]
fn what_is_not_known_or_was_destroyed_ends_the_process() {
    let call = call();
    let described = || Described::new(call.handle, call.description, call.layouts).err();
    assert_eq!(described(), None);
    assert!(leaks().contains(&DESCRIPTIONS.name_of(call.description)));
    // SAFETY: no pointers.
    assert_eq!(unsafe { cublasLtMatmulDescDestroy(call.description) }, 0);
    let fault = described().unwrap();
    assert!(
        fault.corrupts && fault.why.ends_with("was destroyed"),
        "{fault:?}"
    );
    assert!(Epilogue::of(130).unwrap_err().corrupts);
}

/// The test below runs this in a process of its own.
const GIVEN_BACK: &str = "CROSSOVER_TEST_GIVEN_BACK";

#[test]
fn a_workspace_that_is_freed_before_its_product_runs_ends_the_process() {
    let name =
        "cublaslt::tests::a_workspace_that_is_freed_before_its_product_runs_ends_the_process";
    if std::env::var_os(GIVEN_BACK).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child
            .args(["--exact", name, "--nocapture"])
            .env(GIVEN_BACK, "1");
        let output = child.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(
            errors.contains("the workspace of a library's kernel that runs"),
            "{errors}"
        );
        assert!(errors.contains("was given back before"), "{errors}");
        return;
    }
    let mut call = call();
    let workspace = allocated(8192);
    call.workspace = (workspace, 8192);
    let other = stream();
    assert_eq!(matmul(&call), 0);
    // Nothing orders the two streams.
    let mut state = lock();
    state.free_async(workspace, other).unwrap();
    state.synchronize_stream(other).unwrap();
    let context = state.retain(0).unwrap();
    state.synchronize_context(context);
}
