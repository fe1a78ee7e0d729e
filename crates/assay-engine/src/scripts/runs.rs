//! Runs of inputs of one transaction, with immediate or deferred signatures.

use std::ops::Range;

use assay_consensus::script::{Flags, Interpreter, RuleSet, ScriptError, TxContext};

use crate::checker::ImmediateChecker;
use crate::deferred::{Answer, DeferredScripts};

/// The number of signature checks of a run, or its first failing input with the error.
pub(crate) type RunVerdict = Result<u64, (u32, ScriptError)>;

/// Verifies inputs and their signatures.
pub(super) fn verify_run(
    context: &TxContext<'_>,
    inputs: Range<u32>,
    flags: Flags,
    interpreter: &mut Interpreter,
) -> RunVerdict {
    let mut sigchecks = 0;
    for input in inputs {
        let stats = interpreter
            .verify_input(context, input as usize, flags, &mut ImmediateChecker)
            .map_err(|error| (input, error))?;
        sigchecks += u64::from(stats.sig_checks);
    }
    Ok(sigchecks)
}

/// Runs with deferred signatures, verified when enough are collected.
#[derive(Default)]
pub(super) struct DeferredRuns {
    scripts: DeferredScripts<Site>,
    found: Vec<Found>,
}

/// An input of a run.
#[derive(Clone, Copy)]
pub(super) struct Site {
    run: u32,
    input: u32,
}

#[derive(Clone, Copy, Default)]
struct Found {
    sigchecks: u64,
    /// Its first failing input.
    failure: Option<(u32, ScriptError)>,
}

impl Found {
    fn fail(&mut self, input: u32, error: ScriptError) {
        if self.failure.is_none_or(|(first, _)| input < first) {
            self.failure = Some((input, error));
        }
    }
}

/// Supplies the context and the rules of an input of a numbered run.
pub(super) trait Contexts {
    fn with(&mut self, run: usize, input: u32, work: &mut dyn FnMut(&TxContext<'_>, Flags));
}

impl DeferredRuns {
    pub(super) fn with_rules(rules: &RuleSet) -> Self {
        Self { scripts: DeferredScripts::with_rules(*rules), found: Vec::new() }
    }

    pub(super) fn scripts(&self) -> &DeferredScripts<Site> {
        &self.scripts
    }

    /// Approximate number of pending checks.
    pub(super) fn checks_len(&self) -> usize {
        self.scripts.checks_len()
    }

    /// Runs inputs up to the first failure; the number of a run is the number of earlier runs. If `checks_max` checks are
    /// collected on the way, they are verified, for which `contexts` must know this run too.
    pub(super) fn run(
        &mut self,
        (context, flags): (&TxContext<'_>, Flags),
        inputs: Range<u32>,
        checks_max: usize,
        contexts: &mut impl Contexts,
    ) {
        let run = self.found.len();
        self.found.push(Found::default());
        for input in inputs {
            let site = Site { run: run as u32, input };
            match self.scripts.verify_input(context, input as usize, flags, site) {
                Ok(stats) => self.found[run].sigchecks += u64::from(stats.sig_checks),
                Err(error) => {
                    self.found[run].fail(input, error);
                    break;
                }
            }
            if self.checks_len() >= checks_max {
                self.settle(None, contexts);
            }
        }
    }

    /// Verifies the recorded checks, and runs inputs with failed checks again. `proven` are the results of the checks, if known.
    fn settle(&mut self, proven: Option<&[Answer]>, contexts: &mut impl Contexts) {
        let Self { scripts, found } = self;
        scripts.settle_proven(proven, |Site { run, input }, claimed, again| {
            let found = &mut found[run as usize];
            if found.failure.is_some_and(|(first, _)| first < input) {
                return;
            }
            contexts.with(run as usize, input, &mut |context, flags| match again.verify_input(
                context,
                input as usize,
                flags,
            ) {
                Ok(stats) => {
                    found.sigchecks -= u64::from(claimed.sig_checks);
                    found.sigchecks += u64::from(stats.sig_checks);
                }
                Err(error) => found.fail(input, error),
            });
        });
    }

    /// Settles everything and resets: one verdict per run.
    pub(super) fn finish(
        &mut self,
        proven: Option<&[Answer]>,
        contexts: &mut impl Contexts,
    ) -> Vec<RunVerdict> {
        self.settle(proven, contexts);
        self.found.drain(..).map(|found| found.failure.map_or(Ok(found.sigchecks), Err)).collect()
    }
}
