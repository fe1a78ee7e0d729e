//! Legacy messages of many inputs at once.
//!
//! A legacy message repeats the whole transaction for each input, which makes a transaction with
//! many inputs quadratic. What comes before the signed input is shared with the messages after it
//! (`TxContext::legacy_prefix`). What comes behind it is hashed from different states, but it is the
//! same bytes for all inputs, and for script codes of equal length it also falls on the same block
//! boundaries. So up to sixteen messages are computed together, in the lanes of a vector.
//!
//! Which script code a signature covers only the script knows; it is guessed, and a message is used
//! when the guess was right.

use std::borrow::Cow;
use std::ops::Range;

use assay_hash::Sha256;
use assay_wire::{Tx, TxOut};

use super::message::{blank_input, update_script_without_separators};
use super::opcode::{is_p2sh, last_push, witness_program};

/// Legacy messages computed together at most: the lanes of the widest vector.
pub const LANES: usize = 16;

/// Fewer messages are not worth it.
const LANES_MIN: usize = 8;

/// Inputs looked at for script codes of the same length.
const WINDOW: usize = 64;

/// After this many failed searches there is no further one: searches must not cost more than hashing.
const FAILURES_MAX: u8 = 8;

/// Inputs of a transaction from which on legacy messages are computed together.
pub const INPUTS_MIN: usize = 32;

/// Bytes of an input whose script is blanked.
const BLANK: usize = 41;

/// The messages of some inputs of a transaction for all inputs and outputs, up to their hash type.
#[derive(Debug)]
pub(super) struct LegacyAhead<'a> {
    /// The bytes that [`legacy_tail`] gives.
    tail: Cow<'a, [u8]>,
    /// The inputs whose messages will be asked for.
    inputs: Range<usize>,
    /// One for each of `inputs`, computed once, wrong guesses included, so they never cost more than they may save.
    messages: Vec<Option<Sha256>>,
    failures: u8,
}

/// The end of every legacy message: all inputs with their scripts blanked, the outputs, the lock time.
pub(super) fn legacy_tail(tx: Tx<'_>) -> Vec<u8> {
    let outputs = tx.outputs_with_count_raw();
    let mut tail = Vec::with_capacity(BLANK * tx.input_count() + outputs.len() + 4);
    for input in tx.inputs() {
        tail.extend_from_slice(&blank_input(&input, input.sequence));
    }
    tail.extend_from_slice(outputs);
    tail.extend_from_slice(&tx.lock_time().to_le_bytes());
    tail
}

impl<'a> LegacyAhead<'a> {
    pub(super) fn new(tail: Cow<'a, [u8]>, inputs: Range<usize>) -> Self {
        let messages = vec![None; inputs.len()];
        Self { tail, inputs, messages, failures: 0 }
    }

    /// The message for input number `input`, if its script code is as guessed.
    ///
    /// `prefix` has absorbed everything before that input.
    pub(super) fn message(
        &mut self,
        tx: Tx<'_>,
        spent: &[TxOut<'_>],
        input: usize,
        script_code: &[u8],
        prefix: impl FnOnce() -> Sha256,
    ) -> Option<Sha256> {
        if !self.inputs.contains(&input) || guess(tx, spent, input) != Some(script_code) {
            return None;
        }
        let slot = input - self.inputs.start;
        if self.messages[slot].is_none() && self.failures < FAILURES_MAX {
            self.compute(tx, spent, input, prefix());
        }
        self.messages[slot].clone()
    }

    /// Computes the messages of `first` and of the inputs behind it whose script codes are as long.
    fn compute(&mut self, tx: Tx<'_>, spent: &[TxOut<'_>], first: usize, mut prefix: Sha256) {
        let code_of = |input: usize| guess(tx, spent, input);
        let length = code_of(first).map(<[u8]>::len);
        let begin = self.inputs.start;
        let lanes: Vec<usize> = (first..self.inputs.end.min(first + WINDOW))
            .filter(|&input| self.messages[input - begin].is_none())
            .filter(|&input| code_of(input).map(<[u8]>::len) == length)
            .take(LANES)
            .collect();
        let Some(&last) = lanes.get(LANES_MIN - 1..).and_then(<[usize]>::last) else {
            self.failures += 1;
            return;
        };
        let mut at = first;
        let mut hashers: Vec<Sha256> = Vec::with_capacity(lanes.len());
        for &input in &lanes {
            prefix.update(&self.tail[BLANK * at..BLANK * input]);
            at = input;
            let mut hasher = prefix.clone();
            let signed = tx.input(input);
            hasher.update(&signed.prevout.to_bytes());
            update_script_without_separators(&mut hasher, code_of(input).unwrap_or_default());
            hasher.update(&signed.sequence.to_le_bytes());
            hasher.update(&self.tail[BLANK * (input + 1)..BLANK * (last + 1)]);
            hashers.push(hasher);
        }
        Sha256::update_all(&mut hashers, &self.tail[BLANK * (last + 1)..]);
        for (input, hasher) in lanes.into_iter().zip(hashers) {
            self.messages[input - begin] = Some(hasher);
        }
    }
}

/// The script code that a signature of this input will most likely cover; `None` for witness
/// programs, which have other messages.
fn guess<'a>(tx: Tx<'a>, spent: &[TxOut<'a>], input: usize) -> Option<&'a [u8]> {
    let script = spent[input].script_pubkey;
    let code = if is_p2sh(script) { last_push(tx.input(input).script_sig)? } else { script };
    witness_program(code).is_none().then_some(code)
}
