//! Package submission.

use super::Mempool;
use crate::mempool::{AcceptOptions, Candidate, check_form, not_validated, trial_outcome};
use crate::package::{PackageFault, PackageOutcome, PackageReject, PackageTx, PackageVerdict};
use crate::types::TxReject;

impl Mempool<'_> {
    /// Submits a transaction, the last one, with some of its unconfirmed parents to the mempool. Each may be admitted
    /// individually; those that pay too little are evaluated with the fee of all that remain (Core's `ProcessNewPackage`). Fee
    /// rates above `fee_sat_per_kvb_max` are rejected.
    ///
    /// # Errors
    /// The bytes of one are not a transaction.
    pub fn submit_package(
        self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Result<PackageOutcome, TxReject> {
        self.judge_package(raws, AcceptOptions::submit(fee_sat_per_kvb_max))
    }

    /// [`Mempool::submit_package`] for transactions of peers, which announce them themselves.
    ///
    /// # Errors
    /// The bytes of one are not a transaction.
    pub fn take_package(self, raws: Vec<Vec<u8>>) -> Result<PackageOutcome, TxReject> {
        self.judge_package(raws, AcceptOptions::ADMIT)
    }

    /// Tests transactions that may depend on each other, each by its own fee, without admission. The first failure ends the test,
    /// and only a single transaction may replace others (Core's `testmempoolaccept`).
    ///
    /// # Errors
    /// The bytes of one are not a transaction.
    pub fn test_package(self, raws: Vec<Vec<u8>>) -> Result<PackageOutcome, TxReject> {
        let options = AcceptOptions::trial(None);
        if raws.len() > 1 && self.0.config().params.cash.is_none() {
            return self.judge_package(raws, options);
        }
        let config = self.0.config();
        let package = self.decode(raws)?;
        if let Err(reject) = check_form(&package) {
            return Ok(not_validated(&package, reject));
        }
        let candidates = package.iter().map(|one| one.clone().checked(config));
        let (verdicts, work) = self.admit_in_turn(candidates.collect(), options);
        Ok(PackageOutcome { work, ..trial_outcome(&package, verdicts) })
    }

    fn decode(self, raws: Vec<Vec<u8>>) -> Result<Vec<Candidate>, TxReject> {
        raws.into_iter().map(|raw| Candidate::decode(raw, self.0.config())).collect()
    }

    /// The four steps of `docs/mempool.md`.
    fn judge_package(
        self,
        raws: Vec<Vec<u8>>,
        options: AcceptOptions,
    ) -> Result<PackageOutcome, TxReject> {
        let config = self.0.config();
        let package = self.decode(raws)?;
        if config.params.cash.is_some() {
            let reject = PackageReject::new(PackageFault::Policy, "package-not-supported", "");
            return Ok(not_validated(&package, reject));
        }
        let admission = &self.0.chainstate.admission;
        let turn = self.0.turns.policy();
        let work_before = admission.work();
        let pending = admission.look_at_package(&mut self.0.lock().view(), &package, options);
        let ahead = admission.run_checks(pending, || turn.pause());
        turn.pause();
        let mut state = self.0.lock();
        if let Err(error) = state.check_admission() {
            let debug = error.to_string();
            let reject = PackageReject::new(PackageFault::Policy, "internal error", debug);
            return Ok(not_validated(&package, reject));
        }
        let outcome = admission.admit_package(&mut state.view(), &package, options, ahead);
        if options.is_announced {
            let is_new = |tx: &PackageTx| matches!(tx.verdict, PackageVerdict::Admitted(_));
            self.hand_in(&mut state.mempool, outcome.txs.iter().map(|tx| (tx.txid, is_new(tx))));
        }
        drop(state);
        self.settle(&turn);
        Ok(PackageOutcome { work: admission.work() - work_before, ..outcome })
    }
}
