//! Admits transactions: sequentially where order matters, on all cores elsewhere.
//!
//! The transactions of a list are parsed and checked in parallel, staged in order, so that each finds the outputs of earlier
//! ones, and then their scripts are verified in parallel. Failed ones are removed with their descendants.

use std::collections::HashMap;

use assay_wire::Txid;
use rayon::prelude::*;

use super::candidate::{Admitted, Candidate, Checked, Staged};
use super::context::{AcceptOptions, Admission, Precheck, Replacement, Rules, Scope, View};
use super::entry::Entry;
use super::truc::is_truc;
use crate::types::TxReject;

const TXS_PER_TASK: usize = 8;

enum Stage {
    Staged(Box<Staged>),
    /// In the mempool already: a repeated submission is no fault.
    Known(Txid),
    /// It has replaced others, or would; its scripts are verified.
    Replaced(Box<Staged>, Vec<Txid>),
}

impl Admission {
    /// Parses transactions and runs their context-free checks, on all cores if there are many.
    pub(crate) fn parse_all(&self, raws: Vec<Vec<u8>>) -> Vec<Result<Candidate, TxReject>> {
        let parse = |raw: Vec<u8>| Candidate::parse(raw, &self.config);
        if raws.len() < 2 * TXS_PER_TASK {
            return raws.into_iter().map(parse).collect();
        }
        self.pool.install(|| raws.into_par_iter().with_min_len(TXS_PER_TASK).map(parse).collect())
    }

    /// Step 3, with the lock: admits or tests transactions, in this order.
    pub(crate) fn admit_with(
        &self,
        view: &mut View<'_>,
        candidates: Vec<Result<Candidate, TxReject>>,
        options: AcceptOptions,
        mut ahead: Precheck,
    ) -> Vec<Result<Admitted, TxReject>> {
        let mut rules = self.rules_of(view, options, candidates.len());
        ahead.store_diagrams(view.mempool);
        rules.ahead = ahead;
        let updates = view.mempool.updates();
        let verdicts = self.admit(view, &rules, candidates);
        if options.is_trial {
            let new = verdicts.iter().flatten().filter(|admitted| admitted.is_new);
            let tried: Vec<Txid> = new.map(|admitted| admitted.txid).rev().collect();
            view.mempool.remove_all(&tried);
            view.mempool.forget_updates_since(updates);
        }
        verdicts
    }

    /// Stages and verifies transactions, and keeps or removes them.
    pub(super) fn admit(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        candidates: Vec<Result<Candidate, TxReject>>,
    ) -> Vec<Result<Admitted, TxReject>> {
        let is_unknown = |one: &&Candidate| rules.ahead.spends(&one.wtxid(), &rules.tip).is_none();
        self.load_coins(view, candidates.iter().flatten().filter(is_unknown));
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
}
