//! HASH160 of the keys and redeem scripts of many inputs at once.
//!
//! The commonest scripts hash exactly one thing, which stands in the input. Hashing those of many
//! inputs together takes a quarter of the time, so a caller that verifies many transactions may do that
//! beforehand. A script that hashes something else is not affected.

use std::ops::Range;

use assay_hash::{Backend, hash160, hash160_many_with};
use assay_wire::{Tx, TxOut};

use super::opcode::{Instructions, is_p2pkh, is_p2sh, op};

/// The data that the script of an input is expected to hash, with its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyHash<'a> {
    /// Empty where nothing is expected.
    data: &'a [u8],
    hash: [u8; 20],
}

/// The expected HASH160 of the inputs of several transactions.
#[derive(Debug, Default)]
pub struct KeyHashes<'a> {
    all: Vec<KeyHash<'a>>,
}

/// The part of [`KeyHashes`] for the inputs of one context; [`KeyHashesOf::NONE`] to do without.
#[derive(Clone, Copy, Debug)]
pub struct KeyHashesOf<'a>(&'a [KeyHash<'a>]);

impl<'a> KeyHashes<'a> {
    /// Takes some inputs of a transaction in, to be hashed by [`Self::compute`].
    ///
    /// # Panics
    /// When there is not one spent output per input, or `inputs` goes beyond them.
    pub fn add(&mut self, tx: Tx<'a>, spent: &[TxOut<'_>], inputs: Range<usize>) {
        assert_eq!(tx.input_count(), spent.len(), "one spent output per input");
        self.all.extend(inputs.map(|input| KeyHash {
            data: expected(tx, input, spent[input].script_pubkey),
            hash: [0; 20],
        }));
    }

    /// Hashes what was taken in.
    pub fn compute(&mut self) {
        let wanted = || self.all.iter().filter(|known| !known.data.is_empty());
        let messages: Vec<&[u8]> = wanted().map(|known| known.data).collect();
        let mut digests = vec![[0; 20]; messages.len()];
        hash160_many_with(Backend::detect(), &messages, &mut digests);
        let wanted = self.all.iter_mut().filter(|known| !known.data.is_empty());
        for (known, digest) in wanted.zip(digests) {
            known.hash = digest;
        }
    }

    /// The hashes of `count` inputs, after `first` others that were taken in.
    ///
    /// # Panics
    /// When fewer were taken in.
    pub fn of(&'a self, first: usize, count: usize) -> KeyHashesOf<'a> {
        KeyHashesOf(&self.all[first..first + count])
    }
}

impl KeyHashesOf<'_> {
    pub const NONE: Self = Self(&[]);

    /// The HASH160 of `data`, which the script of the input at `index` of these asks for.
    #[inline]
    pub(super) fn hash160(&self, index: usize, data: &[u8]) -> [u8; 20] {
        match self.0.get(index) {
            Some(known) if !data.is_empty() && known.data == data => known.hash,
            _ => hash160(data),
        }
    }
}

/// The data that a script of a common form hashes when it succeeds.
fn expected<'a>(tx: Tx<'a>, input: usize, script_pubkey: &[u8]) -> &'a [u8] {
    if matches!(script_pubkey, [0, 20, ..] if script_pubkey.len() == 22) {
        return tx.witness(input).iter().nth(1).unwrap_or_default();
    }
    if !is_p2pkh(script_pubkey) && !is_p2sh(script_pubkey) {
        return &[];
    }
    let mut last: &[u8] = &[];
    for instruction in Instructions::new(tx.input(input).script_sig) {
        match instruction {
            Some(instruction) if instruction.opcode <= op::PUSHDATA4 => last = instruction.data,
            Some(_) => last = &[],
            None => return &[],
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use assay_testkit::chain::TxBuilder;

    use super::*;

    /// Script spent, input script, witness, what is expected.
    type Case<'c> = (&'c [u8], &'c [u8], &'c [&'c [u8]], &'c [u8]);

    /// Inputs with P2PKH, P2SH and P2WPKH, well formed and not.
    #[test]
    fn only_hashed_parts_of_a_script_matter() {
        let key = [2u8; 33];
        let p2pkh = [&[0x76, 0xa9, 20][..], &hash160(&key), &[0x88, 0xac]].concat();
        let p2sh = [&[0xa9, 20][..], &hash160(&key), &[0x87]].concat();
        let p2wpkh = [&[0, 20][..], &hash160(&key)].concat();
        let push = [&[1, 9, 33][..], &key].concat();
        let inputs: [Case<'_>; 9] = [
            (&p2pkh, &push, &[], &key),
            (&p2sh, &push, &[], &key),
            (&p2wpkh, &[], &[&[1, 2], &key], &key),
            (&p2wpkh, &[], &[&[1, 2]], &[]),
            (&p2pkh, &push[..20], &[], &[]),
            (&p2pkh, &[1, 7, op::PUSH1], &[], &[]),
            (&p2pkh, &[], &[], &[]),
            (&[op::HASH160], &push, &[], &[]),
            (&p2wpkh[..21], &[], &[&[1], &[2]], &[]),
        ];
        let mut tx = TxBuilder::new(2);
        for (_, script_sig, witness, _) in inputs {
            tx = tx.input(1, 1, script_sig, 0).witness(witness);
        }
        let tx = tx.build();
        let spent = inputs.map(|(script, ..)| TxOut { value: 1, script_pubkey: script });
        let mut hashes = KeyHashes::default();
        hashes.add(tx.view(), &spent, 3..5);
        hashes.add(tx.view(), &spent, 0..inputs.len());
        hashes.compute();
        let part = hashes.of(0, 2);
        assert_eq!((part.0[0].data, part.0[1].data), (inputs[3].3, inputs[4].3));
        let second = hashes.of(2, inputs.len());
        for (input, (.., data)) in inputs.iter().enumerate() {
            assert_eq!(second.0[input].data, *data, "input {input}");
            for data in [&key[..], &[], &[1, 2], &key[1..]] {
                assert_eq!(second.hash160(input, data), hash160(data));
                assert_eq!(KeyHashesOf::NONE.hash160(input, data), hash160(data));
            }
        }
    }
}
