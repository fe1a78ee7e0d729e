//! The coins folder of a validation: in its own format, for one chain and one process at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use assay_consensus::params::ChainParams;
use assay_store::{CoinError, CoinStore, FjallTier, Marker, StoreConfig, TierError};
use assay_wire::BlockHash;

use super::Totals;
use super::undo_log::{UndoLog, UndoRecord};

/// A folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatadirError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The folder has other contents.
    #[error("{}: holds something other than a validation of {chain}; give another --datadir", path.display())]
    Foreign { path: PathBuf, chain: &'static str },
    /// The coins did not open; usually because another process has them open.
    #[error("{}: {source}", path.display())]
    Tier { path: PathBuf, source: TierError },
    #[error(transparent)]
    Coins(#[from] CoinError),
    /// The record of totals lacks the block of the coins.
    #[error("{}: has no line for block {hash} at height {height}, which the coins belong to", path.display())]
    Totals { path: PathBuf, hash: BlockHash, height: u32 },
}

pub(crate) struct Datadir {
    totals_path: PathBuf,
    totals_file: File,
    undo: UndoLog,
}

impl Datadir {
    /// Opens or creates `<root>/<chain>/validate`; returns the coins, and the totals up to their block.
    pub(crate) fn open(
        root: &Path,
        params: &ChainParams,
        cache_bytes_max: usize,
    ) -> Result<(Self, CoinStore, Totals), DatadirError> {
        let dir = root.join(params.name).join("validate");
        claim(&dir, params)?;
        let coins_dir = dir.join("coins");
        let memory = StoreConfig::new(&dir, params.disk_magic).with_coin_memory(cache_bytes_max);
        let tier = FjallTier::open(&coins_dir, memory.tier_cache_bytes)
            .map_err(|source| DatadirError::Tier { path: coins_dir, source })?;
        let coins = CoinStore::open(Box::new(tier), memory.cache_bytes_max)?;
        let totals_path = dir.join("totals.log");
        let failed = |source| DatadirError::Io { path: totals_path.clone(), source };
        let mut totals_file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&totals_path)
            .map_err(failed)?;
        let mut text = Vec::new();
        totals_file.read_to_end(&mut text).map_err(failed)?;
        let text = String::from_utf8_lossy(&text);
        let totals = match coins.tip() {
            None => Totals::default(),
            Some(Marker { height, hash }) => {
                text.lines().rev().find_map(|line| parse_line(line, height, &hash)).ok_or_else(
                    || DatadirError::Totals { path: totals_path.clone(), hash, height },
                )?
            }
        };
        if !text.is_empty() && !text.ends_with('\n') {
            // A torn line must not be joined with the next one.
            totals_file.write_all(b"\n").map_err(failed)?;
        }
        let undo_path = dir.join("undo.log");
        let undo = UndoLog::open(&undo_path)
            .map_err(|source| DatadirError::Io { path: undo_path, source })?;
        Ok((Self { totals_path, totals_file, undo }, coins, totals))
    }

    /// Keeps the undo data of a block until [`Datadir::clear_undo`].
    pub(crate) fn keep_undo(
        &mut self,
        hash: &BlockHash,
        undo: &[u8],
        is_assumed: bool,
    ) -> Result<(), DatadirError> {
        let kept = self.undo.append(hash, undo, is_assumed);
        kept.map_err(|source| self.undo_failed(source))
    }

    /// The undo data of a block, if they were kept.
    pub(crate) fn undo(&mut self, hash: &BlockHash) -> Result<Option<UndoRecord>, DatadirError> {
        let found = self.undo.get(hash);
        found.map_err(|source| self.undo_failed(source))
    }

    pub(crate) fn clear_undo(&mut self) -> Result<(), DatadirError> {
        if self.undo.is_empty() {
            return Ok(());
        }
        let cleared = self.undo.clear();
        cleared.map_err(|source| self.undo_failed(source))
    }

    fn undo_failed(&self, source: io::Error) -> DatadirError {
        DatadirError::Io { path: self.undo.path().to_path_buf(), source }
    }

    /// Writes coins, marker and totals of the block at `height`, if `may_commit`, which is called last, returns true; returns its
    /// result. Undo data and totals are written first: a line without its marker is never read, and the undo data below a marker
    /// always exist.
    pub(crate) fn flush_if(
        &mut self,
        coins: &mut CoinStore,
        totals: &Totals,
        (height, hash): (u32, &BlockHash),
        may_commit: impl FnOnce() -> bool,
    ) -> Result<bool, DatadirError> {
        let synced = self.undo.sync();
        synced.map_err(|source| self.undo_failed(source))?;
        let line = line(totals, height, hash);
        let written = (|| {
            self.totals_file.seek(SeekFrom::End(0))?;
            self.totals_file.write_all(line.as_bytes())?;
            self.totals_file.sync_data()
        })();
        written.map_err(|source| DatadirError::Io { path: self.totals_path.clone(), source })?;
        Ok(coins.flush_if(height, hash, may_commit)?.is_some())
    }
}

