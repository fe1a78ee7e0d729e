//! Submission of a child with its parents: each is tried individually, and those that pay too little are tried with the fee of
//! all (Core `validation.cpp`, `AcceptPackage`).

use std::sync::Arc;

use super::candidate::{Admitted, Candidate, trial_verdict};
use super::context::{AcceptOptions, Admission, Precheck, Replacement, Rules, Scope, View};
use super::package_form;
use super::package_rules::{Earlier, Judged};
use super::precheck::{PendingCheck, PendingChecks};
use crate::package::{
    PackageFault, PackageFees, PackageOutcome, PackageReject, PackageTx, PackageVerdict,
};
use crate::types::{TestAccept, TxFault, TxReject};

/// Result of trying a transaction individually.
enum Single {
    Done(PackageVerdict),
    Failed(TxReject),
}

impl Admission {
    fn package_rules(&self, view: &View<'_>, options: AcceptOptions) -> Rules {
        let mut rules = self.rules(view, options.fee_sat_per_kvb_max);
        rules.is_trial = options.is_trial;
        rules.scope = Scope::Together;
        if options.is_trial {
            rules.scope = Scope::TogetherOnTrial;
            rules.replacement = Replacement::Disallowed;
        }
        rules
    }

    /// Step 1, with the lock: determines the required checks.
    pub(crate) fn look_at_package(
        &self,
        view: &mut View<'_>,
        package: &[Candidate],
        options: AcceptOptions,
    ) -> PendingChecks {
        let mut rules = self.package_rules(view, options);
        let all: Vec<&Candidate> = package.iter().collect();
        let mut pending = Vec::new();
        if check_topology(package, options.is_trial).is_ok() {
            self.load_coins(view, all.iter().copied());
            let (left, earlier) = if options.is_trial {
                (all, Earlier::new())
            } else {
                rules.scope = Scope::Part;
                self.look_at_each(view, &rules, &all, &mut pending)
            };
            rules.scope = self.package_rules(view, options).scope;
            if !left.is_empty() {
                pending.extend(self.pending_check_of_all(view, &rules, &left, earlier));
            }
        }
        PendingChecks { rules, pending }
    }

    /// Determines the checks of those that pass individually; returns those that may pass together, and the others.
    fn look_at_each<'a>(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        all: &[&'a Candidate],
        pending: &mut Vec<PendingCheck>,
    ) -> (Vec<&'a Candidate>, Earlier) {
        let (mut left, mut earlier): (Vec<&Candidate>, Earlier) = Default::default();
        for candidate in all.iter().copied() {
            if view.mempool.get(&candidate.txid()).is_some() {
                continue;
            }
            let needs_another = left.iter().any(|one| candidate.spends(&one.txid()));
            let checked = candidate.clone().checked(&self.config);
            match checked.and_then(|one| self.pending_check(view, rules, &one, &earlier)) {
                Ok(pending_check) if !needs_another => pending.push(pending_check),
                Err(reject) if !needs_another && !may_pass_together(&reject) => {
                    return (Vec::new(), earlier);
                }
                _ => left.push(candidate),
            }
            earlier.insert(candidate.txid(), Arc::clone(candidate.tx()));
        }
        (left, earlier)
    }

    /// The required checks of those that may pass together.
    fn pending_check_of_all(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        left: &[&Candidate],
        earlier: Earlier,
    ) -> Option<PendingCheck> {
        let together = self.judge_together(view, rules, left, earlier).ok()?;
        self.check_together_last(view, &together).ok()?;
        let (staged, plan) = together.into_parts();
        Some(PendingCheck::of(view, rules, staged, plan))
    }

    /// Step 3, with the lock: admits or tests a package.
    pub(crate) fn admit_package(
        &self,
        view: &mut View<'_>,
        package: &[Candidate],
        options: AcceptOptions,
        mut ahead: Precheck,
    ) -> PackageOutcome {
        let all: Vec<&Candidate> = package.iter().collect();
        if let Err(reject) = check_topology(package, options.is_trial) {
            return not_validated(package, reject);
        }
        let mut rules = self.package_rules(view, options);
        ahead.store_diagrams(view.mempool);
        rules.ahead = ahead;
        self.load_coins(view, all.iter().copied());
        let judged = if options.is_trial {
            self.admit_together(view, &rules, &all)
        } else {
            self.admit_with_parents(view, &mut rules, &all)
        };
        outcome(package, judged)
    }

    /// Admits those that pass individually, then the rest together, then makes room.
    fn admit_with_parents(
        &self,
        view: &mut View<'_>,
        rules: &mut Rules,
        all: &[&Candidate],
    ) -> Judged {
        rules.scope = Scope::Part;
        let singles: Vec<Single> =
            all.iter().map(|one| self.admit_single(view, rules, one)).collect();
        let failed = |single: &Single| matches!(single, Single::Failed(_));
        let left: Vec<usize> = (0..all.len()).filter(|index| failed(&singles[*index])).collect();
        let is_hopeless = singles.iter().any(|single| match single {
            Single::Failed(reject) => all.len() == 1 || !may_pass_together(reject),
            Single::Done(_) => false,
        });
        let (mut reject, mut rest) = match left[..] {
            [] => (None, Vec::new()),
            _ if is_hopeless => (Some(PackageReject::tx_failed()), Vec::new()),
            _ => {
                let left: Vec<&Candidate> = left.iter().map(|index| all[*index]).collect();
                let judged = self.admit_rest(view, rules, &left);
                (judged.reject, judged.verdicts)
            }
        };
        self.limit(view.mempool);
        let mut verdicts: Vec<PackageVerdict> = Vec::with_capacity(all.len());
        rest.reverse();
        for (candidate, single) in all.iter().zip(singles) {
            let verdict = match single {
                Single::Done(verdict) => verdict,
                Single::Failed(reject) => match rest.pop() {
                    None | Some(PackageVerdict::NotValidated) => PackageVerdict::Rejected(reject),
                    Some(verdict) => verdict,
                },
            };
            let is_rejected = matches!(verdict, PackageVerdict::Rejected(_));
            if is_rejected || view.mempool.get(&candidate.txid()).is_some() {
                verdicts.push(verdict);
                continue;
            }
            reject = Some(PackageReject::tx_failed());
            let full = candidate.rejected("mempool full");
            // Another package with it would not do better.
            verdicts
                .push(PackageVerdict::Rejected(TxReject { fault: TxFault::MempoolPolicy, ..full }));
        }
        Judged { reject, verdicts }
    }

    /// Tries one transaction individually, unless it is in the mempool.
    fn admit_single(&self, view: &mut View<'_>, rules: &Rules, candidate: &Candidate) -> Single {
        if let Some(known) = view.mempool.get(&candidate.txid()) {
            return Single::Done(if known.wtxid == candidate.wtxid() {
                PackageVerdict::Known { vsize: known.vsize, fee_sat: known.fee_sat }
            } else {
                PackageVerdict::OtherWitness(known.wtxid)
            });
        }
        match self.admit_alone(view, rules, candidate) {
            Ok(fees) => Single::Done(PackageVerdict::Admitted(fees)),
            Err(reject) => Single::Failed(reject),
        }
    }

    fn admit_alone(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        candidate: &Candidate,
    ) -> Result<PackageFees, TxReject> {
        let checked = candidate.clone().checked(&self.config);
        let mut verdicts = self.admit(view, rules, vec![checked]);
        let verdict = verdicts.pop().expect("one transaction has one verdict");
        verdict.map(Admitted::fees)
    }

    /// Admits the rest. A single one is tried again, since its parents may be present now.
    fn admit_rest(&self, view: &mut View<'_>, rules: &mut Rules, left: &[&Candidate]) -> Judged {
        let [candidate] = left else {
            rules.scope = Scope::Together;
            return self.admit_together(view, rules, left);
        };
        match self.admit_alone(view, rules, candidate) {
            Ok(fees) => Judged { reject: None, verdicts: vec![PackageVerdict::Admitted(fees)] },
            Err(reject) => Judged {
                reject: Some(PackageReject::tx_failed()),
                verdicts: vec![PackageVerdict::Rejected(reject)],
            },
        }
    }
}

