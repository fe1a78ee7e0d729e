//! Reading a chain in parallel, and handing rows out in order.
//!
//! Each thread takes every n-th block and has a channel of its own that holds a few messages, so that the order needs no
//! sorting and what waits is bounded: blocks with many transactions come in pieces.

use std::mem;
use std::ops::ControlFlow;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use assay_engine::{InvalidBlock, WholeBlock};

use crate::block_set::{BlockSet, Heights};
use crate::rows::{BlockRow, TxRow, block_row, tx_rows};

/// Rows of transactions in one piece.
const ROWS_PER_PIECE: usize = 1 << 14;

/// Pieces of a thread that wait.
const PIECES_WAITING: usize = 8;

/// How to read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// Threads that read and count.
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

/// What comes out, in the order of heights.
#[derive(Debug)]
pub enum Item {
    /// Transactions of the block that comes next, in order.
    Txs(Vec<TxRow>),
    /// A block.
    Block(Box<BlockRow>),
    /// A block that cannot be counted, because none of its copies is whole; nothing of it came out.
    Damage(Box<InvalidBlock>),
}

/// Reads the blocks at those of `heights` that are there, and hands everything to `on_item`, which may break off.
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
                // A thread that is gone has panicked: the end of the scope passes that on.
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

/// Sends everything about one block; breaks when nobody listens any more. `buffer` is for the raw block and is kept.
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
