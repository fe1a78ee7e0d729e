//! Deferred signature verification: scripts run first, and their signatures are verified in batches.
//!
//! A script runs with a checker that returns true for every check and records it. The recorded checks are verified in batches.
//! This is exact for every script, also where a false result is valid (`CHECKSIG NOT`, the keys that CHECKMULTISIG tries, a
//! branch on a result):
//!
//! - An interpreter is a function of the script and the results of its checks. If every recorded "true" is proven, the results
//!   equal those of the immediate checker, so the run equals the run with the immediate checker and its outcome is valid. An
//!   empty signature, and in tapscript a key of unknown type, cause no check.
//! - A CHECKMULTISIG is claimed as a whole: its signatures match keys in order. The interpreter only offers this if nothing but
//!   the outcome depends on the pairs tried. The proof of the pairs of one matching proves the claim.
//! - If a claim fails, or the run ended in an error after claims, the input runs again from its start, and that run decides. It
//!   uses the known results as long as it requests the checks in the same order, and the immediate checker from there on. Before
//!   a rejection the input runs with the immediate checker alone.
//!
//! So no outcome ever depends on a wrong result. A prover may leave valid checks unproven: libsecp256k1 decides them. Pairs of a
//! CHECKMULTISIG outside the matching need no verdict.

mod backend;
mod check;
#[cfg(any(test, feature = "planted"))]
mod fault_injection;
mod mismatch_report;
mod multisig;
mod near_tip;
mod recorder;
mod replay_checker;
mod settings;
mod spot_check;

use assay_consensus::script::{
    Flags, InputStats, Interpreter, LongMessages, RuleSet, ScriptError, TxContext,
};
use rayon::prelude::*;

use crate::checker::ImmediateChecker;
pub use backend::backend_name;
pub use check::{Answer, Batches, Check, Prove, default_script_batch};
pub use near_tip::EXACT_NEAR_TIP_DEFAULT;
pub(crate) use near_tip::{Place, is_exact};
use recorder::Recorder;
use replay_checker::ReplayChecker;
pub use settings::{SAMPLE_SIGNATURES_DEFAULT, Schnorr};
pub(crate) use settings::{Settings, configure};

/// Runs inputs now and verifies their signatures later.
///
/// `T` identifies an input that must run again.
pub struct DeferredScripts<T = usize, P = Batches> {
    interpreter: Interpreter,
    recorder: Recorder<P>,
    waiting: Vec<Waiting<T>>,
    holds: Vec<bool>,
}

struct Waiting<T> {
    tag: T,
    stats: InputStats,
    /// End of this input's claims in the list of all claims.
    claims_end: u32,
    /// Messages that need not be hashed again.
    messages: LongMessages,
}

impl<T, P: Prove> Default for DeferredScripts<T, P> {
    fn default() -> Self {
        Self {
            interpreter: Interpreter::new(),
            recorder: Recorder::default(),
            waiting: Vec::new(),
            holds: Vec::new(),
        }
    }
}

impl<T: Copy, P: Prove> DeferredScripts<T, P> {
    /// A collector without inputs, under other rules than today's.
    pub fn with_rules(rules: RuleSet) -> Self {
        Self { interpreter: Interpreter::with_rules(rules), ..Self::default() }
    }

    /// Verifies an input as [`Interpreter::verify_input`] does, but a success is provisional until [`DeferredScripts::settle`].
    /// An error is final.
    ///
    /// # Errors
    /// The first broken rule.
    ///
    /// # Panics
    /// The transaction has no such input.
    pub fn verify_input(
        &mut self,
        context: &TxContext<'_>,
        input: usize,
        flags: Flags,
        tag: T,
    ) -> Result<InputStats, ScriptError> {
        self.recorder.begin_input();
        let verdict = self.interpreter.verify_input(context, input, flags, &mut self.recorder);
        let claims = self.recorder.input_claims();
        if self.recorder.is_wrong() || (verdict.is_err() && claims > 0) {
            self.recorder.forget_input();
            return self.interpreter.verify_input(context, input, flags, &mut ImmediateChecker);
        }
        if let Ok(stats) = verdict
            && claims > 0
        {
            let claims_end = self.recorder.claims() as u32;
            let messages = self.interpreter.take_long_messages();
            self.waiting.push(Waiting { tag, stats, claims_end, messages });
        }
        verdict
    }

