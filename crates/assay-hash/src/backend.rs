//! Chooses the kernels once per process; the kernels live in the modules below.
//!
//! The portable kernels are the oracle: `tests/it/backends.rs` runs one body over every backend of
//! the machine. Only the submodules contain `unsafe`.

use core::sync::atomic::{AtomicU8, Ordering};

#[cfg(target_arch = "x86_64")]
use crate::many::hash_many;
use crate::num3072::{LIMBS, Num3072};
use crate::ripemd160::ripemd160;
use crate::sha256::{one_shot, to_bytes};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod bmi2;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(target_arch = "x86_64")]
mod ifma_many;
pub(crate) mod lanes;
#[cfg(target_arch = "x86_64")]
mod muhash;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
mod sha1_ni;
#[cfg(target_arch = "aarch64")]
mod sha2_arm;
#[cfg(target_arch = "x86_64")]
mod sha_ni;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod sha_unit;

#[cfg(target_arch = "x86_64")]
use sha_ni as unit;
#[cfg(target_arch = "aarch64")]
use sha2_arm as unit;

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
    /// Eight messages in AVX2 lanes and four products of MuHash; a single message is hashed in
    /// plain Rust.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// The same with sixteen and eight in AVX-512 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512f,
    /// Four messages in NEON lanes; a single message is hashed in plain Rust.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// SHA instructions, one message or two interleaved; the rest as `Avx2` where there is AVX2, and as `Neon`.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    ShaUnit,
    /// As `ShaUnit`, with sixteen messages in AVX-512 lanes and MuHash on 52-bit multipliers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Index into [`ALL`] of the backend in use plus one; zero before the first detection.
static IN_USE: AtomicU8 = AtomicU8::new(0);

/// Every backend of this architecture, slowest first.
#[cfg(target_arch = "x86_64")]
const ALL: &[Backend] = &[
    Backend::PORTABLE,
    Backend(Kernels::Avx2),
    Backend(Kernels::Avx512f),
    Backend(Kernels::ShaUnit),
    Backend(Kernels::Avx512),
];

/// Blocks of SHA-256 that are hashed one after the other in the time of a block in each of eight
/// lanes, without a SHA unit: 2.8 with BMI2, 1.9 without.
#[cfg(target_arch = "x86_64")]
const AVX2_BREAK_EVEN: usize = 3;

/// The same for sixteen lanes: 2.3 and 1.5.
#[cfg(target_arch = "x86_64")]
const AVX512F_BREAK_EVEN: usize = 3;

/// The same for four lanes of NEON, by counting instructions.
#[cfg(target_arch = "aarch64")]
const NEON_BREAK_EVEN: usize = 2;

/// Blocks that the SHA unit hashes, two messages interleaved, in the time of a block in each of
/// sixteen lanes.
#[cfg(target_arch = "x86_64")]
const AVX512_BREAK_EVEN: usize = 9;

/// Every backend of this architecture, slowest first.
#[cfg(target_arch = "aarch64")]
const ALL: &[Backend] = &[Backend::PORTABLE, Backend(Kernels::Neon), Backend(Kernels::ShaUnit)];

