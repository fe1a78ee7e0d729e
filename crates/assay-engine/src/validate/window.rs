//! The next blocks: while one block moves its coins, the prevouts of the others are read from the disk.
//!
//! If the cache is smaller than the set, only a part of the coins is in memory, and a read from disk takes several microseconds:
//! without read-ahead one core would wait for most of the time that blocks take without scripts.

use std::collections::{HashSet, VecDeque};

use assay_store::{BlockPlace, CoinError, CoinStore, Expected};
use assay_wire::{OutPoint, Txid};

use super::prefetch::{BlockSource, Prefetch, Ready};
use crate::config::READ_THREADS;
use crate::error::EngineError;
use crate::files::{Fault, Refused};

/// The next blocks in order.
#[derive(Default)]
pub(super) struct Window {
    blocks: VecDeque<Waiting>,
    inputs: usize,
    /// Transactions of these blocks and of the one whose coins move, by the first bytes of their ids: their outputs are not on
    /// disk. In case of a collision a coin is read later.
    own: HashSet<u64>,
    /// Transactions of the block whose coins move.
    moving: Vec<u64>,
}

struct Waiting {
    block: Result<Ready, Refused>,
    coins: Option<Expected>,
}

impl Window {
    /// The next block in height order, with its coins read into memory as far as possible; must not be called after the last one.
    pub(super) fn next(
        &mut self,
        prefetch: &Prefetch<BlockSource<'_>>,
        coins: &mut CoinStore,
    ) -> Result<Ready, Refused> {
        for id in self.moving.drain(..) {
            self.own.remove(&id);
        }
        if self.blocks.is_empty() && coins.is_complete() {
            return prefetch.next();
        }
        let Waiting { block, coins: expected } = match self.blocks.pop_front() {
            Some(waiting) => waiting,
            None => self.expect(prefetch.next(), coins),
        };
        let ready = block?;
        self.inputs -= ready.prepared.block.input_count();
        self.moving.extend(ready.prepared.txids.iter().map(start_of));
        while self.has_room()
            && let Some(block) = prefetch.try_next()
        {
            let waiting = self.expect(block, coins);
            self.blocks.push_back(waiting);
        }
        let settled = expected.map_or(Ok(0), |expected| coins.settle(expected));
        match settled {
            Ok(_) => Ok(ready),
            Err(error) => Err(refuse(error, ready.place)),
        }
    }

    fn has_room(&self) -> bool {
        self.blocks.is_empty() || self.inputs < INPUTS_MAX && self.blocks.len() < BLOCKS_MAX
    }

    /// Starts to read the prevouts of a block.
    fn expect(&mut self, block: Result<Ready, Refused>, coins: &mut CoinStore) -> Waiting {
        let Ok(ready) = &block else { return Waiting { block, coins: None } };
        let (txids, block_view) = (&ready.prepared.txids, &ready.prepared.block);
        self.inputs += block_view.input_count();
        self.own.extend(txids.iter().map(start_of));
        let prevouts = ready.prepared.spent_prevouts().iter().copied();
        let is_elsewhere = |prevout: &OutPoint| !self.own.contains(&start_of(&prevout.txid));
        let expected = coins.read_ahead(prevouts, is_elsewhere, READ_THREADS);
        Waiting { block, coins: expected }
    }
}

fn start_of(txid: &Txid) -> u64 {
    u64::from_le_bytes(*txid.0.first_chunk().expect("an id is longer"))
}

fn refuse(error: CoinError, place: BlockPlace) -> Refused {
    let fault = Fault::Engine(EngineError::from(error));
    Refused { fault, place, damaged: 0 }
}

/// Limit of the inputs of pending blocks: as many coins at most are held outside of the cache, about a megabyte.
const INPUTS_MAX: usize = 8_192;

const BLOCKS_MAX: usize = 64;
