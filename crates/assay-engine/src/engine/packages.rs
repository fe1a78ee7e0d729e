//! Transactions that are judged together.

use super::Engine;
use crate::mempool::{Candidate, Wish, check_form, not_validated, trial_outcome};
use crate::package::{PackageFault, PackageOutcome, PackageReject, PackageTx, PackageVerdict};
use crate::types::TxReject;

impl Engine {
    /// Offers a transaction, the last one, with some of its unconfirmed parents to the mempool. Each may be admitted by
    /// itself; what pays too little is judged by what all that are left pay together (Core's `ProcessNewPackage`). Fee rates
    /// above `fee_sat_per_kvb_max` are rejected.
    ///
    /// # Errors
    /// When the bytes of one are not a transaction.
    pub fn submit_package(
        &self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Result<PackageOutcome, TxReject> {
        let outcome = self.judge_package(raws, Wish { fee_sat_per_kvb_max, is_trial: false })?;
        let is_new = |tx: &PackageTx| matches!(tx.verdict, PackageVerdict::Admitted(_));
        let txids: Vec<_> = outcome.txs.iter().map(|tx| (tx.txid, is_new(tx))).collect();
        self.note_handed_in(&txids);
        Ok(outcome)
    }

    /// The same for transactions of peers, which announce them themselves.
    ///
    /// # Errors
    /// When the bytes of one are not a transaction.
    pub fn take_package(&self, raws: Vec<Vec<u8>>) -> Result<PackageOutcome, TxReject> {
        self.judge_package(raws, Wish { fee_sat_per_kvb_max: None, is_trial: false })
    }

    /// What would become of transactions that depend on each other or not, each by what it pays; admits nothing. The first
    /// that fails ends the look at all of them, and only a single one may replace others (Core's `testmempoolaccept`).
    ///
    /// # Errors
    /// When the bytes of one are not a transaction.
    pub fn test_package(&self, raws: Vec<Vec<u8>>) -> Result<PackageOutcome, TxReject> {
        let wish = Wish { fee_sat_per_kvb_max: None, is_trial: true };
        if raws.len() > 1 && self.chain.config.params.cash.is_none() {
            return self.judge_package(raws, wish);
        }
        let config = &self.chain.config;
        let package = self.decode(raws)?;
        if let Err(reject) = check_form(&package) {
            return Ok(not_validated(&package, reject));
        }
        let candidates = package.iter().map(|one| one.clone().checked(config));
        let (verdicts, work) = self.admit_in_turn(candidates.collect(), wish);
        Ok(PackageOutcome { work, ..trial_outcome(&package, verdicts) })
    }

    fn decode(&self, raws: Vec<Vec<u8>>) -> Result<Vec<Candidate>, TxReject> {
        raws.into_iter().map(|raw| Candidate::decode(raw, &self.chain.config)).collect()
    }

    /// The four steps of `docs/mempool.md`.
    fn judge_package(&self, raws: Vec<Vec<u8>>, wish: Wish) -> Result<PackageOutcome, TxReject> {
        let config = &self.chain.config;
        let package = self.decode(raws)?;
        if config.params.cash.is_some() {
            let reject = PackageReject::new(PackageFault::Policy, "package-not-supported", "");
            return Ok(not_validated(&package, reject));
        }
        let admission = &self.chain.admission;
        let turn = self.turns.policy();
        let work_before = admission.work();
        let questions = admission.look_at_package(&mut self.lock().view(), &package, wish);
        let ahead = admission.answer(questions, || turn.pause());
        turn.pause();
        let outcome = admission.admit_package(&mut self.lock().view(), &package, wish, ahead);
        self.settle(&turn);
        Ok(PackageOutcome { work: admission.work() - work_before, ..outcome })
    }
}
