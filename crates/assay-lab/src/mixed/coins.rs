//! Coins that all nodes know, and transactions with real signatures that spend them.

use assay_report::stats::random::SplitMix64;
use secp256k1::{Message, PublicKey, SecretKey, ecdsa};
use sha2::{Digest as _, Sha256};

use crate::wire::{self, Hash};

/// An output that the purse can spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coin {
    pub(super) txid: Hash,
    pub(super) vout: u32,
    /// Satoshi.
    pub(super) value: u64,
}

/// A signed transaction.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) raw: Vec<u8>,
    pub(super) txid: Hash,
    pub(super) wtxid: Hash,
    pub(super) outputs: Vec<Coin>,
}

/// One key, and the script that all its coins have: P2WSH of `<key> OP_CHECKSIG` (BIP141), which every program of a network
/// relays.
pub(super) struct Purse {
    secret: SecretKey,
    script: Vec<u8>,
    script_pubkey: Vec<u8>,
}

impl Purse {
    pub(super) fn new(random: &mut SplitMix64) -> Self {
        let secret = loop {
            if let Ok(secret) = SecretKey::from_secret_bytes(wire::random_hash(random)) {
                break secret;
            }
        };
        let mut script = vec![33];
        script.extend_from_slice(&PublicKey::from_secret_key(&secret).serialize());
        script.push(OP_CHECKSIG);
        let mut script_pubkey = vec![0, 32];
        script_pubkey.extend_from_slice(&Sha256::digest(&script));
        Self { secret, script, script_pubkey }
    }

    /// Splits an output that anyone can spend into so many coins. It has no witness, so a block with it needs no commitment.
    pub(super) fn split(&self, from: Coin, count: usize, fee: u64) -> Signed {
        let value = (from.value - fee) / count as u64;
        let outputs = self.outputs(&vec![value; count]);
        let raw = [&head(&[from])[..], &outputs, &[0; 4]].concat();
        let txid = wire::double_sha256(&raw);
        let outputs = coins(txid, &vec![value; count]);
        Signed { raw, txid, wtxid: txid, outputs }
    }

    /// Spends coins into so many of about the same value, for so many satoshi per virtual byte.
    pub(super) fn spend(&self, from: &[Coin], count: usize, rate: u64) -> Signed {
        let weight = 4 * (10 + 41 * from.len() + 43 * count) + 2 + WITNESS_BYTES * from.len();
        let fee = rate * (weight as u64).div_ceil(4);
        let sum: u64 = from.iter().map(|coin| coin.value).sum();
        let values = vec![sum.saturating_sub(fee) / count as u64; count];
        let (head, outputs) = (head(from), self.outputs(&values));
        let txid = wire::double_sha256(&[&head[..], &outputs, &[0; 4]].concat());
        // Marker and flag (BIP144) behind the version.
        let mut raw = [&head[..4], &[0, 1], &head[4..], &outputs].concat();
        for coin in from {
            let signature = self.sign(from, *coin, &outputs[1..]);
            raw.extend_from_slice(&[2, signature.len() as u8]);
            raw.extend_from_slice(&signature);
            raw.push(self.script.len() as u8);
            raw.extend_from_slice(&self.script);
        }
        raw.extend_from_slice(&[0; 4]);
        let wtxid = wire::double_sha256(&raw);
        Signed { raw, txid, wtxid, outputs: coins(txid, &values) }
    }

