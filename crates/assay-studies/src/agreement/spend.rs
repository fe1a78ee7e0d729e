//! A transaction that spends the outputs of programs, with valid signatures before any mutation.

use assay_consensus::script::{Flags, PqScheme, SignatureChecker, TxContext, verify_input};
use assay_hash::hash160;
use assay_wire::{OutPoint, TxBuilder, TxOut};

use super::program::{Form, Item, Program, mutate, push_minimal};
use assay_report::stats::random::SplitMix64;

pub(super) struct Case {
    pub(super) form: Form,
    pub(super) programs: Vec<Program>,
}

impl Case {
    pub(super) fn random(random: &mut SplitMix64) -> Self {
        let form = Form::random(random);
        let programs =
            (0..form.spent.len()).map(|input| Program::random(random, &form, input)).collect();
        Self { form, programs }
    }

    pub(super) fn locks(&self) -> impl Iterator<Item = (i64, Vec<u8>)> {
        self.form.spent.iter().copied().zip(self.programs.iter().map(Program::lock))
    }

    /// The transaction, which spends `prevouts`; one in three is mutated after signing.
    pub(super) fn spend(&self, random: &mut SplitMix64, prevouts: &[OutPoint]) -> Vec<u8> {
        let locks: Vec<(i64, Vec<u8>)> = self.locks().collect();
        let messages = self.messages(prevouts, &locks);
        let mut scripts: Vec<Vec<u8>> = self
            .programs
            .iter()
            .zip(&messages)
            .map(|(program, message)| program.unlock(|item| item.bytes(random, message)))
            .collect();
        let is_changed = random.below(3) == 0;
        if is_changed && random.below(2) == 0 {
            let at = random.below(scripts.len() as u64) as usize;
            mutate(random, &mut scripts[at]);
            return self.tx(prevouts, &scripts).bytes();
        }
        let mut raw = self.tx(prevouts, &scripts).bytes();
        if is_changed {
            mutate(random, &mut raw);
        }
        raw
    }

    /// Message of each input's signature, as the interpreter requests it for a placeholder signature.
    fn messages(&self, prevouts: &[OutPoint], locks: &[(i64, Vec<u8>)]) -> Vec<[u8; 32]> {
        let form = |item: &Item| match item {
            Item::Bytes(bytes) => bytes.clone(),
            Item::DataSignature { is_schnorr, .. } => placeholder(*is_schnorr),
            Item::Signature { is_schnorr, hash_type, .. } => {
                [placeholder(*is_schnorr), vec![*hash_type]].concat()
            }
        };
        let scripts: Vec<Vec<u8>> =
            self.programs.iter().map(|program| program.unlock(form)).collect();
        let tx = self.tx(prevouts, &scripts).build();
        let spent: Vec<TxOut<'_>> = locks
            .iter()
            .map(|(value, script)| TxOut { value: *value, script_pubkey: script })
            .collect();
        let context = TxContext::new(tx.view(), &spent);
        let message = |input: usize| {
            let mut asked = Asked([0; 32]);
            // The rest of the script follows the signature check.
            let _ = verify_input(&context, input, Flags::BCH_MAY_2022, &mut asked);
            asked.0
        };
        (0..locks.len()).map(message).collect()
    }

    fn tx(&self, prevouts: &[OutPoint], scripts: &[Vec<u8>]) -> TxBuilder {
        let mut tx = TxBuilder::new(self.form.version).lock_time(self.form.lock_time);
        for ((prevout, script), sequence) in prevouts.iter().zip(scripts).zip(&self.form.sequences)
        {
            tx = tx.spend(*prevout, script, *sequence);
        }
        for (value, script) in &self.form.outputs {
            tx = tx.output(*value, script);
        }
        tx
    }
}

impl Program {
    fn lock(&self) -> Vec<u8> {
        if self.is_p2sh {
            return [&[0xa9, 20][..], &hash160(&self.script), &[0x87]].concat();
        }
        self.script.clone()
    }

    fn unlock(&self, mut bytes: impl FnMut(&Item) -> Vec<u8>) -> Vec<u8> {
        let mut script = Vec::new();
        for item in &self.items {
            push_minimal(&mut script, &bytes(item));
        }
        if self.is_p2sh {
            push_minimal(&mut script, &self.script);
        }
        script
    }
}

impl Item {
    fn bytes(&self, random: &mut SplitMix64, message: &[u8; 32]) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Signature { key, is_schnorr, hash_type } => {
                let mut sig =
                    if *is_schnorr { key.schnorr(random, message) } else { key.ecdsa(message) };
                sig.push(*hash_type);
                sig
            }
            Self::DataSignature { key, is_schnorr, hash } => {
                if *is_schnorr {
                    key.schnorr(random, hash)
                } else {
                    key.ecdsa(hash)
                }
            }
        }
    }
}

fn placeholder(is_schnorr: bool) -> Vec<u8> {
    if is_schnorr { vec![7; 64] } else { vec![0x30, 6, 2, 1, 1, 2, 1, 1] }
}

/// Accepts every signature, and records the first message.
struct Asked([u8; 32]);

impl Asked {
    fn note(&mut self, message: &[u8; 32]) -> bool {
        if self.0 == [0; 32] {
            self.0 = *message;
        }
        true
    }
}

impl SignatureChecker for Asked {
    fn ecdsa(&mut self, _: &[u8], _: &[u8], message: &[u8; 32]) -> bool {
        self.note(message)
    }
    fn schnorr(&mut self, _: &[u8; 32], _: &[u8; 64], message: &[u8; 32]) -> bool {
        self.note(message)
    }
    fn schnorr_of_any_length(&mut self, _: &[u8; 32], _: &[u8; 64], _: &[u8]) -> bool {
        unreachable!("asked under today's rules")
    }
    fn post_quantum(&mut self, _: PqScheme, _: &[u8], _: &[u8], _: &[u8; 32]) -> bool {
        unreachable!("asked under today's rules")
    }
    fn schnorr_bch(&mut self, _: &[u8], _: &[u8; 64], message: &[u8; 32]) -> bool {
        self.note(message)
    }
    fn taproot_tweak(&mut self, _: &[u8; 32], _: &[u8; 32], _: &[u8; 32], _: bool) -> bool {
        false
    }
}
