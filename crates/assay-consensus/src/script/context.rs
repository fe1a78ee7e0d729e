//! A transaction with the outputs it spends, and the hashes that its signature messages share.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::sync::OnceLock;

use assay_hash::{Sha256, sha256};
use assay_wire::{Tx, TxOut};

use super::ahead::{self, LegacyAhead};
use super::keys::KeyHashesOf;
use super::message::{LegacyPrefix, TAP_SIGHASH, taproot_head, update_compact_size};
use super::shared::SharedHashes;

/// A transaction together with the outputs its inputs spend.
///
/// Hashes that several signatures of the transaction need are computed when first asked for and
/// kept, so one context serves all inputs of a transaction on one thread. Where several threads
/// verify inputs of the same transaction, each has a context for its part ([`Self::for_part`]).
pub struct TxContext<'a> {
    tx: Tx<'a>,
    spent: &'a [TxOut<'a>],
    /// The inputs that this context is asked about; for others it only works less ahead.
    inputs: Range<usize>,
    /// Hashes in common with the contexts of other parts.
    shared: Option<&'a SharedHashes>,
    key_hashes: KeyHashesOf<'a>,
    prevouts: OnceCell<[u8; 32]>,
    sequences: OnceCell<[u8; 32]>,
    outputs: OnceCell<[u8; 32]>,
    amounts: OnceCell<[u8; 32]>,
    scripts: OnceCell<[u8; 32]>,
    prevouts_double: OnceCell<[u8; 32]>,
    sequences_double: OnceCell<[u8; 32]>,
    outputs_double: OnceCell<[u8; 32]>,
    legacy_prefix: Cell<Option<LegacyPrefix>>,
    legacy_ahead: RefCell<Option<LegacyAhead<'a>>>,
    segwit_v0_start: OnceCell<Sha256>,
    taproot_start: OnceCell<(u8, Sha256)>,
    check_template_start: OnceCell<Sha256>,
}

impl<'a> TxContext<'a> {
    /// Puts a transaction and the outputs it spends, in the order of its inputs, together.
    ///
    /// # Panics
    /// When there is not exactly one spent output per input.
    pub fn new(tx: Tx<'a>, spent: &'a [TxOut<'a>]) -> Self {
        assert_eq!(tx.input_count(), spent.len(), "one spent output per input");
        Self {
            tx,
            spent,
            inputs: 0..spent.len(),
            shared: None,
            key_hashes: KeyHashesOf::NONE,
            prevouts: OnceCell::new(),
            sequences: OnceCell::new(),
            outputs: OnceCell::new(),
            amounts: OnceCell::new(),
            scripts: OnceCell::new(),
            prevouts_double: OnceCell::new(),
            sequences_double: OnceCell::new(),
            outputs_double: OnceCell::new(),
            legacy_prefix: Cell::new(None),
            legacy_ahead: RefCell::new(None),
            segwit_v0_start: OnceCell::new(),
            taproot_start: OnceCell::new(),
            check_template_start: OnceCell::new(),
        }
    }

    /// The context of a thread that verifies these inputs only, and shares with the other parts what all of them need.
    /// Nothing but the time that scripts take depends on `inputs`. All parts have the same spent outputs.
    ///
    /// # Panics
    /// When `shared` is for the bytes of another transaction.
    #[must_use]
    pub fn for_part(self, inputs: Range<usize>, shared: &'a SharedHashes) -> Self {
        assert!(shared.is_for(self.tx), "hashes of another transaction");
        Self { inputs, shared: Some(shared), ..self }
    }

    /// The context with hashes of the keys of its inputs that have been worked out beforehand. Nothing but the time that
    /// scripts take depends on them.
    #[must_use]
    pub fn with_key_hashes(self, key_hashes: KeyHashesOf<'a>) -> Self {
        Self { key_hashes, ..self }
    }

    /// The HASH160 of `data`, which the script of input number `input` asks for.
    #[inline]
    pub(super) fn hash160(&self, input: usize, data: &[u8]) -> [u8; 20] {
        self.key_hashes.hash160(input.wrapping_sub(self.inputs.start), data)
    }

    #[inline]
    pub fn tx(&self) -> Tx<'a> {
        self.tx
    }

