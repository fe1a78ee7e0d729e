//! Random scripts for any length of time, to run under a sanitizer. Nothing is measured.

use std::time::{Duration, Instant};

use assay_bench::plan::Wrap;
use assay_consensus::script::asm;
use assay_consensus::script::opcode::op;
use assay_consensus::script::{Interpreter, RuleSet, TxContext};
use assay_engine::ImmediateChecker;

use crate::spend::Spend;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Soaked {
    /// Verified inputs.
    pub inputs: u64,
    pub passed: u64,
    /// Total bytes of elements and scripts.
    pub bytes: u64,
}

/// Names of the rule sets that each script runs under.
const RULES: [&str; 6] =
    ["today", "report-8000", "report-8000-dup", "report-8000-copies", "pqsig", "ctv+cat+bip448"];

/// Verifies inputs with random scripts over elements of 0 to 8,000 bytes in every kind of output, under several rule
/// sets, reusing the interpreters. Half of the scripts are the report's templates.
///
/// # Panics
/// If a verdict depends on earlier scripts of an interpreter.
pub fn soak(duration: Duration, seed: u64) -> Soaked {
    let start = Instant::now();
    let all = RULES.map(|name| RuleSet::by_name(name).expect("a name"));
    let mut interpreters = all.map(Interpreter::with_rules);
    let mut dice = Dice(seed | 1);
    let mut soaked = Soaked::default();
    while start.elapsed() < duration {
        let spend = dice.spend();
        for (interpreter, rules) in interpreters.iter_mut().zip(&all) {
            let spent = spend.spent();
            let context = TxContext::new(spend.tx.view(), &spent);
            let verdict = interpreter.verify_input(&context, 0, spend.flags, &mut ImmediateChecker);
            if soaked.inputs.is_multiple_of(16) {
                assert_eq!(verdict, spend.verify(rules), "seed {seed}, input {}", soaked.inputs);
            }
            soaked.inputs += 1;
            soaked.passed += u64::from(verdict.is_ok());
            soaked.bytes += spend.tx.view().total_size() as u64;
        }
    }
    soaked
}

/// Xorshift generator: the same seed generates the same scripts.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % end as u64) as usize
    }

    fn size(&mut self) -> usize {
        const SIZES: [usize; 10] = [0, 1, 20, 32, 64, 65, 519, 520, 521, 8000];
        let pick = self.below(SIZES.len() + 4);
        SIZES.get(pick).copied().unwrap_or_else(|| self.below(8001))
    }

    fn spend(&mut self) -> Spend {
        const HASHES: [u8; 5] = [op::SHA1, op::RIPEMD160, op::SHA256, op::HASH160, op::HASH256];
        let wrap = [Wrap::Bare, Wrap::P2wsh, Wrap::Tapscript][self.below(3)];
        let data = vec![self.0 as u8; self.size()];
        let hash = HASHES[self.below(HASHES.len())];
        let mut script = Vec::new();
        let mut arguments = vec![data];
        if wrap == Wrap::Bare {
            asm::push(&mut script, &arguments[0]);
            arguments.clear();
        }
        match self.below(4) {
            0 => script.extend([hash, op::DROP, op::PUSH1]),
            1 => script.extend([op::DUP, hash, op::DROP, op::PUSH1, op::NIP]),
            _ => self.random(&mut script),
        }
        Spend::new(wrap, &script, arguments)
    }

    /// Appends a random opcode, mostly one that does not fail.
    fn random(&mut self, script: &mut Vec<u8>) {
        for _ in 0..self.below(60) {
            match self.below(8) {
                0 => {
                    let data = vec![self.0 as u8; self.size()];
                    asm::push(script, &data);
                }
                1 => asm::push_number(script, self.below(20) as i64),
                2 => script.push([op::DUP, op::DUP2, op::DUP3, op::OVER, op::TUCK][self.below(5)]),
                3 => script.push(op::RIPEMD160 + self.below(5) as u8),
                4 => script.push(op::TOALTSTACK + self.below(19) as u8),
                5 => script.push(op::CHECKSIG + self.below(4) as u8),
                6 => script.push(self.below(256) as u8),
                _ => script.push([op::DROP, op::SWAP, op::SIZE, op::DEPTH][self.below(4)]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_pass_and_some_do_not() {
        let soaked = soak(Duration::from_millis(200), 7);
        assert!(0 < soaked.passed && soaked.passed < soaked.inputs, "{soaked:?}");
    }
}
