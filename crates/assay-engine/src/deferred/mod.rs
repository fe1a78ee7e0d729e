//! Scripts whose signatures are verified later, many at a time.
//!
//! A script is run with a checker that answers "true" to every question and records it. When enough has been recorded all
//! of it is verified at once. This is exact for every script, also where a false answer is legal (`CHECKSIG NOT`, the keys
//! that CHECKMULTISIG tries, a branch on an outcome):
//!
//! - An interpreter is a function of the script and the answers it gets. If every recorded "true" is proven, the answers are
//!   those of the immediate checker, so the run was the run with the immediate checker and its outcome stands. An empty
//!   signature, and in tapscript a key of unknown type, ask nothing, so there is nothing to be wrong about.
//! - A CHECKMULTISIG is claimed as a whole: that its signatures match keys in order. The interpreter only offers this where
//!   nothing but the outcome depends on which pairs are tried, and the claim is proven by proving the pairs of one matching.
//! - If one claim does not hold, or the run ended in an error after claims were made, the input is run again from its
//!   beginning, and that run decides: with what was decided about its checks, as long as it asks for them in the same order, and
//!   with the immediate checker from there on. Before it rejects, the input runs with the immediate checker alone.
//!
//! So no outcome is ever derived from a wrong answer, whatever was recorded on the way. A prover may leave checks unproven
//! that hold: libsecp256k1 decides them, and a CHECKMULTISIG needs no verdict on the pairs outside the matching.

mod answered;
mod backend;
mod check;
mod evidence;
mod multisig;
mod near_tip;
#[cfg(any(test, feature = "planted"))]
mod planted;
mod recorder;
mod second_look;
mod settings;

use assay_consensus::script::{
    Flags, InputStats, Interpreter, LongMessages, RuleSet, ScriptError, TxContext,
};
use rayon::prelude::*;

use crate::checker::ImmediateChecker;
use answered::Answered;
pub use backend::backend_name;
pub use check::{Answer, Batches, Check, Prove, default_script_batch};
pub use near_tip::EXACT_NEAR_TIP_DEFAULT;
pub(crate) use near_tip::{Place, is_exact};
use recorder::Recorder;
pub use settings::{SAMPLE_SIGNATURES_DEFAULT, Schnorr};
pub(crate) use settings::{Settings, configure};

/// Runs inputs now and verifies their signatures later.
///
/// `T` says which input it was when one has to be run again.
pub struct DeferredScripts<T = usize, P = Batches> {
    interpreter: Interpreter,
    recorder: Recorder<P>,
    waiting: Vec<Waiting<T>>,
    holds: Vec<bool>,
}

struct Waiting<T> {
    tag: T,
    stats: InputStats,
    /// Claims up to the end of this input's.
    claims_end: u32,
    /// What need not be hashed again.
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
    /// Nothing recorded.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same under other rules than today's.
    pub fn with_rules(rules: RuleSet) -> Self {
        Self { interpreter: Interpreter::with_rules(rules), ..Self::default() }
    }

    /// Verifies an input as [`Interpreter::verify_input`] does, except that a success stands only when
    /// [`DeferredScripts::settle`] does not find it wrong. An error is final.
    ///
    /// # Errors
    /// The first rule that is broken.
    ///
    /// # Panics
    /// When the transaction has no such input.
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

    /// About how many checks have been recorded.
    pub fn checks_len(&self) -> usize {
        self.recorder.checks_len()
    }

    /// Verifies everything recorded. `again` is called for each input with a claim that does not hold, in the order in which
    /// they came, with what was said of it: it has to run the input
    /// again by what it is given, which knows the answers.
    pub fn settle(&mut self, again: impl FnMut(T, InputStats, &mut Again<'_>)) {
        self.settle_proven(None, again);
    }

    /// As [`DeferredScripts::settle`], when the answers to [`DeferredScripts::checks`] are known.
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

    /// What [`DeferredScripts::settle`] would have proven.
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
    /// The verdict on the input, with what is known of its signatures. An input is not rejected by that: before it is, it runs with
    /// the immediate checker, so that nothing but libsecp256k1 ever makes a block invalid.
    ///
    /// # Errors
    /// The first rule that is broken.
    ///
    /// # Panics
    /// When the transaction has no such input.
    pub fn verify_input(
        &mut self,
        context: &TxContext<'_>,
        input: usize,
        flags: Flags,
    ) -> Result<InputStats, ScriptError> {
        let mut checker = Answered::new(self.known);
        let messages = std::mem::take(&mut self.messages);
        self.interpreter.verify_input_again(context, input, flags, &mut checker, messages).or_else(
            |_| self.interpreter.verify_input(context, input, flags, &mut ImmediateChecker),
        )
    }
}

/// Proves what several have recorded, shared out evenly over the threads of the rayon pool that this is called in. Gives the
/// answers that [`DeferredScripts::settle_proven`] takes.
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

/// Fewer checks are not worth sharing out.
const SHARE_MIN: usize = 64;

#[cfg(test)]
mod planted_tests;
#[cfg(test)]
mod tests;
