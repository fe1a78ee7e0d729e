//! Admission checks except those of scripts and replacements, in Core's order (`validation.cpp`, `PreChecks`).

use std::collections::HashMap;
use std::sync::Arc;

use assay_consensus::block::TxSpend;
use assay_consensus::chain::Ancestors;
use assay_consensus::locktime::has_sequence_locks;
use assay_consensus::script::Flags;
use assay_consensus::tx::SpentCoin;
use assay_wire::{Coin, OutPoint, Transaction, Txid};

use super::candidate::{Candidate, Checked, Spends, Staged};
use super::context::{Admission, Rules, Scope, View};
use super::entry::{CLUSTER_OVERHEAD_BYTES, Entry, lock_points, output_of, usage_bytes};
use super::linearize::CLUSTER_COUNT_MAX;
use super::pool::Mempool;
use super::{ephemeral, policy, truc};
use crate::package::fee_at;
use crate::types::{TxReject, TxRejectCode};

/// Core's `MAX_STANDARD_TX_SIGOPS_COST`.
const SIGOP_COST_MAX: u64 = 16_000;

impl Admission {
    /// Core's `PreChecks`; `None` for a transaction in the mempool. Replacements, room, dust of parents and scripts are checked
    /// later. Outputs of the transactions `earlier` may be spent too.
    pub(super) fn pre_check(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        candidate: &Candidate,
        earlier: &HashMap<Txid, Arc<Transaction>>,
    ) -> Result<Option<Checked>, TxReject> {
        let tx = candidate.tx().view();
        rules.block.check_tx(tx).map_err(|error| candidate.out_of_place(&error, rules.is_cash))?;
        if let Some(known) = view.mempool.get(&candidate.txid()) {
            if known.wtxid == candidate.wtxid() {
                return Ok(None);
            }
            return Err(candidate.rejected("txn-same-nonwitness-data-in-mempool"));
        }
        let mut conflicts = candidate.conflicts(view.mempool);
        rules.check_conflicts(candidate, &conflicts)?;
        let known = rules.ahead.spends(&candidate.wtxid(), &rules.tip);
        // At the same tip only unconfirmed parents can be gone.
        let spends = match known.filter(|it| it.has_parents(candidate, rules, view, earlier)) {
            Some(spends) => spends,
            None => Arc::new(self.check_spends(view, rules, candidate, earlier)?),
        };
        let entry = self.check_fees(view, rules, candidate, &spends)?;
        let parents = view.mempool.parents(&entry);
        let sibling = check_truc(view.mempool, rules, candidate, &entry, &parents, &conflicts)?;
        conflicts.extend(sibling);
        let staged = Staged::new(candidate, spends, &entry);
        Ok(Some(Checked { staged, entry, parents, conflicts, evicts_sibling: sibling.is_some() }))
    }

