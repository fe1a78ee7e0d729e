//! Blocks full of signature checks.

use assay_bench::plan::Wrap;
use assay_consensus::script::opcode::op;
use assay_consensus::script::{
    Flags, TapscriptPosition, TxContext, annex_hash, asm, tap_leaf_hash,
};
use assay_hash::hash160;
use assay_wire::{TxBuilder, TxOut};
use secp256k1::{Keypair, Message, PublicKey, SecretKey, ecdsa, schnorr};

use super::block::{self, FullBlock, Made, OVERHEAD, SIGOP_COST_MAX, Split, of_inputs, plain};
use super::hashing::Rules;
use super::preparation::{Preparation, VALUE};
use crate::spend::Spend;

/// Repetitions of `OP_2DUP OP_CHECKSIG OP_DROP OP_CODESEPARATOR` in 201 operations.
const DISTINCT: usize = 50;

/// Repetitions of `OP_2DUP OP_CHECKSIG OP_DROP` in 201 operations.
const SAME: usize = 67;

/// Maximum number of legacy sigops of a transaction under BIP54.
const BIP54_SIGOPS: usize = 2_500;

/// Weight budget of a check in tapscript (BIP-0342).
pub(super) const CHECK_WEIGHT: usize = 50;

/// Hash types: `ALL`, and `NONE | ANYONECANPAY`.
const ALL: u8 = 1;
const NONE_ANYONECANPAY: u8 = 0x82;

pub(super) fn secret() -> SecretKey {
    SecretKey::from_secret_bytes([1; 32]).expect("a key")
}

/// A script with checks of a well-formed but invalid signature: nodes only cache valid ones.
fn failing(hash_type: u8, round: &[u8], checks: usize) -> Vec<u8> {
    let key = PublicKey::from_secret_key(&secret()).serialize();
    // The shortest strict DER signature.
    let sig = [0x30, 6, 2, 1, 1, 2, 1, 1, hash_type];
    let mut script = Vec::new();
    asm::push(&mut script, &sig);
    asm::push(&mut script, &key);
    script.extend(round.repeat(checks));
    script
}

const SEPARATED: [u8; 4] = [op::DUP2, op::CHECKSIG, op::DROP, op::CODESEPARATOR];

/// Distribution of inputs with `checks` each under BIP54.
fn split(rules: &Rules<'_>, checks: usize) -> Split {
    if rules.set.bip54 {
        Split { inputs_max: BIP54_SIGOPS / checks, is_padded: false }
    } else {
        Split::NONE
    }
}

/// Every message is as long as the transaction. Under BIP54, 50 inputs remain in a transaction that is padded with an output.
pub(super) fn legacy_messages(rules: &Rules<'_>, weight: u32) -> Made {
    let spend = Spend::new(Wrap::Bare, &failing(ALL, &SEPARATED, DISTINCT), Vec::new());
    let split = Split { is_padded: rules.set.bip54, ..split(rules, DISTINCT) };
    let block = of_inputs(&spend, weight, split);
    let checks = (block.inputs * DISTINCT) as u64;
    // One transaction; its own input scripts are empty, as in the message.
    let hashed_bytes = checks * (block.weight / 4);
    let shape = "`OP_2DUP OP_CHECKSIG OP_DROP OP_CODESEPARATOR` x 50, bare, one transaction";
    Made { checks, hashed_bytes, ..plain(block, shape) }
}

pub(super) fn legacy_same(rules: &Rules<'_>, weight: u32) -> Made {
    let round = [op::DUP2, op::CHECKSIG, op::DROP];
    let script = failing(NONE_ANYONECANPAY, &round, SAME);
    let block = of_inputs(&Spend::new(Wrap::Bare, &script, Vec::new()), weight, split(rules, SAME));
    let shape = "`OP_2DUP OP_CHECKSIG OP_DROP` x 67, bare, NONE and ANYONECANPAY";
    short_messages(block, shape, SAME, script.len())
}

pub(super) fn legacy_distinct(rules: &Rules<'_>, weight: u32) -> Made {
    let script = failing(NONE_ANYONECANPAY, &SEPARATED, DISTINCT);
    let block =
        of_inputs(&Spend::new(Wrap::Bare, &script, Vec::new()), weight, split(rules, DISTINCT));
    let shape = "`OP_2DUP OP_CHECKSIG OP_DROP OP_CODESEPARATOR` x 50, bare, NONE and ANYONECANPAY";
    short_messages(block, shape, DISTINCT, script.len())
}

