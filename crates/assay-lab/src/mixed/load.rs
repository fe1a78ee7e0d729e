//! The load: transactions, blocks and partitions at random times.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::thread;
use std::time::{Duration, Instant};

use assay_report::stats::random::SplitMix64;

use super::net::Net;
use super::proxy::LinkState;
use super::{Cut, MixedOptions, topology};
use crate::network::ASK_PAUSE;
use crate::p2p::hash_from_hex;
use crate::process::rpc::RpcError;
use crate::progress::{Event, Reporter};
use crate::wallet::{Coin, Signed, Wallet};

/// A submitted transaction.
pub(super) struct Handed {
    pub(super) raw: Vec<u8>,
    pub(super) at: Instant,
}

/// An output of an unconfirmed transaction, to be spent at the same node.
struct Open {
    coin: Coin,
    node: usize,
    /// Remaining length of the chain.
    left: u64,
}

/// An unspent transaction.
struct Leaf {
    spent: Vec<Coin>,
    node: usize,
    rate: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) txs: u64,
    pub(super) replacements: u64,
    pub(super) blocks: u64,
    pub(super) settled_blocks: u64,
    pub(super) held: u64,
    pub(super) broken: u64,
    pub(super) partitioned: Duration,
    pub(super) took: Duration,
    /// Reject reasons of transactions and blocks, by program.
    pub(super) rejected: BTreeMap<(usize, String), u64>,
}

pub(super) struct Load<'a> {
    options: &'a MixedOptions,
    reporter: &'a dyn Reporter,
    random: SplitMix64,
    wallet: Wallet,
    coins: Vec<Coin>,
    open: Vec<Open>,
    leaves: VecDeque<Leaf>,
    /// Accepted transactions in order of submission.
    pub(super) order: Vec<String>,
    pub(super) handed: HashMap<String, Handed>,
    pub(super) tally: Tally,
}

/// Times of the next events.
struct Plan {
    tx: Instant,
    block: Instant,
    /// Time of the next cut, or of its end.
    change: Option<Instant>,
    cut_at: Option<Instant>,
    look: Instant,
}

impl<'a> Load<'a> {
    pub(super) fn new(
        options: &'a MixedOptions,
        reporter: &'a dyn Reporter,
        random: SplitMix64,
        wallet: Wallet,
        mut coins: Vec<Coin>,
    ) -> Self {
        coins.reverse();
        Self {
            options,
            reporter,
            random,
            wallet,
            coins,
            open: Vec::new(),
            leaves: VecDeque::new(),
            order: Vec::new(),
            handed: HashMap::new(),
            tally: Tally::default(),
        }
    }

    /// All accepted transactions, parents before children.
    pub(super) fn handed_in_order(&self) -> impl Iterator<Item = (&String, &[u8])> {
        self.order.iter().map(|txid| (txid, &self.handed[txid].raw[..]))
    }

