//! The source of syncs, which serves blocks to peers.
//!
//! For a forged chain it is an Assay node with the whole chain. Its data folder is filled once per chain over RPC and reused by
//! later runs. Block files of another program are served in place (`assay chain serve`): the first run needs neither a copy nor a
//! validation of a large chain.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_report::atomic_file;

use super::stopped;
use crate::chain::Chain;
use crate::feed::tip_watch::TipWatch;
use crate::feed::{FeedJob, Feeder, Reach, Rpc};
use crate::machine::clock::Clock;
use crate::machine::disk::renew_folder;
use crate::p2p::GENESIS;
use crate::plan::FeedPlan;
use crate::process::rpc::Client;
use crate::process::{Launch, Ports, Process, ProcessError};
use crate::progress::{Reporter, Silent};

/// Marker file that names the complete chain in the folder.
const FILLED: &str = "filled";

#[derive(Debug)]
pub(crate) struct Source {
    /// Data folder of Assay's node, or folder of the ledger.
    dir: PathBuf,
    /// Command that starts Assay's node, or serves block files.
    command: Vec<OsString>,
    chain: String,
    tip: u32,
    serves_files: bool,
}

pub(crate) struct RunningSource {
    process: Process,
    client: Option<Client>,
    pub(crate) port: u16,
}

impl Source {
    /// Serves the block files of another program.
    pub(crate) fn serving(chain: &Chain, command: &[OsString]) -> Self {
        Self {
            dir: chain.dir.clone(),
            command: command.to_vec(),
            chain: chain.header.chain.clone(),
            tip: chain.tip.height,
            serves_files: true,
        }
    }

    /// The folder `dir` with all of `chain`, filled unless already done.
    pub(crate) fn prepare(
        dir: &Path,
        chain: &Chain,
        command: &[OsString],
        feed: &FeedPlan,
        log: &Path,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<Self> {
        let source = Self {
            dir: dir.to_owned(),
            command: command.to_vec(),
            chain: chain.header.chain.clone(),
            tip: chain.tip.height,
            serves_files: false,
        };
        let mark = dir.join(FILLED);
        if fs::read_to_string(&mark).is_ok_and(|tip| tip.trim() == chain.tip.hash) {
            return Ok(source);
        }
        reporter.step(&format!("filling the source with {} blocks", chain.blocks.len()));
        renew_folder(dir)?;
        source.fill(chain, feed, log, reporter)?;
        atomic_file::write(&mark, chain.tip.hash.as_bytes())?;
        Ok(source)
    }

    fn fill(
        &self,
        chain: &Chain,
        feed: &FeedPlan,
        log: &Path,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<()> {
        let ports = Ports::free()?;
        let mut process = Process::start(self.launch(&ports, &[]), ports.rpc, log)?;
        let credentials = process.wait_ready()?;
        let clock = Clock::start();
        let watch = TipWatch::start(process.client(&credentials), clock);
        let job = FeedJob { chain, plan: feed, share: 0.0, reporter: &Silent };
        let rpc = Some(Rpc { client: process.client(&credentials), watch });
        let reach = Reach { rpc, p2p_feeder: None, pid: Some(process.pid()) };
        let mut feeder = Feeder::new(job, clock, reach, GENESIS);
        for block in &chain.blocks {
            if reporter.wants_stop() {
                return Err(stopped(block.height));
            }
            feeder.feed(block)?;
        }
        if let (Some(client), _) = feeder.finish() {
            process.stop(&client)?;
        }
        Ok(())
    }

    /// Starts it, and waits until it has its blocks and accepts peers.
    pub(crate) fn start(
        &self,
        rate_mb_s: Option<f64>,
        log: &Path,
    ) -> Result<RunningSource, ProcessError> {
        let ports = Ports::free()?;
        let mut peers = vec!["--p2p".to_owned(), format!("127.0.0.1:{}", ports.p2p)];
        if let Some(rate) = rate_mb_s {
            peers.extend(["--p2p-rate".to_owned(), rate.to_string()]);
        }
        let mut process = Process::start(self.launch(&ports, &peers), ports.rpc, log)?;
        let client = if self.serves_files {
            None
        } else {
            let (credentials, info) = process.wait_answer(Duration::from_millis(20))?;
            if info.blocks != u64::from(self.tip) {
                return Err(ProcessError::NotFresh { chain: info.chain, blocks: info.blocks });
            }
            Some(process.client(&credentials))
        };
        process.wait_peers(ports.p2p, Duration::from_millis(20))?;
        Ok(RunningSource { process, client, port: ports.p2p })
    }

    fn launch(&self, ports: &Ports, more: &[String]) -> Launch {
        let (program, first) = match self.command.split_first() {
            Some((program, args)) => (program.clone(), args.to_vec()),
            None => (OsString::new(), Vec::new()),
        };
        let mut args = first;
        if self.serves_files {
            args.push(self.dir.as_os_str().to_owned());
            args.extend(more.iter().map(OsString::from));
            return Launch { program, args, ..Launch::default() };
        }
        args.extend(["--chain".into(), self.chain.as_str().into(), "--datadir".into()]);
        args.extend([self.dir.as_os_str().to_owned(), "--rpc".into()]);
        args.push(format!("127.0.0.1:{}", ports.rpc).into());
        args.extend(more.iter().map(OsString::from));
        let folder = self.dir.join("regtest");
        let (cookie, log) = (folder.join(".cookie"), folder.join("debug.log"));
        Launch { program, args, cookie, node_log: Some(log), ..Launch::default() }
    }
}

impl RunningSource {
    pub(crate) fn stop(self) -> Result<(), ProcessError> {
        match self.client {
            Some(client) => self.process.stop(&client).map(|_| ()),
            None => self.process.stop_by_signal().map(|_| ()),
        }
    }
}