/// Every check hashes about the length of a script.
fn short_messages(block: FullBlock, shape: &str, checks: usize, script: usize) -> Made {
    let checks = (block.inputs * checks) as u64;
    let hashed_bytes = checks * (script as u64 + 60);
    Made { checks, hashed_bytes, ..plain(block, shape) }
}

pub(super) fn witness(weight: u32) -> Made {
    let mut script = failing(ALL, &SEPARATED, DISTINCT);
    // Signature and key remain.
    script.push(op::NIP);
    let spend = Spend::new(Wrap::P2wsh, &script, Vec::new());
    let inputs = SIGOP_COST_MAX as usize / DISTINCT;
    let most = OVERHEAD as u64 + spend.input_weight() * inputs as u64;
    let block = of_inputs(&spend, weight.min(most as u32), Split::NONE);
    let shape = "`OP_2DUP OP_CHECKSIG OP_DROP OP_CODESEPARATOR` x 50, p2wsh";
    let made = short_messages(block, shape, DISTINCT, 156 + script.len());
    Made { is_all: u64::from(weight) >= most, ..made }
}

/// One input whose annex raises the budget for its checks.
pub(super) fn tapscript_same(weight: u32) -> Made {
    let checks = (weight as usize).saturating_sub(3_000) / CHECK_WEIGHT;
    let mut script = Vec::new();
    asm::push(&mut script, &key());
    script.extend([op::DUP2, op::CHECKSIGVERIFY].repeat(checks.saturating_sub(1)));
    script.push(op::CHECKSIG);
    let mut annex = vec![0; checks * (CHECK_WEIGHT - 2)];
    annex.insert(0, 0x50);
    let tapscript = Signed { script, inputs: 1, positions: vec![u32::MAX], annex: Some(annex) };
    let shape = "`OP_2DUP OP_CHECKSIGVERIFY`, tapscript with an annex";
    Made { checks: checks as u64, ..plain(tapscript.block(), shape) }
}

/// Inputs with as many signatures as their stack holds, each for another code separator position.
pub(super) fn tapscript_distinct(weight: u32) -> Made {
    const ROUND: [u8; 5] =
        [op::CODESEPARATOR, op::FROMALTSTACK, op::DUP, op::TOALTSTACK, op::CHECKSIGVERIFY];
    /// Length of a signature with its length byte, and of the round that checks it.
    const EACH: usize = 65 + ROUND.len();
    let room = (weight as usize).saturating_sub(3_000);
    let checks = (room.saturating_sub(400) / EACH).clamp(1, 900);
    let inputs = (room / (checks * EACH + 400)).max(1);
    let mut script = Vec::new();
    asm::push(&mut script, &key());
    script.push(op::TOALTSTACK);
    script.extend(ROUND.repeat(checks));
    script.push(op::PUSH1);
    // Opcodes before the first separator: the push, and the one that moves the key to the alternative stack.
    let positions = (0..checks).map(|check| 2 + (check * ROUND.len()) as u32).collect();
    let tapscript = Signed { script, inputs, positions, annex: None };
    let shape = "`OP_CODESEPARATOR OP_FROMALTSTACK OP_DUP OP_TOALTSTACK OP_CHECKSIGVERIFY` x 900, tapscript";
    let checks = (inputs * checks) as u64;
    Made { checks, hashed_bytes: checks * 250, ..plain(tapscript.block(), shape) }
}

const PAYMENT_INPUTS: usize = 2;
/// Length of an output script with the bytes of two P2WPKH outputs.
const PAYMENT_OUTPUT: usize = 2 * 31 - 9;
/// Length of a P2WPKH witness: a count, then signature and key with their lengths.
const PAYMENT_WITNESS: usize = 1 + 1 + 72 + 1 + 33;

