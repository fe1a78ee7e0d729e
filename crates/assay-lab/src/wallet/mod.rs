//! Funded test wallets for each script type, their signed transactions, and the chain that funds them.

mod base;
mod lock;

use assay_wire::{OutPoint, Transaction, TxBuilder, Txid, Wtxid, encode};

pub(crate) use self::base::Base;
pub use self::lock::Kind;
pub(crate) use self::lock::Wallet;

/// An output that a wallet can spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coin {
    pub(crate) outpoint: OutPoint,
    /// Satoshi.
    pub(crate) value: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) raw: Vec<u8>,
    pub(crate) txid: Txid,
    pub(crate) wtxid: Wtxid,
    pub(crate) outputs: Vec<Coin>,
}

impl Signed {
    fn new(tx: &Transaction) -> Self {
        let view = tx.view();
        let txid = view.txid();
        let coin = |(vout, value)| Coin { outpoint: OutPoint { txid, vout }, value };
        let values = view.outputs().map(|output| output.value as u64);
        let outputs = (0..).zip(values).map(coin).collect();
        Self { raw: tx.bytes().to_vec(), txid, wtxid: view.wtxid(), outputs }
    }
}

impl Wallet {
    /// Splits an anyone-can-spend output into `count` coins. It has no witness, so its block needs no witness commitment.
    pub(crate) fn split(&self, from: Coin, count: usize, fee: u64) -> Signed {
        let values = vec![(from.value - fee) / count as u64; count];
        Signed::new(&self.unsigned(&[from], &values).build())
    }

    /// Spends coins into `count` outputs of nearly equal value at `rate` satoshi per virtual byte.
    pub(crate) fn spend(&self, from: &[Coin], count: usize, rate: u64) -> Signed {
        let fee = self.fee(from.len(), count, rate);
        let sum: u64 = from.iter().map(|coin| coin.value).sum();
        self.pay(from, &vec![sum.saturating_sub(fee) / count as u64; count])
    }

    /// Fee of a transaction with these inputs and outputs at `rate` satoshi per virtual byte.
    pub(crate) fn fee(&self, inputs: usize, outputs: usize, rate: u64) -> u64 {
        let output_bytes = 8 + 1 + self.script_pubkey.len();
        let count_bytes = |count| encode::compact_size_len(count as u64);
        let base_bytes = 8 + count_bytes(inputs) + count_bytes(outputs) + outputs * output_bytes;
        let weight = 4 * base_bytes + self.kind.input_weight() * inputs + 2;
        rate * (weight as u64).div_ceil(4)
    }

    /// Spends coins into outputs of these amounts; the rest is the fee.
    pub(crate) fn pay(&self, from: &[Coin], values: &[u64]) -> Signed {
        let mut tx = self.unsigned(from, values);
        let unsigned = tx.build();
        for at in 0..from.len() {
            let (script_sig, witness) = self.unlock(unsigned.view(), from, at);
            tx = tx.unlock(at, &script_sig, &witness);
        }
        Signed::new(&tx.build())
    }

    fn unsigned(&self, from: &[Coin], values: &[u64]) -> TxBuilder {
        let mut tx = TxBuilder::new(VERSION);
        for coin in from {
            tx = tx.spend(coin.outpoint, &[], SEQUENCE);
        }
        for value in values {
            tx = tx.output(*value as i64, &self.script_pubkey);
        }
        tx
    }
}

const VERSION: i32 = 2;
/// Signals replaceability (BIP125), which some programs require.
const SEQUENCE: u32 = 0xffff_fffd;

#[cfg(test)]
mod tests {
    use assay_report::stats::random::SplitMix64;
    use assay_wire::Encoding;

    use super::*;

    fn wallet(kind: Kind) -> Wallet {
        Wallet::new(kind, &mut SplitMix64::new(7))
    }

    #[test]
    fn fees_are_of_the_virtual_size() {
        let coin = |vout| Coin { outpoint: OutPoint { txid: Txid([9; 32]), vout }, value: 50_000 };
        for kind in Kind::ALL {
            let wallet = wallet(kind);
            let signed = wallet.spend(&[coin(0), coin(3)], 2, 3);
            assert_eq!(signed.outputs.len(), 2);
            let paid: u64 = signed.outputs.iter().map(|coin| coin.value).sum();
            let has_witness = signed.txid.0 != signed.wtxid.0;
            assert_eq!(has_witness, kind != Kind::P2pkh, "{kind:?}");
            let tx = Transaction::parse(signed.raw.clone(), Encoding::Segwit).expect("whole");
            let fee = 100_000 - paid;
            // Signatures are up to three bytes shorter than assumed, and the remainder of a division goes to the fee.
            let least = 3 * tx.view().weight().div_ceil(4) as u64;
            assert!((least..=least + 3 * 12 + 1).contains(&fee), "{kind:?}: {fee}, {least}");
            let again = wallet.spend(&[coin(0), coin(3)], 2, 3);
            assert_eq!(signed.raw, again.raw, "nonces follow RFC 6979");
        }
    }

    #[test]
    fn a_split_needs_no_witness() {
        let outpoint = OutPoint { txid: Txid([1; 32]), vout: 0 };
        let from = Coin { outpoint, value: 1_000_000 };
        let split = wallet(Kind::P2wsh).split(from, 300, 10_000);
        assert_eq!((split.outputs.len(), split.outputs[299].value), (300, 3_300));
        assert_eq!(split.txid.0, split.wtxid.0);
    }
}
