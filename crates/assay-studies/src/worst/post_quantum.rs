//! Blocks full of post-quantum signatures.

use std::sync::LazyLock;

use assay_consensus::script::opcode::op;
use assay_consensus::script::{Operation, PqScheme, asm};
use assay_hash::sha256d;
use assay_pq::{Message, ParameterSet, TestKey, ml_dsa};

use super::block::{Made, plain};
use super::checks::{CHECK_WEIGHT, Signed};
use super::hashing::Rules;
use super::memory::copied_bytes_max;

/// Two keys for signatures with realistic cost ([`TestKey`]).
static SLH_KEYS: LazyLock<[TestKey; 2]> =
    LazyLock::new(|| [1, 2].map(|number| TestKey::new(ParameterSet::SHA2_128S, number)));

static ML_KEYS: LazyLock<[ml_dsa::TestKey; 2]> =
    LazyLock::new(|| [1, 2].map(|number| ml_dsa::TestKey::new([number; 32])));

/// Siblings tried in each layer of a signature to make its verification slow.
pub(super) const TRIALS: u32 = 256;

/// Weight of an input without its signature: script, control block, outpoint and sequence, rounded up.
const INPUT_WEIGHT: usize = 250;

/// Weight of a block without its inputs, rounded up.
const ROOM: usize = 3_000;

/// Length of a tapscript message, including the tag hashes.
const MESSAGE_BYTES: u64 = 250;

#[derive(Clone, Copy)]
pub(super) struct Scheme {
    is: PqScheme,
    opcode: u8,
    name: &'static str,
}

pub(super) const SLH: Scheme =
    Scheme { is: PqScheme::SlhDsa128s, opcode: op::CHECKSIG_SLH, name: "OP_CHECKSIG_SLH" };
pub(super) const ML: Scheme =
    Scheme { is: PqScheme::MlDsa44, opcode: op::CHECKSIG_ML, name: "OP_CHECKSIG_ML" };

impl Scheme {
    /// Length of the element with the signature.
    fn element_bytes(self) -> usize {
        match self.is {
            PqScheme::SlhDsa128s => self.is.signature_bytes(),
            PqScheme::MlDsa44 => self.is.key_bytes() + self.is.signature_bytes(),
        }
    }

    fn is_there(self, rules: &Rules<'_>) -> bool {
        let language = rules.set.tapscript();
        language.operations.get(self.opcode) == Some(Operation::CheckSigPq(self.is))
            && language.element_bytes_max >= self.element_bytes()
    }

    /// Pushes a key, or the hash of a key that is too large.
    fn push_key(self, script: &mut Vec<u8>, number: usize) {
        match self.is {
            PqScheme::SlhDsa128s => asm::push(script, SLH_KEYS[number].public()),
            PqScheme::MlDsa44 => asm::push(script, &sha256d(ML_KEYS[number].public())),
        }
    }

    fn sign(self, number: usize, message: &[u8; 32], trials: u32) -> Vec<u8> {
        match self.is {
            PqScheme::SlhDsa128s => {
                let message = Message::Pure { context: &[], message };
                SLH_KEYS[number].sign_with_long_chains(&message, trials)
            }
            PqScheme::MlDsa44 => {
                let key = &ML_KEYS[number];
                [key.public(), &key.sign(message, &[])].concat()
            }
        }
    }

    pub(super) fn one_an_input(self, rules: &Rules<'_>, weight: u32, trials: u32) -> Option<Made> {
        if !self.is_there(rules) {
            return None;
        }
        let room = (weight as usize).saturating_sub(ROOM);
        let inputs = (room / (self.element_bytes() + INPUT_WEIGHT)).max(1);
        let mut script = Vec::new();
        self.push_key(&mut script, 0);
        script.push(self.opcode);
        let tapscript = Signed { script, inputs, positions: vec![u32::MAX], annex: None };
        let block = tapscript.block_signed_by(&|_, message| self.sign(0, message, trials));
        let how = match trials {
            0 => String::new(),
            _ => format!(", the best of {trials} siblings a layer"),
        };
        let checks = inputs as u64;
        let shape = format!("`KEY {}`{how}, tapscript", self.name);
        Some(Made { checks, hashed_bytes: checks * MESSAGE_BYTES, ..plain(block, &shape) })
    }