    /// Runs until the time is up; restores all links.
    pub(super) fn run(&mut self, net: &mut Net) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut plan = Plan {
            tx: started,
            block: started + self.exponential(self.options.block_every),
            change: self.options.cut.map(|_| started + self.about(self.options.cut_every)),
            cut_at: None,
            look: started,
        };
        while started.elapsed() < self.options.time {
            self.reporter.check_stop()?;
            let now = Instant::now();
            if now >= plan.tx {
                self.tx(net)?;
                plan.tx += self.exponential(Duration::from_secs_f64(1.0 / self.options.tx_per_s));
            }
            if now >= plan.block {
                self.block(net)?;
                plan.block = now + self.exponential(self.options.block_every);
            }
            if plan.change.is_some_and(|change| now >= change) {
                self.change(net, &mut plan, now)?;
            }
            if now >= plan.look {
                plan.look = now + LOOK_EVERY;
                net.check_alive()?;
                net.connect();
                self.show(started, plan.cut_at.is_some());
            }
            thread::sleep(ASK_PAUSE.min(plan.tx.saturating_duration_since(Instant::now())));
        }
        if let Some(cut_at) = plan.cut_at {
            self.tally.partitioned += cut_at.elapsed();
        }
        self.tally.took = started.elapsed();
        net.mend(&mut self.random)
    }

    fn show(&self, started: Instant, is_cut: bool) {
        let (elapsed, partitions) = (started.elapsed(), self.tally.held + self.tally.broken);
        let left = self.options.time.saturating_sub(elapsed).as_secs();
        let Tally { txs, blocks, .. } = &self.tally;
        let cut = if is_cut { ", parted" } else { "" };
        let status = format!(
            "{txs} transactions, {blocks} blocks, {partitions} partitions{cut}; {} s, {left} s left",
            elapsed.as_secs()
        );
        self.reporter.event(&Event::Status(&status));
    }

    /// Partitions the network, or restores it.
    fn change(&mut self, net: &mut Net, plan: &mut Plan, now: Instant) -> anyhow::Result<()> {
        if let Some(cut_at) = plan.cut_at.take() {
            net.mend(&mut self.random)?;
            self.tally.partitioned += cut_at.elapsed();
            plan.change = Some(now + self.about(self.options.cut_every));
            return Ok(());
        }
        let is_held = match self.options.cut {
            Some(Cut::Hold) => true,
            Some(Cut::Break) => false,
            _ => self.random.below(2) == 0,
        };
        let sides = topology::part(net.members.len(), &mut self.random);
        net.cut(&sides, if is_held { LinkState::Held } else { LinkState::Broken });
        *(if is_held { &mut self.tally.held } else { &mut self.tally.broken }) += 1;
        plan.cut_at = Some(now);
        plan.change = Some(now + self.about(self.options.cut_for));
        Ok(())
    }

    /// Submits a new transaction, one that spends another, or a replacement.
    pub(super) fn tx(&mut self, net: &Net) -> anyhow::Result<()> {
        let any_node = self.random.below(net.members.len() as u64) as usize;
        let rate = 2 + self.random.below(40);
        let choice = self.random.below(100);
        if choice < REPLACED_PERCENT && !self.leaves.is_empty() {
            let at = self.random.below(self.leaves.len() as u64) as usize;
            let Some(leaf) = self.leaves.remove(at) else { return Ok(()) };
            // At another node it may conflict with a transaction still in relay.
            let node = if self.random.below(2) == 0 { leaf.node } else { any_node };
            let tx = self.wallet.spend(&leaf.spent, 1, leaf.rate + REPLACEMENT_RATE);
            self.tally.replacements += u64::from(self.hand_in(net, node, tx)?.is_some());
            return Ok(());
        }
        let (from, node, left) = if choice < CHAINED_PERCENT && !self.open.is_empty() {
            let at = self.random.below(self.open.len() as u64) as usize;
            let open = self.open.swap_remove(at);
            (vec![open.coin], open.node, open.left)
        } else {
            let count = 1 + usize::from(self.random.below(5) == 0);
            let at = self.coins.len().saturating_sub(count);
            (self.coins.split_off(at), any_node, self.random.below(CHAIN_MAX))
        };
        if from.is_empty() {
            return Ok(());
        }
        let tx = self.wallet.spend(&from, 2, rate);
        let Some(outputs) = self.hand_in(net, node, tx)? else { return Ok(()) };
        if left > 0 {
            self.open.push(Open { coin: outputs[0], node, left: left - 1 });
        } else {
            self.leaves.push_back(Leaf { spent: from, node, rate });
            if self.leaves.len() > LEAVES {
                self.leaves.pop_front();
            }
        }
        Ok(())
    }

    /// Submits a transaction of a confirmed coin at a random node.
    pub(super) fn fresh(&mut self, net: &Net) -> anyhow::Result<()> {
        let node = self.random.below(net.members.len() as u64) as usize;
        if let Some(coin) = self.coins.pop() {
            let tx = self.wallet.spend(&[coin], 2, FRESH_RATE);
            self.hand_in(net, node, tx)?;
        }
        Ok(())
    }

    /// Submits a transaction; returns its outputs if accepted.
    fn hand_in(&mut self, net: &Net, node: usize, tx: Signed) -> anyhow::Result<Option<Vec<Coin>>> {
        // Peers may announce it before the RPC response arrives.
        net.record.tx_made(&tx, node);
        let at = Instant::now();
        match net.members[node].submit(&tx.raw)? {
            Ok(()) => {
                let txid = tx.txid.to_string();
                self.order.push(txid.clone());
                self.handed.insert(txid, Handed { raw: tx.raw, at });
                self.tally.txs += 1;
                Ok(Some(tx.outputs))
            }
            Err(reason) => {
                self.note(net, node, &reason);
                Ok(None)
            }
        }
    }

    fn note(&mut self, net: &Net, node: usize, reason: &str) {
        let key = (net.members[node].program, reason_of(reason));
        *self.tally.rejected.entry(key).or_default() += 1;
    }

    /// Generates a block at a random node, mostly of transactions old enough to be everywhere.
    fn block(&mut self, net: &Net) -> anyhow::Result<()> {
        let makers = net.makers();
        let node = makers[self.random.below(makers.len() as u64) as usize];
        let is_settled = self.random.below(100) < SETTLED_PERCENT;
        let outcome = if is_settled {
            let pool: HashSet<String> = net.members[node].pool()?.into_iter().collect();
            let is_old =
                |txid: &&String| self.handed[*txid].at.elapsed() > SETTLED && pool.contains(*txid);
            let txs: Vec<&String> = self.order.iter().filter(is_old).take(BLOCK_TXS_MAX).collect();
            let params = serde_json::json!(["raw(51)", txs]).to_string();
            net.members[node]
                .node
                .call("generateblock", &params)
                .map(|made: Generated| vec![made.hash])
        } else {
            net.members[node].node.call("generatetodescriptor", r#"[1,"raw(51)"]"#)
        };
        let hashes: Vec<String> = match outcome {
            Err(RpcError::Node { message, .. }) => {
                self.note(net, node, &message);
                return Ok(());
            }
            other => other?,
        };
        self.tally.blocks += 1;
        self.tally.settled_blocks += u64::from(is_settled);
        for hash in hashes.iter().filter_map(|hash| hash_from_hex(hash)) {
            net.record.block_made(hash, node, is_settled);
        }
        Ok(())
    }

    pub(super) fn random(&mut self) -> &mut SplitMix64 {
        &mut self.random
    }

    /// Exponentially distributed time.
    fn exponential(&mut self, mean: Duration) -> Duration {
        let unit = self.random.uniform();
        mean.mul_f64(-(1.0 - unit).ln())
    }

    /// Uniform between half and one and a half of the mean.
    fn about(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(0.5 + self.random.below(1_000) as f64 / 1_000.0)
    }
}

