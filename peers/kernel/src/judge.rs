//! Both validations side by side: each block goes to both, and what they say is compared.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine};
use assay_wire::BlockHash;

use crate::kernel::{Kernel, Settings};
use crate::verdict::Verdict;

/// The engine and the kernel, each with its own folder.
pub struct Pair {
    engine: Engine,
    kernel: Kernel,
}

/// What both said about one block.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The engine's verdict.
    pub engine: Verdict,
    /// The kernel's verdict.
    pub kernel: Verdict,
    /// The engine's tip afterwards.
    pub engine_tip: (u32, BlockHash),
    /// The kernel's tip afterwards.
    pub kernel_tip: (u32, BlockHash),
}

impl Judged {
    /// Whether verdict, reason and tip are the same.
    pub fn agrees(&self) -> bool {
        Verdict::agrees(&self.engine, &self.kernel) && self.engine_tip == self.kernel_tip
    }
}

impl Pair {
    /// Opens both on an empty regtest chain below `dir`.
    ///
    /// # Errors
    /// When one of them does not open.
    pub fn open(dir: &Path) -> Result<Self> {
        let params = ChainParams::by_name("regtest").context("regtest is a known chain")?;
        let mut config = Config::new(dir.join("engine"), Arc::new(params));
        config.cache_bytes_max = 64 << 20;
        config.threads = 2;
        let engine = Engine::open(config).context("opening the engine")?;
        // With a worker the kernel gathers script checks as a node does, so that amounts are judged before scripts.
        let settings = Settings { workers: 1, in_memory: true };
        let kernel =
            Kernel::open(bitcoinkernel::ChainType::Regtest, &dir.join("kernel"), &settings)?;
        Ok(Self { engine, kernel })
    }

    /// Gives both a block.
    pub fn submit(&self, raw: &[u8]) -> Judged {
        let engine = Verdict::from(self.engine.submit_block(raw.to_vec()));
        let kernel = self.kernel.submit(raw);
        let tip = self.engine.tip();
        Judged { engine, kernel, engine_tip: (tip.height, tip.hash), kernel_tip: self.kernel.tip() }
    }

    /// Compares the coins that every active block spent, as each side wrote them down; the number of coins.
    ///
    /// # Errors
    /// When they differ or cannot be read.
    pub fn compare_undo(&self) -> Result<u64> {
        let (height, _) = self.kernel.tip();
        let mut count = 0;
        for at in 1..=height {
            let hash = self.engine.block_hash_at(at).context("the engine has no block there")?;
            let ours: Vec<(i64, u32, bool, Vec<u8>)> = self
                .engine
                .read_spent(&hash)?
                .context("the engine has no undo data there")?
                .into_iter()
                .flatten()
                .map(|coin| (coin.value, coin.height, coin.coinbase, coin.script_pubkey.to_vec()))
                .collect();
            let theirs = self.kernel.spent(at)?;
            anyhow::ensure!(ours == theirs, "spent coins of block {at} ({hash}) differ");
            count += ours.len() as u64;
        }
        Ok(count)
    }
}
