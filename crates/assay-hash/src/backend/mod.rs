//! Selects the kernels once per process.
//!
//! The portable kernels are the oracle: `tests/suite/backends.rs` runs the same tests on every backend of the machine. Only the
//! submodules contain `unsafe`.

use core::sync::atomic::{AtomicU8, Ordering};

pub use self::chains::{Chain, TreePath};
use self::portable::sha256::{INITIAL, to_bytes};
use crate::num3072::{LIMBS, Num3072};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod bmi2;
mod chains;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(target_arch = "x86_64")]
mod ifma_many;
pub(crate) mod lanes;
#[cfg(target_arch = "x86_64")]
mod muhash;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod padded;
pub(crate) mod portable;
pub(crate) mod ripemd160;
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
/// Every value is a set that this machine can run: except for the portable set, values come only from functions that check the
/// CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend(Kernels);

/// The kernels of a [`Backend`]; private, so that every value is proof of CPU support.
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
    /// SHA instructions, one message or two interleaved; the rest like `Avx2` if available, or like `Neon`.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    ShaUnit,
    /// As `ShaUnit`, with sixteen messages in AVX-512 lanes and MuHash on 52-bit multipliers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Index into [`ALL`] of the current backend plus one; zero before the first detection.
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

/// Calls a kernel of the backend's lanes.
macro_rules! in_lanes {
    ($kernels:expr; $kernel:ident $(::<$twice:ident>)? ($($argument:expr),+); _ => $otherwise:expr) => {
        match $kernels {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => avx2::$kernel $(::<$twice>)? ($($argument),+),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f | Kernels::Avx512 => avx512::$kernel $(::<$twice>)? ($($argument),+),
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => neon::$kernel $(::<$twice>)? ($($argument),+),
            _ => $otherwise,
        }
    };
}

/// Every backend of this architecture, slowest first.
#[cfg(target_arch = "aarch64")]
const ALL: &[Backend] = &[Backend::PORTABLE, Backend(Kernels::Neon), Backend(Kernels::ShaUnit)];

/// Every backend of this architecture, slowest first.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ALL: &[Backend] = &[Backend::PORTABLE];

impl Backend {
    /// Portable Rust; runs everywhere and is the oracle of the others.
    pub const PORTABLE: Self = Self(Kernels::Portable);

    /// The default backend: the fastest of this machine, detected once per process, or the one [`select`](Self::select)ed.
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

    /// The backend `name` if this machine can run it.
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

    /// Makes this the default backend for all threads.
    ///
    /// Results do not depend on the backend; for benchmarks and for excluding a backend.
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

    /// True if single messages use the SHA unit.
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