pub(super) fn ordinary(weight: u32) -> Made {
    let public = PublicKey::from_secret_key(&secret()).serialize();
    let program = hash160(&public);
    let script_pubkey = [&[0, 20], &program[..]].concat();
    let code =
        [&[op::DUP, op::HASH160, 20], &program[..], &[op::EQUALVERIFY, op::CHECKSIG]].concat();
    let flags = Flags::P2SH | Flags::WITNESS;
    let spend = Spend::raw(&[], script_pubkey.clone(), &[], VALUE, flags);
    let spent = [TxOut { value: VALUE, script_pubkey: &script_pubkey }; PAYMENT_INPUTS];
    let mut outputs = Preparation::new(&script_pubkey);
    let one = block::unsigned(&mut outputs, &spend, 0..PAYMENT_INPUTS, PAYMENT_OUTPUT);
    let payment = |number: usize| {
        let inputs = number * PAYMENT_INPUTS..(number + 1) * PAYMENT_INPUTS;
        let tx = block::unsigned(&mut outputs, &spend, inputs, PAYMENT_OUTPUT);
        let unsigned = tx.build();
        let context = TxContext::new(unsigned.view(), &spent);
        let sign = |tx: TxBuilder, input: usize| {
            let message = context.sighash_segwit_v0(input, &code, VALUE, u32::from(ALL));
            let sig = ecdsa::sign(Message::from_digest(message), &secret()).serialize_der();
            tx.witness(&[&[&sig[..], &[ALL]].concat(), &public])
        };
        (0..PAYMENT_INPUTS).fold(tx, sign).build()
    };
    // Marker and flag weigh two units.
    let each = 4 * one.bytes().len() + 2 + PAYMENT_INPUTS * PAYMENT_WITNESS;
    let payments = (((f64::from(weight) - OVERHEAD) as usize) / each).max(1);
    let txs = (0..payments).map(payment).collect();
    let inputs = payments * PAYMENT_INPUTS;
    let block = block::of_transactions(txs, script_pubkey.clone(), inputs);
    let checks = inputs as u64;
    // 182 is the length of a message of BIP143.
    Made { checks, hashed_bytes: checks * 182, ..plain(block, "P2WPKH, two inputs a transaction") }
}

pub(super) fn key() -> [u8; 32] {
    Keypair::from_secret_key(&secret()).x_only_public_key().0.to_byte_array()
}

pub(super) struct Signed {
    pub(super) script: Vec<u8>,
    pub(super) inputs: usize,
    /// Code separator position of each signature, in order of the checks.
    pub(super) positions: Vec<u32>,
    pub(super) annex: Option<Vec<u8>>,
}

impl Signed {
    fn block(&self) -> FullBlock {
        let keypair = Keypair::from_secret_key(&secret());
        let sign = |_: usize, message: &[u8; 32]| {
            schnorr::sign_no_aux_rand(message, &keypair).to_byte_array().to_vec()
        };
        self.block_signed_by(&sign)
    }

    /// Witnesses are not signed, so the transaction exists before. `sign_message` receives the position's number and the message.
    pub(super) fn block_signed_by(
        &self,
        sign_message: &dyn Fn(usize, &[u8; 32]) -> Vec<u8>,
    ) -> FullBlock {
        let spend = Spend::new(Wrap::Tapscript, &self.script, Vec::new());
        let view = spend.tx.view();
        let mut outputs = Preparation::new(&spend.script_pubkey);
        let tx = block::unsigned(&mut outputs, &spend, 0..self.inputs, 0);
        let unsigned = tx.build();
        let spent = vec![TxOut { value: 2, script_pubkey: &spend.script_pubkey }; self.inputs];
        let context = TxContext::new(unsigned.view(), &spent);
        let leaf_hash = tap_leaf_hash(0xc0, &self.script);
        let annex_hash = self.annex.as_deref().map(annex_hash);
        // Script and control block.
        let commitment: Vec<&[u8]> = view.witness(0).iter().collect();
        let add_witness = |tx: TxBuilder, input: usize| {
            let sign = |(number, &code_separator): (usize, &u32)| {
                let position = TapscriptPosition { leaf_hash, code_separator };
                let message = context
                    .sighash_taproot(input, 0, annex_hash.as_ref(), Some(&position))
                    .expect("the default hash type has a message");
                sign_message(number, &message)
            };
            // The first signature is on top.
            let mut items: Vec<Vec<u8>> =
                self.positions.iter().enumerate().rev().map(sign).collect();
            items.extend(commitment.iter().map(|item| item.to_vec()));
            items.extend(self.annex.clone());
            tx.unlock(input, &[], &items)
        };
        let signed = (0..self.inputs).fold(tx, add_witness).build();
        block::of_transactions(vec![signed], spend.script_pubkey.clone(), self.inputs)
    }
}
