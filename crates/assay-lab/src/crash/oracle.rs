//! Expected UTXO set at every block, from a node that is never killed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use assay_ledger::BlockLine;
use serde::Deserialize;

use super::index::{IndexOracle, Tip};
use super::{ASK_PAUSE, Fault, Setup};
use crate::chain::Chain;
use crate::feed::submit_block;
use crate::machine::disk::renew_folder;
use crate::process::rpc::{Client, RpcError};
use crate::process::{Ports, Process};

/// Number of timed clean starts.
const CLEAN_STARTS: usize = 5;

/// Results of the straight run.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    muhash_by_tip: HashMap<String, String>,
    /// Chain and height of every block, by hash.
    places: HashMap<String, (usize, u32)>,
    /// Expected index responses, if the node has an index.
    pub(crate) index: Option<IndexOracle>,
    /// Seconds from the process start after a proper stop to the first response.
    pub(crate) clean_start_s: Vec<f64>,
}

/// UTXO set as the node reports it.
#[derive(Debug, Deserialize)]
pub(crate) struct UtxoSet {
    #[serde(rename = "bestblock")]
    pub(crate) tip: String,
    pub(crate) height: u32,
    pub(crate) muhash: String,
}

/// Requests the `MuHash` of the UTXO set.
pub(crate) fn utxo_set(client: &Client) -> Result<UtxoSet, RpcError> {
    client.call("gettxoutsetinfo", r#"["muhash"]"#)
}

pub(crate) fn header_of(client: &Client, hash: &str) -> Result<String, RpcError> {
    client.call("getblockheader", &format!(r#"["{hash}",false]"#))
}

/// Submits a block; `None` if accepted, else the reject reason.
pub(crate) fn submit(
    client: &Client,
    chain: &Chain,
    block: &BlockLine,
    body: &mut Vec<u8>,
) -> anyhow::Result<Option<String>> {
    let reason = submit_block(client, chain, block, body)?;
    // Stored but not the tip, because a rival has as much work, or known from before a kill. Neither is a fault.
    let taken = ["inconclusive", "duplicate", "duplicate-inconclusive"];
    Ok(reason.filter(|reason| !taken.contains(&reason.as_str())))
}

/// Compares tip or `MuHash` of the run without kills with the ledger.
fn check_straight(found: &str, expected: &str) -> anyhow::Result<()> {
    ensure!(found == expected, "the run without kills gave {found}, the ledger says {expected}");
    Ok(())
}

impl Oracle {
    /// Feeds each chain to a fresh node and records the `MuHash` after every block. The last one must match the ledger.
    pub(crate) fn ask(
        setup: &Setup<'_>,
        datadir: &Path,
        index: Option<IndexOracle>,
    ) -> anyhow::Result<Self> {
        let mut oracle = Self { index, ..Self::default() };
        for (rival, chain) in setup.chains.iter().enumerate() {
            oracle.straight_run(setup, (rival, chain), datadir)?;
            if rival == 0 {
                oracle.time_clean_starts(setup, datadir)?;
            }
            renew_folder(datadir)?;
        }
        Ok(oracle)
    }

    /// Expected `MuHash` at this tip; `None` for a block of neither chain.
    pub(crate) fn muhash(&self, tip: &str) -> Option<&str> {
        self.muhash_by_tip.get(tip).map(String::as_str)
    }

    /// Chain and height of a block; `None` for the genesis block.
    pub(crate) fn place(&self, hash: &str) -> Option<(usize, u32)> {
        self.places.get(hash).copied()
    }

    fn straight_run(
        &mut self,
        setup: &Setup<'_>,
        (rival, chain): (usize, &Chain),
        datadir: &Path,
    ) -> anyhow::Result<()> {
        let ports = Ports::free()?;
        let launch = setup.launch(datadir, &ports, None);
        let (process, client) = Process::start_fresh(launch, ports.rpc, &setup.log)?;
        let mut body = Vec::new();
        let server = ports.electrum_address();
        let genesis = self.note(&client)?;
        self.note_index(&client, server, &genesis, (rival, chain))?;
        for block in &chain.blocks {
            setup.reporter.check_stop()?;
            if let Some(reason) = submit(&client, chain, block, &mut body)? {
                return Err(Fault::rejected(block, &reason));
            }
            let set = self.note(&client)?;
            check_straight(&set.tip, &block.hash)?;
            self.note_index(&client, server, &set, (rival, chain))?;
            self.places.insert(set.tip, (rival, block.height));
        }
        let muhash = self.muhash(&chain.tip.hash).unwrap_or_default();
        check_straight(muhash, &chain.tip.utxo_muhash)?;
        process.stop(&client)?;
        Ok(())
    }

    fn note(&mut self, client: &Client) -> Result<UtxoSet, RpcError> {
        let set = utxo_set(client)?;
        self.muhash_by_tip.insert(set.tip.clone(), set.muhash.clone());
        Ok(set)
    }

    /// Records the index responses at this tip.
    fn note_index(
        &mut self,
        client: &Client,
        server: SocketAddr,
        set: &UtxoSet,
        (rival, chain): (usize, &Chain),
    ) -> anyhow::Result<()> {
        let Some(index) = &mut self.index else { return Ok(()) };
        let header = header_of(client, &set.tip)?;
        let tip = Tip { hash: &set.tip, height: set.height, header: &header };
        index.note(server, &tip, (rival, chain.tip.height))
    }

    fn time_clean_starts(&mut self, setup: &Setup<'_>, datadir: &Path) -> anyhow::Result<()> {
        for _ in 0..CLEAN_STARTS {
            let ports = Ports::free()?;
            let start = Instant::now();
            let mut process =
                Process::start(setup.launch(datadir, &ports, None), ports.rpc, &setup.log)?;
            let (cookie, _) = process.wait_answer(ASK_PAUSE)?;
            self.clean_start_s.push(start.elapsed().as_secs_f64());
            let client = process.client(&cookie);
            process.stop(&client)?;
        }
        Ok(())
    }
}
