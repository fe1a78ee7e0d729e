//! Admitting transactions: one by one in order where order matters, on all cores where it does not.
//!
//! A list of transactions is parsed and checked in parallel, then staged one after the other, so that each finds the outputs
//! of those before it, then their scripts are verified in parallel. What fails goes, with everything that builds on it.

use std::collections::HashMap;
use std::sync::Arc;

use assay_consensus::block::{BlockRules, ScriptFailure, TxSpend};
use assay_consensus::chain::Ancestors;
use assay_consensus::locktime::has_sequence_locks;
use assay_consensus::script::Flags;
use assay_consensus::tx::{SpentCoin, TxError, check_transaction};
use assay_store::CoinError;
use assay_store::defect::{Point, point};
use assay_wire::{Coin, OutPoint, Transaction, Tx, TxOut, Txid, Wtxid};
use rayon::prelude::*;

use super::ahead::{Ahead, Wish};
use super::linearize::CLUSTER_COUNT_MAX;
use super::policy;
use super::pool::{CLUSTER_OVERHEAD_BYTES, Entry, Pool, output_of, usage_bytes};
use super::reorg::lock_points;
use super::replace::{Replacement, conflicts};
use super::verdicts::Verdicts;
use crate::deferred::{Place, is_exact};
use crate::engine::{Engine, State, unix_time_s};
use crate::scripts::{Cause, verify_many};
use crate::types::{TestAccept, TxReject, TxRejectCode};

/// Core's `MAX_STANDARD_TX_SIGOPS_COST`.
const SIGOP_COST_MAX: u64 = 16_000;
/// Transactions that one thread parses at a time.
const TXS_PER_TASK: usize = 8;

/// A transaction that is well formed; nothing is known of what it spends.
#[derive(Clone)]
pub(super) struct Candidate {
    tx: Arc<Transaction>,
    txid: Txid,
    wtxid: Wtxid,
    /// When it was first admitted, seconds since 1970; `None` for now.
    time: Option<u64>,
}

impl Candidate {
    pub(super) fn new(tx: Arc<Transaction>, txid: Txid, wtxid: Wtxid) -> Self {
        Self { tx, txid, wtxid, time: None }
    }

    /// The same, first admitted at another time.
    pub(super) fn at(self, time: u64) -> Self {
        Self { time: Some(time), ..self }
    }

    /// The unconfirmed transactions that spend the same outputs; not the same transaction with other witnesses.
    pub(super) fn conflicts(&self, pool: &Pool) -> Vec<Txid> {
        if pool.is_empty() || pool.get(&self.txid).is_some() {
            return Vec::new();
        }
        conflicts(pool, self.tx.view().inputs().map(|input| input.prevout))
    }

    pub(super) fn txid(&self) -> Txid {
        self.txid
    }

    pub(super) const fn tx(&self) -> &Arc<Transaction> {
        &self.tx
    }

    /// Not admitted, for a reason with evidence.
    pub(super) fn refused(&self, reason: &str, debug: impl Into<String>) -> TxReject {
        self.reject(TxRejectCode::Rejected, reason, debug)
    }

    fn reject(
        &self,
        code: TxRejectCode,
        reason: impl Into<String>,
        debug: impl Into<String>,
    ) -> TxReject {
        let (txid, wtxid) = (Some(self.txid), Some(self.wtxid));
        TxReject { code, reason: reason.into(), debug: debug.into(), txid, wtxid }
    }

    fn rejected(&self, reason: impl Into<String>) -> TxReject {
        self.reject(TxRejectCode::Rejected, reason, "")
    }

    fn broken_rule(&self, error: &TxError) -> TxReject {
        self.reject(TxRejectCode::Rejected, error.reject_reason(), error.debug_message())
    }

    fn missing_inputs(&self) -> TxReject {
        self.reject(TxRejectCode::MissingInputs, "bad-txns-inputs-missingorspent", "")
    }

    fn coin_error(&self, error: &CoinError) -> TxReject {
        self.reject(TxRejectCode::Failed, "internal error", error.to_string())
    }
}

/// A transaction of which all is known but its scripts.
pub(super) struct Staged {
    candidate: Candidate,
    coins: Vec<Coin>,
    fee_sat: i64,
    vsize: u32,
}

/// The outcome of staging.
enum Stage {
    Staged(Box<Staged>),
    /// In the pool already: offering it again is no fault.
    Known(Txid),
    /// It has taken the place of others, or would have; its scripts have been verified.
    Replaced(Box<Staged>),
}

