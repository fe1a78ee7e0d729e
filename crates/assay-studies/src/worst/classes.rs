//! Classes of work that can fill a block.

use assay_bench::plan::Wrap;
use assay_consensus::script::opcode::op;
use assay_consensus::script::{Program, asm};

use super::block::{Made, Split, of_inputs, plain};
use super::hashing::{Cost, Rules};
use super::post_quantum::{ML, SLH, TRIALS};
use super::{checks, memory, proposals};
use crate::spend::{Spend, Tree};

/// A class of work, repeated as often as the weight of a block allows.
#[derive(Debug)]
pub(crate) struct Class {
    /// Lower-case letters, digits, `-`.
    pub(crate) name: &'static str,
    /// Description of the costly work, with its publication.
    pub(crate) summary: &'static str,
    /// True if the class needs rules that are not active.
    pub(crate) is_proposed: bool,
    /// Builds a block of about this weight; `None` if the rules do not have the class.
    pub(crate) make: fn(&Rules<'_>, u32) -> Option<Made>,
}

const fn class(
    name: &'static str,
    summary: &'static str,
    make: fn(&Rules<'_>, u32) -> Option<Made>,
) -> Class {
    Class { name, summary, is_proposed: false, make }
}

const fn proposed(
    name: &'static str,
    summary: &'static str,
    make: fn(&Rules<'_>, u32) -> Option<Made>,
) -> Class {
    Class { name, summary, is_proposed: true, make }
}

pub(crate) const CLASSES: &[Class] = &[
    class(
        "legacy-hashing",
        "signature messages of outputs before SegWit, each as long as its transaction (BIP54's first motive)",
        |rules, weight| Some(checks::legacy_messages(rules, weight)),
    ),
    class(
        "legacy-checks",
        "signature checks of outputs before SegWit, which do not count where they are spent: 67 an input, one message",
        |rules, weight| Some(checks::legacy_same(rules, weight)),
    ),
    class(
        "legacy-checks-distinct",
        "the same with a message of its own for each check, 50 an input: no cache of results helps",
        |rules, weight| Some(checks::legacy_distinct(rules, weight)),
    ),
    class(
        "witness-checks",
        "ECDSA checks of P2WSH, 80,000: as many as the block's limit of signature operations lets through",
        |_, weight| Some(checks::witness(weight)),
    ),
    class(
        "tapscript-checks-same",
        "BIP340 checks of tapscript, one for 50 weight units, all of the same signature",
        |_, weight| Some(checks::tapscript_same(weight)),
    ),
    class(
        "tapscript-checks",
        "BIP340 checks of tapscript, each of another valid signature",
        |_, weight| Some(checks::tapscript_distinct(weight)),
    ),
    class(
        "hashing-bare",
        "hashing opcodes in outputs of earlier blocks, whose weight does not count where they are spent",
        |rules, weight| hashing(rules, weight, Wrap::Bare),
    ),
    class("hashing-p2wsh", "hashing opcodes in P2WSH: 201 operations a script", |rules, weight| {
        hashing(rules, weight, Wrap::P2wsh)
    }),
    class(
        "hashing-tapscript",
        "hashing opcodes in tapscript, bound by weight alone",
        |rules, weight| hashing(rules, weight, Wrap::Tapscript),
    ),
    class(
        "hashing-results",
        "hashing opcodes in tapscript on the result of the one before: digests that are kept do not help",
        |rules, weight| {
            let is_wanted = |cost: &&Cost| cost.shape.wrap == Wrap::Tapscript && cost.is_chain();
            Some(of_cost(rules.costs.iter().find(is_wanted)?, weight))
        },
    ),
    class(
        "stack-bare",
        "OP_ROLL through a thousand elements, in outputs of earlier blocks",
        |_, weight| {
            let script = rolls(201);
            let block =
                of_inputs(&Spend::new(Wrap::Bare, &script, Vec::new()), weight, Split::NONE);
            Some(plain(block, "`998 OP_ROLL` x 201 on 999 elements, bare"))
        },
    ),
    class("stack-tapscript", "the same in tapscript", |_, weight| {
        let rounds = weight.saturating_sub(6_000) / 4;
        let mut script = rolls(rounds as usize);
        script.extend(vec![op::DROP2; ELEMENTS / 2]);
        let spend = Spend::new(Wrap::Tapscript, &script, Vec::new());
        let block = of_inputs(&spend, weight, Split::NONE);
        Some(plain(block, "`998 OP_ROLL` on 999 elements, tapscript"))
    }),
    class(
        "opcodes-bare",
        "scripts of 10,000 bytes that are read and not executed, and coins of that size",
        |_, weight| {
            let mut script = vec![0, op::IF];
            script.extend(vec![op::PUSH1; 9_990]);
            script.extend([op::ENDIF, op::PUSH1]);
            let block =
                of_inputs(&Spend::new(Wrap::Bare, &script, Vec::new()), weight, Split::NONE);
            Some(plain(block, "`0 OP_IF 1 … OP_ENDIF 1`, 9,994 bytes, bare"))
        },
    ),
    class("opcodes-tapscript", "the cheapest opcode, a weight unit each", |_, weight| {
        let mut script = vec![op::NOP; weight.saturating_sub(2_500) as usize];
        script.push(op::PUSH1);
        let spend = Spend::new(Wrap::Tapscript, &script, Vec::new());
        let block = of_inputs(&spend, weight, Split::NONE);
        Some(plain(block, "`OP_NOP`, tapscript"))
    }),
    class("copies-tapscript", "elements of the limit, copied in threes", |rules, weight| {
        Some(memory::copies(rules, weight))
    }),
    class(
        "memory-tapscript",
        "a stack filled with elements of the limit and emptied, again and again",
        |rules, weight| Some(memory::full_stacks(rules, weight)),
    ),
    class(
        "inputs",
        "inputs as small as they can be, of outputs that ask for nothing",
        |_, weight| {
            let spend = Spend::new(Wrap::Bare, &[op::PUSH1], Vec::new());
            Some(plain(of_inputs(&spend, weight, Split::NONE), "`1`, bare"))
        },
    ),
    class("paths-tapscript", "leaves 128 levels deep in their trees (BIP341)", |_, weight| {
        Some(proposals::paths(Tree::Taproot, weight))
    }),
    class(
        "ordinary",
        "what blocks are mostly made of, for comparison: P2WPKH, two inputs and the bytes of two outputs a transaction",
        |_, weight| Some(checks::ordinary(weight)),
    ),
    proposed("paths-p2mr", "the same in outputs without a key (BIP360)", |rules, weight| {
        let is_there = rules.set.programs[2] == Program::MerkleRoot;
        is_there.then(|| proposals::paths(Tree::MerkleRoot, weight))
    }),
    proposed(
        "cat",
        "OP_CAT that copies an element of half the limit twice (BIP347)",
        proposals::cat,
    ),
    proposed(
        "ctv",
        "OP_CHECKTEMPLATEVERIFY, a weight unit each (BIP119)",
        proposals::check_template,
    ),
    proposed(
        "csfs",
        "OP_CHECKSIGFROMSTACK, each of another valid signature of 520 bytes (BIP348)",
        proposals::signed_messages,
    ),
    proposed(
        "templatehash",
        "OP_TEMPLATEHASH, two weight units each (BIP446)",
        proposals::template_hash,
    ),
    proposed(
        "slh-checks",
        "OP_CHECKSIG_SLH, an input each: signatures of SLH-DSA-SHA2-128s (PQSIG draft)",
        |rules, weight| SLH.one_an_input(rules, weight, 0),
    ),
    proposed(
        "slh-checks-long",
        "the same, signed so that verifying takes more steps",
        |rules, weight| SLH.one_an_input(rules, weight, TRIALS),
    ),
    proposed(
        "slh-checks-copied",
        "OP_CHECKSIG_SLH of two signatures that are copied alternately, one check for 50 weight units: what the draft limits copying for",
        |rules, weight| SLH.copied(rules, weight),
    ),
    proposed(
        "ml-checks",
        "OP_CHECKSIG_ML, an input each: signatures of ML-DSA-44 (PQSIG draft)",
        |rules, weight| ML.one_an_input(rules, weight, 0),
    ),
    proposed(
        "ml-checks-copied",
        "OP_CHECKSIG_ML of two signatures that are copied alternately, one check for 50 weight units",
        |rules, weight| ML.copied(rules, weight),
    ),
];

/// Number of elements of deep stacks: the limit of a thousand, without the operand.
const ELEMENTS: usize = 999;

/// A script that pushes [`ELEMENTS`] elements, then rolls the lowest to the top `rounds` times.
fn rolls(rounds: usize) -> Vec<u8> {
    let mut script = vec![op::PUSH1; ELEMENTS];
    let mut round = Vec::new();
    asm::push_number(&mut round, ELEMENTS as i64 - 1);
    round.push(op::ROLL);
    script.extend(round.repeat(rounds));
    script
}

/// A block of the worst shape in this kind of output.
fn hashing(rules: &Rules<'_>, weight: u32, wrap: Wrap) -> Option<Made> {
    Some(of_cost(rules.costs.iter().find(|cost| cost.shape.wrap == wrap)?, weight))
}

fn of_cost(cost: &Cost, weight: u32) -> Made {
    let block = cost.block(weight);
    let hashed_bytes = cost.hashed(&block);
    // A shape hashes a copy, or the previous result.
    let copied_bytes = if cost.is_chain() { 0 } else { hashed_bytes };
    Made { hashed_bytes, copied_bytes, ..plain(block, &cost.shape.text()) }
}
