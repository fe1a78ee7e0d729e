//! Convergence after the load: all nodes must agree.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::load::{Load, reason_of};
use super::net::Net;
use super::outdated::{Chain, Outdated};
use crate::network::generate;
use crate::process::rpc::RpcError;
use crate::progress::Reporter;
use crate::target::Family;

/// Convergence after the load, with all links restored.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Convergence {
    /// Blocks generated until all tips agreed: branches with equal work stay apart until one grows.
    pub(super) tip_blocks: u32,
    /// Seconds from the last of them until all tips agreed; `None` if they never did.
    pub(super) tip_s: Option<f64>,
    /// Height at that time.
    pub(super) height: u32,
    /// Number of distinct transactions in all mempools at that time.
    pub(super) pool_txs: usize,
    /// Per node, transactions of other mempools that it lacked at that time.
    pub(super) missed: Vec<usize>,
    /// Mempool transactions that no block can include, in words.
    pub(super) leftovers: Vec<String>,
    /// The same as known behaviour of the program: btcd 0.24 keeps some after a reorg.
    pub(super) known_leftovers: Vec<String>,
    /// True if all mempools agreed, apart from these, after each node received its missing transactions.
    pub(super) is_pool_same: bool,
    /// Reject reasons for transactions of other nodes, in words.
    pub(super) rejected: Vec<String>,
    /// Remaining differences of mempools, in words.
    pub(super) differences: Vec<String>,
    /// Transactions sent afterwards over restored links.
    pub(super) fresh_txs: usize,
    /// Seconds until all nodes had all of them; `None` if they never did.
    pub(super) fresh_s: Option<f64>,
    /// Blocks generated to confirm everything.
    pub(super) last_blocks: u32,
    /// True if at the end no mempool had a transaction that a block could include, and all tips agreed.
    pub(super) is_emptied: bool,
    /// `MuHash` of the UTXO set by node; empty if unsupported.
    pub(super) muhash: Vec<String>,
    /// True if all computed values agree.
    pub(super) is_muhash_same: bool,
}

pub(super) fn run(
    net: &mut Net,
    load: &mut Load<'_>,
    base_height: u32,
    reporter: &dyn Reporter,
) -> anyhow::Result<Convergence> {
    let (chain, found) = (Chain::default(), Convergence::default());
    let mut all = Settling { net, reporter, base_height, chain, found };
    all.tips(load)?;
    all.relayed(load)?;
    all.offer(load)?;
    all.fresh(load)?;
    all.empty(load)?;
    all.coins()?;
    Ok(all.found)
}

struct Settling<'a> {
    net: &'a mut Net,
    reporter: &'a dyn Reporter,
    base_height: u32,
    chain: Chain,
    found: Convergence,
}

type Pools = Vec<BTreeSet<String>>;

