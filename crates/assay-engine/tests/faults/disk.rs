//! A simulated disk: a file system and a coin tier that share one fate.

use std::sync::Arc;
use std::time::Duration;

use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, OpenError};
use assay_store::SimTier;
use assay_store::io::{Io, Loss, SimIo};

pub(crate) const DIR: &str = "/node";

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

    /// Opens an engine. With `is_hasty` it flushes after every block, also in the middle of a reorganisation.
    pub(crate) fn open(
        &self,
        params: &Arc<ChainParams>,
        is_hasty: bool,
    ) -> Result<Engine, OpenError> {
        let mut config = Config::new(DIR, Arc::clone(params));
        config.threads = 1;
        // Small files, so that a few blocks spread over several.
        config.block_file_bytes_max = 2500;
        if is_hasty {
            config.flush_interval = Duration::ZERO;
        }
        let io: Arc<dyn Io> = Arc::new(self.io.clone());
        Engine::open_with(config, &io, Box::new(self.tier.clone()))
    }
}
