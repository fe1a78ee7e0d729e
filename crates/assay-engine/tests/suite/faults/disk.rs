//! A simulated disk: a file system and a coin tier that fail together.

use std::sync::Arc;
use std::time::Duration;

use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, OpenError, Pruning};
use assay_store::SimTier;
use assay_store::io::{Io, Loss, SimIo};

pub(crate) const DIR: &str = "/node";

/// Blocks below the tip that pruning keeps: more than the length of the branches.
pub(crate) const KEPT: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// Flushes only on request.
    Calm,
    /// Flushes after every block, also in the middle of a reorg.
    Hasty,
    /// Prunes every file that it may.
    Pruning,
    /// Starts without coins (`-reindex-chainstate`).
    Rebuilding,
}

#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) io: SimIo,
    pub(crate) tier: SimTier,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let io = SimIo::new();
        let tier = SimTier::new(&io);
        Self { io, tier }
    }

    /// The disk after a loss, independent of this one.
    pub(crate) fn after(&self, loss: Loss) -> Self {
        let io = self.io.restart(loss);
        let tier = self.tier.restart(&io);
        Self { io, tier }
    }

    /// The disk after SIGKILL.
    pub(crate) fn killed(&self) -> Self {
        self.after(Loss::Nothing)
    }

    pub(crate) fn open(
        &self,
        params: &Arc<ChainParams>,
        setup: Setup,
    ) -> Result<Engine, OpenError> {
        let mut config = Config::new(DIR, Arc::clone(params));
        config.threads = 1;
        // Small files, so that a few blocks spread over several.
        config.block_file_bytes_max = 2500;
        match setup {
            Setup::Calm => {}
            Setup::Rebuilding => config.rebuild_coins = true,
            Setup::Hasty => config.flush_interval = Duration::ZERO,
            Setup::Pruning => {
                config.prune = Some(Pruning::Automatic { bytes_max: 1 });
                (config.prune_after_height, config.prune_keeps) = (0, KEPT);
            }
        }
        let io: Arc<dyn Io> = Arc::new(self.io.clone());
        Engine::open_with(config, &io, Box::new(self.tier.clone()))
    }
}
