//! Block files in Bitcoin Core's format: magic, length, block; optionally obfuscated.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use assay_wire::{BlockHash, Header};

/// Position of a block.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    file: usize,
    offset: u64,
    size: u32,
}

/// A folder of block files with an index of their headers.
pub struct Folder {
    files: Vec<PathBuf>,
    key: [u8; 8],
    children: HashMap<BlockHash, Vec<(BlockHash, Place)>>,
    count: u64,
}

impl Folder {
    /// Reads the headers of all blocks in all files of a folder, or in one file. `xor.dat` next to files named as in
    /// Bitcoin Core holds their obfuscation key; a file with another name is plain.
    ///
    /// # Errors
    /// If a file cannot be read. Data after the last complete block of a file is skipped.
    pub fn open(dir: &Path, magic: [u8; 4]) -> Result<Self> {
        if dir.is_file() {
            let folder = dir.parent().unwrap_or(Path::new(""));
            let key = folder.join(if is_block_file(dir) { "xor.dat" } else { "" });
            return Self::of(vec![dir.to_owned()], &key, magic);
        }
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
            .with_context(|| format!("reading {}", dir.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_block_file(path))
            .collect();
        files.sort();
        Self::of(files, &dir.join("xor.dat"), magic)
    }

    fn of(files: Vec<PathBuf>, key_path: &Path, magic: [u8; 4]) -> Result<Self> {
        let mut key = [0; 8];
        if key_path.is_file() {
            let bytes = std::fs::read(key_path)
                .with_context(|| format!("reading {}", key_path.display()))?;
            key.copy_from_slice(bytes.get(..8).context("xor.dat is shorter than 8 bytes")?);
        }
        let mut folder = Self { files, key, children: HashMap::new(), count: 0 };
        for index in 0..folder.files.len() {
            folder
                .scan(index, magic)
                .with_context(|| format!("reading {}", folder.files[index].display()))?;
        }
        Ok(folder)
    }

    fn scan(&mut self, file: usize, magic: [u8; 4]) -> Result<()> {
        let handle = File::open(&self.files[file])?;
        let len = handle.metadata()?.len();
        let mut reader = BufReader::new(handle);
        let mut offset = 0;
        let mut head = [0; 88];
        while offset + 88 <= len {
            reader.read_exact(&mut head)?;
            self.reveal(&mut head, offset);
            let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
            if head[..4] != magic || size < 80 || offset + 8 + u64::from(size) > len {
                break;
            }
            let mut bytes = [0; 80];
            bytes.copy_from_slice(&head[8..]);
            let header = Header::parse(&bytes);
            let place = Place { file, offset: offset + 8, size };
            self.children.entry(header.prev_block).or_default().push((header.hash(), place));
            self.count += 1;
            offset += 8 + u64::from(size);
            reader.seek_relative(i64::from(size) - 80)?;
        }
        Ok(())
    }

    fn reveal(&self, bytes: &mut [u8], offset: u64) {
        if self.key != [0; 8] {
            for (index, byte) in bytes.iter_mut().enumerate() {
                *byte ^= self.key[(offset as usize + index) % 8];
            }
        }
    }

    /// Number of blocks found.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All descendants of `genesis`, parents before children, with their heights.
    pub fn in_order(&self, genesis: BlockHash) -> Vec<(u32, Place)> {
        let mut order = Vec::new();
        let mut row = vec![genesis];
        let mut height = 0;
        let mut seen = std::collections::HashSet::from([genesis]);
        while !row.is_empty() {
            height += 1;
            let mut next = Vec::new();
            for parent in &row {
                for (hash, place) in self.children.get(parent).into_iter().flatten() {
                    if seen.insert(*hash) {
                        next.push(*hash);
                        order.push((height, *place));
                    }
                }
            }
            row = next;
        }
        order
    }

    /// Reads a block.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, place: Place) -> Result<Vec<u8>> {
        let path = &self.files[place.file];
        let mut bytes = vec![0; place.size as usize];
        let mut file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        file.seek(SeekFrom::Start(place.offset))
            .and_then(|_| file.read_exact(&mut bytes))
            .with_context(|| format!("reading {} at {}", path.display(), place.offset))?;
        self.reveal(&mut bytes, place.offset);
        Ok(bytes)
    }
}

/// True for file names of Bitcoin Core.
fn is_block_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("blk") && path.extension().is_some_and(|extension| extension == "dat")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two headers in the wrong order, plain and obfuscated.
    #[test]
    fn blocks_are_found_in_any_order() {
        let magic = [1, 2, 3, 4];
        let header = |prev_block: BlockHash, nonce: u32| Header {
            version: 1,
            prev_block,
            merkle_root: [0; 32],
            time: 0,
            bits: 0,
            nonce,
        };
        let genesis = BlockHash([9; 32]);
        let first = header(genesis, 1);
        let second = header(first.hash(), 2);
        let mut plain = Vec::new();
        for header in [&second, &first] {
            plain.extend_from_slice(&magic);
            plain.extend_from_slice(&81u32.to_le_bytes());
            plain.extend_from_slice(&header.to_bytes());
            plain.push(0);
        }
        plain.extend_from_slice(&[0; 100]);
        for key in [[0u8; 8], [7, 6, 5, 4, 3, 2, 1, 0]] {
            let dir = tempfile::tempdir().unwrap();
            let hidden: Vec<u8> =
                plain.iter().enumerate().map(|(at, byte)| byte ^ key[at % 8]).collect();
            std::fs::write(dir.path().join("blk00000.dat"), hidden).unwrap();
            std::fs::write(dir.path().join("xor.dat"), key).unwrap();
            std::fs::write(dir.path().join("chain.dat"), &plain).unwrap();
            // A folder, one of its files, and a file that is never obfuscated.
            for name in ["", "blk00000.dat", "chain.dat"] {
                let folder = Folder::open(&dir.path().join(name), magic).unwrap();
                assert_eq!(folder.count(), 2, "{name}");
                let order = folder.in_order(genesis);
                assert_eq!(order.iter().map(|(height, _)| *height).collect::<Vec<_>>(), [1, 2]);
                assert_eq!(folder.read(order[0].1).unwrap()[..80], first.to_bytes());
            }
        }
    }
}
