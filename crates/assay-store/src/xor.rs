//! Obfuscation of Bitcoin Core's block files: a key is applied to every byte by XOR and repeats over the file (Core
//! `util/obfuscation.h`). It prevents virus scanners from matching data embedded in the chain.
//!
//! One loop over words, compiled for the widest vectors of the machine: in the first-level cache the vector width determines the
//! speed.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "entry into target-feature functions")
)]

use std::fmt;

#[cfg(target_arch = "x86_64")]
use assay_hash::cpu::{CpuFeature, has};

/// A key of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XorKey([u8; 8]);

impl XorKey {
    /// The zero key, without effect.
    pub const NONE: Self = Self([0; 8]);

    /// Creates a key. Its first byte applies to the first byte of a file.
    pub const fn new(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    pub const fn bytes(&self) -> [u8; 8] {
        self.0
    }

    /// Applies or removes the obfuscation of bytes at `offset` of their file.
    pub fn apply(&self, bytes: &mut [u8], offset: u64) {
        if *self == Self::NONE {
            return;
        }
        let mut key = self.0;
        key.rotate_left((offset % 8) as usize);
        #[cfg(target_arch = "x86_64")]
        if bytes.len() >= LONG {
            if has(CpuFeature::Avx512f) {
                // SAFETY: the CPU has AVX-512.
                return unsafe { apply_avx512(bytes, key) };
            }
            if has(CpuFeature::Avx2) {
                // SAFETY: the CPU has AVX2.
                return unsafe { apply_avx2(bytes, key) };
            }
        }
        apply_words(bytes, key);
    }
}

impl fmt::Display for XorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Minimum length for aligning the words to a cache line first. A store that crosses a cache line takes twice the time.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 512;

#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn apply_avx512(bytes: &mut [u8], key: [u8; 8]) {
    apply_lines(bytes, key);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn apply_avx2(bytes: &mut [u8], key: [u8; 8]) {
    apply_lines(bytes, key);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn apply_lines(bytes: &mut [u8], mut key: [u8; 8]) {
    let ahead = bytes.as_ptr().align_offset(LINE).min(bytes.len());
    let (head, lines) = bytes.split_at_mut(ahead);
    apply_words(head, key);
    key.rotate_left(ahead % 8);
    apply_words(lines, key);
}

/// XORs with the key, starting at its first byte.
#[inline(always)]
fn apply_words(bytes: &mut [u8], key: [u8; 8]) {
    let word = u64::from_ne_bytes(key);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for chunk in words {
        *chunk = (u64::from_ne_bytes(*chunk) ^ word).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 8] = [0x5a, 1, 2, 3, 0, 0xff, 6, 7];

    /// Compares `apply` with a bytewise loop.
    fn check(name: &str, apply: impl Fn(&mut [u8], u64), lengths: &[usize]) {
        let plain: Vec<u8> = (0..=255u8).cycle().take(3000).collect();
        for offset in 0..17u64 {
            for &length in lengths {
                // Every distance from a cache line.
                for start in 0..66 {
                    let mut bytes = plain.clone();
                    apply(&mut bytes[start..start + length], offset);
                    for (index, byte) in bytes.iter().enumerate() {
                        let is_inside = (start..start + length).contains(&index);
                        let at = (offset as usize + index + 8 * start - start) % 8;
                        let key = if is_inside { KEY[at] } else { 0 };
                        assert_eq!(*byte, plain[index] ^ key, "{name} {offset} {start} {length}");
                    }
                    apply(&mut bytes[start..start + length], offset);
                    assert_eq!(bytes, plain);
                }
            }
        }
    }

    fn rotated(offset: u64) -> [u8; 8] {
        let mut key = KEY;
        key.rotate_left((offset % 8) as usize);
        key
    }

    #[test]
    fn matches_the_bytewise_loop_at_every_offset() {
        let key = XorKey::new(KEY);
        let around = [0, 1, 7, 8, 9, 61, 511, 512, 513, 1029];
        check("chosen", |bytes, offset| key.apply(bytes, offset), &around);
        check("words", |bytes, offset| apply_words(bytes, rotated(offset)), &around[..6]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_width_matches_the_bytewise_loop() {
        let lengths = [0, 1, 63, 64, 65, 127, 129, 700];
        if has(CpuFeature::Avx2) {
            // SAFETY: the CPU has AVX2.
            let apply = |bytes: &mut [u8], offset| unsafe { apply_avx2(bytes, rotated(offset)) };
            check("avx2", apply, &lengths);
        } else {
            println!("skipped: this CPU has no AVX2");
        }
        if has(CpuFeature::Avx512f) {
            // SAFETY: the CPU has AVX-512.
            let apply = |bytes: &mut [u8], offset| unsafe { apply_avx512(bytes, rotated(offset)) };
            check("avx512", apply, &lengths);
        } else {
            println!("skipped: this CPU has no AVX-512");
        }
    }

    #[test]
    fn no_key_changes_nothing() {
        let mut bytes = [7; 600];
        XorKey::NONE.apply(&mut bytes, 3);
        assert_eq!(bytes, [7; 600]);
    }
}
