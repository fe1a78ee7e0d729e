//! Blocks full of proposed opcodes, and of their references.

use assay_bench::plan::Wrap;
use assay_consensus::script::opcode::op;
use assay_consensus::script::{Operation, TxContext, asm};
use assay_wire::TxBuilder;
use secp256k1::{Keypair, schnorr};

use super::block::{self, Made, Split, of_inputs, plain};
use super::checks::{key, secret};
use super::hashing::Rules;
use super::memory::copied_bytes_max;
use super::preparation::Preparation;
use crate::spend::{DEPTH_MAX, Spend, Tree};

/// Weight of a block with one input, without its script.
const ONE_INPUT: u32 = 2_500;

fn has(rules: &Rules<'_>, opcode: u8, operation: Operation) -> bool {
    rules.set.tapscript().operations.get(opcode) == Some(operation)
}

/// One input that runs this script.
fn of_script(script: &[u8], weight: u32, shape: &str) -> Made {
    let spend = Spend::new(Wrap::Tapscript, script, Vec::new());
    plain(of_inputs(&spend, weight, Split::NONE), shape)
}

/// `OP_CAT` of an element of half the limit with itself; the results are as large as copying opcodes allow.
pub(super) fn cat(rules: &Rules<'_>, weight: u32) -> Option<Made> {
    if !has(rules, op::CAT, Operation::Cat) {
        return None;
    }
    let language = rules.set.tapscript();
    let half = (language.element_bytes_max / 2).min(copied_bytes_max(language, op::DUP));
    let rounds = weight.saturating_sub(12_000) / 4;
    let mut script = [op::DUP, op::DUP, op::CAT, op::DROP].repeat(rounds as usize);
    script.extend([op::DROP, op::PUSH1]);
    let spend = Spend::new(Wrap::Tapscript, &script, vec![vec![0x42; half]]);
    let block = of_inputs(&spend, weight, Split::NONE);
    // Two copies and their concatenation.
    let copied_bytes = u64::from(rounds) * 4 * half as u64;
    let shape = format!("`OP_DUP OP_DUP OP_CAT OP_DROP` on {half} bytes, tapscript");
    Some(Made { copied_bytes, ..plain(block, &shape) })
}

pub(super) fn template_hash(rules: &Rules<'_>, weight: u32) -> Option<Made> {
    if !has(rules, op::TEMPLATEHASH, Operation::TemplateHash) {
        return None;
    }
    let rounds = weight.saturating_sub(ONE_INPUT) / 2;
    let mut script = [op::TEMPLATEHASH, op::DROP].repeat(rounds as usize);
    script.push(op::PUSH1);
    let made = of_script(&script, weight, "`OP_TEMPLATEHASH OP_DROP`, tapscript");
    // 173 is the length hashed by BIP446: tag, version, lock time, three hashes, index and presence of an annex.
    Some(Made { hashed_bytes: u64::from(rounds) * 173, ..made })
}

/// The hash covers neither spent output scripts nor witnesses, so it is known before the script is.
pub(super) fn check_template(rules: &Rules<'_>, weight: u32) -> Option<Made> {
    if !has(rules, op::NOP4, Operation::CheckTemplateVerify) {
        return None;
    }
    let like = Spend::new(Wrap::Tapscript, &[op::PUSH1], Vec::new());
    let tx = block::unsigned(&mut Preparation::new(&like.script_pubkey), &like, 0..1, 0).build();
    let hash = TxContext::new(tx.view(), &like.spent()).check_template_hash(0);
    let rounds = weight.saturating_sub(ONE_INPUT);
    let mut script = Vec::new();
    asm::push(&mut script, &hash);
    script.extend(vec![op::NOP4; rounds as usize]);
    let made = of_script(&script, weight, "`OP_CHECKTEMPLATEVERIFY`, tapscript");
    // 84 is the length hashed by BIP119 without input scripts: version, lock time, two counts, two hashes and the index.
    Some(Made { hashed_bytes: u64::from(rounds) * 84, ..made })
}

/// Inputs with as many signatures as their stack holds, all different and of the same message.
pub(super) fn signed_messages(rules: &Rules<'_>, weight: u32) -> Option<Made> {
    const ROUND: [u8; 7] = [
        op::FROMALTSTACK,
        op::FROMALTSTACK,
        op::DUP2,
        op::TOALTSTACK,
        op::TOALTSTACK,
        op::CHECKSIGFROMSTACK,
        op::VERIFY,
    ];
    /// Length of a signature with its length byte, and of the round that checks it.
    const EACH: usize = 65 + ROUND.len();
    const MESSAGE: [u8; 520] = [0x42; 520];
    if !has(rules, op::CHECKSIGFROMSTACK, Operation::CheckSigFromStack) {
        return None;
    }
    let room = (weight as usize).saturating_sub(3_000);
    let checks = (room.saturating_sub(1_000) / EACH).clamp(1, 900);
    let inputs = (room / (checks * EACH + 1_000)).max(1);
    let mut script = Vec::new();
    for element in [&key()[..], &MESSAGE] {
        asm::push(&mut script, element);
        script.push(op::TOALTSTACK);
    }
    script.extend(ROUND.repeat(checks));
    script.push(op::PUSH1);
    let spend = Spend::new(Wrap::Tapscript, &script, Vec::new());
    let view = spend.tx.view();
    let commitment: Vec<Vec<u8>> = view.witness(0).iter().map(<[u8]>::to_vec).collect();
    let keypair = Keypair::from_secret_key(&secret());
    let signature = |number: usize| {
        let mut other = [0; 32];
        other[..8].copy_from_slice(&(number as u64).to_le_bytes());
        schnorr::sign_with_aux_rand(&MESSAGE, &keypair, &other).to_byte_array().to_vec()
    };
    let add_witness = |tx: TxBuilder, input: usize| {
        let signatures = (0..checks).map(|check| signature(input * checks + check));
        let items: Vec<Vec<u8>> = signatures.chain(commitment.iter().cloned()).collect();
        tx.unlock(input, &[], &items)
    };
    let tx = block::unsigned(&mut Preparation::new(&spend.script_pubkey), &spend, 0..inputs, 0);
    let signed = (0..inputs).fold(tx, add_witness).build();
    let block = block::of_transactions(vec![signed], spend.script_pubkey.clone(), inputs);
    let checks = (inputs * checks) as u64;
    let shape = "`OP_FROMALTSTACK OP_FROMALTSTACK OP_2DUP OP_TOALTSTACK OP_TOALTSTACK OP_CHECKSIGFROMSTACK OP_VERIFY` x 900, tapscript";
    // Nonce, key and message.
    Some(Made { checks, hashed_bytes: checks * (64 + 520), ..plain(block, shape) })
}

/// Leaves with the longest Merkle paths, of otherwise unknown trees.
pub(super) fn paths(tree: Tree, weight: u32) -> Made {
    let spend = Spend::of_leaf(tree, &[op::PUSH1], DEPTH_MAX);
    let block = of_inputs(&spend, weight, Split::NONE);
    let hashed_bytes = (block.inputs * DEPTH_MAX * 64) as u64;
    Made { hashed_bytes, ..plain(block, &format!("`1`, {DEPTH_MAX} levels deep, {}", tree.name())) }
}
