//! Reference node of a verdict comparison, queried in batches.

use std::path::Path;

use anyhow::ensure;

use crate::plan::{TargetSpec, TargetsPlan};
pub use crate::process::rpc::Answer;
use crate::process::rpc::Client;
use crate::process::{Ports, Process};
use crate::target::{Family, Target};

/// Upgrades after May 2022, set to never; given to versions that have the option.
const UPGRADES_NEVER: [&str; 5] = [
    "-upgrade9activationtime=4102444800",
    "-upgrade9activationheight=2000000000",
    "-upgrade10activationheight=2000000000",
    "-upgrade11activationtime=4102444800",
    "-upgrade12activationtime=4102444800",
];

/// A running Bitcoin Cash Node on regtest that accepts non-standard transactions.
#[derive(Debug)]
pub struct Reference {
    process: Process,
    client: Client,
    version: String,
}

impl Reference {
    /// Starts the node under the rules of May 2022 in the fresh folder `datadir`; its output goes to `log`.
    ///
    /// # Errors
    /// When the program is not Bitcoin Cash Node, does not start, or does not respond.
    pub fn start_bchn(
        spec: &TargetSpec,
        block_bytes_max: u64,
        datadir: &Path,
        log: &Path,
    ) -> anyhow::Result<Self> {
        let target = Target::detect(spec, &[], "")?;
        ensure!(target.family == Family::Bchn, "{} is not Bitcoin Cash Node", target.version);
        let ports = Ports::free()?;
        let mut plan = TargetsPlan::default();
        plan.bitcoind.excessive_block_bytes = Some(block_bytes_max);
        let mut launch = target.launch("bch-regtest", datadir, &ports, &plan);
        launch.args.extend(target.known(&UPGRADES_NEVER));
        launch.args.extend(["-acceptnonstdtxn=1".into(), "-par=1".into()]);
        let (process, client) = Process::start_fresh(launch, ports.rpc, log)?;
        Ok(Self { process, client, version: target.version })
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Command line of the node.
    pub fn command(&self) -> &[String] {
        self.process.command()
    }

    /// Calls a method with several parameter lists, each a JSON array, in one batch.
    ///
    /// # Errors
    /// When the node does not respond, or not to all.
    pub fn ask(&self, method: &str, params: &[String]) -> anyhow::Result<Vec<Answer>> {
        Ok(self.client.batch(params.iter().map(|params| (method, params.as_str())))?)
    }

    /// Stops the node.
    ///
    /// # Errors
    /// When it does not stop cleanly.
    pub fn stop(self) -> anyhow::Result<()> {
        self.process.stop(&self.client)?;
        Ok(())
    }
}
