//! Measures one case on one node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::MempoolError;
use super::plan::{By, Case, MempoolPlan, What};
use super::results::CaseRun;
use super::work::{TXS_OF_RATE, Work};
use crate::feed::Ready;
use crate::feed::p2p_feeder::{P2pFeeder, SendOptions};
use crate::machine::clock::Clock;
use crate::network::{ASK_PAUSE, NetworkError, Node, generate};
use crate::plan::{Delivery, FeedPlan};
use crate::process::rpc::{RpcError, read_answers};
use crate::wallet::Signed;
use crate::wire::{self, HEADER_BYTES, Hash, hash_from_hex};

pub(super) struct Measured<'a> {
    pub(super) plan: &'a MempoolPlan,
    pub(super) case: &'a Case,
    pub(super) work: &'a Work,
    pub(super) node: &'a Node,
    pub(super) target: &'a str,
    pub(super) stop: &'a dyn Fn() -> bool,
    pub(super) clock: Clock,
}

/// Counts of one sending.
#[derive(Default)]
struct Sent {
    accepted: u64,
    rejected: BTreeMap<String, u64>,
    /// By the node's own count, summed over waves.
    orphans: Option<u64>,
    seconds: f64,
}

/// Fields used of `getmempoolinfo`; amounts in BTC per 1,000 virtual bytes.
#[derive(Deserialize)]
struct MempoolInfo {
    size: u64,
    bytes: u64,
    usage: u64,
    mempoolminfee: f64,
}

