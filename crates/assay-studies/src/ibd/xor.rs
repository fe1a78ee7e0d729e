//! Obfuscation by the report's last step, eight bytes at a time, and by our store, against a plain
//! copy of the same length.

use std::hint::black_box;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::suite::{Benchmark, Extent};
use assay_report::stats::random::SplitMix64;
use assay_store::XorKey;

use super::{ASSAY, COPY, LAST_STEP, expect};

const KEY: [u8; 8] = [0x5a, 0x01, 0xc2, 0x33, 0x74, 0xff, 0x16, 0x97];

/// XORs bytes at an offset of their file with the key in words of eight bytes; vectorisation is left to the compiler.
pub(super) fn xor_wordwise(bytes: &mut [u8], mut key: [u8; 8], offset: u64) {
    key.rotate_left((offset % 8) as usize);
    let word = u64::from_ne_bytes(key);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for chunk in words {
        *chunk = (u64::from_ne_bytes(*chunk) ^ word).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key) {
        *byte ^= key;
    }
}

/// Start of the bytes in memory and in their file, and the remainder of their length.
#[derive(Clone, Copy)]
struct Place {
    name: &'static str,
    start: usize,
    offset: u64,
    missing: usize,
}

const PLACES: [Place; 2] = [
    Place { name: "xor", start: 0, offset: 0, missing: 0 },
    Place { name: "xor-unaligned", start: 3, offset: 13, missing: 5 },
];

/// Sizes from one that fits into the L1 cache to one that exceeds all caches; the report has 1 MiB.
pub(super) fn benchmarks<'a>(sizes: &[u64], extent: Extent) -> Vec<Benchmark<'a>> {
    let sizes = if extent == Extent::Smoke { &[4096][..] } else { sizes };
    let mut all = Vec::new();
    for place in PLACES {
        for &size in sizes {
            let make = move |name: &str| make(name, place, size as usize);
            let benchmark = Benchmark::of_size(place.name, size, "bytes", make);
            all.push(Benchmark { bytes_per_op: Some(size), ..benchmark });
        }
    }
    all
}

fn make<'a>(name: &str, place: Place, size: usize) -> Result<Vec<Alternative<'a>>, BenchError> {
    let mut plain = vec![0; size];
    SplitMix64::new(size as u64).fill(&mut plain);
    let length = size - place.missing;
    let key = XorKey::new(KEY);
    let Place { start, offset, .. } = place;
    let keys = KEY.iter().cycle().skip((offset % 8) as usize);
    let expected: Vec<u8> =
        plain[..length].iter().zip(keys).map(|(byte, key)| byte ^ key).collect();
    let mut by_words = plain[..length].to_vec();
    xor_wordwise(&mut by_words, KEY, offset);
    expect(by_words == expected, name, LAST_STEP, "other bytes")?;
    let mut ours = vec![0; start + length];
    ours[start..].copy_from_slice(&plain[..length]);
    key.apply(&mut ours[start..], offset);
    expect(ours[start..] == expected, name, ASSAY, "other bytes")?;
    // All buffers have the same offset from a cache line.
    let buffer = || aligned(start + length);
    let (mut one, mut two, mut from, mut to) = (buffer(), buffer(), buffer(), buffer());
    from.slice(start, length).copy_from_slice(&plain[..length]);
    Ok(vec![
        Alternative::calls(LAST_STEP, move || {
            xor_wordwise(black_box(one.slice(start, length)), black_box(KEY), offset);
        }),
        Alternative::calls(ASSAY, move || {
            black_box(&key).apply(black_box(two.slice(start, length)), offset);
        }),
        Alternative::calls(COPY, move || {
            black_box(to.slice(start, length))
                .copy_from_slice(black_box(from.slice(start, length)));
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
    fn slice(&mut self, start: usize, length: usize) -> &mut [u8] {
        &mut self.bytes[self.skip + start..][..length]
    }
}

const LINE: usize = 64;