#[derive(serde::Deserialize)]
struct Generated {
    hash: String,
}

/// A reason without numbers and hashes.
pub(super) fn reason_of(message: &str) -> String {
    let is_id = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    let words = message.split_ascii_whitespace();
    words.map(|word| if is_id(word) { "…" } else { word }).collect::<Vec<_>>().join(" ")
}

/// Percentages of replacements, then of spends of unconfirmed outputs.
const REPLACED_PERCENT: u64 = 5;
const CHAINED_PERCENT: u64 = 45;
/// The longest chain of unconfirmed transactions is one more.
const CHAIN_MAX: u64 = 6;
/// Additional satoshi per virtual byte of a replacement.
const REPLACEMENT_RATE: u64 = 20;
/// Satoshi per virtual byte of transactions after the load.
const FRESH_RATE: u64 = 10;
/// Unspent transactions kept as candidates for replacement.
const LEAVES: usize = 50;
/// Percentage of blocks with older transactions only.
const SETTLED_PERCENT: u64 = 75;
const SETTLED: Duration = Duration::from_secs(10);
/// Maximum transactions of a block: half of its capacity.
const BLOCK_TXS_MAX: usize = 3_000;
/// Interval of checks of links and processes, and of the progress line.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_alike_without_numbers() {
        let reason = reason_of("insufficient fee, rejecting replacement 0ab1; 5 < 6.00");
        assert_eq!(reason, "insufficient fee, rejecting replacement … … < …");
    }
}
