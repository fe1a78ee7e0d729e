//! Chooses the kernels once per process; the kernels live in the modules below.
//!
//! The portable kernels are the oracle: `tests/it/backends.rs` runs one body over every backend of
//! the machine. Only the submodules contain `unsafe`.

use core::sync::atomic::{AtomicU8, Ordering};

use crate::num3072::{LIMBS, Num3072};
use crate::ripemd160::ripemd160;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(target_arch = "x86_64")]
mod ifma_many;
pub(crate) mod lanes;
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
mod sha1_ni;
#[cfg(target_arch = "x86_64")]
mod sha_ni;

/// A set of kernels; all sets compute the same functions.
///
/// A value always names kernels this machine can run: beside the portable set, only functions
/// that have asked the CPU hand values out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend(Kernels);

/// What a [`Backend`] stands for; private, so that holding one proves the CPU has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernels {
    Portable,
    /// Eight messages in AVX2 lanes; a single one is hashed in plain Rust.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// SHA extensions, one message or two interleaved; RIPEMD-160 as `Avx2` where there is AVX2.
    #[cfg(target_arch = "x86_64")]
    ShaNi,
    /// As `ShaNi`, with sixteen messages in AVX-512 lanes and MuHash on 52-bit multipliers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Index into [`ALL`] of the backend in use plus one; zero before the first detection.
static IN_USE: AtomicU8 = AtomicU8::new(0);

/// Every backend of this architecture, slowest first.
#[cfg(target_arch = "x86_64")]
const ALL: &[Backend] =
    &[Backend::PORTABLE, Backend(Kernels::Avx2), Backend(Kernels::ShaNi), Backend(Kernels::Avx512)];

/// Every backend of this architecture, slowest first.
#[cfg(not(target_arch = "x86_64"))]
const ALL: &[Backend] = &[Backend::PORTABLE];

impl Backend {
    /// Plain Rust; runs everywhere and is the oracle for the others.
    pub const PORTABLE: Self = Self(Kernels::Portable);

    /// The backend of all functions that take none: the fastest of this machine, found once per
    /// process, or the one [`select`](Self::select)ed.
    #[inline]
    pub fn detect() -> Self {
        // Relaxed suffices: any value read is a backend that runs here.
        match IN_USE.load(Ordering::Relaxed) {
            0 => Self::detect_slow(),
            index => ALL[usize::from(index) - 1],
        }
    }

    /// Every backend this machine can run, portable first, fastest last.
    pub fn available() -> Vec<Self> {
        ALL.iter().copied().filter(|backend| backend.runs_here()).collect()
    }

