//! Initial block download.

use std::sync::atomic::{AtomicBool, Ordering};

use assay_consensus::params::ChainParams;

use crate::clock::Clock;
use crate::config::Config;
use crate::types::{Tip, big_endian};

/// IBD ends permanently (Core `validation.cpp`, `IsInitialBlockDownload`) when the tip has the minimum chain work and is recent
/// enough, at most a day old by default.
pub(crate) struct InitialDownload {
    minimum_chain_work: [u8; 32],
    clock: Clock,
    tip_age_max_s: u64,
    is_over: AtomicBool,
}

impl InitialDownload {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            minimum_chain_work: big_endian(config.params.minimum_chain_work),
            clock: config.clock.clone(),
            tip_age_max_s: config.tip_age_max_s,
            is_over: AtomicBool::new(false),
        }
    }

    /// True while IBD lasts. Call it at every new tip, since the age of an earlier tip no longer matters.
    pub(crate) fn goes_on(&self, tip: &Tip) -> bool {
        self.goes_on_at(tip, self.clock.now_s())
    }

    fn goes_on_at(&self, tip: &Tip, now_s: u64) -> bool {
        if self.is_over.load(Ordering::Relaxed) {
            return false;
        }
        if self.has_little_work(tip)
            || u64::from(tip.time).saturating_add(self.tip_age_max_s) < now_s
        {
            return true;
        }
        if !self.is_over.swap(true, Ordering::Relaxed) {
            tracing::info!("Leaving InitialBlockDownload (latching to false)");
        }
        false
    }

    /// True if a tip has less than the known minimum work of the real chain.
    pub(crate) fn has_little_work(&self, tip: &Tip) -> bool {
        tip.chain_work < self.minimum_chain_work
    }

    /// Logs the work of the tip at start.
    pub(crate) fn log_start(&self, tip: &Tip, params: &ChainParams) {
        if self.has_little_work(tip) {
            tracing::info!(
                "the tip at height {} has less than the minimum chain work of {} ({}): the chain counts as being downloaded \
                 until one with that much work is connected",
                tip.height,
                params.name,
                params.minimum_chain_work,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assay_consensus::uint256::U256;
    use assay_wire::BlockHash;

    use super::*;

    fn tip(work: u64, time: u32) -> Tip {
        let chain_work = big_endian(U256::from(work));
        let hash = BlockHash([1; 32]);
        Tip { height: 1, hash, time, median_time: time, bits: 0, chain_work, chain_txs: 1 }
    }

    #[test]
    fn it_ends_with_enough_work_and_a_young_tip_and_never_begins_again() {
        let mut params = ChainParams::by_name("regtest").unwrap();
        params.minimum_chain_work = U256::from(1000);
        let download = InitialDownload::new(&Config::new("", Arc::new(params)));
        let now_s = 1_800_000_000;
        let (young, old) = (now_s as u32 - 86_400, now_s as u32 - 86_401);
        for at in [tip(999, young), tip(1000, old), tip(5, old)] {
            assert!(download.goes_on_at(&at, now_s));
        }
        assert!(download.has_little_work(&tip(999, young)));
        assert!(!download.has_little_work(&tip(1000, old)));
        assert!(!download.goes_on_at(&tip(1000, young), now_s));
        assert!(!download.goes_on_at(&tip(5, old), now_s), "it has ended for good");
    }
}