/// Claims a folder, or checks that it has the right format.
fn claim(dir: &Path, params: &ChainParams) -> Result<(), DatadirError> {
    let failed = |path: &Path, source| DatadirError::Io { path: path.to_path_buf(), source };
    fs::create_dir_all(dir).map_err(|source| failed(dir, source))?;
    let label_path = dir.join("KIND");
    let label = format!(
        "assay validate\nformat 1\nchain {}\ngenesis {}\n",
        params.name, params.genesis_hash
    );
    let foreign = || DatadirError::Foreign { path: dir.to_path_buf(), chain: params.name };
    match fs::read(&label_path) {
        Ok(found) if found == label.as_bytes() => return Ok(()),
        // A label torn by a power cut.
        Ok(found) if !label.as_bytes().starts_with(&found) => return Err(foreign()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut entries = fs::read_dir(dir).map_err(|source| failed(dir, source))?;
            if entries.next().is_some() {
                return Err(foreign());
            }
        }
        Err(source) => return Err(failed(&label_path, source)),
    }
    let written = File::create(&label_path)
        .and_then(|mut file| file.write_all(label.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|source| failed(&label_path, source))
}

fn line(totals: &Totals, height: u32, hash: &BlockHash) -> String {
    let Totals { blocks, txs, inputs, outputs, bytes, assumed_blocks, elapsed_ms } = totals;
    format!(
        "{height} {hash} {blocks} {txs} {inputs} {outputs} {bytes} {assumed_blocks} {elapsed_ms} .\n"
    )
}

/// The totals of a line, if it is complete and belongs to this block.
fn parse_line(line: &str, height: u32, hash: &BlockHash) -> Option<Totals> {
    let rest = line.strip_prefix(&format!("{height} {hash} "))?.strip_suffix(" .")?;
    let numbers: Vec<u64> = rest.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [blocks, txs, inputs, outputs, bytes, assumed_blocks, elapsed_ms] =
        numbers.try_into().ok()?;
    Some(Totals { blocks, txs, inputs, outputs, bytes, assumed_blocks, elapsed_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_only_whole_and_for_their_block() {
        let totals = Totals {
            blocks: 1,
            txs: 2,
            inputs: 3,
            outputs: 4,
            bytes: 5,
            assumed_blocks: 6,
            elapsed_ms: 7,
        };
        let hash = BlockHash([9; 32]);
        let text = line(&totals, 8, &hash);
        let text = text.strip_suffix('\n').unwrap();
        assert_eq!(parse_line(text, 8, &hash), Some(totals));
        assert_eq!(parse_line(text, 7, &hash), None);
        assert_eq!(parse_line(text, 8, &BlockHash([8; 32])), None);
        for end in 0..text.len() {
            assert_eq!(parse_line(&text[..end], 8, &hash), None);
        }
    }

    #[test]
    fn rejects_a_folder_with_other_contents() {
        let params = ChainParams::by_name("regtest").unwrap();
        let root = tempfile::tempdir().unwrap();
        let open = || Datadir::open(root.path(), &params, 1 << 20).map(|_| ());
        open().unwrap();
        open().unwrap();
        let held = Datadir::open(root.path(), &params, 1 << 20).unwrap();
        assert!(matches!(open(), Err(DatadirError::Tier { .. })), "one process at a time");
        drop(held);
        let dir = root.path().join("regtest/validate");
        fs::write(dir.join("KIND"), "assay validate\nformat 1\nchain main\n").unwrap();
        assert!(matches!(open(), Err(DatadirError::Foreign { .. })));
        fs::write(dir.join("KIND"), "assay val").unwrap();
        open().unwrap();
        fs::remove_file(dir.join("KIND")).unwrap();
        assert!(matches!(open(), Err(DatadirError::Foreign { .. })));
    }
}