impl Measured<'_> {
    /// Sends the transactions of the case, checks the mempool and empties it.
    pub(super) fn run(&self, round: u32) -> Result<CaseRun, MempoolError> {
        if !self.work.before.is_empty() {
            self.by_rpc(&self.work.before)?;
        }
        let sent = match (self.case.what, self.case.by) {
            (What::Package, _) => self.packages()?,
            (What::Orphans, _) => self.orphans()?,
            (_, By::Rpc) => self.by_rpc(&self.work.txs)?,
            (_, By::P2p) => self.by_peer(&self.work.txs)?,
        };
        let info: MempoolInfo = self.call("getmempoolinfo", "[]")?;
        let pool: Vec<String> = self.call("getrawmempool", "[]")?;
        let pool: BTreeSet<Hash> = pool.iter().filter_map(|txid| hash_from_hex(txid)).collect();
        let checks = self.checks(&pool, &info);
        let held = |txs: &[Signed]| txs.iter().filter(|tx| pool.contains(&tx.txid)).count() as u64;
        let (before, here) = (&self.work.before, held(&self.work.txs));
        let run = CaseRun {
            case: self.case.name.clone(),
            target: self.target.to_owned(),
            repeat: round,
            sent: self.work.txs.len() as u64,
            accepted: sent.accepted,
            rejected: sent.rejected,
            orphans: sent.orphans,
            replaced: before.len() as u64 - held(before),
            evicted: sent.accepted.saturating_sub(here),
            in_mempool: info.size,
            vbytes: info.bytes,
            usage_bytes: info.usage,
            min_sat_per_kvb: (info.mempoolminfee * 1e8).round() as u64,
            seconds: sent.seconds,
            tx_per_s: assay_report::stats::rate(sent.accepted as f64, sent.seconds),
            mempool_sha256: digest(&pool),
            faults: checks,
        };
        self.empty()?;
        Ok(run)
    }

    fn checks(&self, pool: &BTreeSet<Hash>, info: &MempoolInfo) -> Vec<String> {
        let mut faults = Vec::new();
        if info.size != pool.len() as u64 {
            faults.push(format!(
                "getmempoolinfo counts {}, the list has {}",
                info.size,
                pool.len()
            ));
        }
        let sent: BTreeSet<Hash> = self.work.txids().collect();
        let strange = pool.difference(&sent).count();
        if strange > 0 {
            faults.push(format!("{strange} transactions that should not be there"));
        }
        if self.case.what == What::Evict {
            // Fees rise, so the last transactions remain; within one fee rate, signature lengths decide.
            let flags: Vec<bool> = self.work.txs.iter().map(|tx| pool.contains(&tx.txid)).collect();
            let first = flags.iter().position(|held| *held).unwrap_or(flags.len());
            let above = (first / TXS_OF_RATE + 1) * TXS_OF_RATE;
            let gaps = flags.iter().skip(above).filter(|held| !**held).count();
            if gaps > 0 {
                faults.push(format!("{gaps} transactions left before others that pay less"));
            }
            let most = u64::from(self.plan.full_mempool_mb) * 1_000_000;
            if info.usage > most {
                faults.push(format!("{} bytes in use, {most} allowed", info.usage));
            }
        } else {
            let missing = sent.difference(pool).count();
            if missing > 0 {
                faults.push(format!("{missing} transactions are missing"));
            }
        }
        faults
    }

    fn call<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: &str,
    ) -> Result<T, MempoolError> {
        self.node.call(method, params).map_err(|source| self.fault(source))
    }

    fn fault(&self, source: NetworkError) -> MempoolError {
        MempoolError::Node { target: self.target.to_owned(), source }
    }

    fn by_rpc(&self, txs: &[Signed]) -> Result<Sent, MempoolError> {
        let call = |tx: &Signed| {
            let hex = faster_hex::hex_string(&tx.raw);
            (
                1,
                format!(
                    r#"{{"jsonrpc":"1.0","id":0,"method":"sendrawtransaction","params":["{hex}"]}}"#
                ),
            )
        };
        self.batches(&txs.iter().map(call).collect::<Vec<_>>(), "sendrawtransaction")
    }

    /// In calls of `submitpackage` with two transactions each.
    fn packages(&self) -> Result<Sent, MempoolError> {
        let call = |pair: &[Signed]| {
            let hex: Vec<String> =
                pair.iter().map(|tx| format!("\"{}\"", faster_hex::hex_string(&tx.raw))).collect();
            let list = hex.join(",");
            (
                2,
                format!(
                    r#"{{"jsonrpc":"1.0","id":0,"method":"submitpackage","params":[[{list}]]}}"#
                ),
            )
        };
        self.batches(&self.work.txs.chunks(2).map(call).collect::<Vec<_>>(), "submitpackage")
    }

    /// Calls with their number of transactions. The bodies are built before the clock starts.
    fn batches(&self, calls: &[(u64, String)], method: &str) -> Result<Sent, MempoolError> {
        let bodies: Vec<(Vec<u64>, String)> = calls
            .chunks(self.plan.batch)
            .map(|calls| {
                let texts: Vec<&str> = calls.iter().map(|(_, text)| text.as_str()).collect();
                let counts = calls.iter().map(|(count, _)| *count).collect();
                (counts, format!("[{}]", texts.join(",")))
            })
            .collect();
        let mut sent = Sent::default();
        let start_s = self.clock.now_s();
        let mut replies = Vec::with_capacity(bodies.len());
        for (counts, body) in &bodies {
            if (self.stop)() {
                return Err(MempoolError::Interrupted);
            }
            let reply = self.node.post(method, body.as_bytes()).map_err(|e| self.fault(e))?;
            replies.push((counts, reply));
        }
        sent.seconds = self.clock.now_s() - start_s;
        for (counts, reply) in replies {
            let answers = read_answers(method, &reply).map_err(|e| self.fault(e.into()))?;
            if answers.len() != counts.len() {
                let source = serde::de::Error::custom("a batch reply of another length");
                let error = RpcError::Reply { method: method.to_owned(), source };
                return Err(self.fault(error.into()));
            }
            for (count, answer) in counts.iter().zip(answers) {
                match rejection(&answer) {
                    None => sent.accepted += count,
                    Some(why) => *sent.rejected.entry(why).or_default() += count,
                }
            }
        }
        Ok(sent)
    }

    fn p2p_feeder(&self, plan: &FeedPlan) -> Result<P2pFeeder, MempoolError> {
        P2pFeeder::connect(self.node.p2p, "regtest", plan, self.clock).map_err(|e| self.peer(e))
    }

    fn peer(&self, source: crate::feed::PeerError) -> MempoolError {
        MempoolError::Peer { target: self.target.to_owned(), source }
    }

    /// Over P2P: announces the transactions and sends them on request.
    fn by_peer(&self, txs: &[Signed]) -> Result<Sent, MempoolError> {
        let plan = FeedPlan::of(Delivery::P2p);
        let p2p_feeder = self.p2p_feeder(&plan)?;
        let start_s = self.clock.now_s();
        self.give(&p2p_feeder, &plan, &txs.iter().collect::<Vec<_>>())?;
        let accepted = self.wait_for(txs.len() as u64)?;
        Ok(Sent { accepted, seconds: self.clock.now_s() - start_s, ..Sent::default() })
    }

    /// Sends children first, wave by wave, and their parents once the node has counted its orphans.
    fn orphans(&self) -> Result<Sent, MempoolError> {
        let plan = FeedPlan::of(Delivery::P2p);
        let p2p_feeder = self.p2p_feeder(&plan)?;
        let (mut orphans, mut known, mut sent) = (Some(0), 0, 0);
        let start_s = self.clock.now_s();
        for wave in self.work.txs.chunks(2 * ORPHANS_EACH) {
            let children: Vec<&Signed> = wave.iter().skip(1).step_by(2).collect();
            self.give(&p2p_feeder, &plan, &children)?;
            let held = self.node.call::<Vec<serde_json::Value>>("getorphantxs", "[]");
            // Older programs have no such call.
            orphans = orphans.zip(held.ok()).map(|(sum, held)| sum + held.len() as u64);
            let parents: Vec<&Signed> = wave.iter().step_by(2).collect();
            self.give(&p2p_feeder, &plan, &parents)?;
            sent += wave.len() as u64;
            known = self.wait_for(sent)?;
        }
        let seconds = self.clock.now_s() - start_s;
        Ok(Sent { accepted: known, orphans, seconds, ..Sent::default() })
    }

    /// Announces transactions and sends those that the node requests.
    fn give(
        &self,
        p2p_feeder: &P2pFeeder,
        plan: &FeedPlan,
        txs: &[&Signed],
    ) -> Result<(), MempoolError> {
        let mut block = vec![0; HEADER_BYTES];
        wire::put_count(&mut block, txs.len());
        for tx in txs {
            block.extend_from_slice(&tx.raw);
        }
        let ready = Ready::new(block, false).expect("they are whole transactions");
        let places: Vec<usize> = (0..txs.len()).collect();
        let send_options = SendOptions { plan, interval_s: None, stop: self.stop };
        let given = p2p_feeder.send_transactions(&Arc::new(ready), &places, send_options, |_| ());
        given.map(drop).map_err(|source| self.peer(source))
    }

    /// Waits up to [`PATIENCE`] for `count` mempool entries; returns the number reached.
    fn wait_for(&self, count: u64) -> Result<u64, MempoolError> {
        let started = Instant::now();
        loop {
            let info: MempoolInfo = self.call("getmempoolinfo", "[]")?;
            if info.size >= count || started.elapsed() > PATIENCE || (self.stop)() {
                return Ok(info.size);
            }
            thread::sleep(ASK_PAUSE);
        }
    }

    /// Mines blocks until the mempool is empty.
    fn empty(&self) -> Result<(), MempoolError> {
        for _ in 0..BLOCKS_MOST {
            let info: MempoolInfo = self.call("getmempoolinfo", "[]")?;
            if info.size == 0 || self.case.what == What::Evict {
                return Ok(());
            }
            generate(self.node, 1).map_err(|source| self.fault(source))?;
        }
        Ok(())
    }
}

/// Reason for which a call did not admit its transactions, if any.
fn rejection(answer: &crate::process::rpc::Answer) -> Option<String> {
    match answer {
        Err((code, message)) => Some(format!("{code}: {message}")),
        // `submitpackage` reports it in its result.
        Ok(result) => {
            let said = result.get("package_msg")?.as_str()?;
            (said != "success").then(|| said.to_owned())
        }
    }
}

/// SHA-256 of the txids in order.
fn digest(pool: &BTreeSet<Hash>) -> String {
    let mut hash = Sha256::new();
    for txid in pool {
        hash.update(txid);
    }
    faster_hex::hex_string(&hash.finalize())
}

/// Orphans at a time: older versions of Bitcoin Core keep 100 in total.
const ORPHANS_EACH: usize = 50;
/// Longest wait for sent transactions to enter the mempool.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of blocks mined to empty a mempool.
const BLOCKS_MOST: usize = 100;
