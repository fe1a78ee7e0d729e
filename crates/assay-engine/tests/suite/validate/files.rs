//! Writes block files as another node might have left them.

use std::fs;
use std::path::Path;

pub(crate) enum Part {
    Block(Vec<u8>),
    Bytes(Vec<u8>),
    /// Zeros on the disk, regardless of the obfuscation.
    Padding(usize),
}

/// Writes the files of a directory, obfuscated with `key`, if any; returns file and offset of each part, in order.
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