    /// True if single messages use the BMI2 kernel, in the absence of a SHA unit.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_bmi2(self) -> bool {
        self != Self::PORTABLE && bmi2::available()
    }

    /// Number of SHA-256 blocks hashed sequentially in the time of one block in each lane.
    #[inline]
    fn break_even(self) -> usize {
        match self.0 {
            // With BMI2 and without: 2.8 and 1.9 in eight lanes, 2.3 and 1.5 in sixteen.
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 | Kernels::Avx512f => 3,
            // By the SHA unit, two messages interleaved.
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => 9,
            // From instruction counts.
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => 2,
            // There are no lanes.
            _ => usize::MAX,
        }
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

    /// Absorbs the padding and the last `used` bytes of a message of `bytes` bytes; these are in `buffer`, followed by zeros.
    #[inline]
    pub(crate) fn pad(self, state: &mut [u32; 8], buffer: &mut [u8; 64], used: usize, bytes: u64) {
        buffer[used] = 0x80;
        if used >= 56 {
            self.compress(state, core::slice::from_ref(buffer));
            *buffer = [0; 64];
        }
        buffer[56..].copy_from_slice(&bytes.wrapping_mul(8).to_be_bytes());
        self.compress(state, core::slice::from_ref(buffer));
    }

    /// The state after all of `data` and its padding.
    #[inline]
    pub(crate) fn one_shot(self, data: &[u8]) -> [u32; 8] {
        let mut state = INITIAL;
        let (blocks, rest) = data.as_chunks::<64>();
        if !blocks.is_empty() {
            self.compress(&mut state, blocks);
        }
        let mut buffer = [0u8; 64];
        buffer[..rest.len()].copy_from_slice(rest);
        self.pad(&mut state, &mut buffer, rest.len(), data.len() as u64);
        state
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
        portable::sha1::compress(state, blocks);
    }

    /// Hashes the digest of `state`: the outer half of a double hash.
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
        let least = self.break_even();
        let done = in_lanes!(self.0; double_64(messages, digests, least); _ => 0);
        let (messages, digests) = (&messages[done..], &mut digests[done..]);
        if self.has_unit() {
            return unit::double_64(messages, digests);
        }
        #[cfg(target_arch = "x86_64")]
        if self.has_bmi2() {
            for (message, digest) in messages.iter().zip(digests) {
                *digest = bmi2::rehash(&self.one_shot(message));
            }
            return;
        }
        portable::sha256::double_64(messages, digests);
    }

    /// Maximum messages per group.
    pub(crate) const GROUP_MAX: usize = 16;

    /// SHA-256, double if `TWICE`, of some of the first messages; returns their number, at least one.
    ///
    /// `messages` has 1 to [`GROUP_MAX`](Self::GROUP_MAX) entries, those with the most blocks
    /// first, and `digests` has as many.
    #[inline]
    pub(crate) fn group<const TWICE: bool>(
        self,
        messages: &[&[u8]],
        digests: &mut [[u8; 32]],
    ) -> usize {
        let least = self.break_even();
        let done = in_lanes!(self.0; group::<TWICE>(messages, digests, least); _ => 0);
        if done > 0 {
            return done;
        }
        if let (true, Some(pair), Some(digests)) =
            (self.has_unit(), messages.first_chunk(), digests.first_chunk_mut())
        {
            unit::pair::<TWICE>(pair, digests);
            return 2;
        }
        let state = self.one_shot(messages[0]);
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

    /// Absorbs a block into each of up to [`GROUP_MAX`](Self::GROUP_MAX) SHA-256 states.
    #[inline]
    pub(crate) fn compress_each(self, states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
        if states.len() >= self.break_even() {
            return in_lanes!(self.0; compress_each(states, blocks); _ => unreachable!("no lanes"));
        }
        if self.has_unit() {
            return unit::compress_each(states, blocks);
        }
        for (state, block) in states.iter_mut().zip(blocks) {
            self.compress(state, core::slice::from_ref(block));
        }
    }

    /// Maximum chains per call of [`iterate`](Self::iterate).
    pub(crate) fn chains_at_once(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f | Kernels::Avx512 => 16,
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => 8,
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => 4,
            // A SHA unit interleaves two.
            _ => 2,
        }
    }

    /// Runs chains, the longest first, up to step `end`; at least one and at most [`chains_at_once`](Self::chains_at_once).
    pub(crate) fn iterate<const N: usize>(self, chains: &mut [Chain<'_, N>], end: u8) {
        if chains.len() < self.break_even() {
            return self.iterate_in_blocks(chains, end);
        }
        in_lanes!(self.0; iterate(chains, end); _ => unreachable!("no lanes"));
    }

    /// The same without vectors; shorter chains join at their first step.
    fn iterate_in_blocks<const N: usize>(self, chains: &mut [Chain<'_, N>], end: u8) {
        let mut states = [[0; 8]; Self::GROUP_MAX];
        let mut blocks = [[0; 64]; Self::GROUP_MAX];
        for step in chains[0].start..end {
            let busy = chains.iter().take_while(|chain| chain.start <= step).count();
            let chains = &mut chains[..busy];
            for ((state, block), chain) in states.iter_mut().zip(&mut blocks).zip(&*chains) {
                *state = *chain.state;
                *block = chain.block(step);
            }
            if self.has_unit() {
                unit::compress_each(&mut states[..busy], &blocks[..busy]);
            } else {
                for (state, block) in states[..busy].iter_mut().zip(&blocks) {
                    self.compress(state, core::slice::from_ref(block));
                }
            }
            for (chain, state) in chains.iter_mut().zip(&states) {
                chain.value.copy_from_slice(&to_bytes(*state)[..N]);
            }
        }
    }

    /// Climbs up to [`GROUP_MAX`](Self::GROUP_MAX) paths, at least one, up to row `height`.
    pub(crate) fn climb(self, paths: &mut [TreePath<'_>], height: u32) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 => paths.chunks_mut(8).for_each(|paths| {
                if paths.len() < self.break_even() {
                    return self.climb_in_blocks(paths, height);
                }
                avx2::climb(paths, height);
            }),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f | Kernels::Avx512 if paths.len() >= self.break_even() => {
                avx512::climb(paths, height);
            }
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon => paths.chunks_mut(4).for_each(|paths| neon::climb(paths, height)),
            _ => self.climb_in_blocks(paths, height),
        }
    }

    /// The same block by block, for a SHA unit.
    fn climb_in_blocks(self, paths: &mut [TreePath<'_>], height: u32) {
        let mut states = [[0; 8]; Self::GROUP_MAX];
        let mut blocks = [[0; 64]; Self::GROUP_MAX];
        for row in 1..=height {
            for ((state, block), path) in states.iter_mut().zip(&mut blocks).zip(&*paths) {
                *state = *path.state;
                *block = path.block(row);
            }
            self.compress_each(&mut states[..paths.len()], &blocks[..paths.len()]);
            for (path, state) in paths.iter_mut().zip(&states) {
                path.node.copy_from_slice(&to_bytes(*state)[..16]);
                path.index >>= 1;
            }
        }
    }

    /// RIPEMD-160 of each of up to [`GROUP_MAX`](Self::GROUP_MAX) messages; returns false if there is no kernel for it.
    #[inline]
    pub(crate) fn ripemd160_32(self, messages: &[[u8; 32]], digests: &mut [[u8; 20]]) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512f | Kernels::Avx512 => avx512::ripemd160_32(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 | Kernels::ShaUnit if avx2::available() => {
                avx2::ripemd160_32(messages, digests);
            }
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon | Kernels::ShaUnit => neon::ripemd160_32(messages, digests),
            _ => return false,
        }
        true
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
    fn mul_wide(self, a: &[u64; LIMBS], b: &[u64; LIMBS]) -> [u64; 2 * LIMBS] {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 => ifma::mul_wide(a, b),
            _ => portable::mul3072::mul_wide(a, b),
        }
    }

    /// The product of two numbers, not normalised.
    pub(crate) fn mul(self, a: &Num3072, b: &Num3072) -> Num3072 {
        Num3072::from_wide(&self.mul_wide(&a.0, &b.0))
    }

    /// Number of MuHash elements multiplied at once; one without a batch kernel.
    pub(crate) fn elements_at_once(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512 | Kernels::Avx512f => 16,
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2 | Kernels::ShaUnit if avx2::available() => 8,
            _ => 1,
        }
    }

    /// Multiplies `product` by the MuHash elements of these keys. Their number must be a multiple of
    /// [`elements_at_once`](Self::elements_at_once), which must exceed one.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn multiply_elements(self, product: &mut Num3072, keys: &[[u8; 32]]) {
        let mut factors = [const { Num3072::ONE }; muhash::PRODUCTS_MAX];
        match self.0 {
            Kernels::Avx512 => ifma_many::products(keys, &mut factors),
            Kernels::Avx512f => avx512::products(keys, &mut factors),
            Kernels::Avx2 | Kernels::ShaUnit if avx2::available() => {
                avx2::products(keys, &mut factors);
            }
            _ => unreachable!("{} multiplies one element at a time", self.name()),
        }
        for factor in &factors[..self.elements_at_once() / 2] {
            *product = self.mul(product, factor);
        }
    }

    /// Unreachable: there is no batch kernel.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn multiply_elements(self, _: &mut Num3072, _: &[[u8; 32]]) {
        unreachable!("{} multiplies one element at a time", self.name());
    }
}

/// Unreachable placeholder for architectures without a SHA unit kernel.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod unit {
    pub(super) use super::portable::sha256::{compress, double_64, rehash};

    pub(super) fn pair<const TWICE: bool>(_: &[&[u8]; 2], _: &mut [[u8; 32]; 2]) {
        unreachable!("no backend has a SHA unit");
    }

    pub(super) fn compress_each(_: &mut [[u32; 8]], _: &[[u8; 64]]) {
        unreachable!("no backend has a SHA unit");
    }
}