    /// A signature of everything (BIP143), with its type.
    fn sign(&self, from: &[Coin], coin: Coin, outputs: &[u8]) -> Vec<u8> {
        let prevouts: Vec<u8> = from.iter().flat_map(outpoint).collect();
        let sequences: Vec<u8> = from.iter().flat_map(|_| SEQUENCE.to_le_bytes()).collect();
        let mut text = VERSION.to_le_bytes().to_vec();
        text.extend_from_slice(&wire::double_sha256(&prevouts));
        text.extend_from_slice(&wire::double_sha256(&sequences));
        text.extend_from_slice(&outpoint(&coin));
        text.push(self.script.len() as u8);
        text.extend_from_slice(&self.script);
        text.extend_from_slice(&coin.value.to_le_bytes());
        text.extend_from_slice(&SEQUENCE.to_le_bytes());
        text.extend_from_slice(&wire::double_sha256(outputs));
        text.extend_from_slice(&[0; 4]);
        text.extend_from_slice(&u32::from(SIGHASH_ALL).to_le_bytes());
        let message = Message::from_digest(wire::double_sha256(&text));
        let mut signature = ecdsa::sign(message, &self.secret).serialize_der().to_vec();
        signature.push(SIGHASH_ALL);
        signature
    }

    /// Their number and the outputs.
    fn outputs(&self, values: &[u64]) -> Vec<u8> {
        let mut out = Vec::with_capacity(values.len() * 43 + 3);
        wire::put_count(&mut out, values.len());
        let count_bytes = out.len();
        for value in values {
            out.extend_from_slice(&value.to_le_bytes());
            out.push(self.script_pubkey.len() as u8);
            out.extend_from_slice(&self.script_pubkey);
        }
        debug_assert_eq!(out.len(), count_bytes + values.len() * 43);
        out
    }
}

/// Version and inputs, without scripts.
fn head(from: &[Coin]) -> Vec<u8> {
    let mut out = VERSION.to_le_bytes().to_vec();
    wire::put_count(&mut out, from.len());
    for coin in from {
        out.extend_from_slice(&outpoint(coin));
        out.push(0);
        out.extend_from_slice(&SEQUENCE.to_le_bytes());
    }
    out
}

fn outpoint(coin: &Coin) -> [u8; 36] {
    let mut out = [0; 36];
    out[..32].copy_from_slice(&coin.txid);
    out[32..].copy_from_slice(&coin.vout.to_le_bytes());
    out
}

fn coins(txid: Hash, values: &[u64]) -> Vec<Coin> {
    (0..).zip(values).map(|(vout, value)| Coin { txid, vout, value: *value }).collect()
}

const OP_CHECKSIG: u8 = 0xac;
const SIGHASH_ALL: u8 = 1;
const VERSION: u32 = 2;
/// May be replaced (BIP125): some programs insist on it.
const SEQUENCE: u32 = 0xffff_fffd;
/// A signature of the longest kind, the script, and their lengths.
const WITNESS_BYTES: usize = 1 + 1 + 72 + 1 + 35;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_counted_and_signed() {
        let purse = Purse::new(&mut SplitMix64::new(7));
        let coin = |vout| Coin { txid: [9; 32], vout, value: 50_000 };
        let signed = purse.spend(&[coin(0), coin(3)], 2, 3);
        assert_eq!(signed.outputs.len(), 2);
        let paid: u64 = signed.outputs.iter().map(|coin| coin.value).sum();
        // Two inputs and outputs take 233 to 234 virtual bytes.
        assert!((699..=702).contains(&(100_000 - paid)), "{}", 100_000 - paid);
        let script_at = |window: &[u8]| window == purse.script;
        assert_eq!(signed.raw.windows(purse.script.len()).filter(|w| script_at(w)).count(), 2);
        assert_ne!(signed.txid, signed.wtxid);
        let again = purse.spend(&[coin(0), coin(3)], 2, 3);
        assert_eq!(signed.raw, again.raw, "nonces follow RFC 6979");
    }

    #[test]
    fn a_split_needs_no_witness() {
        let purse = Purse::new(&mut SplitMix64::new(7));
        let from = Coin { txid: [1; 32], vout: 0, value: 1_000_000 };
        let split = purse.split(from, 300, 10_000);
        assert_eq!((split.outputs.len(), split.outputs[299].value), (300, 3_300));
        assert_eq!(split.txid, split.wtxid);
    }
}
