//! Parts of signature messages: hash types, and what is hashed of transactions, inputs, outputs and scripts.

use std::sync::LazyLock;

use assay_hash::{Sha256, TaggedHasher};
use assay_wire::{Tx, TxIn, TxOut};

use super::opcode::{op, read_instruction};

/// Sign all outputs.
pub const SIGHASH_ALL: u32 = 1;
/// Sign no output.
pub const SIGHASH_NONE: u32 = 2;
/// Sign the output of the same index.
pub const SIGHASH_SINGLE: u32 = 3;
/// Bitcoin Cash: the message is built by BIP-0143 whatever the script type.
pub const SIGHASH_FORKID: u32 = 0x40;
/// Sign only this input.
pub const SIGHASH_ANYONECANPAY: u32 = 0x80;

/// The message of a legacy `SIGHASH_SINGLE` signature without a matching output: the number one.
pub const SINGLE_BUG: [u8; 32] = {
    let mut one = [0; 32];
    one[0] = 1;
    one
};

pub(super) static TAP_SIGHASH: LazyLock<TaggedHasher> =
    LazyLock::new(|| TaggedHasher::new("TapSighash"));

/// The start of a BIP-0341 message: epoch, hash type, version and lock time.
#[inline]
pub(super) fn taproot_head(tx: Tx<'_>, hash_type: u8) -> [u8; 10] {
    let mut head = [0; 10];
    head[1] = hash_type;
    head[2..6].copy_from_slice(&tx.version().to_le_bytes());
    head[6..].copy_from_slice(&tx.lock_time().to_le_bytes());
    head
}

#[inline]
pub(super) fn output_type(hash_type: u32) -> u32 {
    hash_type & 0x1f
}

/// Adds a compact size to a hash.
#[inline]
pub(super) fn update_compact_size(hasher: &mut Sha256, n: usize) {
    let n = n as u64;
    let le = n.to_le_bytes();
    if n < 253 {
        hasher.update(&le[..1]);
    } else if n <= 0xffff {
        hasher.update(&[253, le[0], le[1]]);
    } else if n <= 0xffff_ffff {
        hasher.update(&[254, le[0], le[1], le[2], le[3]]);
    } else {
        hasher.update(&[255]);
        hasher.update(&le);
    }
}

/// An input whose script is blanked, as legacy messages have all inputs but the signed one.
#[inline]
pub(super) fn blank_input(input: &TxIn<'_>, sequence: u32) -> [u8; 41] {
    let mut bytes = [0; 41];
    bytes[..36].copy_from_slice(&input.prevout.to_bytes());
    bytes[37..].copy_from_slice(&sequence.to_le_bytes());
    bytes
}

pub(super) fn update_output(hasher: &mut Sha256, output: &TxOut<'_>) {
    hasher.update(&output.value.to_le_bytes());
    update_compact_size(hasher, output.script_pubkey.len());
    hasher.update(output.script_pubkey);
}

/// Adds a script with its length, leaving out every CODESEPARATOR.
///
/// A script that ends in a cut-off push announces its whole length but is hashed only up to where
/// parsing stopped, as in Core's `CTransactionSignatureSerializer`. Such a script cannot succeed;
/// only published vectors see the difference.
pub(super) fn update_script_without_separators(hasher: &mut Sha256, script: &[u8]) {
    let mut pos = 0;
    let mut separators = 0;
    while pos < script.len() {
        match read_instruction(script, &mut pos) {
            Some(i) => separators += usize::from(i.opcode == op::CODESEPARATOR),
            None => break,
        }
    }
    update_compact_size(hasher, script.len() - separators);
    let end = pos;
    let mut begin = 0;
    if separators > 0 {
        pos = 0;
        while pos < script.len() {
            match read_instruction(script, &mut pos) {
                Some(i) if i.opcode == op::CODESEPARATOR => {
                    hasher.update(&script[begin..pos - 1]);
                    begin = pos;
                }
                Some(_) => {}
                None => break,
            }
        }
    }
    hasher.update(&script[begin..end]);
}

/// Finishes a legacy or BIP-0143 message with its hash type.
#[inline]
pub(super) fn finish(mut hasher: Sha256, hash_type: u32) -> [u8; 32] {
    hasher.update(&hash_type.to_le_bytes());
    hasher.finalize_double()
}

/// The legacy message for all inputs and outputs begins with the version, the number of inputs and
/// the blanked inputs before the signed one: a prefix that later inputs extend. Verifying the inputs
/// of a transaction in order therefore hashes about half of what the messages add up to.
pub(super) struct LegacyPrefix {
    pub(super) blank_inputs: usize,
    pub(super) hasher: Sha256,
}

impl LegacyPrefix {
    /// The state before the first of `input_count` inputs.
    pub(super) fn start(tx: Tx<'_>, input_count: usize) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(&tx.version().to_le_bytes());
        update_compact_size(&mut hasher, input_count);
        Self { blank_inputs: 0, hasher }
    }

    /// The state after `blank_inputs` inputs, which the caller knows to have been absorbed.
    pub(super) fn after(blank_inputs: usize, hasher: Sha256) -> Self {
        Self { blank_inputs, hasher }
    }

    /// Absorbs the inputs up to, not including, number `input`; gives the state there.
    pub(super) fn extend(&mut self, tx: Tx<'_>, input: usize) -> Sha256 {
        while self.blank_inputs < input {
            let blank = tx.input(self.blank_inputs);
            self.hasher.update(&blank_input(&blank, blank.sequence));
            self.blank_inputs += 1;
        }
        self.hasher.clone()
    }
}
