//! Check that block files hold a chain without a gap, and the identity of that chain.

use std::path::Path;
use std::time::UNIX_EPOCH;

use assay_consensus::params::ChainParams;
use assay_engine::{MissingBlock, Stray};
use assay_hash::Sha256;
use assay_store::{BlockFiles, StrayKind};
use assay_wire::Header;

use crate::block_set::{BlockSet, Heights, OpenError, ReadError};

/// Block files that do not hold all requested blocks: which are missing, and where.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotWhole(String);

impl BlockSet {
    /// The heights from 1 to `stop_height`, or to the last block, if none is missing.
    ///
    /// # Errors
    /// If a block is missing. Without `stop_height` this includes blocks after the last one: a block whose parent is
    /// in no file, or a truncated record that is not a copy of a present block.
    pub fn whole_up_to(&self, stop_height: Option<u32>) -> Result<Heights, NotWhole> {
        let Heights { first, last } = self.heights();
        let at = |height: u32| {
            let place = self.place_at(height);
            let place = place.unwrap_or_else(|| unreachable!("the height is one of the chain"));
            (self.hash(height).unwrap_or_default(), place)
        };
        if first > 1 {
            let (hash, place) = at(first);
            return Err(NotWhole(format!(
                "the lowest block in the files has height {first} ({hash}, {place}): those below were pruned or lie elsewhere, \
                 and every block from height 1 is needed"
            )));
        }
        let stop = stop_height.unwrap_or(u32::MAX);
        if stop <= last {
            return Ok(Heights { first: 1, last: stop });
        }
        let found = self.found();
        // A block missing on a stale branch is no error.
        let is_above = |missing: &&MissingBlock| missing.height.is_none_or(|height| height > last);
        let missing = found.missing.iter().filter(is_above);
        if let Some(missing) = missing.min_by_key(|missing| missing.height.unwrap_or(u32::MAX)) {
            // Unparsed bytes may contain the block.
            let strays = found.strays.iter().flat_map(|stray| ["\n".to_owned(), stray.to_string()]);
            let strays: String = strays.collect();
            return Err(NotWhole(format!(
                "{missing}, or take the chain up to height {last}: --stop-height {last}{strays}"
            )));
        }
        let (tip, place) = at(last);
        let short = |wanted: u32| {
            NotWhole(format!(
                "the chain in the files ends at height {last} (block {tip}, {place}), below the height {wanted} that is wanted"
            ))
        };
        if last == 0 {
            return Err(short(stop_height.unwrap_or(1)));
        }
        if let Some(stray) = found.strays.iter().find(|stray| self.may_be_next(stray)) {
            return Err(NotWhole(format!(
                "the chain ends at height {last} (block {tip}, {place}), and a record that may be the next block is not whole: \
                 {stray}; copy that file again, or take the chain up to there: --stop-height {last}"
            )));
        }
        stop_height.map_or(Ok(Heights { first: 1, last }), |wanted| Err(short(wanted)))
    }

    /// True if a truncated record may be a block after the last one.
    fn may_be_next(&self, stray: &Stray) -> bool {
        if stray.kind != StrayKind::Truncated {
            return false;
        }
        let header = self.header_at(&stray.place).map(|bytes| Header::parse(&bytes));
        // Truncated within the header, it may be any block.
        header.is_none_or(|header| header.prev_block == self.tip())
    }

    /// SHA-256 over the concatenated 80-byte headers of heights 0 to `last`: identifies the chain independently of its files.
    ///
    /// # Errors
    /// If a header cannot be read.
    pub fn headers_sha256(&self, last: u32) -> Result<[u8; 32], ReadError> {
        let mut hasher = Sha256::new();
        hasher.update(&self.params().genesis_block()[..Header::SIZE]);
        for height in 1..=last {
            match self.header(height) {
                Some(header) => hasher.update(&header?),
                None => break,
            }
        }
        Ok(hasher.finalize())
    }
}

/// SHA-256 over names, lengths and modification times of the block files at `path`, and their obfuscation key: detects changes.
///
/// # Errors
/// If there are no files, or they cannot be read.
pub fn listing_sha256(path: &Path, params: &ChainParams) -> Result<[u8; 32], OpenError> {
    let files = BlockFiles::open(path, params.disk_magic)?;
    let mut hasher = Sha256::new();
    for file in files.files() {
        let changed = std::fs::metadata(&file.path).and_then(|metadata| metadata.modified()).ok();
        let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanoseconds = since.map_or(0, |since| since.as_nanos());
        let line = format!("{} {} {nanoseconds}\n", file.path.display(), file.bytes);
        hasher.update(line.as_bytes());
    }
    hasher.update(&files.key());
    Ok(hasher.finalize())
}
