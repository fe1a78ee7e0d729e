//! Parallel reading of a chain, with rows in order of height.
//!
//! Thread i of n reads the blocks at heights congruent to i modulo n and sends them over its own bounded channel.
//! Rows are in order without sorting, and queued data is bounded: blocks with many transactions are sent in pieces.

use std::mem;
use std::ops::ControlFlow;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use assay_engine::{InvalidBlock, WholeBlock};

use crate::block_set::{BlockSet, Heights};
use crate::rows::{BlockRow, TxRow, block_row, tx_rows};

/// Maximum number of transaction rows in a piece.
const ROWS_PER_PIECE: usize = 1 << 14;

/// Maximum number of queued pieces per thread.
const PIECES_WAITING: usize = 8;

#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    pub threads: usize,
    /// A transaction with more inputs than this has many.
    pub many_inputs: u32,
    /// True if there is one row per transaction.
    pub txs: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { threads: 1, many_inputs: 50, txs: false }
    }
}

/// Results in order of height.
#[derive(Debug)]
pub enum Item {
    /// Transactions of the next block, in order.
    Txs(Vec<TxRow>),
    Block(Box<BlockRow>),
    /// A block without a complete copy; none of its rows are returned.
    Damage(Box<InvalidBlock>),
}

/// Reads the blocks at the available ones of `heights`, and passes everything to `on_item`, which may stop early.
pub fn read(
    set: &BlockSet,
    heights: Heights,
    options: &ReadOptions,
    on_item: &mut dyn FnMut(Item) -> ControlFlow<()>,
) {
    let Some(Heights { first, last }) = set.heights().within(heights) else { return };
    let count = (last - first) as usize + 1;
    let threads = options.threads.clamp(1, count);
    thread::scope(|scope| {
        let mut receivers = Vec::with_capacity(threads);
        for number in 0..threads {
            let (sender, receiver) = sync_channel(PIECES_WAITING);
            receivers.push(receiver);
            scope.spawn(move || {
                let mut buffer = Vec::new();
                for offset in (number..count).step_by(threads) {
                    let height = first + offset as u32;
                    if count_block(set, height, options, &sender, &mut buffer).is_break() {
                        return;
                    }
                }
            });
        }
        for offset in 0..count {
            loop {
                // A missing sender means a panic, which the end of the scope propagates.
                let Ok(item) = receivers[offset % threads].recv() else { return };
                let is_last_of_block = !matches!(item, Item::Txs(_));
                if on_item(item).is_break() {
                    return;
                }
                if is_last_of_block {
                    break;
                }
            }
        }
    });
}

/// Sends everything about one block; breaks if the receiver is gone. `buffer` for the raw block is reused.
fn count_block(
    set: &BlockSet,
    height: u32,
    options: &ReadOptions,
    sender: &SyncSender<Item>,
    buffer: &mut Vec<u8>,
) -> ControlFlow<()> {
    let send = |item| match sender.send(item) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    let Some(placed) = set.at(height) else { return ControlFlow::Break(()) };
    let whole = set.read_whole((height, placed), mem::take(buffer));
    let WholeBlock { block, txids, place } = match whole {
        Ok(whole) => whole,
        Err(damage) => return send(Item::Damage(damage)),
    };
    if options.txs {
        for start in (0..block.tx_count()).step_by(ROWS_PER_PIECE) {
            let end = block.tx_count().min(start + ROWS_PER_PIECE);
            send(Item::Txs(tx_rows(&block, height, start..end, &txids)))?;
        }
    }
    let encoding = set.params().encoding;
    let row = block_row(&block, (height, placed.hash, place), encoding, options.many_inputs);
    *buffer = block.into_bytes();
    send(Item::Block(Box::new(row)))
}
