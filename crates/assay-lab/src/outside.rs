//! Times `submitblock` on a fresh full node.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::network::Node;
use crate::plan::TargetSpec;
use crate::target::{Family, Target};

/// A running node with a fresh data folder on regtest.
pub struct Outside {
    pub name: String,
    /// Version string of the program.
    pub version: String,
    node: Node,
    blocks: usize,
}

impl Outside {
    /// Starts it in the folder `datadir`, which is emptied first; its log is next to it. `own` is the command of Assay's node and its version.
    ///
    /// # Errors
    /// When the program cannot be run, is of no known family or does not respond.
    pub fn start(
        spec: &TargetSpec,
        (own, own_version): (&Path, &str),
        datadir: &Path,
    ) -> anyhow::Result<Self> {
        let target = Target::detect(spec, &[own.into(), "node".into()], own_version)?;
        // Other programs accept no blocks over RPC on regtest.
        let is_known =
            matches!(target.family, Family::Assay | Family::BitcoinCore | Family::BitcoinKnots);
        if !is_known || target.index.is_some() {
            let why = "single blocks go to our node and the Bitcoin Core family, without an index";
            return Err(target.unable(why).into());
        }
        let log = datadir.with_extension("log");
        let node = Node::start_new(&target, datadir, &log, |datadir, ports| {
            target.launch_mempool(datadir, ports, MEMPOOL_MB)
        })?;
        Ok(Self { name: target.name, version: target.version, node, blocks: 0 })
    }

    /// Submits a block, which must become the tip, and returns the seconds until the response.
    ///
    /// # Errors
    /// When the node rejects it, or has exited.
    pub fn submit(&mut self, raw: &[u8]) -> anyhow::Result<f64> {
        self.blocks += 1;
        let params = format!(r#"["{}"]"#, faster_hex::hex_string(raw));
        let start = Instant::now();
        let answer = self.node.call::<Option<String>>("submitblock", &params);
        let seconds = start.elapsed().as_secs_f64();
        match answer {
            Ok(None) => Ok(seconds),
            Ok(Some(reason)) => bail!("{} rejected block {}: {reason}", self.name, self.blocks),
            Err(error) => match self.node.death(&error) {
                Some(death) => Err(death.into()),
                None => Err(error).with_context(|| format!("{} did not answer", self.name)),
            },
        }
    }

    /// Stops it.
    ///
    /// # Errors
    /// When it does not stop cleanly.
    pub fn stop(self) -> anyhow::Result<()> {
        Ok(self.node.stop()?)
    }
}

/// Size of its mempool in MB, which stays empty.
const MEMPOOL_MB: u32 = 300;
