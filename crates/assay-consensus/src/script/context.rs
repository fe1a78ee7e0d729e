//! A transaction with the outputs it spends, and the hashes that its signature messages share.

use std::cell::{Cell, OnceCell};

use assay_hash::{Sha256, sha256};
use assay_wire::{Tx, TxOut};

use super::sighash::{TAP_SIGHASH, taproot_head, update_blank_input, update_compact_size};

/// A transaction together with the outputs its inputs spend.
///
/// Hashes that several signatures of the transaction need are computed when first asked for and
/// kept, so one context serves all inputs of a transaction on one thread.
pub struct TxContext<'a> {
    tx: Tx<'a>,
    spent: &'a [TxOut<'a>],
    prevouts: OnceCell<[u8; 32]>,
    sequences: OnceCell<[u8; 32]>,
    outputs: OnceCell<[u8; 32]>,
    amounts: OnceCell<[u8; 32]>,
    scripts: OnceCell<[u8; 32]>,
    prevouts_double: OnceCell<[u8; 32]>,
    sequences_double: OnceCell<[u8; 32]>,
    outputs_double: OnceCell<[u8; 32]>,
    legacy_prefix: Cell<Option<LegacyPrefix>>,
    segwit_v0_start: OnceCell<Sha256>,
    taproot_start: OnceCell<(u8, Sha256)>,
}

/// The legacy message for all inputs and outputs begins with the version, the number of inputs and
/// the blanked inputs before the signed one: a prefix that later inputs extend. Verifying the inputs
/// of a transaction in order therefore hashes about half of what the messages add up to.
struct LegacyPrefix {
    blank_inputs: usize,
    hasher: Sha256,
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
            prevouts: OnceCell::new(),
            sequences: OnceCell::new(),
            outputs: OnceCell::new(),
            amounts: OnceCell::new(),
            scripts: OnceCell::new(),
            prevouts_double: OnceCell::new(),
            sequences_double: OnceCell::new(),
            outputs_double: OnceCell::new(),
            legacy_prefix: Cell::new(None),
            segwit_v0_start: OnceCell::new(),
            taproot_start: OnceCell::new(),
        }
    }

    /// The spending transaction.
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
        self.prevouts.get_or_init(|| {
            let mut hasher = Sha256::new();
            for input in self.tx.inputs() {
                hasher.update(&input.prevout.to_bytes());
            }
            hasher.finalize()
        })
    }

    /// SHA-256 of all sequence numbers (BIP-0341 `sha_sequences`).
    pub(super) fn sequences_hash(&self) -> &[u8; 32] {
        self.sequences.get_or_init(|| {
            let mut hasher = Sha256::new();
            for input in self.tx.inputs() {
                hasher.update(&input.sequence.to_le_bytes());
            }
            hasher.finalize()
        })
    }

    /// SHA-256 of all outputs (BIP-0341 `sha_outputs`).
    pub(super) fn outputs_hash(&self) -> &[u8; 32] {
        self.outputs.get_or_init(|| sha256(self.tx.outputs_raw()))
    }

    /// SHA-256 of all spent amounts (BIP-0341 `sha_amounts`).
    pub(super) fn amounts_hash(&self) -> &[u8; 32] {
        self.amounts.get_or_init(|| {
            let mut hasher = Sha256::new();
            for output in self.spent {
                hasher.update(&output.value.to_le_bytes());
            }
            hasher.finalize()
        })
    }

    /// SHA-256 of all spent scripts with their lengths (BIP-0341 `sha_scriptpubkeys`).
    pub(super) fn scripts_hash(&self) -> &[u8; 32] {
        self.scripts.get_or_init(|| {
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

    /// How every BIP-0143 message for all inputs and outputs begins: one of its three blocks, for a short script.
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

    /// How every BIP-0341 message of this hash type, for all inputs, begins: two of its three blocks.
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

    /// Version and number of inputs: how every legacy message begins.
    #[inline]
    pub(super) fn legacy_start(&self, input_count: usize) -> Sha256 {
        let mut hasher = Sha256::new();
        hasher.update(&self.tx.version().to_le_bytes());
        update_compact_size(&mut hasher, input_count);
        hasher
    }

    /// The legacy message up to, not including, input number `input`, with the sequence numbers of
    /// the inputs before it kept.
    pub(super) fn legacy_prefix(&self, input: usize) -> Sha256 {
        if self.spent.len() == 1 {
            return self.legacy_start(1);
        }
        let mut prefix = match self.legacy_prefix.take() {
            Some(prefix) if prefix.blank_inputs <= input => prefix,
            _ => LegacyPrefix { blank_inputs: 0, hasher: self.legacy_start(self.spent.len()) },
        };
        while prefix.blank_inputs < input {
            let blank = self.tx.input(prefix.blank_inputs);
            update_blank_input(&mut prefix.hasher, &blank, blank.sequence);
            prefix.blank_inputs += 1;
        }
        let hasher = prefix.hasher.clone();
        self.legacy_prefix.set(Some(prefix));
        hasher
    }
}
