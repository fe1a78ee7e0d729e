//! What there is at this moment, for metrics and displays.

use assay_store::CoinUsage;

use super::Engine;
use crate::chainstate::Way;
use crate::types::{MempoolInfo, Tip};
use crate::work::WorkDone;

/// State of the engine at one moment. Taking it waits for one block at most.
#[derive(Clone, Debug)]
pub struct Gauges {
    pub tip: Tip,
    /// Height of the header with the most work that nothing speaks against.
    pub header_height: u32,
    pub is_initial_block_download: bool,
    pub mempool: MempoolInfo,
    pub coins: CoinUsage,
    /// Blocks in memory that wait to be connected, and their bytes.
    pub ready: (usize, usize),
    /// Blocks whose coins have moved and whose scripts are being verified, and their bytes with what they spend.
    pub unverified: (usize, usize),
    /// Bytes of block and undo files.
    pub archive_bytes: u64,
    /// What was done since the start.
    pub done: WorkDone,
}

impl Engine {
    /// State of the engine at this moment.
    pub fn gauges(&self) -> Gauges {
        let is_loaded = self.is_mempool_loaded();
        let mut state = self.lock_tree();
        Gauges {
            tip: self.tip(),
            header_height: self.header_height(),
            is_initial_block_download: self.is_initial_block_download(),
            mempool: self.chain.admission.info(&mut state.mempool, is_loaded),
            coins: state.coins.usage(),
            ready: state.ready.size(),
            unverified: state.way.as_ref().map_or((0, 0), Way::unverified),
            archive_bytes: self.chain.blocks.bytes(),
            done: self.chain.work.done(),
        }
    }
}
