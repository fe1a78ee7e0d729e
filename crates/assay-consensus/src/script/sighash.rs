//! Signature messages: legacy, BIP-0143 (also Bitcoin Cash with the fork bit) and BIP-0341/0342.
//!
//! Every message is streamed into SHA-256 from the bytes of the transaction; none is built in memory.

use assay_hash::Sha256;

use super::context::TxContext;
use super::message::{
    SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_NONE, SIGHASH_SINGLE, SINGLE_BUG, TAP_SIGHASH,
    blank_input, finish, output_type, taproot_head, update_compact_size, update_output,
    update_script_without_separators,
};

/// The place in a tapscript at which a signature is checked (BIP-0342).
#[derive(Clone, Copy, Debug)]
pub struct TapscriptPosition {
    pub leaf_hash: [u8; 32],
    /// Position (in opcodes) of the last executed CODESEPARATOR, all ones when there is none.
    pub code_separator: u32,
}

impl TxContext<'_> {
    /// The message of a pre-segwit signature by input number `input`.
    ///
    /// `script_code` is the script from behind the last executed CODESEPARATOR with the signature
    /// deleted; `hash_type` may be any number, as for the first signatures of the chain.
    pub fn sighash_legacy(&self, input: usize, script_code: &[u8], hash_type: u32) -> [u8; 32] {
        match self.legacy_message(input, script_code, hash_type) {
            Some(hasher) => finish(hasher, hash_type),
            None => SINGLE_BUG,
        }
    }

    /// The message of a version 0 witness signature (BIP-0143) that spends `value`.
    ///
    /// With the fork bit in `hash_type` it is the message of a Bitcoin Cash signature (fork value 0).
    pub fn sighash_segwit_v0(
        &self,
        input: usize,
        script_code: &[u8],
        value: i64,
        hash_type: u32,
    ) -> [u8; 32] {
        finish(self.segwit_v0_message(input, script_code, value, hash_type), hash_type)
    }

    /// The message of a Taproot signature (BIP-0341), by the key path or from a tapscript.
    ///
    /// `annex_hash` is the SHA-256 of the annex with its length. `None` when the hash type is not
    /// defined or a single output is asked for that does not exist.
    pub fn sighash_taproot(
        &self,
        input: usize,
        hash_type: u8,
        annex_hash: Option<&[u8; 32]>,
        position: Option<&TapscriptPosition>,
    ) -> Option<[u8; 32]> {
        let mut output_hash = None;
        self.taproot_message(input, hash_type, annex_hash, position, &mut output_hash)
    }

    /// The legacy message without its hash type; `None` stands for [`SINGLE_BUG`].
    pub(super) fn legacy_message(
        &self,
        input: usize,
        script_code: &[u8],
        hash_type: u32,
    ) -> Option<Sha256> {
        let tx = self.tx();
        let base = output_type(hash_type);
        if base == SIGHASH_SINGLE && input >= tx.output_count() {
            return None;
        }
        let anyone_can_pay = hash_type & SIGHASH_ANYONECANPAY != 0;
        let keep_sequences = base != SIGHASH_SINGLE && base != SIGHASH_NONE;
        let mut hasher;
        if !anyone_can_pay && keep_sequences {
            if let Some(message) = self.legacy_ahead(input, script_code) {
                return Some(message);
            }
            hasher = self.legacy_prefix(input);
        } else {
            hasher = self.legacy_start(if anyone_can_pay { 1 } else { tx.input_count() });
            if !anyone_can_pay {
                for other in 0..input {
                    hasher.update(&blank_input(&tx.input(other), 0));
                }
            }
        }
        let signed = tx.input(input);
        hasher.update(&signed.prevout.to_bytes());
        update_script_without_separators(&mut hasher, script_code);
        hasher.update(&signed.sequence.to_le_bytes());
        if !anyone_can_pay {
            for other in input + 1..tx.input_count() {
                let blank = tx.input(other);
                let sequence = if keep_sequences { blank.sequence } else { 0 };
                hasher.update(&blank_input(&blank, sequence));
            }
        }
        match base {
            SIGHASH_NONE => hasher.update(&[0]),
            SIGHASH_SINGLE => {
                update_compact_size(&mut hasher, input + 1);
                for _ in 0..input {
                    hasher.update(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]);
                }
                update_output(&mut hasher, &tx.output(input));
            }
            _ => hasher.update(tx.outputs_with_count_raw()),
        }
        hasher.update(&tx.lock_time().to_le_bytes());
        Some(hasher)
    }

    /// The BIP-0143 message without its hash type.
    pub(super) fn segwit_v0_message(
        &self,
        input: usize,
        script_code: &[u8],
        value: i64,
        hash_type: u32,
    ) -> Sha256 {
        const ZERO: [u8; 32] = [0; 32];
        let tx = self.tx();
        let base = output_type(hash_type);
        let anyone_can_pay = hash_type & SIGHASH_ANYONECANPAY != 0;
        let all_outputs = base != SIGHASH_SINGLE && base != SIGHASH_NONE;
        let signed = tx.input(input);
        let mut hasher;
        if all_outputs && !anyone_can_pay {
            hasher = self.segwit_v0_start();
        } else {
            let mut head = [0; 68];
            head[..4].copy_from_slice(&tx.version().to_le_bytes());
            if !anyone_can_pay {
                head[4..36].copy_from_slice(self.prevouts_double_hash());
            }
            hasher = Sha256::new();
            hasher.update(&head);
        }
        hasher.update(&signed.prevout.to_bytes());
        update_compact_size(&mut hasher, script_code.len());
        hasher.update(script_code);
        let mut tail = [0; 48];
        tail[..8].copy_from_slice(&value.to_le_bytes());
        tail[8..12].copy_from_slice(&signed.sequence.to_le_bytes());
        tail[12..44].copy_from_slice(if all_outputs { self.outputs_double_hash() } else { &ZERO });
        if base == SIGHASH_SINGLE && input < tx.output_count() {
            let mut single = Sha256::new();
            update_output(&mut single, &tx.output(input));
            tail[12..44].copy_from_slice(&single.finalize_double());
        }
        tail[44..].copy_from_slice(&tx.lock_time().to_le_bytes());
        hasher.update(&tail);
        hasher
    }

    /// As [`Self::sighash_taproot`]; `output_hash` keeps the hash of the single output between the
    /// signatures of one input, which may hash a large output many times otherwise.
    pub(super) fn taproot_message(
        &self,
        input: usize,
        hash_type: u8,
        annex_hash: Option<&[u8; 32]>,
        position: Option<&TapscriptPosition>,
        output_hash: &mut Option<[u8; 32]>,
    ) -> Option<[u8; 32]> {
        if !matches!(hash_type, 0..=3 | 0x81..=0x83) {
            return None;
        }
        let tx = self.tx();
        let outputs = if hash_type == 0 { SIGHASH_ALL } else { u32::from(hash_type & 3) };
        let anyone_can_pay = hash_type & 0x80 != 0;
        let mut hasher;
        if anyone_can_pay {
            hasher = TAP_SIGHASH.start();
            hasher.update(&taproot_head(tx, hash_type));
            if outputs == SIGHASH_ALL {
                hasher.update(self.outputs_hash());
            }
        } else {
            hasher = self.taproot_start(hash_type, outputs == SIGHASH_ALL);
        }
        hasher.update(&[u8::from(position.is_some()) << 1 | u8::from(annex_hash.is_some())]);
        if anyone_can_pay {
            let signed = tx.input(input);
            hasher.update(&signed.prevout.to_bytes());
            update_output(&mut hasher, &self.spent(input));
            hasher.update(&signed.sequence.to_le_bytes());
        } else {
            hasher.update(&(input as u32).to_le_bytes());
        }
        if let Some(annex_hash) = annex_hash {
            hasher.update(annex_hash);
        }
        if outputs == SIGHASH_SINGLE {
            if input >= tx.output_count() {
                return None;
            }
            let hash = output_hash.get_or_insert_with(|| {
                let mut single = Sha256::new();
                update_output(&mut single, &tx.output(input));
                single.finalize()
            });
            hasher.update(hash);
        }
        if let Some(position) = position {
            hasher.update(&position.leaf_hash);
            // The key version, zero for 32-byte keys.
            hasher.update(&[0]);
            hasher.update(&position.code_separator.to_le_bytes());
        }
        Some(hasher.finalize())
    }
}

