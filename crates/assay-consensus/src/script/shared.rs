//! Hashes of one transaction for several threads, each of which verifies some of its inputs.

use std::sync::OnceLock;

use assay_hash::Sha256;
use assay_wire::Tx;

use super::ahead::legacy_tail;
use super::message::LegacyPrefix;

/// Hashes that the signature messages of all inputs of a transaction have in common, for the contexts of its parts
/// ([`TxContext::for_part`](super::TxContext::for_part)). The first that asks computes them, while others that ask wait.
#[derive(Debug)]
pub struct SharedHashes {
    /// Address and length of the bytes of the transaction: it is used for no other.
    bytes: (usize, usize),
    pub(super) prevouts: OnceLock<[u8; 32]>,
    pub(super) sequences: OnceLock<[u8; 32]>,
    pub(super) outputs: OnceLock<[u8; 32]>,
    pub(super) amounts: OnceLock<[u8; 32]>,
    pub(super) scripts: OnceLock<[u8; 32]>,
    legacy_tail: OnceLock<Vec<u8>>,
    /// States of the legacy prefix, one every [`PREFIX_STEP`] inputs.
    legacy_prefixes: OnceLock<Vec<Sha256>>,
}

/// Without kept states a part would hash all inputs before it; with them, fewer than this.
const PREFIX_STEP: usize = 256;

impl SharedHashes {
    /// For this transaction, at the place where its bytes lie now.
    pub fn new(tx: Tx<'_>) -> Self {
        Self {
            bytes: place(tx),
            prevouts: OnceLock::new(),
            sequences: OnceLock::new(),
            outputs: OnceLock::new(),
            amounts: OnceLock::new(),
            scripts: OnceLock::new(),
            legacy_tail: OnceLock::new(),
            legacy_prefixes: OnceLock::new(),
        }
    }

    pub(super) fn is_for(&self, tx: Tx<'_>) -> bool {
        self.bytes == place(tx)
    }

    pub(super) fn legacy_tail(&self, tx: Tx<'_>) -> &[u8] {
        self.legacy_tail.get_or_init(|| legacy_tail(tx))
    }

    /// A prefix of legacy messages that ends not far before input number `input`.
    pub(super) fn legacy_prefix_before(&self, tx: Tx<'_>, input: usize) -> LegacyPrefix {
        if input < PREFIX_STEP {
            return LegacyPrefix::start(tx, tx.input_count());
        }
        let states = self.legacy_prefixes.get_or_init(|| {
            let mut prefix = LegacyPrefix::start(tx, tx.input_count());
            (0..tx.input_count()).step_by(PREFIX_STEP).map(|at| prefix.extend(tx, at)).collect()
        });
        let step = input / PREFIX_STEP;
        LegacyPrefix::after(step * PREFIX_STEP, states[step].clone())
    }
}

fn place(tx: Tx<'_>) -> (usize, usize) {
    (tx.raw().as_ptr() as usize, tx.raw().len())
}

#[cfg(test)]
mod tests {
    use assay_testkit::chain::TxBuilder;
    use assay_wire::{Transaction, TxOut};

    use super::super::{SIGHASH_ALL, TxContext};
    use super::*;

    const P2PKH: [u8; 25] = [
        0x76, 0xa9, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
        0x88, 0xac,
    ];

    fn transaction(inputs: usize, version: i32) -> Transaction {
        let tx = TxBuilder::new(version).output(5, &P2PKH).output(9, &P2PKH);
        let spend = |tx: TxBuilder, at: u32| tx.input(at as u8, at, &[0x51; 3], at);
        (0..inputs as u32).fold(tx, spend).build()
    }

    /// Every kind of message of an input.
    fn messages(context: &TxContext<'_>, input: usize) -> Vec<[u8; 32]> {
        let types = [SIGHASH_ALL, 2, 3, 0x81, 0x82, 0x83];
        let legacy = types.map(|hash_type| context.sighash_legacy(input, &P2PKH, hash_type));
        let other = context.sighash_legacy(input, &P2PKH[1..], SIGHASH_ALL);
        let v0 = types.map(|hash_type| context.sighash_segwit_v0(input, &P2PKH, 5, hash_type));
        let taproot = [0u8, 1, 2, 3, 0x81, 0x82, 0x83].map(|hash_type| {
            context.sighash_taproot(input, hash_type, None, None).unwrap_or_default()
        });
        [&legacy[..], &[other], &v0, &taproot].concat()
    }

    /// Parts of any size, on several threads at once, have the messages of the whole; also for inputs of other parts.
    #[test]
    fn parts_have_the_messages_of_the_whole() {
        for (count, part) in [(2, 1), (31, 7), (33, 8), (90, 16), (700, 1), (700, 90), (700, 699)] {
            let tx = transaction(count, 1);
            let spent: Vec<TxOut<'_>> = (0..count)
                .map(|value| TxOut { value: value as i64, script_pubkey: &P2PKH })
                .collect();
            let whole = TxContext::new(tx.view(), &spent);
            // All messages of a few inputs of each part: those at its ends, and one elsewhere.
            let wanted = |first: usize| {
                let end = (first + part).min(count);
                [first, end - 1, (first * 7 + 3) % count]
            };
            let starts: Vec<usize> = (0..count).step_by(part.max(count / 24)).collect();
            let expected: Vec<_> = starts
                .iter()
                .map(|first| wanted(*first).map(|input| messages(&whole, input)))
                .collect();
            let shared = SharedHashes::new(tx.view());
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let (starts, expected) = (&starts, &expected);
                    let (tx, spent, shared) = (&tx, &spent, &shared);
                    scope.spawn(move || {
                        for (first, expected) in starts.iter().zip(expected).skip(thread).step_by(3)
                        {
                            let inputs = *first..(first + part).min(count);
                            let context = TxContext::new(tx.view(), spent).for_part(inputs, shared);
                            assert_eq!(
                                &wanted(*first).map(|input| messages(&context, input)),
                                expected,
                                "{count} inputs, parts of {part}, from {first}"
                            );
                        }
                    });
                }
            });
        }
    }

    #[test]
    #[should_panic(expected = "hashes of another transaction")]
    fn never_for_another_transaction() {
        let (one, other) = (transaction(2, 1), transaction(2, 2));
        let spent = [TxOut { value: 1, script_pubkey: &[] }; 2];
        let shared = SharedHashes::new(one.view());
        let _ = TxContext::new(other.view(), &spent).for_part(0..1, &shared);
    }
}
