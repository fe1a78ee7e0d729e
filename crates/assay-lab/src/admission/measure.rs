//! Measures one case on one node.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use assay_wire::{Header, Txid, encode};
use serde::Deserialize;

use super::plan::{By, Case, MempoolPlan, What};
use super::work::{TXS_OF_RATE, Work};
use crate::feed::Ready;
use crate::feed::p2p_feeder::{P2pFeeder, SendOptions};
use crate::machine::clock::Clock;
use crate::network::{ASK_PAUSE, Node, generate};
use crate::plan::{Delivery, FeedPlan};
use crate::process::rpc::{batch_body, read_answers};
use crate::progress::Reporter;
use crate::wallet::Signed;

/// A case on a node. `'n` is the life of the node.
pub(super) struct Measured<'a, 'n> {
    pub(super) plan: &'a MempoolPlan,
    pub(super) case: &'a Case,
    pub(super) work: &'a Work,
    pub(super) node: &'n Node,
    pub(super) target: &'a str,
    pub(super) reporter: &'a dyn Reporter,
    pub(super) clock: Clock,
}

/// Counts of one sending.
#[derive(Default)]
pub(super) struct Sent {
    /// Admitted transactions: by RPC results, or by mempool contents when sent by a peer.
    pub(super) accepted: u64,
    /// Rejected transactions by reason.
    pub(super) rejected: BTreeMap<String, u64>,
    /// Orphans that the node counted (`getorphantxs`), summed over waves; absent without that call or without orphans.
    pub(super) orphans: Option<u64>,
    /// From the first byte to the last response; from a peer, until all are in the mempool.
    pub(super) seconds: f64,
}

/// Fields used of `getmempoolinfo`.
#[derive(Deserialize)]
pub(super) struct MempoolInfo {
    /// Number of transactions.
    pub(super) size: u64,
    /// Their virtual size.
    pub(super) bytes: u64,
    /// Their memory by the node's own count.
    pub(super) usage: u64,
    /// Minimum fee rate, BTC per 1,000 virtual bytes.
    pub(super) mempoolminfee: f64,
}

/// One case on one node in one round.
pub(super) struct CaseRun<'a> {
    pub(super) case: &'a Case,
    pub(super) target: &'a str,
    /// The round, from 0.
    pub(super) round: u32,
    /// Transactions sent.
    pub(super) txs: u64,
    pub(super) sent: Sent,
    pub(super) replaced: u64,
    /// Admitted transactions evicted later.
    pub(super) evicted: u64,
    /// The mempool afterwards.
    pub(super) info: MempoolInfo,
    /// Hash of the txids in the mempool.
    pub(super) pool: u64,
    pub(super) findings: Vec<Finding>,
}

/// Part of a check: its name, the number of comparisons, and that of faults with their description.
pub(super) type Finding = (&'static str, u64, u64, &'static str);

