//! The vector instruction sets that this suite has code for, and those that this CPU has.

/// A vector instruction set that this CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Kind);

/// Which one. Code that is compiled for it may run where an [`Isa`] of this kind exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// With fused multiply-adds.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// What every CPU of the architecture has.
    Portable,
}

impl Isa {
    /// What every CPU of the architecture has.
    pub(crate) const PORTABLE: Self = Self(Kind::Portable);

    /// The instruction sets of this CPU, the widest first; never empty.
    pub fn available() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                all.push(Self(Kind::Avx512));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Self(Kind::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            all.push(Self(Kind::Neon));
        }
        all.push(Self::PORTABLE);
        all
    }

    /// The widest instruction set of this CPU.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// Which one it is.
    pub(crate) fn kind(self) -> Kind {
        self.0
    }

    /// Name for notes, such as `AVX2`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "NEON",
            Kind::Portable => "portable",
        }
    }
}
