//! Blocks in block files, parents before children.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Result;
use assay_store::{BlockFiles, BlockPlace, Finding, RecordRules};
use assay_wire::{BlockHash, Header};

/// Block files with an index of their headers.
pub struct Folder {
    files: BlockFiles,
    children: HashMap<BlockHash, Vec<(BlockHash, BlockPlace)>>,
    count: u64,
}

impl Folder {
    /// Reads the headers of all blocks of the files in a folder or in its `blocks`, or of one file.
    pub fn open(path: &Path, magic: [u8; 4]) -> Result<Self> {
        let files = BlockFiles::open(path, magic)?;
        let mut children: HashMap<_, Vec<_>> = HashMap::new();
        let mut count = 0;
        let rules = RecordRules { bytes_max: u32::MAX, is_header: &|_| true };
        for file in 0..files.files().len() as u32 {
            files.scan(file, &rules, &mut |finding, _| {
                if let Finding::Block { place, header } = finding {
                    let header = Header::parse(&header);
                    children.entry(header.prev_block).or_default().push((header.hash(), place));
                    count += 1;
                }
            })?;
        }
        Ok(Self { files, children, count })
    }

    /// Number of blocks found.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All descendants of `genesis`, parents before children, with their heights.
    pub fn in_order(&self, genesis: BlockHash) -> Vec<(u32, BlockPlace)> {
        let mut order = Vec::new();
        let mut row = vec![genesis];
        let mut height = 0;
        let mut seen = HashSet::from([genesis]);
        while !row.is_empty() {
            height += 1;
            let mut next = Vec::new();
            for (hash, place) in row.iter().filter_map(|parent| self.children.get(parent)).flatten()
            {
                if seen.insert(*hash) {
                    next.push(*hash);
                    order.push((height, *place));
                }
            }
            row = next;
        }
        order
    }

    pub fn read(&self, place: BlockPlace) -> Result<Vec<u8>> {
        Ok(self.files.read(&place)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two headers in the wrong order, and padding.
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
        let mut bytes = Vec::new();
        for header in [&second, &first] {
            bytes.extend_from_slice(&magic);
            bytes.extend_from_slice(&81u32.to_le_bytes());
            bytes.extend_from_slice(&header.to_bytes());
            bytes.push(0);
        }
        bytes.extend_from_slice(&[0; 100]);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("blk00000.dat"), bytes).unwrap();
        let folder = Folder::open(dir.path(), magic).unwrap();
        assert_eq!(folder.count(), 2);
        let order = folder.in_order(genesis);
        assert_eq!(order.iter().map(|(height, _)| *height).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(folder.read(order[0].1).unwrap()[..80], first.to_bytes());
    }
}
