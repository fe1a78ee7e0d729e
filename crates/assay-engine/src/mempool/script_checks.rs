//! Script checks of unconfirmed transactions.

use assay_store::defect::{Point, point};

use super::candidate::{ScriptFailureOrLimit, Staged};
use super::context::{Admission, Rules};
use super::verdicts::Verdicts;
use crate::deferred::is_exact;
use crate::scripts::{Cause, verify_many};

impl Admission {
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