    /// Reads in parallel the coins that only the disk has, and caches them: the block that confirms the transactions needs them
    /// again.
    pub(super) fn load_coins<'a>(
        &self,
        view: &mut View<'_>,
        candidates: impl Iterator<Item = &'a Candidate>,
    ) {
        let View { coins, mempool, .. } = view;
        let prevouts = candidates
            .flat_map(|candidate| candidate.tx().view().inputs().map(|input| input.prevout))
            .filter(|prevout| mempool.get(&prevout.txid).is_none());
        let unknown = coins.unknown(prevouts);
        if !unknown.is_empty() && coins.has_room_to_load(unknown.len()) {
            // The error recurs when its coin is requested.
            coins.load(unknown, self.config.read_threads).ok();
        }
    }

    /// The checks after replacements and room, and before scripts.
    pub(super) fn check_last(
        &self,
        view: &View<'_>,
        rules: &Rules,
        checked: &Checked,
        earlier: &HashMap<Txid, Arc<Transaction>>,
    ) -> Result<(), TxReject> {
        let candidate = checked.staged.candidate();
        if rules.scope == Scope::Part {
            rules.check_fee_rate_max(candidate, &checked.entry)?;
        }
        let policy = &self.config.policy;
        if rules.is_cash || rules.bypass_limits || !policy.require_standard {
            return Ok(());
        }
        ephemeral::check_spends(view.mempool, earlier, candidate, policy.dust_fee_sat_per_kvb)
    }

    /// The checks of the spent coins, which depend on the tip alone.
    fn check_spends(
        &self,
        view: &View<'_>,
        rules: &Rules,
        candidate: &Candidate,
        earlier: &HashMap<Txid, Arc<Transaction>>,
    ) -> Result<Spends, TxReject> {
        let coins = resolve(view, rules, candidate, earlier)?;
        let tx = candidate.tx().view();
        let branch = view.tree.ancestors(view.tree.tip());
        let spent = || coins.iter().map(SpentCoin::from);
        let median_time_past_at = |height| branch.median_time_past_at(height);
        // Unlike in a block, maturity is checked before amounts.
        let TxSpend { fee, sigop_cost } = rules
            .block
            .check_sequence_locks(tx, spent(), median_time_past_at)
            .and_then(|()| rules.block.check_spends(tx, spent(), median_time_past_at))
            .map_err(|error| candidate.broken_rule(&error))?;
        if self.config.policy.require_standard {
            policy::check_inputs(tx, &coins, rules.is_cash)
                .map_err(|(reason, debug)| candidate.refused(reason, debug))?;
        }
        let lock_points = lock_points(view.tree, tx, &coins, rules.block.height);
        Ok(Spends { coins, fee_sat: fee, sigop_cost, lock_points })
    }

    /// The checks of fees and of the size that counts for them.
    fn check_fees(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        candidate: &Candidate,
        spends: &Spends,
    ) -> Result<Entry, TxReject> {
        let tx = candidate.tx().view();
        let Spends { coins, fee_sat, sigop_cost, lock_points } = spends;
        let (fee, sigop_cost) = (*fee_sat, *sigop_cost);
        let fee_delta_sat = view.mempool.fee_delta_sat(&candidate.txid());
        if self.config.policy.require_standard && !rules.is_cash {
            let dust_fee = self.config.policy.dust_fee_sat_per_kvb;
            ephemeral::check_fee(candidate, dust_fee, fee, fee.saturating_add(fee_delta_sat))?;
        }
        if sigop_cost > SIGOP_COST_MAX {
            let debug = format!("{sigop_cost}");
            return Err(candidate.reject(
                TxRejectCode::Rejected,
                "bad-txns-too-many-sigops",
                debug,
            ));
        }
        // Core's `GetSigOpsAdjustedWeight`.
        let sigop_weight = sigop_cost.saturating_mul(self.config.policy.bytes_per_sigop);
        let adjusted_weight = (tx.weight() as u64).max(sigop_weight);
        let adjusted_weight = u32::try_from(adjusted_weight).unwrap_or(u32::MAX);
        let vsize = adjusted_weight.div_ceil(4);
        self.check_fee(view.mempool, rules, candidate, (fee, fee_delta_sat), vsize)?;
        let depends_on_height =
            tx.lock_time() != 0 || has_sequence_locks(tx) || coins.iter().any(|coin| coin.coinbase);
        let cluster_bytes = view.mempool.graph.as_ref().map_or(0, |_| CLUSTER_OVERHEAD_BYTES);
        Ok(Entry {
            tx: Arc::clone(candidate.tx()),
            wtxid: candidate.wtxid(),
            fee_sat: fee,
            weight: tx.weight() as u32,
            adjusted_weight,
            vsize,
            sigop_cost: sigop_cost as u32,
            fee_delta_sat,
            time: candidate.time().unwrap_or_else(|| self.config.clock.now_s()),
            height: rules.block.height - 1,
            verified: Flags::NONE,
            sigchecks: 0,
            order: 0,
            was_confirmed: rules.bypass_limits,
            usage_bytes: usage_bytes(candidate.tx()) + cluster_bytes,
            depends_on_height,
            lock_points: lock_points.clone(),
        })
    }

    fn check_fee(
        &self,
        mempool: &mut Mempool,
        rules: &Rules,
        candidate: &Candidate,
        (fee, fee_delta_sat): (i64, i64),
        vsize: u32,
    ) -> Result<(), TxReject> {
        if !rules.bypass_limits && rules.scope != Scope::Together {
            let modified = fee.saturating_add(fee_delta_sat);
            self.check_fee_rate(mempool, candidate, modified, u64::from(vsize))?;
        }
        let max = rules.fee_sat_per_kvb_max.filter(|rate| *rate > 0 && rules.scope == Scope::Alone);
        if max.is_some_and(|rate| fee > fee_at(rate, u64::from(vsize), rules.is_cash)) {
            return Err(candidate.reject(TxRejectCode::MaxFeeExceeded, "max-fee-exceeded", ""));
        }
        Ok(())
    }

    /// Checks the minimum fee rates, of one transaction or of several represented by `candidate` (Core `CheckFeeRate`).
    pub(super) fn check_fee_rate(
        &self,
        mempool: &mut Mempool,
        candidate: &Candidate,
        modified_fee_sat: i64,
        vsize: u64,
    ) -> Result<(), TxReject> {
        let is_cash = self.config.params.cash.is_some();
        let rolling = self.rolling_fee_sat_per_kvb(mempool);
        let rates = [
            ((rolling > 0).then_some(rolling), "mempool min fee not met"),
            (Some(self.config.min_relay_fee_sat_per_kvb), "min relay fee not met"),
        ];
        for (rate, reason) in rates {
            let Some(rate) = rate else { continue };
            let least = fee_at(rate, vsize, is_cash);
            if modified_fee_sat < least {
                return Err(candidate.refused(reason, format!("{modified_fee_sat} < {least}")));
            }
        }
        Ok(())
    }

    /// Limits that bound the work.
    pub(super) fn check_room(
        &self,
        mempool: &Mempool,
        candidate: &Candidate,
        weight: u32,
    ) -> Result<(), TxReject> {
        let (Some(count_max), Some(graph)) = (self.config.cluster_count_max, &mempool.graph) else {
            return Ok(());
        };
        let inputs = candidate.tx().view().inputs();
        let spent: Vec<Txid> = inputs.map(|input| input.prevout.txid).collect();
        let (count, weight_sum) = graph.extent(&spent);
        let is_too_heavy = weight_sum + u64::from(weight) > self.config.cluster_weight_max();
        if count + 1 > count_max.min(CLUSTER_COUNT_MAX) || is_too_heavy {
            return Err(candidate.rejected("too-large-cluster"));
        }
        Ok(())
    }
}

