//! Readable names of kernels and driver calls.

/// A kernel's name as in the source: demangled, without the parameters of the function. Other names
/// stay as they are.
pub fn kernel(symbol: &str) -> String {
    use cpp_demangle::{DemangleOptions, Symbol};
    let options = DemangleOptions::new().no_params().no_return_type();
    Symbol::new(symbol)
        .ok()
        .and_then(|s| s.demangle_with_options(&options).ok())
        .unwrap_or_else(|| symbol.to_owned())
}

/// A driver call's name as in the documentation, without the suffixes of its ABI (`_v2`, `_ptsz`).
pub fn call(symbol: &str) -> &str {
    let mut name = symbol;
    while let Some((front, suffix)) = name.rsplit_once('_') {
        let version = suffix
            .strip_prefix('v')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
        if !version && suffix != "ptsz" && suffix != "ptds" {
            break;
        }
        name = front;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_read_as_in_the_source() {
        assert_eq!(kernel("_Z4axpyIfEvT_PKS0_PS0_i"), "axpy<float>");
        let symbol = "_ZN7cutlass7Kernel2I4gemmEEvNT_6ParamsE";
        assert_eq!(kernel(symbol), "cutlass::Kernel2<gemm>");
        assert_eq!(kernel("saxpy"), "saxpy");
        assert_eq!(kernel("_Znonsense"), "_Znonsense");
    }

    #[test]
    fn calls_read_as_in_the_documentation() {
        assert_eq!(call("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync");
        assert_eq!(call("cuMemcpyHtoDAsync_v2_ptsz"), "cuMemcpyHtoDAsync");
        assert_eq!(call("cuLaunchKernel"), "cuLaunchKernel");
        assert_eq!(call("cuStreamGetCaptureInfo_v3"), "cuStreamGetCaptureInfo");
        assert_eq!(call("cu_value"), "cu_value");
    }
}