impl<'a> Measured<'a, '_> {
    /// Sends the transactions of the case, checks the mempool and empties it.
    pub(super) fn run(&self, round: u32) -> anyhow::Result<CaseRun<'a>> {
        let Work { before, txs } = self.work;
        if !before.is_empty() {
            self.by_rpc(before, "sendrawtransaction")?;
        }
        let sent = match (self.case.what, self.case.by) {
            (What::Package, _) => self.by_rpc(txs, "submitpackage")?,
            (What::Orphans, _) => self.orphans()?,
            (_, By::Rpc) => self.by_rpc(txs, "sendrawtransaction")?,
            (_, By::P2p) => self.by_peer(txs)?,
        };
        let info: MempoolInfo = self.call("getmempoolinfo", "[]")?;
        let pool: Vec<String> = self.call("getrawmempool", "[]")?;
        let pool: BTreeSet<Txid> = pool.iter().filter_map(|txid| txid.parse().ok()).collect();
        let findings = self.findings(&pool, &info);
        let held = |txs: &[Signed]| txs.iter().filter(|tx| pool.contains(&tx.txid)).count() as u64;
        let mut hasher = DefaultHasher::new();
        pool.hash(&mut hasher);
        self.empty()?;
        Ok(CaseRun {
            case: self.case,
            target: self.target,
            round,
            txs: txs.len() as u64,
            replaced: before.len() as u64 - held(before),
            evicted: sent.accepted.saturating_sub(held(txs)),
            sent,
            info,
            pool: hasher.finish(),
            findings,
        })
    }

    fn findings(&self, pool: &BTreeSet<Txid>, info: &MempoolInfo) -> Vec<Finding> {
        let found = |name, compared: usize, bad: u64, what| (name, compared as u64, bad, what);
        let txs = &self.work.txs;
        let sent: BTreeSet<Txid> = txs.iter().map(|tx| tx.txid).collect();
        let mut findings = vec![
            found(
                "the mempool counts as many transactions as it lists",
                1,
                info.size.abs_diff(pool.len() as u64),
                "more or fewer counted than listed",
            ),
            found(
                "the mempool has only transactions sent last",
                pool.len(),
                pool.difference(&sent).count() as u64,
                "that should not be there",
            ),
        ];
        if self.case.what == What::Evict {
            // Fees rise, so the last transactions remain; within one fee rate, signature lengths decide.
            let is_held = |tx: &Signed| pool.contains(&tx.txid);
            let first = txs.iter().position(is_held).unwrap_or(txs.len());
            let above = &txs[txs.len().min((first / TXS_OF_RATE + 1) * TXS_OF_RATE)..];
            findings.push(found(
                "a full mempool keeps the transactions that pay most",
                txs.len(),
                above.iter().filter(|tx| !is_held(tx)).count() as u64,
                "evicted before others that pay less",
            ));
            let most = u64::from(self.plan.full_mempool_mb) * 1_000_000;
            findings.push(found(
                "a full mempool stays within its limit",
                1,
                info.usage.saturating_sub(most),
                "bytes above the limit",
            ));
        } else {
            findings.push(found(
                "the mempool has all transactions sent last",
                sent.len(),
                sent.difference(pool).count() as u64,
                "missing",
            ));
        }
        findings
    }

    fn call<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: &str,
    ) -> anyhow::Result<T> {
        self.node.call(method, params).context(self.target.to_owned())
    }

    /// In batches of calls of `sendrawtransaction`, or of `submitpackage` with the transactions of a group. The bodies are built
    /// before the clock starts.
    fn by_rpc(&self, txs: &[Signed], method: &str) -> anyhow::Result<Sent> {
        let is_package = method == "submitpackage";
        let group = if is_package { self.case.group() } else { 1 };
        let params = |txs: &[Signed]| {
            let hex = |tx: &Signed| format!("\"{}\"", faster_hex::hex_string(&tx.raw));
            let list = txs.iter().map(hex).collect::<Vec<_>>().join(",");
            if is_package { format!("[[{list}]]") } else { format!("[{list}]") }
        };
        let bodies: Vec<(usize, String)> = txs
            .chunks(group * self.plan.batch)
            .map(|txs| {
                let params: Vec<String> = txs.chunks(group).map(params).collect();
                let calls = params.iter().map(|params| (method, params.as_str()));
                (params.len(), batch_body(calls))
            })
            .collect();
        let mut sent = Sent::default();
        let start_s = self.clock.now_s();
        let mut replies = Vec::with_capacity(bodies.len());
        for (calls, body) in &bodies {
            self.reporter.check_stop()?;
            let reply = self
                .node
                .client()
                .post(method, body.as_bytes(), None)
                .context(self.target.to_owned())?;
            replies.push((*calls, reply));
        }
        sent.seconds = self.clock.now_s() - start_s;
        for (calls, reply) in replies {
            let answers = read_answers(method, &reply).context(self.target.to_owned())?;
            ensure!(
                answers.len() == calls,
                "{}: {method}: a batch reply of another length",
                self.target
            );
            for answer in &answers {
                match rejection(answer) {
                    None => sent.accepted += group as u64,
                    Some(why) => *sent.rejected.entry(why).or_default() += group as u64,
                }
            }
        }
        Ok(sent)
    }

    fn p2p_feeder(&self) -> anyhow::Result<(P2pFeeder, FeedPlan)> {
        let plan = FeedPlan { by: Delivery::P2p, ..FeedPlan::default() };
        let p2p_feeder = P2pFeeder::connect(self.node.p2p, "regtest", &plan, self.clock)
            .with_context(|| self.as_peer())?;
        Ok((p2p_feeder, plan))
    }

    fn as_peer(&self) -> String {
        format!("{}, as its peer", self.target)
    }

    /// Over P2P: announces the transactions and sends them on request.
    fn by_peer(&self, txs: &[Signed]) -> anyhow::Result<Sent> {
        let (p2p_feeder, plan) = self.p2p_feeder()?;
        let start_s = self.clock.now_s();
        self.give(&p2p_feeder, &plan, &txs.iter().collect::<Vec<_>>())?;
        let accepted = self.wait_for(txs.len() as u64)?;
        Ok(Sent { accepted, seconds: self.clock.now_s() - start_s, ..Sent::default() })
    }

    /// Sends children first, wave by wave, and their parents once the node has counted its orphans.
    fn orphans(&self) -> anyhow::Result<Sent> {
        let (p2p_feeder, plan) = self.p2p_feeder()?;
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
    fn give(&self, p2p_feeder: &P2pFeeder, plan: &FeedPlan, txs: &[&Signed]) -> anyhow::Result<()> {
        let mut block = vec![0; Header::SIZE];
        encode::compact_size(&mut block, txs.len() as u64);
        for tx in txs {
            block.extend_from_slice(&tx.raw);
        }
        let ready = Ready::new(block, false).expect("they are whole transactions");
        let places: Vec<usize> = (0..txs.len()).collect();
        let stop = || self.reporter.wants_stop();
        let send_options = SendOptions { plan, interval_s: None, stop: &stop };
        let given = p2p_feeder.send_transactions(&Arc::new(ready), &places, send_options, |_| ());
        given.map(drop).with_context(|| self.as_peer())
    }

    /// Waits up to [`PATIENCE`] for `count` mempool entries; returns the number reached.
    fn wait_for(&self, count: u64) -> anyhow::Result<u64> {
        let started = Instant::now();
        loop {
            let info: MempoolInfo = self.call("getmempoolinfo", "[]")?;
            if info.size >= count || started.elapsed() > PATIENCE || self.reporter.wants_stop() {
                return Ok(info.size);
            }
            thread::sleep(ASK_PAUSE);
        }
    }

    /// Mines blocks until the mempool is empty.
    fn empty(&self) -> anyhow::Result<()> {
        for _ in 0..BLOCKS_MOST {
            let info: MempoolInfo = self.call("getmempoolinfo", "[]")?;
            if info.size == 0 || self.case.what == What::Evict {
                return Ok(());
            }
            generate(self.node, 1).context(self.target.to_owned())?;
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

/// Orphans at a time: older versions of Bitcoin Core keep 100 in total.
const ORPHANS_EACH: usize = 50;
/// Longest wait for sent transactions to enter the mempool.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of blocks mined to empty a mempool.
const BLOCKS_MOST: usize = 100;