    /// One input whose annex raises the budget for its checks; consecutive ones differ, so that caching the last result is no help.
    pub(super) fn copied(self, rules: &Rules<'_>, weight: u32) -> Option<Made> {
        let turn = [op::OVER2, self.opcode, op::VERIFY, op::DUP2, self.opcode, op::VERIFY];
        let language = rules.set.tapscript();
        let copied = [op::OVER2, op::DUP2].map(|opcode| copied_bytes_max(language, opcode));
        if !self.is_there(rules) || copied.into_iter().any(|bytes| bytes < self.element_bytes()) {
            return None;
        }
        let room = (weight as usize).saturating_sub(2 * self.element_bytes() + ROOM);
        let turns = (room / (2 * CHECK_WEIGHT)).max(1);
        let mut script = Vec::new();
        self.push_key(&mut script, 1);
        script.push(op::ROT);
        self.push_key(&mut script, 0);
        // Signature 2, key 2, signature 1, key 1.
        script.extend(turn.repeat(turns));
        script.extend([op::DROP2, op::DROP2, op::PUSH1]);
        // The weight of signatures and script adds to the budget too.
        let mut annex = vec![0; (2 * CHECK_WEIGHT - turn.len()) * turns];
        annex.insert(0, 0x50);
        let positions = vec![u32::MAX; 2];
        let tapscript = Signed { script, inputs: 1, positions, annex: Some(annex) };
        // The first signature is on top, where the script expects that of the second key.
        let block = tapscript.block_signed_by(&|number, message| self.sign(1 - number, message, 0));
        let checks = 2 * turns as u64;
        let name = self.name;
        let shape = format!(
            "`OP_2OVER {name} OP_VERIFY OP_2DUP {name} OP_VERIFY`, tapscript with an annex"
        );
        let copied_bytes = checks * self.element_bytes() as u64;
        let hashed_bytes = checks * MESSAGE_BYTES;
        Some(Made { checks, hashed_bytes, copied_bytes, ..plain(block, &shape) })
    }
}

#[cfg(test)]
mod tests {
    use assay_consensus::script::RuleSet;

    use super::*;

    fn rules(names: &str) -> RuleSet {
        RuleSet::by_name(names).expect("names of rule sets")
    }

    fn one(scheme: Scheme, trials: u32, set: &RuleSet) -> Option<Made> {
        scheme.one_an_input(&Rules { set, costs: &[] }, 40_000, trials)
    }

    #[test]
    fn blocks_are_valid_and_have_their_checks() {
        let draft = rules("pqsig+slh+ml");
        for (scheme, trials, inputs) in [(SLH, 0, 4), (SLH, TRIALS, 4), (ML, 0, 9)] {
            let made = one(scheme, trials, &draft).expect("a block");
            assert_eq!((made.block.inputs, made.checks), (inputs, inputs as u64));
            made.block.verify(&draft).expect("valid");
        }
        let free = rules("report-8000+slh+ml");
        for scheme in [SLH, ML] {
            let copied = |set: &RuleSet| scheme.copied(&Rules { set, costs: &[] }, 40_000);
            assert!(copied(&draft).is_none(), "the draft does not copy signatures");
            let made = copied(&free).expect("a block");
            assert!(made.checks > 400, "{}", made.checks);
            made.block.verify(&free).expect("valid");
            made.block.verify(&draft).expect_err("copies large elements");
        }
        for names in ["today", "pqsig", "slh", "ml", "report-8000"] {
            assert!(one(SLH, 0, &rules(names)).is_none(), "{names}");
            assert!(one(ML, 0, &rules(names)).is_none(), "{names}");
        }
    }
}
