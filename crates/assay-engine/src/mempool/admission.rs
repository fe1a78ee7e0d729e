//! Admits transactions: sequentially where order matters, on all cores elsewhere.
//!
//! The transactions of a list are parsed and checked in parallel, staged in order, so that each finds the outputs of earlier
//! ones, and then their scripts are verified in parallel. Failed ones are removed with their descendants.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_consensus::block::BlockRules;
use assay_consensus::script::Flags;
use assay_store::CoinStore;
use assay_store::defect::{Point, point};
use assay_wire::Txid;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::candidate::{Admitted, Candidate, ScriptFailureOrLimit, Staged};
use super::checks::Checked;
use super::pool::{Entry, Mempool};
use super::precheck::Precheck;
use super::replace::Replacement;
use super::truc::is_truc;
use super::verdicts::Verdicts;
use crate::config::Config;
use crate::deferred::{Place, is_exact};
use crate::scripts::{Cause, verify_many};
use crate::tree::BlockTree;
use crate::types::TxReject;

const TXS_PER_TASK: usize = 8;

enum Stage {
    Staged(Box<Staged>),
    /// In the mempool already: a repeated submission is no fault.
    Known(Txid),
    /// It has replaced others, or would; its scripts are verified.
    Replaced(Box<Staged>, Vec<Txid>),
}

/// Mode of a validation (Core `validation.cpp`, `ATMPArgs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Each individually.
    Alone,
    /// Individually, as part of a package: room is made after all of them.
    Part,
    /// Several by their total fee.
    Together,
    /// Several at once, each by its own fee, without admission.
    TogetherOnTrial,
}

/// Validation context of a list of transactions.
pub(super) struct Rules {
    pub(super) block: BlockRules,
    /// Position of the next block.
    place: Place,
    pub(super) flags: Flags,
    pub(super) is_cash: bool,
    pub(super) scope: Scope,
    /// Maximum fee rate allowed by the caller.
    pub(super) fee_sat_per_kvb_max: Option<u64>,
    /// Ignore fee rates and mempool limits: a block had confirmed these transactions.
    pub(super) bypass_limits: bool,
    pub(super) replacement: Replacement,
    /// True for a trial without admission.
    pub(super) is_trial: bool,
    /// Results computed earlier.
    pub(super) ahead: Precheck,
}

impl Rules {
    /// True if a version 3 transaction may evict another child of its parent.
    pub(super) fn may_evict_sibling(&self) -> bool {
        matches!(self.scope, Scope::Alone | Scope::Part)
            && matches!(self.replacement, Replacement::Allowed | Replacement::Trial)
    }

    /// Checks the caller's fee rate limit for one transaction of a package, `prioritisetransaction` included.
    pub(super) fn check_fee_rate_max(
        &self,
        candidate: &Candidate,
        entry: &Entry,
    ) -> Result<(), TxReject> {
        let Some(rate) = self.fee_sat_per_kvb_max else { return Ok(()) };
        let fee = i128::from(entry.modified_fee_sat()) * 1000;
        if fee > i128::from(rate) * i128::from(entry.vsize) {
            return Err(candidate.rejected("max feerate exceeded"));
        }
        Ok(())
    }

    /// Checks that the transaction may replace conflicting ones.
    pub(super) fn check_conflicts(
        &self,
        candidate: &Candidate,
        conflicts: &[Txid],
    ) -> Result<(), TxReject> {
        match self.replacement {
            _ if conflicts.is_empty() => Ok(()),
            Replacement::Allowed | Replacement::Trial => Ok(()),
            Replacement::Disallowed => Err(candidate.rejected("bip125-replacement-disallowed")),
            Replacement::Unknown => Err(candidate.rejected("txn-mempool-conflict")),
        }
    }
}

/// State for admission: the mempool at the tip of a chain, with its coins.
pub(crate) struct View<'s> {
    pub(crate) tree: &'s BlockTree,
    pub(crate) coins: &'s mut CoinStore,
    pub(crate) mempool: &'s mut Mempool,
}

/// The constant parts of admission: rules, limits, threads.
pub(crate) struct Admission {
    pub(crate) config: Arc<Config>,
    pool: Arc<ThreadPool>,
    /// Linearization work, in visited transactions.
    work: AtomicU64,
}

impl Admission {
    pub(crate) fn new(config: Arc<Config>, pool: Arc<ThreadPool>) -> Self {
        Self { config, pool, work: AtomicU64::new(0) }
    }

