//! Writes block files as another node might have left them.

use std::fs;
use std::path::Path;

/// Numbers that look random and repeat with the seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators".
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// What lies in a file.
pub(crate) enum Part {
    Block(Vec<u8>),
    Bytes(Vec<u8>),
    /// Zeros on the disk, whatever the obfuscation.
    Padding(usize),
}

/// Writes the files of a directory, obfuscated when there is a key; returns, by part in order, file and offset.
pub(crate) fn write(
    dir: &Path,
    magic: [u8; 4],
    key: Option<[u8; 8]>,
    files: &[Vec<Part>],
) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for (number, parts) in files.iter().enumerate() {
        let mut bytes = Vec::new();
        let obfuscate = |bytes: &mut Vec<u8>, plain: &[u8]| {
            let start = bytes.len();
            bytes.extend_from_slice(plain);
            for (at, byte) in bytes.iter_mut().enumerate().skip(start) {
                *byte ^= key.map_or(0, |key| key[at % 8]);
            }
        };
        for part in parts {
            match part {
                Part::Block(raw) => {
                    obfuscate(&mut bytes, &magic);
                    obfuscate(&mut bytes, &(raw.len() as u32).to_le_bytes());
                    places.push((number, bytes.len()));
                    obfuscate(&mut bytes, raw);
                }
                Part::Bytes(plain) => {
                    places.push((number, bytes.len()));
                    obfuscate(&mut bytes, plain);
                }
                Part::Padding(length) => {
                    places.push((number, bytes.len()));
                    bytes.resize(bytes.len() + length, 0);
                }
            }
        }
        fs::write(dir.join(format!("blk{number:05}.dat")), bytes).unwrap();
    }
    if let Some(key) = key {
        fs::write(dir.join("xor.dat"), key).unwrap();
    }
    places
}
