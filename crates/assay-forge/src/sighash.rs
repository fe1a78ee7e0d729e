//! Signature hashes of type `SIGHASH_ALL` for all inputs.
//!
//! Forged transactions have a fixed form (version 2, no lock time, final sequences), so the hashes are computed from the
//! serialised pieces. The code is independent of the interpreter that verifies them: a forged chain tests both.

use std::sync::LazyLock;

use assay_hash::{Sha256, TaggedHasher, sha256, sha256d};

pub(crate) const VERSION: [u8; 4] = 2u32.to_le_bytes();
pub(crate) const LOCK_TIME: [u8; 4] = [0; 4];
pub(crate) const SEQUENCE: [u8; 4] = [0xff; 4];
/// `SIGHASH_ALL`.
pub(crate) const ALL: u8 = 0x01;
/// `SIGHASH_ALL | SIGHASH_FORKID` of Bitcoin Cash.
pub(crate) const ALL_FORKID: u8 = 0x41;

/// The parts of one transaction that its signature hashes cover, serialised.
#[derive(Default)]
pub(crate) struct Parts {
    /// 36 bytes per input.
    pub(crate) outpoints: Vec<u8>,
    /// Serialised outputs without their count.
    pub(crate) outputs: Vec<u8>,
    /// Spent amounts, 8 bytes per input (taproot only).
    pub(crate) amounts: Vec<u8>,
    /// Spent scripts with their lengths (taproot only).
    pub(crate) scripts: Vec<u8>,
    pub(crate) input_count: usize,
    pub(crate) output_count: usize,
}

/// BIP143, and the same digest with the FORKID hash type; the parts shared by all inputs are hashed once.
pub(crate) struct Bip143 {
    head: Sha256,
    tail: [u8; 40],
}

impl Bip143 {
    pub(crate) fn new(parts: &Parts, hash_type: u8) -> Self {
        let mut head = Sha256::new();
        head.update(&VERSION);
        head.update(&sha256d(&parts.outpoints));
        head.update(&sha256d(&sequences(parts.input_count)));
        let mut tail = [0u8; 40];
        tail[..32].copy_from_slice(&sha256d(&parts.outputs));
        tail[32..36].copy_from_slice(&LOCK_TIME);
        tail[36] = hash_type;
        Self { head, tail }
    }

    /// `script_code` includes its length.
    pub(crate) fn digest(&self, outpoint: &[u8], script_code: &[u8], amount: u64) -> [u8; 32] {
        let mut hasher = self.head.clone();
        hasher.update(outpoint);
        hasher.update(script_code);
        hasher.update(&amount.to_le_bytes());
        hasher.update(&SEQUENCE);
        hasher.update(&self.tail);
        hasher.finalize_double()
    }
}

/// BIP341 for `SIGHASH_DEFAULT`, key path and (BIP342) script path.
pub(crate) struct Bip341 {
    head: Sha256,
}

impl Bip341 {
    pub(crate) fn new(parts: &Parts) -> Self {
        let mut head = TAP_SIGHASH.start();
        head.update(&[0, 0]); // epoch, SIGHASH_DEFAULT
        head.update(&VERSION);
        head.update(&LOCK_TIME);
        head.update(&sha256(&parts.outpoints));
        head.update(&sha256(&parts.amounts));
        head.update(&sha256(&parts.scripts));
        head.update(&sha256(&sequences(parts.input_count)));
        head.update(&sha256(&parts.outputs));
        Self { head }
    }

    pub(crate) fn digest(&self, input: usize, leaf_hash: Option<&[u8; 32]>) -> [u8; 32] {
        let mut hasher = self.head.clone();
        hasher.update(&[if leaf_hash.is_some() { 2 } else { 0 }]); // ext_flag in the upper bits, no annex
        hasher.update(&(input as u32).to_le_bytes());
        if let Some(hash) = leaf_hash {
            hasher.update(hash);
            hasher.update(&[0]); // key version
            hasher.update(&[0xff; 4]); // no OP_CODESEPARATOR
        }
        hasher.finalize()
    }
}

/// The original signature hash of P2PKH inputs, `SIGHASH_ALL`: the transaction with the script of one input only. The prefix
/// before that input is the same for all later ones and hashed once, which halves the work for many inputs.
pub(crate) struct Legacy {
    head: Sha256,
    /// Inputs covered by `head`.
    done: usize,
    /// All inputs without scripts, and the rest of the transaction.
    blank: Vec<u8>,
}

impl Legacy {
    pub(crate) fn new(parts: &Parts) -> Self {
        let mut head = Sha256::new();
        head.update(&VERSION);
        let mut count = Vec::with_capacity(9);
        assay_wire::encode::compact_size(&mut count, parts.input_count as u64);
        head.update(&count);
        let mut blank = Vec::with_capacity(BLANK * parts.input_count + parts.outputs.len() + 17);
        for outpoint in parts.outpoints.chunks_exact(36) {
            blank.extend_from_slice(outpoint);
            blank.push(0);
            blank.extend_from_slice(&SEQUENCE);
        }
        assay_wire::encode::compact_size(&mut blank, parts.output_count as u64);
        blank.extend_from_slice(&parts.outputs);
        blank.extend_from_slice(&LOCK_TIME);
        blank.extend_from_slice(&u32::from(ALL).to_le_bytes());
        Self { head, done: 0, blank }
    }

    /// Must be called in input order. `script_code` includes its length.
    pub(crate) fn digest(&mut self, input: usize, script_code: &[u8]) -> [u8; 32] {
        let at = BLANK * input;
        self.head.update(&self.blank[BLANK * self.done..at]);
        self.done = input;
        let mut hasher = self.head.clone();
        hasher.update(&self.blank[at..at + 36]);
        hasher.update(script_code);
        hasher.update(&SEQUENCE);
        hasher.update(&self.blank[at + BLANK..]);
        hasher.finalize_double()
    }
}

/// Bytes of an input without script.
const BLANK: usize = 36 + 1 + 4;

/// All sequence numbers.
fn sequences(count: usize) -> Vec<u8> {
    vec![0xff; 4 * count]
}

/// The tag hash of BIP341, precomputed.
static TAP_SIGHASH: LazyLock<TaggedHasher> = LazyLock::new(|| TaggedHasher::new("TapSighash"));
