//! The outputs and inputs of a range of blocks, by partition.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use assay_consensus::block::{check_merkle_root, is_overwritten_coinbase};
use assay_consensus::tx::is_unspendable;
use assay_store::{BlockFiles, BlockPlace, CoinRef, StreamsWriter, encode_coin_bytes};
use assay_wire::{Block, BlockHash, Txid};

use super::super::{ShardError, damaged, io_failed};
use super::memory::ScatterMemory;
use super::plan::Shuffle;
use super::records::{self, CLAIM_BYTES_MAX, OUTPOINT_BYTES, Placing, Spend, outpoint_bytes};
use super::window::Window;
use crate::files::{Fault, Refused, read_plain_block};

/// What was found in a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scattered {
    /// Outputs that can be spent.
    pub outputs: u64,
    /// Inputs, the coinbases' left out.
    pub inputs: u64,
    /// Inputs whose coin was found within the range, in memory.
    pub matched: u64,
    /// How often memory was full.
    pub spills: u64,
}

/// Scatters a range: writes its file.
///
/// # Errors
/// The blocks cannot be read, or the file cannot be written.
pub fn scatter_range(
    shuffle: &Shuffle,
    range: usize,
    blocks: Option<&Path>,
    unit_bytes: u64,
    stop: &AtomicBool,
) -> Result<Scattered, ShardError> {
    let heights = shuffle.range(range)?;
    let path = shuffle.scattered(range);
    let files = shuffle.open_files(blocks)?;
    let memory = ScatterMemory::new(unit_bytes);
    let placing = shuffle.placing();
    let partitions = shuffle.partitions;
    let writer = StreamsWriter::create(&path, shuffle.id, streams(partitions));
    let mut scatter = Scatter {
        writer: writer.map_err(io_failed(&path))?,
        path,
        placing,
        partitions,
        window: Window::new(placing, memory.outputs_bytes, memory.outputs),
        spends: Vec::with_capacity(memory.spends),
        claims: Vec::with_capacity(memory.claims_bytes),
        memory,
        order: Vec::new(),
        coin: Vec::new(),
        found: Scattered::default(),
    };
    for ((hash, place), height) in shuffle.blocks(&heights)?.iter().zip(heights.first..) {
        if stop.load(Ordering::Relaxed) {
            return Err(ShardError::Interrupted);
        }
        let (block, txids) = read(shuffle, &files, (place, hash, height))?;
        scatter.add((&block, &txids), height)?;
    }
    scatter.finish()
}

/// A block whose transactions are those of its header.
fn read(
    shuffle: &Shuffle,
    files: &BlockFiles,
    (place, hash, height): (&BlockPlace, &BlockHash, u32),
) -> Result<(Block, Vec<Txid>), ShardError> {
    let damaged = |fault| {
        let refused = Refused { fault, place: *place, damaged: 1 };
        damaged(files, refused, (*hash, height))
    };
    let block = read_plain_block(&shuffle.params, files, (place, hash)).map_err(damaged)?;
    let txids = block.txids(0..block.tx_count());
    check_merkle_root(block.header(), &txids).map_err(|error| damaged(Fault::Rule(error)))?;
    Ok((block, txids))
}

struct Scatter {
    path: PathBuf,
    writer: StreamsWriter,
    placing: Placing,
    partitions: u32,
    memory: ScatterMemory,
    window: Window,
    spends: Vec<Spend>,
    claims: Vec<u8>,
    /// Partitions and what goes there.
    order: Vec<(u32, u32)>,
    coin: Vec<u8>,
    found: Scattered,
}

