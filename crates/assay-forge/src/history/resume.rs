//! Recovers the intact blocks of an interrupted forge.
//!
//! Every block is read and its hash compared with the ledger, so after a power failure, when parts of files may be missing, only
//! the missing blocks are lost.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use assay_hash::merkle_root;
use assay_wire::{Block, BlockHash, Encoding};

use super::txids::Txids;
use crate::{
    ledger::{BlockLine, ChainLine, LEDGER_PART, Line},
    output::{OutputError, order_path},
    summary::Progress,
};

/// The existing blocks from height 1 on, with their hashes.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) blocks: Vec<(BlockLine, [u8; 32])>,
    /// End of the last block's ledger line.
    pub(crate) ledger_end: u64,
}

/// The blocks in `dir` that belong to the chain `wanted`, up to the first missing or damaged one; none if the directory belongs
/// to another chain or has no forge output. Appends their txids to `txids`.
///
/// # Errors
/// If the txids cannot be written. Unreadable blocks count as missing.
pub(crate) fn kept(
    dir: &Path,
    wanted: &ChainLine,
    magic: [u8; 4],
    txids: &mut Txids,
    progress: &mut dyn Progress,
) -> Result<Kept, OutputError> {
    let mut kept = Kept::default();
    let Ok(file) = File::open(dir.join(LEDGER_PART)) else { return Ok(kept) };
    let mut ledger = BufReader::new(file);
    let mut files = Files { dir, open: None };
    let (mut previous, mut end, mut is_ours) = (None, 0, false);
    let mut text = String::new();
    loop {
        text.clear();
        match ledger.read_line(&mut text) {
            Ok(read) if read > 0 && text.ends_with('\n') => end += read as u64,
            _ => break,
        }
        match serde_json::from_str(&text) {
            Ok(Line::Chain(line)) if !is_ours && line == *wanted => is_ours = true,
            Ok(Line::Range(_)) if is_ours => {}
            Ok(Line::Block(line)) if is_ours && line.height as usize == kept.blocks.len() + 1 => {
                let Ok(Some((hash, ids))) = files.check(&line, previous, magic) else { break };
                previous = Some(hash);
                txids.push(ids)?;
                progress.signed(line.signatures);
                progress.block(&line);
                kept.blocks.push((line, hash));
                kept.ledger_end = end;
            }
            _ => break,
        }
    }
    Ok(kept)
}

/// The block files; the last one used is open.
struct Files<'a> {
    dir: &'a Path,
    open: Option<(String, File)>,
}

impl Files<'_> {
    /// Hash and txids of a block, if it is intact and matches the ledger.
    fn check(
        &mut self,
        line: &BlockLine,
        previous: Option<[u8; 32]>,
        magic: [u8; 4],
    ) -> io::Result<Option<Checked>> {
        if self.open.as_ref().is_none_or(|(name, _)| *name != line.file) {
            self.open = Some((line.file.clone(), File::open(self.dir.join(&line.file))?));
        }
        let Some((_, file)) = &mut self.open else { return Ok(None) };
        let (Some(start), true) = (line.offset.checked_sub(8), line.bytes <= BLOCK_MAX) else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![0; 8 + line.bytes as usize];
        file.read_exact(&mut bytes)?;
        if bytes[..4] != magic || bytes[4..8] != (line.bytes as u32).to_le_bytes() {
            return Ok(None);
        }
        let Ok(block) = Block::parse(bytes.split_off(8), Encoding::Segwit) else { return Ok(None) };
        let header = block.header();
        let txids: Vec<_> = block.txs().map(|tx| tx.txid().0).collect();
        let follows = previous.is_none_or(|previous| header.prev_block == BlockHash(previous));
        let order = order_path(self.dir, line.height).metadata()?.len();
        let is_whole = follows
            && block.hash().to_string() == line.hash
            && merkle_root(txids.clone()).0 == header.merkle_root
            && order == 40 * (txids.len() as u64 - 1);
        Ok(is_whole.then(|| (block.hash().0, txids)))
    }
}

type Checked = ([u8; 32], Vec<[u8; 32]>);

/// Above the size of any block.
const BLOCK_MAX: u64 = 4_000_000;