    /// The backend called `name` if this machine can run it.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::available().into_iter().find(|backend| backend.name() == name)
    }

    /// A short stable name for reports: `"portable"`, `"avx2"`, `"sha-ni"` or `"avx512"`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kernels::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaNi => "sha-ni",
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => "avx512",
        }
    }

    /// Makes this the backend of all functions that take none, from now on and for all threads.
    ///
    /// Results do not depend on it, only speed does; for measuring and for ruling a backend out.
    pub fn select(self) {
        let index = ALL.iter().position(|&backend| backend == self).unwrap_or(0);
        IN_USE.store(index as u8 + 1, Ordering::Relaxed);
    }

    #[cold]
    fn detect_slow() -> Self {
        let fastest = ALL.iter().copied().rfind(|backend| backend.runs_here());
        let fastest = fastest.unwrap_or(Self::PORTABLE);
        fastest.select();
        fastest
    }

    fn runs_here(self) -> bool {
        match self.0 {
            Kernels::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => avx2::available(),
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaNi => sha_ni::available(),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => sha_ni::available() && avx512::available() && ifma::available(),
        }
    }

    /// Absorbs whole blocks into a SHA-256 state.
    #[inline]
    pub(crate) fn compress(self, state: &mut [u32; 8], blocks: &[[u8; 64]]) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaNi | Kernels::Avx512 => sha_ni::compress(state, blocks),
            _ => portable::sha256::compress(state, blocks),
        }
    }

    /// Absorbs whole blocks into a SHA-1 state.
    #[inline]
    pub(crate) fn compress_sha1(self, state: &mut [u32; 5], blocks: &[[u8; 64]]) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaNi | Kernels::Avx512 => sha1_ni::compress(state, blocks),
            _ => crate::sha1::compress_portable(state, blocks),
        }
    }

    /// The SHA-256 of the digest that `state` stands for: the outer half of a double hash.
    #[inline]
    pub(crate) fn rehash(self, state: &[u32; 8]) -> [u8; 32] {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaNi | Kernels::Avx512 => sha_ni::rehash(state),
            _ => portable::sha256::rehash(state),
        }
    }

    /// Double SHA-256 of each message into the digest of the same index.
    #[inline]
    pub(crate) fn double_64(self, messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
        assert_eq!(messages.len(), digests.len(), "one digest per message");
        match self.0 {
            Kernels::Portable => portable::sha256::double_64(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => {
                let done = avx2::double_64(messages, digests);
                portable::sha256::double_64(&messages[done..], &mut digests[done..]);
            }
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaNi => sha_ni::double_64(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => {
                let done = avx512::double_64(messages, digests);
                sha_ni::double_64(&messages[done..], &mut digests[done..]);
            }
        }
    }

    /// The most messages that the kernels for groups take.
    pub(crate) const GROUP_MAX: usize = 16;

    /// SHA-256, double if `TWICE`, of some of the first messages; returns how many, at least one.
    ///
    /// `messages` has 1 to [`GROUP_MAX`](Self::GROUP_MAX) entries, those with the most blocks
    /// first, and `digests` has as many.
    #[inline]
    pub(crate) fn group<const TWICE: bool>(
        self,
        messages: &[&[u8]],
        digests: &mut [[u8; 32]],
    ) -> usize {
        match self.0 {
            Kernels::Portable => portable::sha256::group::<TWICE>(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => match avx2::group::<TWICE>(messages, digests) {
                0 => portable::sha256::group::<TWICE>(messages, digests),
                done => done,
            },
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaNi => sha_ni::group::<TWICE>(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => match avx512::group::<TWICE>(messages, digests) {
                0 => sha_ni::group::<TWICE>(messages, digests),
                done => done,
            },
        }
    }

    /// Absorbs the same blocks into up to [`GROUP_MAX`](Self::GROUP_MAX) SHA-256 states.
    pub(crate) fn shared(self, states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
        match self.0 {
            Kernels::Portable => portable::sha256::shared(states, blocks),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => states.chunks_mut(8).for_each(|states| avx2::shared(states, blocks)),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 if states.len() > 6 => avx512::shared(states, blocks),
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaNi | Kernels::Avx512 => sha_ni::shared(states, blocks),
        }
    }

    /// RIPEMD-160 of each of up to [`GROUP_MAX`](Self::GROUP_MAX) messages.
    #[inline]
    pub(crate) fn ripemd160_32(self, messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
        // One message in many lanes takes longer than by itself, two are faster.
        if messages.len() > 1 {
            match self.0 {
                #[cfg(target_arch = "x86_64")]
                Kernels::Avx512 => return avx512::ripemd160_32(messages, digests),
                #[cfg(target_arch = "x86_64")]
                Kernels::Avx2 | Kernels::ShaNi if avx2::available() => {
                    return avx2::ripemd160_32(messages, digests);
                }
                _ => {}
            }
        }
        for (message, digest) in messages.iter().zip(digests) {
            *digest = ripemd160(message);
        }
    }

    /// The first 384 bytes of the `ChaCha20` key stream with nonce and counter zero.
    #[inline]
    pub(crate) fn keystream(self, key: &[u8; 32]) -> [u8; 384] {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => ifma::keystream(key),
            _ => portable::chacha20::keystream(key),
        }
    }

    /// The double-width product of two numbers.
    #[inline]
    pub(crate) fn mul_wide(self, a: &[u64; LIMBS], b: &[u64; LIMBS]) -> [u64; 2 * LIMBS] {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => ifma::mul_wide(a, b),
            _ => portable::mul3072::mul_wide(a, b),
        }
    }

    /// Multiplies `product` by the MuHash elements of the first messages and returns how many those
    /// are; the rest is not worth a kernel of its own.
    pub(crate) fn multiply_elements(self, product: &mut Num3072, messages: &[&[u8]]) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => {
                let (groups, _) = messages.as_chunks();
                if groups.len() < 2 {
                    return 0;
                }
                let limbs = ifma_many::products(groups);
                for lane in 0..ifma_many::PRODUCTS {
                    let factor = Num3072::from_limbs_48(&limbs.map(|limb| limb[lane]));
                    *product = product.mul(&factor, self);
                }
                groups.as_flattened().len()
            }
            _ => {
                let _ = (product, messages);
                0
            }
        }
    }
}
