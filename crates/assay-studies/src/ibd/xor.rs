//! Obfuscation by the report's last step, eight bytes at a time, and by our store, against a plain
//! copy of the same length.

use std::hint::black_box;

use anyhow::Result;
use assay_bench::harness::Alternative;
use assay_bench::suite::{Benchmark, Extent};
use assay_report::stats::random::SplitMix64;
use assay_store::XorKey;

use super::{ASSAY, COPY, LAST_STEP, expect};

const KEY: [u8; 8] = [0x5a, 0x01, 0xc2, 0x33, 0x74, 0xff, 0x16, 0x97];

/// XORs bytes, at a multiple of eight in their file, with the key in words of eight bytes; vectorisation is left to the compiler.
pub(super) fn xor_wordwise(bytes: &mut [u8], key: [u8; 8]) {
    let word = u64::from_ne_bytes(key);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for chunk in words {
        *chunk = (u64::from_ne_bytes(*chunk) ^ word).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key) {
        *byte ^= key;
    }
}

/// Sizes from one that fits into the L1 cache to one that exceeds all caches; the report has 1 MiB.
pub(super) fn benchmarks<'a>(sizes: &[u64], extent: Extent) -> Vec<Benchmark<'a>> {
    let sizes = if extent == Extent::Smoke { &[4096][..] } else { sizes };
    let benchmark =
        |&size: &u64| Benchmark::of_bytes("xor", size, move |name| make(name, size as usize));
    sizes.iter().map(benchmark).collect()
}

fn make<'a>(name: &str, size: usize) -> Result<Vec<Alternative<'a>>> {
    let mut plain = vec![0; size];
    SplitMix64::new(size as u64).fill(&mut plain);
    let key = XorKey::new(KEY);
    let expected: Vec<u8> =
        plain.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
    let (mut by_words, mut ours) = (plain.clone(), plain.clone());
    xor_wordwise(&mut by_words, KEY);
    expect(by_words == expected, name, LAST_STEP, "other bytes")?;
    key.apply(&mut ours, 0);
    expect(ours == expected, name, ASSAY, "other bytes")?;
    // All buffers begin at a cache line.
    let buffer = || aligned(size);
    let (mut one, mut two, mut from, mut to) = (buffer(), buffer(), buffer(), buffer());
    from.slice(size).copy_from_slice(&plain);
    Ok(vec![
        Alternative::calls(LAST_STEP, move || {
            xor_wordwise(black_box(one.slice(size)), black_box(KEY));
        }),
        Alternative::calls(ASSAY, move || {
            black_box(&key).apply(black_box(two.slice(size)), 0);
        }),
        Alternative::calls(COPY, move || {
            black_box(to.slice(size)).copy_from_slice(black_box(from.slice(size)));
        }),
    ])
}

/// A buffer whose first byte can be aligned to a cache line.
struct Aligned {
    bytes: Vec<u8>,
    skip: usize,
}

fn aligned(size: usize) -> Aligned {
    let bytes = vec![1; size + LINE];
    let skip = bytes.as_ptr().align_offset(LINE);
    Aligned { bytes, skip }
}

impl Aligned {
    fn slice(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.skip..][..length]
    }
}

const LINE: usize = 64;