    /// Linearization work since the start, in visited transactions.
    pub(crate) fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    pub(super) fn note_work(&self, cost: u64) {
        self.work.fetch_add(cost, Ordering::Relaxed);
    }

    /// Validation context of the next block.
    pub(super) fn rules(&self, view: &View<'_>, fee_sat_per_kvb_max: Option<u64>) -> Rules {
        let block = BlockRules::next(&self.config.params, &view.tree.ancestors(view.tree.tip()));
        let is_cash = self.config.params.cash.is_some();
        let standard = if is_cash { Flags::BCH_STANDARD } else { Flags::BITCOIN_STANDARD };
        let flags = block.flags | standard;
        let replacement = if is_cash { Replacement::Unknown } else { Replacement::Allowed };
        let (bypass_limits, is_trial) = (false, false);
        let place = Place {
            height: block.height,
            best_height: view.tree.get(view.tree.best_header()).height,
            time_s: view.tree.tip_node().header.time,
            now_s: self.config.clock.now_s(),
        };
        Rules {
            block,
            place,
            flags,
            is_cash,
            scope: Scope::Alone,
            fee_sat_per_kvb_max,
            bypass_limits,
            replacement,
            is_trial,
            ahead: Precheck::default(),
        }
    }

    /// Parses transactions and runs their context-free checks, on all cores if there are many.
    pub(crate) fn parse_all(&self, raws: Vec<Vec<u8>>) -> Vec<Result<Candidate, TxReject>> {
        let parse = |raw: Vec<u8>| Candidate::parse(raw, &self.config);
        if raws.len() < 2 * TXS_PER_TASK {
            return raws.into_iter().map(parse).collect();
        }
        self.pool.install(|| raws.into_par_iter().with_min_len(TXS_PER_TASK).map(parse).collect())
    }

    /// Stages and verifies transactions, and keeps or removes them.
    pub(super) fn admit(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        candidates: Vec<Result<Candidate, TxReject>>,
    ) -> Vec<Result<Admitted, TxReject>> {
        self.load_coins(view, candidates.iter().flatten());
        let mut verdicts = Vec::with_capacity(candidates.len());
        let mut staged: Vec<(usize, Staged)> = Vec::new();
        for (place, candidate) in candidates.into_iter().enumerate() {
            let verdict = candidate.and_then(|candidate| {
                // Conflicting transactions must be known to be valid, and pending verdicts must not exhaust the room.
                let is_tight = !rules.bypass_limits && self.is_far_over_limit(view.mempool);
                let may_evict = is_truc(candidate.tx()) && rules.may_evict_sibling();
                if is_tight || may_evict || !candidate.conflicts(view.mempool).is_empty() {
                    self.finish(view, rules, &mut staged, &mut verdicts);
                }
                self.stage(view, rules, &candidate)
            });
            verdicts.push(match verdict {
                Ok(Stage::Staged(one)) => {
                    let verdict = Admitted::of(&one, Vec::new());
                    staged.push((place, *one));
                    Ok(verdict)
                }
                Ok(Stage::Replaced(one, gone)) => Ok(Admitted::of(&one, gone)),
                Ok(Stage::Known(txid)) => Ok(Admitted::known(view.mempool, txid)),
                Err(reject) => Err(reject),
            });
        }
        self.finish(view, rules, &mut staged, &mut verdicts);
        verdicts
    }

