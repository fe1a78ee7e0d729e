//! A transaction before its admission: well formed, then staged, then admitted or rejected.

use std::fmt::Display;
use std::sync::Arc;

use assay_consensus::block::{ScriptFailure, ScriptRules};
use assay_consensus::script::opcode::{last_push, witness_program};
use assay_consensus::script::{Flags, OutputKind, ScriptError, TxContext, verify_input};
use assay_consensus::tx::{TxError, check_transaction};
use assay_wire::{Coin, Transaction, Tx, TxOut, Txid, Wtxid};

use super::entry::{Entry, LockPoints};
use super::policy;
use super::pool::Mempool;
use crate::checker::ImmediateChecker;
use crate::config::Config;
use crate::package::PackageFees;
use crate::scripts::Cause;
use crate::types::{TestAccept, TxFault, TxReject, TxRejectCode};

/// A well-formed transaction, whose coins are not looked up yet.
#[derive(Clone)]
pub(crate) struct Candidate {
    tx: Arc<Transaction>,
    txid: Txid,
    wtxid: Wtxid,
    time: Option<u64>,
}

impl Candidate {
    /// Parses a transaction and runs its context-free checks.
    pub(crate) fn parse(raw: Vec<u8>, config: &Config) -> Result<Self, TxReject> {
        Self::decode(raw, config)?.checked(config)
    }

    pub(crate) fn decode(raw: Vec<u8>, config: &Config) -> Result<Self, TxReject> {
        let tx = Transaction::parse(raw, config.params.encoding).map_err(|error| TxReject {
            code: TxRejectCode::Decode,
            reason: "TX decode failed".to_owned(),
            debug: error.to_string(),
            fault: TxFault::Consensus,
            txid: None,
            wtxid: None,
        })?;
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        Ok(Self::new(Arc::new(tx), txid, wtxid))
    }

    /// Runs the context-free checks.
    pub(crate) fn checked(self, config: &Config) -> Result<Self, TxReject> {
        let view = self.tx.view();
        check_transaction(view).map_err(|error| self.broken_rule(&error))?;
        if view.is_coinbase() {
            return Err(self.rejected("coinbase"));
        }
        policy::check_tx(view, config.params.cash.is_some(), &config.policy)
            .map_err(|reason| self.rejected(reason))?;
        Ok(self)
    }

    pub(crate) fn new(tx: Arc<Transaction>, txid: Txid, wtxid: Wtxid) -> Self {
        Self { tx, txid, wtxid, time: None }
    }

    /// Sets the time of the first admission.
    pub(crate) fn at(self, time: u64) -> Self {
        Self { time: Some(time), ..self }
    }

    /// The unconfirmed transactions that spend the same outputs, except the same transaction with another witness.
    pub(super) fn conflicts(&self, pool: &Mempool) -> Vec<Txid> {
        if pool.is_empty() || pool.get(&self.txid).is_some() {
            return Vec::new();
        }
        pool.conflicts(self.tx.view().inputs().map(|input| input.prevout))
    }

    pub(super) fn txid(&self) -> Txid {
        self.txid
    }

    /// True if it spends an output of the transaction.
    pub(super) fn spends(&self, txid: &Txid) -> bool {
        self.tx.view().inputs().any(|input| input.prevout.txid == *txid)
    }

    /// Time of the first admission, seconds since 1970; `None` for now.
    pub(super) fn time(&self) -> Option<u64> {
        self.time
    }

    pub(super) fn wtxid(&self) -> Wtxid {
        self.wtxid
    }

    pub(super) const fn tx(&self) -> &Arc<Transaction> {
        &self.tx
    }

    /// A rejection with a reason and details.
    pub(super) fn refused(&self, reason: &str, debug: impl Into<String>) -> TxReject {
        self.reject(TxRejectCode::Rejected, reason, debug)
    }

    pub(super) fn reject(
        &self,
        code: TxRejectCode,
        reason: impl Into<String>,
        debug: impl Into<String>,
    ) -> TxReject {
        let (txid, wtxid) = (Some(self.txid), Some(self.wtxid));
        let reason = reason.into();
        let fault = TxFault::of_reason(&reason);
        TxReject { code, reason, debug: debug.into(), fault, txid, wtxid }
    }

