//! Parameters common to all chains.

use crate::network::Network;

#[derive(Clone, Debug)]
pub(crate) struct Params {
    pub(crate) network: Network,
    pub(crate) seed: u64,
    pub(crate) scale: f64,
    pub(crate) distinct: bool,
    pub(crate) threads: usize,
    /// Height of the last block of the whole recipe.
    pub(crate) last_height: u32,
    pub(crate) end_time: u32,
    pub(crate) block_interval_s: u32,
}

impl Params {
    /// Header time of a block.
    pub(crate) fn time(&self, height: u32) -> u32 {
        self.end_time - (self.last_height - height) * self.block_interval_s
    }
}