    /// Verifies the scripts of staged transactions, removes failed ones, and enforces the limits.
    fn finish(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        staged: &mut Vec<(usize, Staged)>,
        verdicts: &mut [Result<Admitted, TxReject>],
    ) {
        let staged = std::mem::take(staged);
        let all: Vec<&Staged> = staged.iter().map(|(_, one)| one).collect();
        let checked = self.verify(&mut view.mempool.verdicts, rules, &all);
        for ((_, one), outcome) in staged.iter().zip(&checked) {
            if let Ok(sigchecks) = outcome {
                view.mempool.set_verified(&one.txid(), rules.flags, *sigchecks as u32);
            }
        }
        for ((place, one), outcome) in staged.iter().zip(checked) {
            let is_gone = view.mempool.get(&one.txid()).is_none();
            match outcome {
                Err(failure) => {
                    view.mempool.remove_with_descendants(&one.txid());
                    verdicts[*place] = Err(one.failed(failure));
                }
                // It was removed with a failed parent.
                Ok(_) if is_gone => verdicts[*place] = Err(one.candidate().missing_inputs()),
                Ok(_) => {}
            }
        }
        if rules.is_trial || rules.bypass_limits || rules.scope != Scope::Alone {
            return;
        }
        self.limit(view.mempool);
        for (place, one) in staged {
            if verdicts[place].is_ok() && view.mempool.get(&one.txid()).is_none() {
                verdicts[place] = Err(one.candidate().rejected("mempool full"));
            }
        }
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

    /// All checks except scripts; on success the transaction is in the mempool (Core `validation.cpp`, `PreChecks`).
    fn stage(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        candidate: &Candidate,
    ) -> Result<Stage, TxReject> {
        let none = HashMap::new();
        let checked = self.pre_check(view, rules, candidate, &none)?;
        let Some(checked) = checked else { return Ok(Stage::Known(candidate.txid())) };
        if !checked.conflicts.is_empty() {
            let (staged, gone) = self.replace(view, rules, checked)?;
            return Ok(Stage::Replaced(staged, gone));
        }
        self.check_room(view.mempool, candidate, checked.entry.adjusted_weight)?;
        self.check_last(view, rules, &checked, &none)?;
        view.mempool.insert(candidate.txid(), checked.entry);
        Ok(Stage::Staged(Box::new(checked.staged)))
    }

    /// Replaces the conflicting transactions. The scripts are verified first, so that an invalid transaction evicts nothing.
    fn replace(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        checked: Checked,
    ) -> Result<(Box<Staged>, Vec<Txid>), TxReject> {
        let gone = self.check_replacement(view.mempool, &checked)?;
        self.check_last(view, rules, &checked, &HashMap::new())?;
        let Checked { staged, entry, .. } = checked;
        let txid = staged.txid();
        let mut verdicts = self.verify(&mut view.mempool.verdicts, rules, &[&staged]);
        let verdict = verdicts.pop().expect("one transaction has one verdict");
        let sigchecks = verdict.map_err(|failure| staged.failed(failure))? as u32;
        if rules.replacement == Replacement::Allowed {
            view.mempool.remove_all(&gone);
            view.mempool.insert(txid, Entry { verified: rules.flags, sigchecks, ..entry });
        }
        Ok((Box::new(staged), gone))
    }

    /// Verifies the scripts of transactions on all cores, except those verified recently.
    pub(super) fn verify(
        &self,
        known: &mut Verdicts,
        rules: &Rules,
        staged: &[&Staged],
    ) -> Vec<Result<u64, ScriptFailureOrLimit>> {
        let answers: Vec<Option<Result<u64, Cause>>> = staged
            .iter()
            .map(|one| {
                let wtxid = one.wtxid();
                let sigchecks = known.get(&wtxid, rules.flags).map(|count| Ok(u64::from(count)));
                sigchecks.or_else(|| rules.ahead.scripts(&wtxid, rules.flags))
            })
            .collect();
        let unknown = staged.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
        let unknown: Vec<&Staged> = unknown.map(|(one, _)| *one).collect();
        let mut verdicts = self.run_scripts(rules, &unknown).into_iter();
        staged
            .iter()
            .zip(answers)
            .map(|(one, answer)| {
                let verdict = answer
                    .unwrap_or_else(|| verdicts.next().expect("one for each that is unknown"));
                let count = verdict.map_err(|cause| one.failure(cause, rules.flags))?;
                rules.block.check_tx_sigchecks(count).map_err(ScriptFailureOrLimit::Limit)?;
                known.put(one.wtxid(), rules.flags, count as u32);
                Ok(count)
            })
            .collect()
    }

    /// Verifies the scripts of transactions on all cores; returns the executed signature checks of each.
    pub(super) fn run_scripts(&self, rules: &Rules, staged: &[&Staged]) -> Vec<Result<u64, Cause>> {
        point(Point::MempoolScripts);
        let script_batch = self.config.script_batch.filter(|_| !self.are_exact(rules, staged));
        let txs: Vec<_> = staged.iter().map(|one| one.spending()).collect();
        verify_many(&txs, rules.flags, script_batch, &self.pool)
    }

    /// True if only libsecp256k1 verifies the signatures of transactions: the next block reuses the results.
    fn are_exact(&self, rules: &Rules, staged: &[&Staged]) -> bool {
        is_exact(self.config.exact_near_tip, &rules.place, || {
            staged.iter().map(|one| one.input_count()).sum()
        })
    }
}