    /// Approximate number of recorded checks.
    pub fn checks_len(&self) -> usize {
        self.recorder.checks_len()
    }

    /// Verifies all recorded checks. Calls `again` for each input with a failed claim, in order, with its statistics. The
    /// callback must run the input again with the given [`Again`], which has the results.
    pub fn settle(&mut self, again: impl FnMut(T, InputStats, &mut Again<'_>)) {
        self.settle_proven(None, again);
    }

    /// As [`DeferredScripts::settle`], with known results of [`DeferredScripts::checks`].
    pub(crate) fn settle_proven(
        &mut self,
        proven: Option<&[Answer]>,
        mut again: impl FnMut(T, InputStats, &mut Again<'_>),
    ) {
        self.recorder.decide(proven, &mut self.holds);
        let mut begin = 0;
        for waiting in self.waiting.drain(..) {
            let end = waiting.claims_end as usize;
            if self.holds[begin..end].contains(&false) {
                let known = self.recorder.answered(begin..end, &self.holds);
                let mut interpreter = Again {
                    interpreter: &mut self.interpreter,
                    known: &known,
                    messages: waiting.messages,
                };
                again(waiting.tag, waiting.stats, &mut interpreter);
            }
            begin = end;
        }
        self.recorder.clear();
    }

    /// The checks that [`DeferredScripts::settle`] would prove.
    fn checks(&self) -> Vec<Check<'_>> {
        self.recorder.checks()
    }
}

pub struct Again<'a> {
    interpreter: &'a mut Interpreter,
    known: &'a [(Check<'a>, bool)],
    messages: LongMessages,
}

impl Again<'_> {
    /// Verdict on the input, with the known results of its signatures. Before a rejection the input runs with the immediate
    /// checker, so that only libsecp256k1 can make a block invalid.
    ///
    /// # Errors
    /// The first broken rule.
    ///
    /// # Panics
    /// The transaction has no such input.
    pub fn verify_input(
        &mut self,
        context: &TxContext<'_>,
        input: usize,
        flags: Flags,
    ) -> Result<InputStats, ScriptError> {
        let mut checker = ReplayChecker::new(self.known);
        let messages = std::mem::take(&mut self.messages);
        self.interpreter.verify_input_again(context, input, flags, &mut checker, messages).or_else(
            |_| self.interpreter.verify_input(context, input, flags, &mut ImmediateChecker),
        )
    }
}

/// Proves the checks of several collectors, evenly distributed over the threads of the current rayon pool. Returns the results
/// for [`DeferredScripts::settle_proven`].
pub(crate) fn prove_all<'s, T: Copy + Sync + 's>(
    all: impl Iterator<Item = &'s DeferredScripts<T>>,
) -> Vec<Vec<Answer>> {
    let checks: Vec<Vec<Check<'_>>> = all.map(DeferredScripts::checks).collect();
    let count: usize = checks.iter().map(Vec::len).sum();
    let share = count.div_ceil(rayon::current_num_threads()).max(SHARE_MIN);
    checks
        .par_iter()
        .map(|checks| {
            let proven: Vec<Vec<Answer>> = checks
                .par_chunks(share)
                .map_init(Batches::default, |prover, share| {
                    let mut proven = Vec::new();
                    prover.prove(share, &mut proven);
                    proven
                })
                .collect();
            proven.concat()
        })
        .collect()
}

/// Minimum of checks per thread.
const SHARE_MIN: usize = 64;

#[cfg(test)]
mod fault_injection_tests;
#[cfg(test)]
mod tests;
