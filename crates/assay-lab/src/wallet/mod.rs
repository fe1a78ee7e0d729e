//! Funded test wallets for each script type, their signed transactions, and the chain that funds them.

mod base;
mod lock;

use assay_report::stats::random::SplitMix64;

pub(crate) use self::base::Base;
pub use self::lock::Kind;
use self::lock::Lock;
use crate::wire::{self, Hash};

/// An output that a wallet can spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coin {
    pub(crate) txid: Hash,
    pub(crate) vout: u32,
    /// Satoshi.
    pub(crate) value: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) raw: Vec<u8>,
    pub(crate) txid: Hash,
    pub(crate) wtxid: Hash,
    pub(crate) outputs: Vec<Coin>,
}

/// The keys of one script, shared by all its coins.
pub(crate) struct Wallet {
    lock: Lock,
}

impl Wallet {
    pub(crate) fn new(kind: Kind, random: &mut SplitMix64) -> Self {
        Self { lock: Lock::new(kind, random) }
    }

    /// Splits an anyone-can-spend output into `count` coins. It has no witness, so its block needs no witness commitment.
    pub(crate) fn split(&self, from: Coin, count: usize, fee: u64) -> Signed {
        let values = vec![(from.value - fee) / count as u64; count];
        let unsigned = Unsigned { from: &[from], outputs: self.outputs(&values), count };
        let raw = unsigned.bytes(&[Vec::new()]);
        let txid = wire::double_sha256(&raw);
        Signed { raw, txid, wtxid: txid, outputs: coins(txid, &values) }
    }

    /// Spends coins into `count` outputs of nearly equal value at `rate` satoshi per virtual byte.
    pub(crate) fn spend(&self, from: &[Coin], count: usize, rate: u64) -> Signed {
        let fee = self.fee(from.len(), count, rate);
        let sum: u64 = from.iter().map(|coin| coin.value).sum();
        self.pay(from, &vec![sum.saturating_sub(fee) / count as u64; count])
    }

    /// Fee of a transaction with these inputs and outputs at `rate` satoshi per virtual byte.
    pub(crate) fn fee(&self, inputs: usize, outputs: usize, rate: u64) -> u64 {
        let outputs_bytes = outputs * self.output_bytes() + count_bytes(outputs);
        let base_bytes = 8 + count_bytes(inputs) + outputs_bytes;
        let weight = 4 * base_bytes + self.lock.kind.input_weight() * inputs + 2;
        rate * (weight as u64).div_ceil(4)
    }

    /// Spends coins into outputs of these amounts; the rest is the fee.
    pub(crate) fn pay(&self, from: &[Coin], values: &[u64]) -> Signed {
        let unsigned = Unsigned { from, outputs: self.outputs(values), count: values.len() };
        let keys = (0..from.len()).map(|at| self.lock.unlock(&unsigned, at));
        let (scripts, witnesses): (Vec<_>, Vec<_>) = keys.unzip();
        let plain = unsigned.bytes(&scripts);
        let txid = wire::double_sha256(&plain);
        let raw = if witnesses.iter().all(Vec::is_empty) {
            plain
        } else {
            // Marker and flag (BIP144) follow the version; the lock time stays last.
            let (body, lock_time) = plain[4..].split_at(plain.len() - 8);
            [&plain[..4], &[0, 1], body, &witnesses.concat(), lock_time].concat()
        };
        let wtxid = wire::double_sha256(&raw);
        Signed { raw, txid, wtxid, outputs: coins(txid, values) }
    }

    fn output_bytes(&self) -> usize {
        8 + 1 + self.lock.script_pubkey.len()
    }

    /// Serialized outputs without their count.
    fn outputs(&self, values: &[u64]) -> Vec<u8> {
        let mut out = Vec::with_capacity(values.len() * self.output_bytes());
        for value in values {
            out.extend_from_slice(&value.to_le_bytes());
            out.push(self.lock.script_pubkey.len() as u8);
            out.extend_from_slice(&self.lock.script_pubkey);
        }
        out
    }
}

struct Unsigned<'a> {
    from: &'a [Coin],
    /// Serialized without the count.
    outputs: Vec<u8>,
    count: usize,
}

impl Unsigned<'_> {
    /// Serialization without witnesses, with these input scripts.
    fn bytes(&self, scripts: &[Vec<u8>]) -> Vec<u8> {
        let mut out = VERSION.to_le_bytes().to_vec();
        wire::put_count(&mut out, self.from.len());
        for (coin, script) in self.from.iter().zip(scripts) {
            out.extend_from_slice(&outpoint(coin));
            wire::put_count(&mut out, script.len());
            out.extend_from_slice(script);
            out.extend_from_slice(&SEQUENCE.to_le_bytes());
        }
        wire::put_count(&mut out, self.count);
        out.extend_from_slice(&self.outputs);
        out.extend_from_slice(&LOCK_TIME);
        out
    }

    fn prevouts(&self) -> Vec<u8> {
        self.from.iter().flat_map(outpoint).collect()
    }

    fn sequences(&self) -> Vec<u8> {
        self.from.iter().flat_map(|_| SEQUENCE.to_le_bytes()).collect()
    }
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

fn count_bytes(count: usize) -> usize {
    let mut out = Vec::new();
    wire::put_count(&mut out, count);
    out.len()
}

const VERSION: u32 = 2;
const LOCK_TIME: [u8; 4] = [0; 4];
/// Signals replaceability (BIP125), which some programs require.
const SEQUENCE: u32 = 0xffff_fffd;

#[cfg(test)]
mod tests {
    use super::*;

    fn wallet(kind: Kind) -> Wallet {
        Wallet::new(kind, &mut SplitMix64::new(7))
    }

    #[test]
    fn fees_are_of_the_virtual_size() {
        let coin = |vout| Coin { txid: [9; 32], vout, value: 50_000 };
        for kind in Kind::ALL {
            let wallet = wallet(kind);
            let signed = wallet.spend(&[coin(0), coin(3)], 2, 3);
            assert_eq!(signed.outputs.len(), 2);
            let paid: u64 = signed.outputs.iter().map(|coin| coin.value).sum();
            let has_witness = signed.txid != signed.wtxid;
            assert_eq!(has_witness, kind != Kind::P2pkh, "{kind:?}");
            // Marker and flag, and the witnesses after the outputs.
            let outputs = wallet.outputs(&[signed.outputs[0].value; 2]);
            let end = signed.raw.windows(outputs.len()).position(|window| window == outputs);
            let end = end.expect("the outputs") + outputs.len();
            let witness = signed.raw.len() - end - 4 + if has_witness { 2 } else { 0 };
            let weight = 4 * (signed.raw.len() - witness) + witness;
            let fee = 100_000 - paid;
            // Signatures are up to three bytes shorter than assumed, and the remainder of a division goes to the fee.
            let least = 3 * weight.div_ceil(4) as u64;
            assert!((least..=least + 3 * 12 + 1).contains(&fee), "{kind:?}: {fee}, {least}");
            let again = wallet.spend(&[coin(0), coin(3)], 2, 3);
            assert_eq!(signed.raw, again.raw, "nonces follow RFC 6979");
        }
    }

    #[test]
    fn a_split_needs_no_witness() {
        let from = Coin { txid: [1; 32], vout: 0, value: 1_000_000 };
        let split = wallet(Kind::P2wsh).split(from, 300, 10_000);
        assert_eq!((split.outputs.len(), split.outputs[299].value), (300, 3_300));
        assert_eq!(split.txid, split.wtxid);
    }
}