/// Every backend of this architecture, slowest first.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
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

    /// A short stable name for reports: `"portable"`, `"avx2"`, `"avx512f"`, `"sha-ni"` and
    /// `"avx512"`; `"neon"` and `"sha2"` on aarch64.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kernels::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f => "avx512f",
            #[cfg(target_arch = "x86_64")]
            Kernels::ShaUnit => "sha-ni",
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Kernels::ShaUnit => "sha2",
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
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => true,
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => avx2::available(),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f => avx512::available(),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Kernels::ShaUnit => unit::available(),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => unit::available() && avx512::available() && ifma::available(),
        }
    }

    /// Whether one message goes to the SHA unit of the CPU.
    #[inline]
    fn has_unit(self) -> bool {
        match self.0 {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Kernels::ShaUnit => true,
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => true,
            _ => false,
        }
    }

    /// Whether one message goes to the kernel for BMI2, if not to a SHA unit.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_bmi2(self) -> bool {
        self != Self::PORTABLE && bmi2::available()
    }

    /// Absorbs whole blocks into a SHA-256 state.
    #[inline]
    pub(crate) fn compress(self, state: &mut [u32; 8], blocks: &[[u8; 64]]) {
        if self.has_unit() {
            return unit::compress(state, blocks);
        }
        #[cfg(target_arch = "x86_64")]
        if self.has_bmi2() {
            return bmi2::compress(state, blocks);
        }
        portable::sha256::compress(state, blocks);
    }

    /// Absorbs whole blocks into a SHA-1 state.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(clippy::unused_self, reason = "no backend has a kernel for it")
    )]
    #[inline]
    pub(crate) fn compress_sha1(self, state: &mut [u32; 5], blocks: &[[u8; 64]]) {
        #[cfg(target_arch = "x86_64")]
        if self.has_unit() {
            return sha1_ni::compress(state, blocks);
        }
        crate::sha1::compress_portable(state, blocks);
    }

    /// The SHA-256 of the digest that `state` stands for: the outer half of a double hash.
    #[inline]
    pub(crate) fn rehash(self, state: &[u32; 8]) -> [u8; 32] {
        if self.has_unit() {
            return unit::rehash(state);
        }
        #[cfg(target_arch = "x86_64")]
        if self.has_bmi2() {
            return bmi2::rehash(state);
        }
        portable::sha256::rehash(state)
    }

    /// Double SHA-256 of each message into the digest of the same index.
    #[inline]
    pub(crate) fn double_64(self, messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
        assert_eq!(messages.len(), digests.len(), "one digest per message");
        let done = match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => avx2::double_64(messages, digests, AVX2_BREAK_EVEN),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f => avx512::double_64(messages, digests, AVX512F_BREAK_EVEN),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => avx512::double_64(messages, digests, AVX512_BREAK_EVEN),
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => neon::double_64(messages, digests, NEON_BREAK_EVEN),
            _ => 0,
        };
        let (messages, digests) = (&messages[done..], &mut digests[done..]);
        if self.has_unit() {
            return unit::double_64(messages, digests);
        }
        #[cfg(target_arch = "x86_64")]
        if self.has_bmi2() {
            for (message, digest) in messages.iter().zip(digests) {
                *digest = bmi2::rehash(&one_shot(self, message));
            }
            return;
        }
        portable::sha256::double_64(messages, digests);
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
        let done = match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => avx2::group::<TWICE>(messages, digests, AVX2_BREAK_EVEN),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f => avx512::group::<TWICE>(messages, digests, AVX512F_BREAK_EVEN),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => avx512::group::<TWICE>(messages, digests, AVX512_BREAK_EVEN),
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => neon::group::<TWICE>(messages, digests, NEON_BREAK_EVEN),
            _ => 0,
        };
        if done > 0 {
            return done;
        }
        if let (true, Some(pair), Some(digests)) =
            (self.has_unit(), messages.first_chunk(), digests.first_chunk_mut())
        {
            unit::pair::<TWICE>(pair, digests);
            return 2;
        }
        let state = one_shot(self, messages[0]);
        digests[0] = if TWICE { self.rehash(&state) } else { to_bytes(state) };
        1
    }

    /// Absorbs the same blocks into up to [`GROUP_MAX`](Self::GROUP_MAX) SHA-256 states.
    pub(crate) fn shared(self, states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
        match self.0 {
            Kernels::Portable => portable::sha256::shared(states, blocks),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => avx2::shared(states, blocks),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f => avx512::shared(states, blocks),
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => neon::shared(states, blocks),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 if states.len() > 6 => avx512::shared(states, blocks),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            _ => unit::shared(states, blocks),
        }
    }

    /// RIPEMD-160 of each of up to [`GROUP_MAX`](Self::GROUP_MAX) messages.
    #[inline]
    pub(crate) fn ripemd160_32(self, messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
        // One message in many lanes takes longer than by itself, two are faster.
        if messages.len() > 1 {
            match self.0 {
                #[cfg(target_arch = "x86_64")]
                Kernels::Avx512f | Kernels::Avx512 => {
                    return avx512::ripemd160_32(messages, digests);
                }
                #[cfg(target_arch = "x86_64")]
                Kernels::Avx2 | Kernels::ShaUnit if avx2::available() => {
                    return avx2::ripemd160_32(messages, digests);
                }
                #[cfg(target_arch = "aarch64")]
                Kernels::Neon | Kernels::ShaUnit => return neon::ripemd160_32(messages, digests),
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
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn multiply_elements(self, product: &mut Num3072, messages: &[&[u8]]) -> usize {
        type Products = fn(&[[u8; 32]], &mut [Num3072; muhash::PRODUCTS_MAX]);
        let (products, lanes): (Products, usize) = match self.0 {
            Kernels::Avx512 => (ifma_many::products, 16),
            Kernels::Avx512f => (avx512::products, 16),
            Kernels::Avx2 | Kernels::ShaUnit if avx2::available() => (avx2::products, 8),
            _ => return 0,
        };
        let done = messages.len() - messages.len() % lanes;
        if done < 2 * lanes {
            return 0;
        }
        let mut keys = vec![[0; 32]; done];
        hash_many::<false>(self, &messages[..done], &mut keys);
        let mut factors = [const { Num3072::ONE }; muhash::PRODUCTS_MAX];
        products(&keys, &mut factors);
        for factor in &factors[..lanes / 2] {
            *product = product.mul(factor, self);
        }
        done
    }

    /// Multiplies `product` by no elements: there is no kernel for many.
    #[cfg(not(target_arch = "x86_64"))]
    #[expect(clippy::unused_self, reason = "no backend has a kernel for it")]
    pub(crate) fn multiply_elements(self, _: &mut Num3072, _: &[&[u8]]) -> usize {
        0
    }
}

/// The SHA unit of a CPU whose unit we do not know: never asked, as no backend has it.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod unit {
    pub(super) use super::portable::sha256::{compress, double_64, rehash};

    pub(super) fn pair<const TWICE: bool>(_: &[&[u8]; 2], _: &mut [[u8; 32]; 2]) {
        unreachable!("no backend has a SHA unit");
    }
}
