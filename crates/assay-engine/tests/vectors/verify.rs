//! Runs inputs with immediate and with deferred signatures: both must agree.

use assay_consensus::script::{Flags, InputStats, Interpreter, RuleSet, ScriptError, TxContext};
use assay_engine::{DeferredScripts, ImmediateChecker};
use assay_testkit::chain::TxBuilder;
use assay_wire::{OutPoint, Transaction, TxOut};

/// Verifies in both modes.
#[derive(Default)]
pub(crate) struct Verifier {
    interpreter: Interpreter,
    deferred: DeferredScripts,
}

impl Verifier {
    /// [`Self::default`] under other rules.
    #[expect(clippy::large_types_passed_by_value, reason = "it is kept")]
    pub(crate) fn with_rules(rules: RuleSet) -> Self {
        Self {
            interpreter: Interpreter::with_rules(rules),
            deferred: DeferredScripts::with_rules(rules),
        }
    }

    pub(crate) fn verify_input(
        &mut self,
        ctx: &TxContext<'_>,
        input: usize,
        flags: Flags,
    ) -> Result<InputStats, ScriptError> {
        let verdict = self.interpreter.verify_input(ctx, input, flags, &mut ImmediateChecker);
        let mut later = self.deferred.verify_input(ctx, input, flags, input);
        self.deferred.settle(|input, _, again| {
            later = again.verify_input(ctx, input, flags);
        });
        assert_eq!(later, verdict, "signatures checked later");
        verdict
    }
}

/// Verifies every input of a transaction.
pub(crate) fn verify_all(
    tx: &Transaction,
    spent: &[TxOut<'_>],
    flags: Flags,
) -> Result<(), ScriptError> {
    verify_all_under(&RuleSet::TODAY, tx, spent, flags)
}

/// [`verify_all`] under other rules.
pub(crate) fn verify_all_under(
    rules: &RuleSet,
    tx: &Transaction,
    spent: &[TxOut<'_>],
    flags: Flags,
) -> Result<(), ScriptError> {
    let ctx = TxContext::new(tx.view(), spent);
    let mut verifier = Verifier::with_rules(*rules);
    for input in 0..spent.len() {
        verifier.verify_input(&ctx, input, flags)?;
    }
    Ok(())
}

pub(crate) fn spent_outputs(parts: &[(i64, Vec<u8>)]) -> Vec<TxOut<'_>> {
    parts.iter().map(|(value, script)| TxOut { value: *value, script_pubkey: script }).collect()
}

pub(crate) fn rules(name: &str) -> RuleSet {
    RuleSet::by_name(name).expect("a rule set's name")
}

/// A transaction with one input and one output, as Core's `transaction_utils.cpp` builds them.
pub(crate) fn transaction(
    prevout: OutPoint,
    script_sig: &[u8],
    witness: &[Vec<u8>],
    value: i64,
    script_pubkey: &[u8],
) -> Transaction {
    let mut tx =
        TxBuilder::new(1).spend(prevout, script_sig, u32::MAX).output(value, script_pubkey);
    if !witness.is_empty() {
        tx = tx.witness(&witness.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    tx.build()
}