    pub(super) fn rejected(&self, reason: impl Into<String>) -> TxReject {
        self.reject(TxRejectCode::Rejected, reason, "")
    }

    pub(super) fn broken_rule(&self, error: &TxError) -> TxReject {
        self.reject(TxRejectCode::Rejected, error.reject_reason(), error.debug_message())
    }

    /// A contextual rule is broken: BCHN reports the reason of a block.
    pub(super) fn out_of_place(&self, error: &TxError, is_cash: bool) -> TxReject {
        if !is_cash {
            return self.broken_rule(error);
        }
        self.reject(TxRejectCode::Rejected, error.block_reject_reason(), error.debug_message())
    }

    pub(super) fn missing_inputs(&self) -> TxReject {
        self.reject(TxRejectCode::MissingInputs, "bad-txns-inputs-missingorspent", "")
    }

    /// A rejection because the engine, not the transaction, has failed.
    pub(crate) fn failed(&self, error: &impl Display) -> TxReject {
        self.reject(TxRejectCode::Failed, "internal error", error.to_string())
    }
}

/// The coins that a transaction spends, checked at one tip.
#[derive(Default)]
pub(super) struct Spends {
    pub(super) coins: Vec<Coin>,
    pub(super) fee_sat: i64,
    pub(super) sigop_cost: u64,
    pub(super) lock_points: Option<Box<LockPoints>>,
}

/// A transaction that has passed [`Admission::pre_check`](super::context::Admission::pre_check).
pub(super) struct Checked {
    pub(super) staged: Staged,
    pub(super) entry: Entry,
    pub(super) parents: Vec<Txid>,
    /// Transactions that it replaces.
    pub(super) conflicts: Vec<Txid>,
    /// True if the last conflict is a sibling to be evicted, not a real conflict.
    pub(super) evicts_sibling: bool,
}

/// A transaction that passed all checks except scripts.
pub(super) struct Staged {
    candidate: Candidate,
    spends: Arc<Spends>,
    modified_fee_sat: i64,
    vsize: u32,
}

/// Failure of a transaction's scripts.
pub(super) enum ScriptFailureOrLimit {
    Script(Box<ScriptFailure>),
    Limit(TxError),
}

impl Staged {
    pub(super) fn failed(&self, failure: ScriptFailureOrLimit) -> TxReject {
        let failure = match failure {
            ScriptFailureOrLimit::Limit(error) => return self.candidate.broken_rule(&error),
            ScriptFailureOrLimit::Script(failure) => failure,
        };
        let (reason, debug) = (failure.mempool_reject_reason(), failure.debug_message());
        let reject = self.candidate.reject(TxRejectCode::Rejected, reason, debug);
        let fault = if self.lacks_witness() { TxFault::WitnessStripped } else { reject.fault };
        TxReject { fault, ..reject }
    }

    /// True if it lacks a required witness (Core `policy/policy.cpp`, `SpendsNonAnchorWitnessProg`).
    fn lacks_witness(&self) -> bool {
        let tx = self.candidate.tx.view();
        let needs = |(input, coin): (assay_wire::TxIn<'_>, &Coin)| {
            let script: &[u8] = &coin.script_pubkey;
            match OutputKind::of(script, false) {
                OutputKind::ScriptHash(_) => last_push(input.script_sig)
                    .is_some_and(|redeem| witness_program(redeem).is_some()),
                OutputKind::Anchor(_) => false,
                _ => witness_program(script).is_some(),
            }
        };
        !tx.has_witness() && tx.inputs().zip(&self.spends.coins).any(needs)
    }

    pub(super) fn new(candidate: &Candidate, spends: Arc<Spends>, entry: &Entry) -> Self {
        Self {
            candidate: candidate.clone(),
            spends,
            modified_fee_sat: entry.modified_fee_sat(),
            vsize: entry.vsize,
        }
    }

    pub(super) fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    pub(super) fn txid(&self) -> Txid {
        self.candidate.txid
    }

    pub(super) fn spends(&self) -> &Arc<Spends> {
        &self.spends
    }

    pub(super) fn input_count(&self) -> usize {
        self.spends.coins.len()
    }

    pub(super) const fn wtxid(&self) -> Wtxid {
        self.candidate.wtxid
    }

