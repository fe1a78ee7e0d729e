//! Experiments with several nodes that are peers of each other, on loopback.

mod header_chain;
pub(crate) mod link;
mod node;
mod peer;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use assay_report::atomic_file;
use assay_report::record::Record;

use crate::chain::Chain;
use crate::feed::submit_block;
use crate::forge::ForgeJob;
use crate::machine::disk::renew_folder;
use crate::machine::{Software, new_record};
use crate::plan::{NodeSpec, Plan, TargetSpec};
use crate::process::rpc::RpcError;
use crate::process::{Ports, ProcessError};
use crate::progress::Reporter;
use crate::target::{Family, Target};

pub(crate) use self::header_chain::HeaderChain;
pub(crate) use self::link::Link;
pub(crate) use self::node::{ASK_PAUSE, Node};
pub(crate) use self::peer::{MisbehavingPeer, Misbehaviour};

/// Coinbases pay to a witness script that is always true, so that spends need no signature: `OP_0`, SHA-256 of `OP_1` (BIP141).
const ANYONE: &str = "00204ae81572f06e1b88fd5ced7a1a000945432e83e1551e6f721ee9c00b8cc33260";

/// Context of errors of links and misbehaving peers.
pub(crate) const LISTEN: &str = "cannot listen on loopback";

/// Common options of these experiments.
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// Folder of data, logs and results. Created if missing.
    pub out_dir: PathBuf,
    /// Plan with recipe and settings; a chain of Bitcoin's regtest.
    pub plan: Plan,
    /// Node under test.
    pub target: TargetSpec,
    pub forge_command: Vec<OsString>,
    /// Command that starts Assay's node.
    pub node_command: Vec<OsString>,
    /// The calling program.
    pub software: Software,
    /// Command line that repeats the run.
    pub rerun: String,
}

/// Programs with a chain for them.
pub(crate) struct Setup<'a> {
    options: &'a NetworkOptions,
    pub(crate) ours: Target,
    pub(crate) target: Target,
    pub(crate) chain: Chain,
}

impl<'a> Setup<'a> {
    /// Finds the programs and forges the chain.
    pub(crate) fn make(
        options: &'a NetworkOptions,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<Self> {
        let NetworkOptions { out_dir, plan, target, node_command, software, .. } = options;
        let assay_version = software.assay.as_str();
        let logs = out_dir.join("logs");
        atomic_file::create_folder(&logs)?;
        let own = TargetSpec { node: NodeSpec::Assay, index: None, ..target.clone() };
        let own = TargetSpec { name: None, args: Vec::new(), cores: Vec::new(), ..own };
        let ours = Target::detect(&own, node_command, assay_version)?;
        let target = Target::detect(target, node_command, assay_version)?;
        let job = ForgeJob {
            plan,
            dir: &out_dir.join("chain"),
            own_dir: true,
            command: &options.forge_command,
            assay_version,
            log: &logs.join("forge.log"),
            reporter,
        };
        let chain = job.chain()?.0;
        let name = &chain.header.chain;
        ensure!(
            name == "regtest",
            "chain {name}: the peers of this experiment speak the protocol of regtest"
        );
        target.check_chain(name)?;
        Ok(Self { options, ours, target, chain })
    }

    /// Starts `target` in `datadir` with further arguments; `name` is that of its log.
    pub(crate) fn start(
        &self,
        target: &Target,
        datadir: &Path,
        name: &str,
        more: &[String],
    ) -> Result<Node, ProcessError> {
        let ports = Ports::free()?;
        let plan = &self.options.plan.target;
        let mut launch = target.launch(&self.chain.header.chain, datadir, &ports, plan);
        launch.args.extend(more.iter().map(Into::into));
        let p2p = format!("127.0.0.1:{}", ports.p2p);
        let flags = match target.family {
            Family::Assay => ["--p2p".to_owned(), p2p],
            _ => ["-listen=1".to_owned(), format!("-bind={p2p}")],
        };
        launch.args.extend(flags.map(Into::into));
        let logs = self.options.out_dir.join("logs");
        Node::start(launch, &ports, &logs.join(format!("{name}.log")))
    }

    /// Record of an experiment with target and chain, without figures.
    pub(crate) fn record(&self, kind: &str) -> Record {
        let NetworkOptions { software, rerun, out_dir, .. } = self.options;
        let mut record = new_record(kind, software, rerun, out_dir);
        record.set("target", format!("{} ({})", self.target.name, self.target.version));
        record.set("chain", &self.chain.header);
        record
    }

    /// Fills a folder of Assay's node with the forged chain and `count` current blocks, and leaves the node running.
    pub(crate) fn fill(
        &self,
        folder: &Path,
        generated: u32,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<Node> {
        renew_folder(folder)?;
        reporter.step(&format!("filling the source with {} blocks", self.chain.blocks.len()));
        let node = self.start(&self.ours, folder, "fill", &[])?;
        let mut body = Vec::new();
        for block in &self.chain.blocks {
            reporter.check_stop()?;
            if let Some(reason) = submit_block(node.client(), &self.chain, block, &mut body)? {
                bail!("block {} was rejected: {reason}", block.height);
            }
        }
        generate(&node, generated)?;
        Ok(node)
    }
}

/// Adds blocks with the current time to a node's chain; returns their hashes.
pub(crate) fn generate(node: &Node, count: u32) -> Result<Vec<String>, RpcError> {
    let params = format!(r#"[{count},"raw({ANYONE})"]"#);
    node.call("generatetodescriptor", &params)
}