impl Settling<'_> {
    /// Polls a condition up to a time limit; returns the time taken.
    fn until(
        &mut self,
        patience: Duration,
        mut is_so: impl FnMut(&Net) -> anyhow::Result<bool>,
    ) -> anyhow::Result<Option<f64>> {
        let started = Instant::now();
        loop {
            self.reporter.check_stop()?;
            self.net.check_alive()?;
            self.net.connect();
            if is_so(self.net)? {
                return Ok(Some(started.elapsed().as_secs_f64()));
            }
            if started.elapsed() > patience {
                return Ok(None);
            }
            thread::sleep(PAUSE);
        }
    }

    fn tips(&mut self, load: &mut Load<'_>) -> anyhow::Result<()> {
        self.found.tip_s = self.until(TIP_PATIENCE, same_tips)?;
        while self.found.tip_s.is_none() && self.found.tip_blocks < TIP_BLOCKS {
            self.generate(load)?;
            self.found.tip_blocks += 1;
            self.found.tip_s = self.until(TIP_PATIENCE, same_tips)?;
        }
        self.found.height = self.net.members[0].node.call("getblockcount", "[]")?;
        Ok(())
    }

    /// Generates a block at a random node.
    fn generate(&self, load: &mut Load<'_>) -> anyhow::Result<()> {
        let makers = self.net.makers();
        let at = load.random().below(makers.len() as u64) as usize;
        generate(&self.net.members[makers[at]].node, 1)?;
        Ok(())
    }

    /// All mempools without transactions that no block can include.
    fn pools(&self, load: &Load<'_>) -> anyhow::Result<Pools> {
        let outdated = self.chain.outdated(load.handed_in_order());
        let mut pools = pools_of(self.net)?;
        for pool in &mut pools {
            pool.retain(|txid| !outdated.contains_key(txid));
        }
        Ok(pools)
    }

    /// Records mempool transactions that no block can include.
    fn note_leftovers(&mut self, load: &Load<'_>) -> anyhow::Result<()> {
        let outdated = self.chain.outdated(load.handed_in_order());
        for (member, pool) in self.net.members.iter().zip(pools_of(self.net)?) {
            for (because, which) in [
                (Outdated::Confirmed, "that are confirmed"),
                (Outdated::DoubleSpent, "whose inputs other confirmed ones spend"),
            ] {
                let mut kept = pool.iter().filter(|txid| outdated.get(*txid) == Some(&because));
                let Some(txid) = kept.next() else { continue };
                let (node, txs) = (&member.name, 1 + kept.count());
                let text = format!("{node} keeps {txs} {which} (such as {txid})");
                if member.family == Family::Btcd {
                    let known = text + ", as btcd does after reorganisations";
                    self.found.known_leftovers.push(known);
                } else {
                    self.found.leftovers.push(text);
                }
            }
        }
        Ok(())
    }

    /// Records the result of relay alone, once it makes no progress.
    fn relayed(&mut self, load: &Load<'_>) -> anyhow::Result<()> {
        let mut last = (Instant::now(), pools_of(self.net)?);
        self.until(RELAY_PATIENCE, |net| {
            let now = pools_of(net)?;
            if now != last.1 {
                last = (Instant::now(), now);
            }
            Ok(are_same(&last.1) || last.0.elapsed() > QUIET)
        })?;
        self.chain = Chain::read(&self.net.members[0].node, self.base_height)?;
        self.note_leftovers(load)?;
        let pools = self.pools(load)?;
        let union: BTreeSet<&String> = pools.iter().flatten().collect();
        self.found.pool_txs = union.len();
        self.found.missed = pools.iter().map(|pool| union.len() - pool.len()).collect();
        Ok(())
    }

    /// Submits missing transactions to each node until no node accepts more. No program announces again after a broken
    /// connection, so this tests acceptance rules instead of relay.
    fn offer(&mut self, load: &Load<'_>) -> anyhow::Result<()> {
        let mut reasons: HashMap<(usize, String), String> = HashMap::new();
        for _ in 0..OFFERS {
            let pools = self.pools(load)?;
            let union: BTreeSet<&String> = pools.iter().flatten().collect();
            let mut has_taken = false;
            // Parents before children.
            for (txid, raw) in load.handed_in_order().filter(|(txid, _)| union.contains(txid)) {
                for (at, _) in pools.iter().enumerate().filter(|(_, pool)| !pool.contains(txid)) {
                    match self.net.members[at].submit(raw)? {
                        Ok(()) => has_taken = true,
                        Err(reason) => {
                            reasons.insert((at, txid.clone()), reason);
                        }
                    }
                }
            }
            if !has_taken {
                break;
            }
        }
        let pools = self.pools(load)?;
        self.found.is_pool_same = are_same(&pools);
        let name = |at: usize| &self.net.members[at].name;
        let mut rejected: BTreeMap<(usize, String), (u64, String)> = BTreeMap::new();
        for ((at, txid), reason) in &reasons {
            let entry = rejected.entry((*at, reason_of(reason))).or_insert((0, txid.clone()));
            entry.0 += 1;
        }
        let rejected = rejected.into_iter().map(|((at, reason), (txs, txid))| {
            format!("{} rejected {txs}: {reason} (such as {txid})", name(at))
        });
        self.found.rejected = rejected.collect();
        let union: BTreeSet<&String> = pools.iter().flatten().collect();
        for (at, pool) in pools.iter().enumerate() {
            for txid in union.iter().filter(|txid| !pool.contains(**txid)) {
                let reason = reasons.get(&(at, (*txid).clone()));
                let reason = reason.filter(|reason| !reason.is_empty());
                let reason = reason.map_or("was not asked", String::as_str);
                self.found.differences.push(format!("{} lacks {txid}: {reason}", name(at)));
            }
        }
        Ok(())
    }

    /// New transactions, which must reach all nodes by relay alone.
    fn fresh(&mut self, load: &mut Load<'_>) -> anyhow::Result<()> {
        let before = load.order.len();
        for _ in 0..FRESH {
            load.fresh(self.net)?;
        }
        let fresh = load.order[before..].to_vec();
        self.found.fresh_txs = fresh.len();
        self.found.fresh_s = self.until(RELAY_PATIENCE, |net| {
            for member in &net.members {
                let pool: BTreeSet<String> = member.pool()?.into_iter().collect();
                if !fresh.iter().all(|txid| pool.contains(txid)) {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        Ok(())
    }

    /// Generates blocks until everything is confirmed.
    fn empty(&mut self, load: &mut Load<'_>) -> anyhow::Result<()> {
        while !self.found.is_emptied && self.found.last_blocks < LAST_BLOCKS {
            self.generate(load)?;
            self.found.last_blocks += 1;
            self.until(TIP_PATIENCE, same_tips)?;
            self.chain = Chain::read(&self.net.members[0].node, self.base_height)?;
            let outdated = self.chain.outdated(load.handed_in_order());
            self.found.is_emptied = self
                .until(EMPTY_PATIENCE, |net| {
                    let is_empty =
                        pools_of(net)?.iter().flatten().all(|txid| outdated.contains_key(txid));
                    Ok(is_empty && same_tips(net)?)
                })?
                .is_some();
        }
        Ok(())
    }

    fn coins(&mut self) -> anyhow::Result<()> {
        #[derive(Deserialize)]
        struct Coins {
            muhash: Option<String>,
        }
        for member in &self.net.members {
            let answer = member.node.call::<Coins>("gettxoutsetinfo", r#"["muhash"]"#);
            self.found.muhash.push(match answer {
                // The program lacks the method, or the hash type.
                Err(RpcError::Node { .. }) => String::new(),
                other => other?.muhash.unwrap_or_default(),
            });
        }
        let mut known = self.found.muhash.iter().filter(|hash| !hash.is_empty());
        let first = known.next();
        self.found.is_muhash_same = known.all(|hash| Some(hash) == first);
        Ok(())
    }
}

fn pools_of(net: &Net) -> anyhow::Result<Pools> {
    net.members.iter().map(|member| Ok(member.pool()?.into_iter().collect())).collect()
}

fn are_same(pools: &Pools) -> bool {
    pools.windows(2).all(|pair| pair[0] == pair[1])
}

fn same_tips(net: &Net) -> anyhow::Result<bool> {
    let mut tips = net.members.iter().map(|member| member.node.tip());
    let first = tips.next().transpose()?;
    for tip in tips {
        if Some(tip?) != first {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Poll interval.
const PAUSE: Duration = Duration::from_millis(50);
const TIP_PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of blocks generated to make tips agree.
const TIP_BLOCKS: u32 = 6;
/// Announcements are delayed up to about ten seconds per hop, requests two.
const RELAY_PATIENCE: Duration = Duration::from_mins(2);
/// Time without a change that ends relay.
const QUIET: Duration = Duration::from_secs(25);
/// Rounds of submitting missing transactions.
const OFFERS: usize = 5;
/// Transactions after the load.
const FRESH: usize = 60;
const EMPTY_PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of blocks generated to confirm everything.
const LAST_BLOCKS: u32 = 8;
