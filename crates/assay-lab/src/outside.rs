//! Times `submitblock` on a fresh full node.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::plan::TargetSpec;
use crate::process::rpc::Client;
use crate::process::{Ports, Process};
use crate::target::{Family, Target, TargetError};

/// A running node with a fresh data folder on regtest.
pub struct Outside {
    pub name: String,
    /// Version string of the program.
    pub version: String,
    process: Process,
    client: Client,
    blocks: usize,
}

impl Outside {
    /// Starts it in the folder `datadir`, which must not exist; `own` is the command of Assay's node and its version.
    ///
    /// # Errors
    /// When the program cannot be run, is of no known family or does not respond.
    pub fn start(
        spec: &TargetSpec,
        (own, own_version): (&Path, &str),
        datadir: &Path,
    ) -> anyhow::Result<Self> {
        let target = Target::detect(spec, &[own.into(), "node".into()], own_version)?;
        check(&target)?;
        let folder = || format!("cannot make {}", datadir.display());
        fs::create_dir_all(datadir).with_context(folder)?;
        // Absolute, because a node may change its working directory.
        let absolute = datadir.canonicalize().with_context(folder)?;
        let ports = Ports::free()?;
        let launch = target.launch_mempool(&absolute, &ports, MEMPOOL_MB);
        target.write_credentials(&launch, &absolute).with_context(folder)?;
        let log = absolute.join("output.log");
        let (process, client) = Process::start_fresh(launch, ports.rpc, &log)?;
        Ok(Self { name: target.name, version: target.version, process, client, blocks: 0 })
    }

    /// Submits a block, which must become the tip, and returns the seconds until the response.
    ///
    /// # Errors
    /// When the node rejects it, or has exited.
    pub fn submit(&mut self, raw: &[u8]) -> anyhow::Result<f64> {
        self.blocks += 1;
        let params = format!(r#"["{}"]"#, faster_hex::hex_string(raw));
        let start = Instant::now();
        let answer = self.client.call::<Option<String>>("submitblock", &params);
        let seconds = start.elapsed().as_secs_f64();
        match answer {
            Ok(None) => Ok(seconds),
            Ok(Some(reason)) => bail!("{} rejected block {}: {reason}", self.name, self.blocks),
            Err(error) => match self.process.death(&error) {
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
        self.process.stop(&self.client)?;
        Ok(())
    }
}

/// Other programs accept no blocks over RPC on regtest.
fn check(target: &Target) -> Result<(), TargetError> {
    let is_known =
        matches!(target.family, Family::Assay | Family::BitcoinCore | Family::BitcoinKnots);
    if is_known && target.index.is_none() {
        return Ok(());
    }
    let why = "single blocks go to our node and the Bitcoin Core family, without an index";
    Err(TargetError::Delivery { name: target.name.clone(), why })
}

/// Size of its mempool in MB, which stays empty.
const MEMPOOL_MB: u32 = 300;