/// What a list of transactions is judged by.
pub(super) struct Rules {
    pub(super) block: BlockRules,
    pub(super) flags: Flags,
    is_cash: bool,
    /// Highest fee rate that the caller allows.
    fee_sat_per_kvb_max: Option<u64>,
    /// Whether fee rates and room do not matter: a block had confirmed these.
    pub(super) bypass_limits: bool,
    pub(super) replacement: Replacement,
    /// Whether admission lasts, so that others may have to go.
    pub(super) is_trial: bool,
    /// Answers that were found before.
    pub(super) ahead: Ahead,
}

impl Rules {
    /// Whether the transaction may compete with others for the same outputs.
    fn check_conflicts(&self, candidate: &Candidate, conflicts: &[Txid]) -> Result<(), TxReject> {
        match self.replacement {
            _ if conflicts.is_empty() => Ok(()),
            Replacement::Allowed | Replacement::Trial => Ok(()),
            Replacement::Disallowed => Err(candidate.rejected("bip125-replacement-disallowed")),
            Replacement::Unknown => Err(candidate.rejected("txn-mempool-conflict")),
        }
    }
}

impl Engine {
    /// Offers one transaction to the mempool.
    ///
    /// # Errors
    /// Why it was not admitted.
    pub fn submit_transaction(
        &self,
        raw: Vec<u8>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Result<Txid, TxReject> {
        let mut verdicts = self.submit_transactions(vec![raw], fee_sat_per_kvb_max);
        verdicts.pop().expect("one transaction has one verdict")
    }

    /// Offers transactions to the mempool in this order; each gets a verdict of its own.
    pub fn submit_transactions(
        &self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Vec<Result<Txid, TxReject>> {
        self.submit_transactions_with_work(raws, fee_sat_per_kvb_max).0
    }

    /// The same, and the work that it caused besides scripts, in the unit of [`Engine::mempool_work`]: what a server may charge
    /// whoever sent them.
    pub fn submit_transactions_with_work(
        &self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> (Vec<Result<Txid, TxReject>>, u64) {
        let candidates = self.parse_all(raws);
        let wish = Wish { fee_sat_per_kvb_max, is_trial: false };
        let (verdicts, work) = self.admit_in_turn(candidates, wish);
        let verdicts = verdicts.into_iter().map(|verdict| verdict.map(|admitted| admitted.txid));
        (verdicts.collect(), work)
    }

    /// Tells what [`Engine::submit_transactions`] would answer, and admits nothing.
    pub fn test_accept(
        &self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Vec<TestAccept> {
        let candidates = self.parse_all(raws);
        let wish = Wish { fee_sat_per_kvb_max, is_trial: true };
        let (verdicts, _) = self.admit_in_turn(candidates, wish);
        verdicts.into_iter().map(trial_verdict).collect()
    }

    pub(super) fn rules(&self, state: &State, fee_sat_per_kvb_max: Option<u64>) -> Rules {
        let block = BlockRules::next(&self.params, &state.tree.ancestors(state.tree.tip()));
        let is_cash = self.params.cash.is_some();
        let standard = if is_cash { Flags::BCH_STANDARD } else { Flags::BITCOIN_STANDARD };
        let flags = block.flags | standard;
        let replacement = if is_cash { Replacement::Unknown } else { Replacement::Allowed };
        let (bypass_limits, is_trial) = (false, false);
        Rules {
            block,
            flags,
            is_cash,
            fee_sat_per_kvb_max,
            bypass_limits,
            replacement,
            is_trial,
            ahead: Ahead::default(),
        }
    }

    pub(super) fn parse_all(&self, raws: Vec<Vec<u8>>) -> Vec<Result<Candidate, TxReject>> {
        let parse = |raw: Vec<u8>| self.parse_one(raw);
        if raws.len() < 2 * TXS_PER_TASK {
            return raws.into_iter().map(parse).collect();
        }
        self.pool.install(|| raws.into_par_iter().with_min_len(TXS_PER_TASK).map(parse).collect())
    }

    fn parse_one(&self, raw: Vec<u8>) -> Result<Candidate, TxReject> {
        let tx = Transaction::parse(raw, self.params.encoding).map_err(|error| TxReject {
            code: TxRejectCode::Decode,
            reason: "TX decode failed".to_owned(),
            debug: error.to_string(),
            txid: None,
            wtxid: None,
        })?;
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        self.check_alone(Candidate::new(Arc::new(tx), txid, wtxid))
    }

    /// What can be told from the transaction alone.
    pub(super) fn check_alone(&self, candidate: Candidate) -> Result<Candidate, TxReject> {
        let view = candidate.tx.view();
        check_transaction(view).map_err(|error| candidate.broken_rule(&error))?;
        if view.is_coinbase() {
            return Err(candidate.rejected("coinbase"));
        }
        policy::check_tx(view, self.params.cash.is_some())
            .map_err(|reason| candidate.rejected(reason))?;
        Ok(candidate)
    }

    /// Stages, verifies and keeps or removes.
    pub(super) fn admit(
        &self,
        state: &mut State,
        rules: &Rules,
        candidates: Vec<Result<Candidate, TxReject>>,
    ) -> Vec<Result<Admitted, TxReject>> {
        self.load_coins(state, &candidates);
        let mut verdicts = Vec::with_capacity(candidates.len());
        let mut staged: Vec<(usize, Staged)> = Vec::new();
        for (place, candidate) in candidates.into_iter().enumerate() {
            let verdict = candidate.and_then(|candidate| {
                let conflicts = candidate.conflicts(&state.mempool);
                // What it competes with must be known to be valid, and room must not run out for want of verdicts.
                let is_tight = !rules.bypass_limits && self.is_far_over_limit(&state.mempool);
                if !conflicts.is_empty() || is_tight {
                    self.finish(state, rules, &mut staged, &mut verdicts);
                }
                self.stage(state, rules, &candidate, &conflicts)
            });
            verdicts.push(match verdict {
                Ok(Stage::Staged(one)) => {
                    let verdict = Admitted::of(&one);
                    staged.push((place, *one));
                    Ok(verdict)
                }
                Ok(Stage::Replaced(one)) => Ok(Admitted::of(&one)),
                Ok(Stage::Known(txid)) => Ok(Admitted::known(state, txid)),
                Err(reject) => Err(reject),
            });
        }
        self.finish(state, rules, &mut staged, &mut verdicts);
        verdicts
    }

    /// Verifies the scripts of what is staged, takes out what fails, and makes the rest fit.
    fn finish(
        &self,
        state: &mut State,
        rules: &Rules,
        staged: &mut Vec<(usize, Staged)>,
        verdicts: &mut [Result<Admitted, TxReject>],
    ) {
        let staged = std::mem::take(staged);
        let all: Vec<&Staged> = staged.iter().map(|(_, one)| one).collect();
        let checked = self.verify(&mut state.verdicts, rules, &all);
        for ((_, one), outcome) in staged.iter().zip(&checked) {
            if let Ok(sigchecks) = outcome {
                state.mempool.set_verified(&one.candidate.txid, rules.flags, *sigchecks as u32);
            }
        }
        for ((place, one), outcome) in staged.iter().zip(checked) {
            let is_gone = state.mempool.get(&one.candidate.txid).is_none();
            match outcome {
                Err(failure) => {
                    state.mempool.remove_with_descendants(&one.candidate.txid);
                    verdicts[*place] = Err(one.candidate.failed(failure));
                }
                // It went with a parent that failed.
                Ok(_) if is_gone => verdicts[*place] = Err(one.candidate.missing_inputs()),
                Ok(_) => {}
            }
        }
        if rules.is_trial || rules.bypass_limits {
            return;
        }
        self.limit_mempool(state);
        for (place, one) in staged {
            if verdicts[place].is_ok() && state.mempool.get(&one.candidate.txid).is_none() {
                verdicts[place] = Err(one.candidate.rejected("mempool full"));
            }
        }
    }

    /// Reads coins that only the disk has, many at once, and keeps them: the block that confirms the transactions asks for
    /// them again.
    pub(super) fn load_coins(&self, state: &mut State, candidates: &[Result<Candidate, TxReject>]) {
        let State { coins, mempool, .. } = state;
        let prevouts = candidates
            .iter()
            .flatten()
            .flat_map(|candidate| candidate.tx.view().inputs().map(|input| input.prevout))
            .filter(|prevout| mempool.get(&prevout.txid).is_none());
        let unknown = coins.unknown(prevouts);
        if !unknown.is_empty() && coins.has_room_to_load(unknown.len()) {
            // An error comes again when the coin that it concerns is asked for.
            coins.load(unknown, self.config.read_threads).ok();
        }
    }

    /// Everything but scripts; on success the transaction is in the pool (Core `validation.cpp`, `PreChecks`).
    fn stage(
        &self,
        state: &mut State,
        rules: &Rules,
        candidate: &Candidate,
        conflicts: &[Txid],
    ) -> Result<Stage, TxReject> {
        let none = HashMap::new();
        let checked = self.check_all_but_scripts(state, rules, candidate, conflicts, &none)?;
        let Some((staged, entry)) = checked else { return Ok(Stage::Known(candidate.txid)) };
        if conflicts.is_empty() {
            state.mempool.insert(candidate.txid, entry);
            return Ok(Stage::Staged(Box::new(staged)));
        }
        self.replace(state, rules, staged, entry, conflicts).map(Stage::Replaced)
    }

    /// All checks but those of scripts and replacements, `None` for what is in the pool already. Outputs of the transactions
    /// `earlier` may be spent too.
    pub(super) fn check_all_but_scripts(
        &self,
        state: &mut State,
        rules: &Rules,
        candidate: &Candidate,
        conflicts: &[Txid],
        earlier: &HashMap<Txid, Arc<Transaction>>,
    ) -> Result<Option<(Staged, Entry)>, TxReject> {
        let tx = candidate.tx.view();
        rules.block.check_tx(tx).map_err(|error| candidate.broken_rule(&error))?;
        if let Some(known) = state.mempool.get(&candidate.txid) {
            if known.wtxid == candidate.wtxid {
                return Ok(None);
            }
            return Err(candidate.rejected("txn-same-nonwitness-data-in-mempool"));
        }
        rules.check_conflicts(candidate, conflicts)?;
        let coins = resolve(state, rules, candidate, earlier)?;
        let entry = self.check_coins(state, rules, candidate, &coins)?;
        if conflicts.is_empty() {
            self.check_room(state, candidate, entry.vsize)?;
        }
        let (fee_sat, vsize) = (entry.fee_sat, entry.vsize);
        let staged = Staged { candidate: candidate.clone(), coins, fee_sat, vsize };
        Ok(Some((staged, entry)))
    }

    /// The checks that need to know what is spent.
    fn check_coins(
        &self,
        state: &mut State,
        rules: &Rules,
        candidate: &Candidate,
        coins: &[Coin],
    ) -> Result<Entry, TxReject> {
        let tx = candidate.tx.view();
        let branch = state.tree.ancestors(state.tree.tip());
        let TxSpend { fee, sigop_cost } = rules
            .block
            .check_spends(tx, coins.iter().map(SpentCoin::from), |height| {
                branch.median_time_past_at(height)
            })
            .map_err(|error| candidate.broken_rule(&error))?;
        policy::check_inputs(tx, coins, rules.is_cash)
            .map_err(|reason| candidate.rejected(reason))?;
        if sigop_cost > SIGOP_COST_MAX {
            let debug = format!("{sigop_cost}");
            return Err(candidate.reject(
                TxRejectCode::Rejected,
                "bad-txns-too-many-sigops",
                debug,
            ));
        }
        let vsize = vsize(tx.weight(), sigop_cost);
        self.check_fee(state, rules, candidate, fee, vsize)?;
        let depends_on_height =
            tx.lock_time() != 0 || has_sequence_locks(tx) || coins.iter().any(|coin| coin.coinbase);
        let cluster_bytes = state.mempool.graph.as_ref().map_or(0, |_| CLUSTER_OVERHEAD_BYTES);
        Ok(Entry {
            tx: Arc::clone(&candidate.tx),
            wtxid: candidate.wtxid,
            fee_sat: fee,
            weight: tx.weight() as u32,
            vsize,
            time: candidate.time.unwrap_or_else(unix_time_s),
            height: rules.block.height - 1,
            verified: Flags::NONE,
            sigchecks: 0,
            order: 0,
            usage_bytes: usage_bytes(&candidate.tx) + cluster_bytes,
            depends_on_height,
            lock_points: lock_points(state, tx, coins, rules.block.height),
        })
    }

    /// Takes a transaction in and those out that it conflicts with. Its scripts are verified first, so that nothing goes for
    /// one that turns out invalid.
    fn replace(
        &self,
        state: &mut State,
        rules: &Rules,
        staged: Staged,
        entry: Entry,
        conflicts: &[Txid],
    ) -> Result<Box<Staged>, TxReject> {
        let txid = staged.candidate.txid;
        let gone =
            self.check_replacement(&mut state.mempool, &staged.candidate, &entry, conflicts)?;
        let mut verdicts = self.verify(&mut state.verdicts, rules, &[&staged]);
        let verdict = verdicts.pop().expect("one transaction has one verdict");
        let sigchecks = verdict.map_err(|failure| staged.candidate.failed(failure))? as u32;
        if rules.replacement == Replacement::Allowed {
            state.mempool.remove_all(&gone);
            state.mempool.insert(txid, Entry { verified: rules.flags, sigchecks, ..entry });
        }
        Ok(Box::new(staged))
    }

    fn check_fee(
        &self,
        state: &mut State,
        rules: &Rules,
        candidate: &Candidate,
        fee: i64,
        vsize: u32,
    ) -> Result<(), TxReject> {
        // Core rounds up, Bitcoin Cash Node down (`CFeeRate::GetFee`).
        let fee_at = |rate: u64| {
            let millis = u128::from(rate) * u128::from(vsize);
            (if rules.is_cash { millis / 1000 } else { millis.div_ceil(1000) }) as i64
        };
        let rolling = self.rolling_fee_sat_per_kvb(&mut state.mempool);
        for (rate, reason) in [
            (rolling, "mempool min fee not met"),
            (self.config.min_relay_fee_sat_per_kvb, "min relay fee not met"),
        ] {
            let least = fee_at(rate);
            if fee < least && !rules.bypass_limits {
                return Err(candidate.refused(reason, format!("{fee} < {least}")));
            }
        }
        if rules.fee_sat_per_kvb_max.is_some_and(|rate| rate > 0 && fee > fee_at(rate)) {
            return Err(candidate.reject(TxRejectCode::MaxFeeExceeded, "max-fee-exceeded", ""));
        }
        Ok(())
    }

    /// Limits that keep work bounded.
    fn check_room(&self, state: &State, candidate: &Candidate, vsize: u32) -> Result<(), TxReject> {
        let (Some(count_max), Some(graph)) = (self.config.cluster_count_max, &state.mempool.graph)
        else {
            return Ok(());
        };
        let inputs = candidate.tx.view().inputs();
        let spent: Vec<Txid> = inputs.map(|input| input.prevout.txid).collect();
        let (count, vsize_sum) = graph.extent(&spent);
        let is_too_heavy = self
            .config
            .cluster_vsize_max
            .is_some_and(|vsize_max| vsize_sum + u64::from(vsize) > vsize_max);
        if count + 1 > count_max.min(CLUSTER_COUNT_MAX) || is_too_heavy {
            return Err(candidate.rejected("too-large-cluster"));
        }
        Ok(())
    }
}

/// What a transaction spends, confirmed or not.
fn resolve(
    state: &State,
    rules: &Rules,
    candidate: &Candidate,
    earlier: &HashMap<Txid, Arc<Transaction>>,
) -> Result<Vec<Coin>, TxReject> {
    let tx = candidate.tx.view();
    let mut coins = Vec::with_capacity(tx.input_count());
    for input in tx.inputs() {
        // An unconfirmed output counts as created in the next block.
        let unconfirmed = state.mempool.output(&input.prevout, rules.block.height).or_else(|| {
            let tx = earlier.get(&input.prevout.txid)?;
            output_of(tx, input.prevout.vout, rules.block.height)
        });
        let coin = match unconfirmed {
            Some(coin) => Some(coin),
            None => {
                state.coins.get(&input.prevout).map_err(|error| candidate.coin_error(&error))?
            }
        };
        let Some(coin) = coin else {
            return Err(missing_or_confirmed(state, candidate));
        };
        coins.push(coin);
    }
    Ok(coins)
}

/// Missing inputs may mean that the transaction itself has been confirmed.
fn missing_or_confirmed(state: &State, candidate: &Candidate) -> TxReject {
    for vout in 0..candidate.tx.view().output_count() as u32 {
        match state.coins.have(&OutPoint { txid: candidate.txid, vout }) {
            Ok(true) => {
                return candidate.reject(TxRejectCode::AlreadyInChain, "txn-already-known", "");
            }
            Ok(false) => {}
            Err(error) => return candidate.coin_error(&error),
        }
    }
    candidate.missing_inputs()
}

/// Virtual size with signature operations counted at 20 bytes each (Core `GetVirtualTransactionSize`).
fn vsize(weight: usize, sigop_cost: u64) -> u32 {
    (weight as u64).max(sigop_cost * 20).div_ceil(4) as u32
}

/// Why the scripts of a transaction do not pass.
enum ScriptFailureOrLimit {
    Script(Box<ScriptFailure>),
    Limit(TxError),
}

impl Candidate {
    fn failed(&self, failure: ScriptFailureOrLimit) -> TxReject {
        match failure {
            ScriptFailureOrLimit::Limit(error) => self.broken_rule(&error),
            ScriptFailureOrLimit::Script(failure) => self.reject(
                TxRejectCode::Rejected,
                failure.mempool_reject_reason(),
                failure.debug_message(),
            ),
        }
    }
}

impl Engine {
    /// Whether libsecp256k1 alone decides about the signatures of transactions: what is known of them when the next block
    /// comes is not asked again.
    fn are_exact(&self, rules: &Rules, staged: &[&Staged]) -> bool {
        let place = Place {
            height: rules.block.height,
            best_height: self.header_height(),
            time_s: self.tip().time,
            now_s: unix_time_s(),
        };
        is_exact(self.config.exact_near_tip, &place, || {
            staged.iter().map(|one| one.coins.len()).sum()
        })
    }

    /// Verifies the scripts of transactions on all cores, those apart that have been verified lately.
    fn verify(
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
                let count = verdict.map_err(|cause| one.failure(cause))?;
                rules.block.check_tx_sigchecks(count).map_err(ScriptFailureOrLimit::Limit)?;
                known.put(one.candidate.wtxid, rules.flags, count as u32);
                Ok(count)
            })
            .collect()
    }

    /// Verifies the scripts of transactions on all cores; gives the signature checks that each executed.
    pub(super) fn run_scripts(&self, rules: &Rules, staged: &[&Staged]) -> Vec<Result<u64, Cause>> {
        point(Point::MempoolScripts);
        let script_batch = self.config.script_batch.filter(|_| !self.are_exact(rules, staged));
        let txs: Vec<_> = staged.iter().map(|one| one.spending()).collect();
        verify_many(&txs, rules.flags, script_batch, &self.pool)
    }
}

impl Staged {
    pub(super) const fn wtxid(&self) -> Wtxid {
        self.candidate.wtxid
    }

    fn spending(&self) -> (Tx<'_>, Vec<TxOut<'_>>) {
        (self.candidate.tx.view(), self.coins.iter().map(Coin::as_tx_out).collect())
    }

    fn failure(&self, cause: Cause) -> ScriptFailureOrLimit {
        match cause {
            Cause::SigChecks(error) => ScriptFailureOrLimit::Limit(error),
            Cause::Script { input, error } => {
                let Candidate { tx, txid, wtxid, .. } = &self.candidate;
                let input = input as usize;
                let prevout = tx.view().input(input).prevout;
                let failure = ScriptFailure { txid: *txid, wtxid: *wtxid, input, prevout, error };
                ScriptFailureOrLimit::Script(Box::new(failure))
            }
        }
    }
}

/// A transaction that is in the pool now.
pub(super) struct Admitted {
    pub(super) txid: Txid,
    wtxid: Wtxid,
    vsize: u32,
    fee_sat: i64,
    pub(super) is_new: bool,
}

impl Admitted {
    fn of(staged: &Staged) -> Self {
        let Staged { candidate, fee_sat, vsize, .. } = staged;
        let (txid, wtxid) = (candidate.txid, candidate.wtxid);
        Self { txid, wtxid, vsize: *vsize, fee_sat: *fee_sat, is_new: true }
    }

    fn known(state: &State, txid: Txid) -> Self {
        let entry = state.mempool.get(&txid).expect("what is known is in the pool");
        let (wtxid, vsize, fee_sat) = (entry.wtxid, entry.vsize, entry.fee_sat);
        Self { txid, wtxid, vsize, fee_sat, is_new: false }
    }
}

fn trial_verdict(verdict: Result<Admitted, TxReject>) -> TestAccept {
    match verdict {
        Ok(Admitted { txid, wtxid, vsize, fee_sat, is_new }) => {
            let reject = (!is_new).then(|| TxReject {
                code: TxRejectCode::Rejected,
                reason: "txn-already-in-mempool".to_owned(),
                debug: String::new(),
                txid: Some(txid),
                wtxid: Some(wtxid),
            });
            TestAccept { txid: Some(txid), wtxid: Some(wtxid), vsize, fee_sat, reject }
        }
        Err(reject) => TestAccept {
            txid: reject.txid,
            wtxid: reject.wtxid,
            vsize: 0,
            fee_sat: 0,
            reject: Some(reject),
        },
    }
}
