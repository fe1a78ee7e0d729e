//! A full node with a fresh data folder that gets blocks over RPC, and the seconds it takes to accept each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::plan::TargetSpec;
use crate::process::rpc::{Client, RpcError};
use crate::process::{Ports, Process, ProcessError};
use crate::target::{Family, Target, TargetError};

#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It did not answer.
    #[error("{name} did not answer")]
    Rpc {
        /// The node.
        name: String,
        #[source]
        source: Box<RpcError>,
    },
    #[error("cannot make {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// It rejected a block.
    #[error("{name} rejected block {number}: {reason}")]
    Rejected {
        /// The node.
        name: String,
        /// Number of the block, from 1.
        number: usize,
        /// The reason it gave.
        reason: String,
    },
}

/// A running node over a fresh data folder on regtest.
pub struct Outside {
    /// Name of the target.
    pub name: String,
    /// What the program says of its version.
    pub version: String,
    process: Process,
    client: Client,
    blocks: usize,
}

impl Outside {
    /// Starts it over the folder `datadir`, which must not be there yet; `own` is how our own node is called, and its version.
    ///
    /// # Errors
    /// When the program cannot be run, is of no known family or does not answer.
    pub fn start(
        spec: &TargetSpec,
        (own, own_version): (&Path, &str),
        datadir: &Path,
    ) -> Result<Self, OutsideError> {
        let target = Target::detect(spec, &[own.into(), "node".into()], own_version)?;
        check(&target)?;
        let folder = |source| OutsideError::Folder { path: datadir.to_owned(), source };
        fs::create_dir_all(datadir).map_err(folder)?;
        // A node that changes its working folder must still find its data.
        let datadir = datadir.canonicalize().map_err(folder)?;
        let ports = Ports::free()?;
        let launch = target.launch_mempool(&datadir, &ports, MEMPOOL_MB);
        target.write_credentials(&launch, &datadir).map_err(folder)?;
        let mut process = Process::start(launch, ports.rpc, &datadir.join("output.log"))?;
        let credentials = process.wait_ready()?;
        let client = process.client(&credentials);
        Ok(Self { name: target.name, version: target.version, process, client, blocks: 0 })
    }

    /// Gives it a block, which must become the tip, and returns the seconds from the request to the answer.
    ///
    /// # Errors
    /// When the node rejects it, or is gone.
    pub fn submit(&mut self, raw: &[u8]) -> Result<f64, OutsideError> {
        self.blocks += 1;
        let params = format!(r#"["{}"]"#, faster_hex::hex_string(raw));
        let start = Instant::now();
        let answer = self.client.call::<Option<String>>("submitblock", &params);
        let seconds = start.elapsed().as_secs_f64();
        match answer {
            Ok(None) => Ok(seconds),
            Ok(Some(reason)) => {
                Err(OutsideError::Rejected { name: self.name.clone(), number: self.blocks, reason })
            }
            Err(error) => Err(match self.process.death(&error) {
                Some(death) => death.into(),
                None => OutsideError::Rpc { name: self.name.clone(), source: Box::new(error) },
            }),
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it does not end cleanly.
    pub fn stop(self) -> Result<(), OutsideError> {
        self.process.stop(&self.client)?;
        Ok(())
    }
}

/// Other programs take no blocks over RPC on regtest.
fn check(target: &Target) -> Result<(), TargetError> {
    let is_known =
        matches!(target.family, Family::Assay | Family::BitcoinCore | Family::BitcoinKnots);
    if is_known && target.index.is_none() {
        return Ok(());
    }
    let why = "single blocks go to our node and the Bitcoin Core family, without an index";
    Err(TargetError::Delivery { name: target.name.clone(), why })
}

/// Megabytes of its mempool, which stays empty.
const MEMPOOL_MB: u32 = 300;
