//! Loops that the compiler vectorises for the widest vectors of the CPU.

/// A function whose loops are compiled for AVX-512, for AVX2 and for any CPU, of which it runs the
/// widest that the CPU has. The arithmetic is the same in each: nothing is fused but `mul_add`.
#[macro_export]
macro_rules! wide {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $back:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name($($arg: $type),*) $(-> $back)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "those of the function around it")]
            fn body($($arg: $type),*) $(-> $back)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                fn avx512($($arg: $type),*) $(-> $back)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                fn avx2($($arg: $type),*) $(-> $back)? {
                    body($($arg),*)
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the line above has found AVX-512.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the line above has found AVX2 and fused multiply-adds.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}