/// True if the rejection may be different in a package.
fn may_pass_together(reject: &TxReject) -> bool {
    matches!(reject.fault, TxFault::Reconsiderable | TxFault::MissingInputs)
}

/// Form required to be tried together.
pub(crate) fn check_form(package: &[Candidate]) -> Result<(), PackageReject> {
    package_form::check(&package.iter().collect::<Vec<_>>())
}

/// Form required for admission.
fn check_topology(package: &[Candidate], is_trial: bool) -> Result<(), PackageReject> {
    check_form(package)?;
    let all: Vec<&Candidate> = package.iter().collect();
    if is_trial || package.len() == 1 || package_form::is_child_with_parents(&all) {
        return Ok(());
    }
    Err(PackageReject::new(PackageFault::Policy, "package-not-child-with-parents", ""))
}

/// Rejects the whole package.
pub(crate) fn not_validated(package: &[Candidate], reject: PackageReject) -> PackageOutcome {
    let verdicts = vec![PackageVerdict::NotValidated; package.len()];
    outcome(package, Judged { reject: Some(reject), verdicts })
}

/// The individual verdicts of a trial; after the first of several failures the others stay open.
pub(crate) fn trial_outcome(
    package: &[Candidate],
    verdicts: Vec<Result<Admitted, TxReject>>,
) -> PackageOutcome {
    let verdicts: Vec<TestAccept> = verdicts.into_iter().map(trial_verdict).collect();
    let failed = verdicts.iter().position(|verdict| verdict.reject.is_some());
    let verdict = |(index, verdict): (usize, TestAccept)| match (verdict.reject, verdict.wtxid) {
        (Some(reject), _) if failed == Some(index) => PackageVerdict::Rejected(reject),
        (None, Some(wtxid)) if failed.is_none() => PackageVerdict::Admitted(PackageFees {
            vsize: verdict.vsize,
            fee_sat: verdict.fee_sat,
            effective: (verdict.modified_fee_sat, u64::from(verdict.vsize)),
            effective_of: vec![wtxid],
            replaced: Vec::new(),
        }),
        _ => PackageVerdict::NotValidated,
    };
    let verdicts = verdicts.into_iter().enumerate().map(verdict).collect();
    outcome(package, Judged { reject: failed.map(|_| PackageReject::tx_failed()), verdicts })
}

fn outcome(package: &[Candidate], judged: Judged) -> PackageOutcome {
    let tx = |(one, verdict): (&Candidate, PackageVerdict)| PackageTx {
        txid: one.txid(),
        wtxid: one.wtxid(),
        verdict,
    };
    let txs = package.iter().zip(judged.verdicts).map(tx).collect();
    PackageOutcome { reject: judged.reject, txs, work: 0 }
}
