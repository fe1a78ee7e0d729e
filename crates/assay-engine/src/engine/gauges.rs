//! Current figures for metrics and displays.

use assay_store::CoinUsage;

use super::Engine;
use crate::chainstate::ReorgPath;
use crate::types::{MempoolInfo, Tip};
use crate::work::WorkDone;

/// State of the engine at one time. Reading it waits for one block at most.
#[derive(Clone, Debug)]
pub struct Gauges {
    pub tip: Tip,
    /// Height of the valid header with the most work.
    pub header_height: u32,
    pub is_initial_block_download: bool,
    pub mempool: MempoolInfo,
    pub coins: CoinUsage,
    /// Number of blocks in memory that wait to be connected, and their bytes.
    pub ready: (usize, usize),
    /// Number of blocks with moved coins and unverified scripts, and their bytes with the spent coins.
    pub unverified: (usize, usize),
    /// Bytes of block and undo files.
    pub archive_bytes: u64,
    /// Counters since the start.
    pub done: WorkDone,
}

impl Engine {
    pub fn gauges(&self) -> Gauges {
        let is_loaded = self.mempool().is_loaded();
        let mut state = self.lock_tree();
        Gauges {
            tip: self.chain().tip(),
            header_height: self.chain().header_height(),
            is_initial_block_download: self.chain().is_initial_block_download(),
            mempool: self.chainstate.admission.info(&mut state.mempool, is_loaded),
            coins: state.coins.store.usage(),
            ready: state.ready.size(),
            unverified: state.way.as_ref().map_or((0, 0), ReorgPath::unverified),
            archive_bytes: self.chainstate.blocks.bytes(),
            done: self.chainstate.work.done(),
        }
    }
}