    pub(super) fn spending(&self) -> (Tx<'_>, Vec<TxOut<'_>>) {
        (self.candidate.tx.view(), self.spends.coins.iter().map(Coin::as_tx_out).collect())
    }

    pub(super) fn failure(&self, cause: Cause, flags: Flags) -> ScriptFailureOrLimit {
        match cause {
            Cause::SigChecks(error) => ScriptFailureOrLimit::Limit(error),
            Cause::Script { input, error } => {
                let Candidate { tx, txid, wtxid, .. } = &self.candidate;
                let input = input as usize;
                let prevout = tx.view().input(input).prevout;
                let (error, rules) = match ScriptRules::of(flags) {
                    ScriptRules::Bitcoin => (error, ScriptRules::Bitcoin),
                    _ => self.cash_failure(input, error, flags),
                };
                let (txid, wtxid) = (*txid, *wtxid);
                let failure = ScriptFailure { txid, wtxid, input, prevout, error, rules };
                ScriptFailureOrLimit::Script(Box::new(failure))
            }
        }
    }

    /// BCHN repeats the check under the mandatory rules alone, and reports their error (`validation.cpp`, `CheckInputs`).
    fn cash_failure(
        &self,
        input: usize,
        error: ScriptError,
        flags: Flags,
    ) -> (ScriptError, ScriptRules) {
        let (tx, outputs) = self.spending();
        let context = TxContext::new(tx, &outputs);
        let mandatory = flags.without(Flags::BCH_NOT_MANDATORY);
        match verify_input(&context, input, mandatory, &mut ImmediateChecker) {
            Ok(_) => (error, ScriptRules::CashPolicy),
            Err(error) => (error, ScriptRules::Cash),
        }
    }
}

/// A transaction admitted to the mempool.
pub(crate) struct Admitted {
    pub(crate) txid: Txid,
    wtxid: Wtxid,
    vsize: u32,
    fee_sat: i64,
    modified_fee_sat: i64,
    pub(crate) is_new: bool,
    replaced: Vec<Txid>,
}

impl Admitted {
    pub(super) fn of(staged: &Staged, replaced: Vec<Txid>) -> Self {
        let Staged { candidate, spends, modified_fee_sat, vsize } = staged;
        let (txid, wtxid) = (candidate.txid, candidate.wtxid);
        let (fee_sat, modified_fee_sat, vsize) = (spends.fee_sat, *modified_fee_sat, *vsize);
        Self { txid, wtxid, vsize, fee_sat, modified_fee_sat, is_new: true, replaced }
    }

    pub(super) fn fees(self) -> PackageFees {
        PackageFees {
            vsize: self.vsize,
            fee_sat: self.fee_sat,
            effective: (self.modified_fee_sat, u64::from(self.vsize)),
            effective_of: vec![self.wtxid],
            replaced: self.replaced,
        }
    }

    pub(super) fn known(mempool: &Mempool, txid: Txid) -> Self {
        let entry = mempool.get(&txid).expect("what is known is in the pool");
        let (wtxid, vsize, fee_sat) = (entry.wtxid, entry.vsize, entry.fee_sat);
        let modified_fee_sat = entry.modified_fee_sat();
        let replaced = Vec::new();
        Self { txid, wtxid, vsize, fee_sat, modified_fee_sat, is_new: false, replaced }
    }
}

pub(crate) fn trial_verdict(verdict: Result<Admitted, TxReject>) -> TestAccept {
    match verdict {
        Ok(Admitted { txid, wtxid, vsize, fee_sat, modified_fee_sat, is_new, .. }) => {
            let reject = (!is_new).then(|| TxReject {
                code: TxRejectCode::Rejected,
                reason: "txn-already-in-mempool".to_owned(),
                debug: String::new(),
                fault: TxFault::Conflict,
                txid: Some(txid),
                wtxid: Some(wtxid),
            });
            let (txid, wtxid) = (Some(txid), Some(wtxid));
            TestAccept { txid, wtxid, vsize, fee_sat, modified_fee_sat, reject }
        }
        Err(reject) => TestAccept {
            txid: reject.txid,
            wtxid: reject.wtxid,
            vsize: 0,
            fee_sat: 0,
            modified_fee_sat: 0,
            reject: Some(reject),
        },
    }
}