impl Scatter {
    /// All outputs come first: on Bitcoin Cash a transaction may spend what stands later in its block. Whether that is allowed
    /// is for whoever validates to judge.
    fn add(&mut self, (block, txids): (&Block, &[Txid]), height: u32) -> Result<(), ShardError> {
        let from = usize::from(is_overwritten_coinbase(height, &block.hash()));
        for (tx_index, tx) in block.txs().enumerate().skip(from) {
            for (output, vout) in tx.outputs().zip(0..) {
                if is_unspendable(output.script_pubkey) {
                    continue;
                }
                let coin = CoinRef {
                    value: output.value,
                    height,
                    coinbase: tx_index == 0,
                    script_pubkey: output.script_pubkey,
                };
                self.coin.clear();
                encode_coin_bytes(&mut self.coin, coin);
                if !self.window.has_room() {
                    self.spill_outputs()?;
                }
                let outpoint = outpoint_bytes(&txids[tx_index], vout);
                self.window.push(&outpoint, height, &self.coin);
                self.found.outputs += 1;
            }
        }
        let mut index = 0;
        for tx in block.txs().skip(1) {
            for input in tx.inputs() {
                let outpoint = outpoint_bytes(&input.prevout.txid, input.prevout.vout);
                self.spend(&outpoint, (height, index))?;
                index += 1;
            }
        }
        Ok(())
    }

    fn spend(
        &mut self,
        outpoint: &[u8; OUTPOINT_BYTES],
        place: (u32, u32),
    ) -> Result<(), ShardError> {
        self.found.inputs += 1;
        if let Some(coin) = self.window.take(outpoint) {
            records::write_claim(&mut self.claims, place, coin);
            self.found.matched += 1;
            if self.claims.len() + CLAIM_BYTES_MAX > self.memory.claims_bytes {
                self.spill_claims()?;
            }
            return Ok(());
        }
        if self.spends.len() == self.memory.spends {
            self.spill_spends()?;
        }
        self.spends.push(records::spend(place, outpoint));
        Ok(())
    }

    fn finish(mut self) -> Result<Scattered, ShardError> {
        let spills = self.found.spills;
        self.spill_outputs()?;
        self.spill_spends()?;
        self.spill_claims()?;
        self.writer.finish().map_err(io_failed(&self.path))?;
        Ok(Scattered { spills, ..self.found })
    }

    fn spill_claims(&mut self) -> Result<(), ShardError> {
        let written = self.writer.append(CLAIMS, [&self.claims[..]]);
        written.map_err(io_failed(&self.path))?;
        self.claims.clear();
        Ok(())
    }

    fn spill_outputs(&mut self) -> Result<(), ShardError> {
        let (placing, partitions, window) = (self.placing, self.partitions, &self.window);
        self.order.clear();
        self.order.extend(window.unspent().map(|start| {
            (placing.partition(&window.record(start)[..OUTPOINT_BYTES], partitions), start)
        }));
        self.order.sort_unstable();
        for group in self.order.chunk_by(|a, b| a.0 == b.0) {
            let records = group.iter().map(|(_, start)| window.record(*start));
            let written = self.writer.append(outputs_of(group[0].0), records);
            written.map_err(io_failed(&self.path))?;
        }
        self.window.clear();
        self.found.spills += 1;
        Ok(())
    }

    fn spill_spends(&mut self) -> Result<(), ShardError> {
        let (placing, partitions, spends) = (self.placing, self.partitions, &self.spends);
        self.order.clear();
        self.order.extend(
            spends
                .iter()
                .zip(0..)
                .map(|(spend, at)| (placing.partition(&spend[..OUTPOINT_BYTES], partitions), at)),
        );
        self.order.sort_unstable();
        for group in self.order.chunk_by(|a, b| a.0 == b.0) {
            let records = group.iter().map(|(_, at)| &spends[*at as usize][..]);
            let written = self.writer.append(spends_of(group[0].0), records);
            written.map_err(io_failed(&self.path))?;
        }
        self.spends.clear();
        self.found.spills += 1;
        Ok(())
    }
}

/// Streams of the file of a range: coins that were matched, then outputs and inputs of each partition.
pub(super) fn streams(partitions: u32) -> u32 {
    1 + 2 * partitions
}

pub(super) const CLAIMS: u32 = 0;

pub(super) fn outputs_of(partition: u32) -> u32 {
    1 + 2 * partition
}

pub(super) fn spends_of(partition: u32) -> u32 {
    2 + 2 * partition
}