/// Legacy and BIP-0143 messages of the input being verified, up to their hash type.
///
/// A script may check many signatures over the same large message. As in Core's `SigHashCache` one
/// message per combination of hash type bits is kept, under a key that says which script code it is
/// for. Inputs with a single signature are the rule, so a message is kept from the second signature
/// with those bits on.
#[derive(Debug, Default)]
pub(super) struct SighashCache {
    entries: [Option<Kept>; 6],
    /// One bit per entry: a message with those hash type bits has been computed.
    asked: u8,
}

/// A message up to its hash type, and its hash for the last one.
#[derive(Debug)]
struct Kept {
    key: CodeKey,
    hasher: Sha256,
    hash_type: u32,
    hash: [u8; 32],
}

/// Identifies the script code and algorithm of a cached message within one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeKey {
    /// The script run as number `script`, from byte `start` to its end.
    Plain { script: u8, start: u32, fork: bool },
    /// A script code with signatures deleted, by its hash.
    Deleted { hash: [u8; 32], fork: bool },
}

impl SighashCache {
    fn slot(hash_type: u32) -> usize {
        let outputs = match output_type(hash_type) {
            SIGHASH_NONE => 1,
            SIGHASH_SINGLE => 2,
            _ => 0,
        };
        outputs + if hash_type & SIGHASH_ANYONECANPAY == 0 { 0 } else { 3 }
    }

    /// Forgets everything: the next input begins.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.asked = 0;
    }

    /// The hash for `hash_type`, from the kept message or from `message`.
    #[inline]
    pub(super) fn hash(
        &mut self,
        key: CodeKey,
        hash_type: u32,
        message: impl FnOnce() -> Option<Sha256>,
    ) -> [u8; 32] {
        let slot = Self::slot(hash_type);
        if self.asked >> slot & 1 == 0 {
            self.asked |= 1 << slot;
            self.entries[slot] = None;
            return message().map_or(SINGLE_BUG, |hasher| finish(hasher, hash_type));
        }
        let entry = &mut self.entries[slot];
        if let Some(kept) = entry
            && kept.key == key
        {
            if kept.hash_type != hash_type {
                kept.hash_type = hash_type;
                kept.hash = finish(kept.hasher.clone(), hash_type);
            }
            return kept.hash;
        }
        let Some(hasher) = message() else { return SINGLE_BUG };
        let hash = finish(hasher.clone(), hash_type);
        *entry = Some(Kept { key, hasher, hash_type, hash });
        hash
    }
}

#[cfg(test)]
#[path = "sighash_tests.rs"]
mod tests;
