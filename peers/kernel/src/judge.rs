//! Both validations side by side: each block is submitted to both, and the results are compared.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine};
use assay_wire::{BlockHash, Coin, Header};

use crate::kernel::{Chain, HEADER_BYTES, Kernel, Settings, header_class};
use crate::verdict::Verdict;

/// The engine and the kernel, each with its own folder.
pub struct Pair {
    /// `None` only during a restart.
    engine: Option<Engine>,
    config: Config,
    kernel: Kernel,
}

#[derive(Clone, Debug)]
pub struct Judged {
    pub engine: Verdict,
    pub kernel: Verdict,
    pub engine_tip: (u32, BlockHash),
    pub kernel_tip: (u32, BlockHash),
}

impl Judged {
    /// True if verdict, reason and tip are equal.
    pub fn agrees(&self) -> bool {
        Verdict::agrees(&self.engine, &self.kernel) && self.engine_tip == self.kernel_tip
    }
}

impl Pair {
    /// Opens both on an empty regtest chain below `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        let params = ChainParams::by_name("regtest").context("regtest is a known chain")?;
        Self::open_chain(dir, params, &Chain::Known(bitcoinkernel::ChainType::Regtest))
    }

    /// Opens both on an empty chain below `dir`, given as each side names it.
    pub fn open_chain(dir: &Path, params: ChainParams, chain: &Chain) -> Result<Self> {
        let mut config = Config::new(dir.join("engine"), Arc::new(params));
        config.cache_bytes_max = 64 << 20;
        config.threads = 2;
        let engine = Engine::open(config.clone()).context("opening the engine")?;
        // With a worker thread the kernel queues script checks as a node does, so amounts are checked first.
        let settings = Settings { workers: 1, in_memory: true };
        let kernel = Kernel::open(chain, &dir.join("kernel"), &settings)?;
        Ok(Self { engine: Some(engine), config, kernel })
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("the engine is there but for the moment of a restart")
    }

    /// Reopens the engine: its state must not depend on its uptime. `is_clean` flushes everything
    /// first; otherwise it opens the files of a killed process.
    pub fn restart_engine(&mut self, is_clean: bool) -> Result<()> {
        if let Some(engine) = self.engine.take().filter(|_| is_clean) {
            engine.shutdown().context("closing the engine")?;
        }
        let engine = Engine::open(self.config.clone()).context("opening the engine again")?;
        self.engine = Some(engine);
        Ok(())
    }

    /// Submits a block to both, or a header if the length is that of one.
    pub fn submit(&self, raw: &[u8]) -> Judged {
        let (engine, kernel) = if let Ok(header) = <&[u8; HEADER_BYTES]>::try_from(raw) {
            self.submit_header(header)
        } else {
            let engine = Verdict::from(self.engine().blocks().submit(raw.to_vec()));
            (engine, self.kernel.submit(raw))
        };
        let tip = self.engine().chain().tip();
        Judged { engine, kernel, engine_tip: (tip.height, tip.hash), kernel_tip: self.kernel.tip() }
    }

    /// Known headers count as new ones, and rejections are compared by class.
    fn submit_header(&self, raw: &[u8; HEADER_BYTES]) -> (Verdict, Verdict) {
        let outcome = self.engine().blocks().submit_header(&Header::parse(raw));
        let engine = match Verdict::from(outcome) {
            Verdict::Duplicate => Verdict::Inconclusive,
            Verdict::Rejected { reason, .. } => {
                Verdict::Rejected { class: Some(header_class(&reason)), reason }
            }
            other => other,
        };
        let kernel = match (self.kernel.submit_header(raw), &engine) {
            (
                Verdict::Rejected { class: theirs, .. },
                Verdict::Rejected { class: ours, reason },
            ) if theirs == *ours => Verdict::Rejected { reason: reason.clone(), class: theirs },
            (other, _) => other,
        };
        (engine, kernel)
    }

    /// Compares the undo data of every active block; returns the number of coins.
    pub fn compare_undo(&self) -> Result<u64> {
        let (engine, (height, _)) = (self.engine(), self.kernel.tip());
        let mut count = 0;
        for at in 1..=height {
            let hash = engine.chain().hash_at(at).context("the engine has no block there")?;
            let ours = engine.blocks().read_spent(&hash)?;
            let ours = ours.context("the engine has no undo data there")?;
            let ours: Vec<Coin> = ours.into_iter().flatten().collect();
            let theirs = self.kernel.spent(at)?;
            anyhow::ensure!(ours == theirs, "spent coins of block {at} ({hash}) differ");
            count += ours.len() as u64;
        }
        Ok(count)
    }
}