    /// The output that input number `input` spends.
    #[inline]
    pub fn spent(&self, input: usize) -> TxOut<'a> {
        self.spent[input]
    }

    /// SHA-256 of all outpoints (BIP-0341 `sha_prevouts`).
    pub(super) fn prevouts_hash(&self) -> &[u8; 32] {
        let shared = self.shared.map(|shared| &shared.prevouts);
        kept(&self.prevouts, shared, || {
            let mut hasher = Sha256::new();
            for input in self.tx.inputs() {
                hasher.update(&input.prevout.to_bytes());
            }
            hasher.finalize()
        })
    }

    /// SHA-256 of all sequence numbers (BIP-0341 `sha_sequences`).
    pub(super) fn sequences_hash(&self) -> &[u8; 32] {
        let shared = self.shared.map(|shared| &shared.sequences);
        kept(&self.sequences, shared, || {
            let mut hasher = Sha256::new();
            for input in self.tx.inputs() {
                hasher.update(&input.sequence.to_le_bytes());
            }
            hasher.finalize()
        })
    }

    /// SHA-256 of all outputs (BIP-0341 `sha_outputs`).
    pub(super) fn outputs_hash(&self) -> &[u8; 32] {
        let shared = self.shared.map(|shared| &shared.outputs);
        kept(&self.outputs, shared, || sha256(self.tx.outputs_raw()))
    }

    /// SHA-256 of all spent amounts (BIP-0341 `sha_amounts`).
    pub(super) fn amounts_hash(&self) -> &[u8; 32] {
        let shared = self.shared.map(|shared| &shared.amounts);
        kept(&self.amounts, shared, || {
            let mut hasher = Sha256::new();
            for output in self.spent {
                hasher.update(&output.value.to_le_bytes());
            }
            hasher.finalize()
        })
    }

    /// SHA-256 of all spent scripts with their lengths (BIP-0341 `sha_scriptpubkeys`).
    pub(super) fn scripts_hash(&self) -> &[u8; 32] {
        let shared = self.shared.map(|shared| &shared.scripts);
        kept(&self.scripts, shared, || {
            let mut hasher = Sha256::new();
            for output in self.spent {
                update_compact_size(&mut hasher, output.script_pubkey.len());
                hasher.update(output.script_pubkey);
            }
            hasher.finalize()
        })
    }

    /// BIP-0143 `hashPrevouts`.
    pub(super) fn prevouts_double_hash(&self) -> &[u8; 32] {
        self.prevouts_double.get_or_init(|| sha256(self.prevouts_hash()))
    }

    /// BIP-0143 `hashSequence`.
    pub(super) fn sequences_double_hash(&self) -> &[u8; 32] {
        self.sequences_double.get_or_init(|| sha256(self.sequences_hash()))
    }

    /// BIP-0143 `hashOutputs`.
    pub(super) fn outputs_double_hash(&self) -> &[u8; 32] {
        self.outputs_double.get_or_init(|| sha256(self.outputs_hash()))
    }

    /// The start of every BIP-0143 message for all inputs and outputs: one of its three blocks, for a short script.
    #[inline]
    pub(super) fn segwit_v0_start(&self) -> Sha256 {
        let start = || {
            let mut hasher = Sha256::new();
            hasher.update(&self.tx.version().to_le_bytes());
            hasher.update(self.prevouts_double_hash());
            hasher.update(self.sequences_double_hash());
            hasher
        };
        self.segwit_v0_start.get_or_init(start).clone()
    }

    /// The start of every BIP-0341 message of this hash type, for all inputs: two of its three blocks.
    ///
    /// Kept for the first hash type that is asked for; transactions that mix them are rare.
    #[inline]
    pub(super) fn taproot_start(&self, hash_type: u8, all_outputs: bool) -> Sha256 {
        let start = || {
            let mut hasher = TAP_SIGHASH.start();
            hasher.update(&taproot_head(self.tx, hash_type));
            hasher.update(self.prevouts_hash());
            hasher.update(self.amounts_hash());
            hasher.update(self.scripts_hash());
            hasher.update(self.sequences_hash());
            if all_outputs {
                hasher.update(self.outputs_hash());
            }
            hasher
        };
        let (kept_type, kept) = self.taproot_start.get_or_init(|| (hash_type, start()));
        if *kept_type == hash_type { kept.clone() } else { start() }
    }

    /// BIP-0119's hash up to the index of the input, computed by whichever asks first.
    pub(super) fn check_template_start(&self, start: impl FnOnce() -> Sha256) -> Sha256 {
        self.check_template_start.get_or_init(start).clone()
    }

    /// Returns `true` if legacy messages for all inputs and outputs are so long that it pays to keep their hashes.
    #[inline]
    pub(super) fn has_long_messages(&self) -> bool {
        41 * self.tx.input_count() + self.tx.outputs_raw().len() >= LONG_BYTES
    }

    /// Version and number of inputs: the start of every legacy message.
    #[inline]
    pub(super) fn legacy_start(&self, input_count: usize) -> Sha256 {
        LegacyPrefix::start(self.tx, input_count).hasher
    }

    /// The legacy message for all inputs and outputs, where it was worth computing together with
    /// others and the script code is the one expected.
    pub(super) fn legacy_ahead(&self, input: usize, script_code: &[u8]) -> Option<Sha256> {
        if self.spent.len() < ahead::INPUTS_MIN {
            return None;
        }
        let mut ahead = self.legacy_ahead.borrow_mut();
        let ahead = ahead.get_or_insert_with(|| {
            let tail = match self.shared {
                Some(shared) => Cow::Borrowed(shared.legacy_tail(self.tx)),
                None => Cow::Owned(ahead::legacy_tail(self.tx)),
            };
            LegacyAhead::new(tail, self.inputs.clone())
        });
        ahead.message(self.tx, self.spent, input, script_code, || self.legacy_prefix(input))
    }

    /// The legacy message up to, not including, input number `input`, with the sequence numbers of
    /// the inputs before it kept.
    pub(super) fn legacy_prefix(&self, input: usize) -> Sha256 {
        let input_count = self.spent.len();
        if input_count == 1 {
            return self.legacy_start(1);
        }
        let mut prefix = match (self.legacy_prefix.take(), self.shared) {
            (Some(prefix), _) if prefix.blank_inputs <= input => prefix,
            (_, Some(shared)) => shared.legacy_prefix_before(self.tx, input),
            _ => LegacyPrefix::start(self.tx, input_count),
        };
        let hasher = prefix.extend(self.tx, input);
        self.legacy_prefix.set(Some(prefix));
        hasher
    }
}

/// A hash of this context; where it shares them, computed by whichever is first.
#[inline]
fn kept<'h>(
    own: &'h OnceCell<[u8; 32]>,
    shared: Option<&OnceLock<[u8; 32]>>,
    compute: impl FnOnce() -> [u8; 32],
) -> &'h [u8; 32] {
    own.get_or_init(|| match shared {
        Some(shared) => *shared.get_or_init(compute),
        None => compute(),
    })
}

/// Transactions whose legacy messages have about this many bytes have long ones.
const LONG_BYTES: usize = 4_096;