/// Rules of version 3; returns the sibling to evict.
fn check_truc(
    mempool: &Mempool,
    rules: &Rules,
    candidate: &Candidate,
    entry: &Entry,
    parents: &[Txid],
    conflicts: &[Txid],
) -> Result<Option<Txid>, TxReject> {
    if rules.bypass_limits || rules.is_cash {
        return Ok(None);
    }
    match truc::check_alone(mempool, candidate, entry.vsize, parents, conflicts) {
        Ok(()) => Ok(None),
        Err(violation) if rules.may_evict_sibling() && violation.sibling.is_some() => {
            Ok(violation.sibling)
        }
        Err(violation) => Err(candidate.refused("TRUC-violation", violation.debug)),
    }
}

impl Spends {
    /// True if the unconfirmed outputs, which count as created in the next block, still exist.
    fn has_parents(
        &self,
        candidate: &Candidate,
        rules: &Rules,
        view: &View<'_>,
        earlier: &HashMap<Txid, Arc<Transaction>>,
    ) -> bool {
        candidate.tx().view().inputs().zip(&self.coins).all(|(input, coin)| {
            let parent = &input.prevout.txid;
            let is_confirmed = coin.height < rules.block.height;
            is_confirmed || view.mempool.get(parent).is_some() || earlier.contains_key(parent)
        })
    }
}

/// The coins spent by a transaction, confirmed or not.
fn resolve(
    view: &View<'_>,
    rules: &Rules,
    candidate: &Candidate,
    earlier: &HashMap<Txid, Arc<Transaction>>,
) -> Result<Vec<Coin>, TxReject> {
    let tx = candidate.tx().view();
    let mut coins = Vec::with_capacity(tx.input_count());
    for input in tx.inputs() {
        // An unconfirmed output counts as created in the next block.
        let unconfirmed = view.mempool.output(&input.prevout, rules.block.height).or_else(|| {
            let tx = earlier.get(&input.prevout.txid)?;
            output_of(tx, input.prevout.vout, rules.block.height)
        });
        let coin = match unconfirmed {
            Some(coin) => Some(coin),
            None => view.coins.get(&input.prevout).map_err(|error| candidate.failed(&error))?,
        };
        let Some(coin) = coin else {
            return Err(missing_or_confirmed(view, candidate));
        };
        coins.push(coin);
    }
    Ok(coins)
}

/// Inputs may be missing because the transaction itself is confirmed.
fn missing_or_confirmed(view: &View<'_>, candidate: &Candidate) -> TxReject {
    for vout in 0..candidate.tx().view().output_count() as u32 {
        match view.coins.have(&OutPoint { txid: candidate.txid(), vout }) {
            Ok(true) => {
                return candidate.reject(TxRejectCode::AlreadyInChain, "txn-already-known", "");
            }
            Ok(false) => {}
            Err(error) => return candidate.failed(&error),
        }
    }
    candidate.missing_inputs()
}
