//! Search for the hashing scripts with the longest time for their weight.
//!
//! Shapes of scripts are enumerated and measured once or a few times each. The time is extrapolated
//! to a full block of 4 million weight units.

use anyhow::Result;
use assay_bench::Progress;
use assay_bench::plan::Wrap;
use assay_bench::suite::Extent;
use assay_consensus::script::asm;
use assay_consensus::script::opcode::op;
use assay_consensus::script::{Interpreter, RuleSet};
use assay_report::stats::ratio::Summary;

use super::block::{self, BLOCK_WEIGHT, FullBlock, Split};
use crate::rules::name;
use crate::spend::Spend;

/// Hashing opcodes, without `OP_`.
pub(crate) const HASHING_OPCODES: [&str; 5] = ["SHA1", "RIPEMD160", "SHA256", "HASH160", "HASH256"];

/// Sources of the operands of hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copying {
    /// `OP_DUP HASH OP_DROP`.
    Dup,
    /// `OP_IFDUP HASH OP_DROP`, which a rule about `OP_DUP` alone does not affect.
    IfDup,
    /// `OP_3DUP` and three times `HASH OP_DROP`.
    Dup3,
    /// `k OP_PICK HASH`, with the results left on the stack: pushes are not counted as operations.
    Pick,
    /// `HASH` of the previous result.
    Chain,
}

impl Copying {
    const ALL: [Self; 5] = [Self::Dup, Self::IfDup, Self::Dup3, Self::Pick, Self::Chain];

    const fn text(self) -> &'static str {
        match self {
            Self::Dup => "OP_DUP HASH OP_DROP",
            Self::IfDup => "OP_IFDUP HASH OP_DROP",
            Self::Dup3 => "OP_3DUP (HASH OP_DROP) x 3",
            Self::Pick => "k OP_PICK HASH",
            Self::Chain => "HASH",
        }
    }

    const fn operands(self) -> usize {
        if matches!(self, Self::Dup3) { 3 } else { 1 }
    }

    fn round(self, script: &mut Vec<u8>, hash: u8, round: usize) {
        match self {
            Self::Dup => script.extend([op::DUP, hash, op::DROP]),
            Self::IfDup => script.extend([op::IFDUP, hash, op::DROP]),
            Self::Dup3 => {
                script.extend([op::DUP3, hash, op::DROP, hash, op::DROP, hash, op::DROP]);
            }
            Self::Pick => {
                asm::push_number(script, round as i64);
                script.extend([op::PICK, hash]);
            }
            Self::Chain => script.push(hash),
        }
    }

    const fn ops(self) -> usize {
        match self {
            Self::Dup | Self::IfDup => 3,
            Self::Dup3 => 7,
            Self::Pick => 2,
            Self::Chain => 1,
        }
    }

    const fn leaves(self) -> usize {
        if matches!(self, Self::Pick) { 1 } else { 0 }
    }
}

/// A script of identical rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) wrap: Wrap,
    copying: Copying,
    /// Index into [`HASHING_OPCODES`].
    pub(crate) hash: usize,
    size: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Cost {
    pub(crate) shape: Shape,
    pub(crate) rules: RuleSet,
    /// Seconds of a full block.
    block_s: f64,
    /// Weight of a round, or of an input if its rounds are limited.
    unit_weight: f64,
    unit_ns: f64,
}

impl Shape {
    fn opcode(self) -> u8 {
        // In the order of [`HASHING_OPCODES`].
        [op::SHA1, op::RIPEMD160, op::SHA256, op::HASH160, op::HASH256][self.hash]
    }

    pub(crate) fn text(self) -> String {
        let hash = format!("OP_{}", HASHING_OPCODES[self.hash]);
        let text = self.copying.text().replace("HASH", &hash);
        format!("`{text}` on {} bytes, {}", self.size, self.wrap.name())
    }

    /// Maximum rounds within 201 operations and 10,000 bytes, including cleanup. Tapscript has no such limits (`None`), but the
    /// stack holds the results of 900 rounds at most.
    fn rounds_max(self) -> Option<usize> {
        if self.wrap == Wrap::Tapscript {
            return (self.copying == Copying::Pick).then_some(900);
        }
        // Bare scripts push their operands, and clean nothing up.
        let (pushed, cleanup, leaves) = if self.wrap == Wrap::Bare {
            (self.copying.operands() * (self.size + 5), 0, 0)
        } else {
            (0, 3, self.copying.leaves())
        };
        let by_ops = (201 - cleanup) * 2 / (2 * self.copying.ops() + leaves);
        // A number in a round is pushed by at most three bytes.
        let by_bytes = (9_900usize.saturating_sub(pushed)) / (self.copying.ops() + 3);
        Some(by_ops.min(by_bytes))
    }

    /// A script of `rounds` rounds.
    pub(crate) fn spend(self, rounds: usize) -> Spend {
        let operands = self.copying.operands();
        let mut script = Vec::new();
        let arguments = vec![vec![0x42; self.size]; operands];
        if self.wrap == Wrap::Bare {
            for operand in &arguments {
                asm::push(&mut script, operand);
            }
        }
        for round in 0..rounds {
            self.copying.round(&mut script, self.opcode(), round);
        }
        if self.wrap == Wrap::Bare {
            // Only the top must be true, and both a hash and the filling are.
            return Spend::new(self.wrap, &script, Vec::new());
        }
        let left = operands + rounds * self.copying.leaves();
        script.extend(vec![op::DROP2; (left - 1) / 2]);
        script.extend(vec![op::DROP; (left - 1) % 2]);
        Spend::new(self.wrap, &script, arguments)
    }

    /// True if the shape passes under these rules at the measured lengths.
    fn passes(self, rules: &RuleSet) -> bool {
        let rounds = self.rounds_max().unwrap_or(ROUNDS_LONG);
        rounds > 0 && self.spend(rounds).verify(rules).is_ok()
    }

    /// Measures the shape; `None` if it fails under these rules.
    fn cost(self, rules: &RuleSet, times: usize) -> Result<Option<Cost>> {
        if !self.passes(rules) {
            return Ok(None);
        }
        // An interpreter that hashes an element only once would hide the worst case of the network.
        let mut interpreter = Interpreter::with_rules(*rules).hashing_every_copy();
        let mut time = |spend: &Spend| -> Result<f64> {
            let samples: Result<Vec<f64>> =
                (0..times).map(|_| Ok(spend.time(&mut interpreter, 1)?.wall_ns as f64)).collect();
            Ok(Summary::of(&samples?).median)
        };
        let (unit_weight, unit_ns, block_s) = if let Some(rounds) = self.rounds_max() {
            let spend = self.spend(rounds);
            let (weight, ns) = (spend.input_weight() as f64, time(&spend)?);
            (weight, ns, ns * f64::from(BLOCK_WEIGHT) / weight / 1e9)
        } else {
            let (short, long) = (self.spend(ROUNDS_SHORT), self.spend(ROUNDS_LONG));
            let rounds = (ROUNDS_LONG - ROUNDS_SHORT) as f64;
            let short_weight = short.input_weight() as f64;
            let weight = (long.input_weight() as f64 - short_weight) / rounds;
            let (short_ns, long_ns) = (time(&short)?, time(&long)?);
            let ns = ((long_ns - short_ns) / rounds).max(0.0);
            (weight, ns, ns * (f64::from(BLOCK_WEIGHT) - short_weight) / weight / 1e9)
        };
        Ok(Some(Cost { shape: self, rules: *rules, block_s, unit_weight, unit_ns }))
    }
}

/// Rounds of the two scripts that are measured where rounds are not limited.
const ROUNDS_SHORT: usize = 100;
const ROUNDS_LONG: usize = 600;

const fn times(extent: Extent) -> usize {
    match extent {
        Extent::Smoke => 3,
        Extent::Quick => 1,
        Extent::Full => 5,
    }
}

/// Cost of every shape under each of the rule sets, the worst first, and the number of tried shapes.
pub(crate) fn search(
    rule_sets: &[RuleSet],
    extent: Extent,
    progress: &dyn Progress,
) -> Result<(Vec<Vec<Cost>>, usize)> {
    let all: Vec<Vec<Shape>> = rule_sets.iter().map(|rules| shapes(rules, extent)).collect();
    let searched = all.iter().map(Vec::len).sum();
    progress.begin("worst block: shapes of scripts", searched as u64);
    let mut known: Vec<Cost> = Vec::new();
    let mut found = Vec::new();
    for (rules, shapes) in rule_sets.iter().zip(all) {
        let mut costs: Vec<Cost> = Vec::new();
        for shape in shapes {
            // Rules decide the validity of a script, not its time: measurements under one rule set hold for others.
            match known.iter().find(|cost| cost.shape == shape) {
                Some(cost) if shape.passes(rules) => {
                    costs.push(Cost { rules: *rules, ..cost.clone() });
                }
                Some(_) => {}
                None => {
                    let cost = shape.cost(rules, times(extent))?;
                    known.extend(cost.clone());
                    costs.extend(cost);
                }
            }
            progress.step();
        }
        costs.sort_by(|left, right| right.block_s.total_cmp(&left.block_s));
        found.push(costs);
    }
    Ok((found, searched))
}

const TODAY: usize = RuleSet::TODAY.base.element_bytes_max;

fn shapes(rules: &RuleSet, extent: Extent) -> Vec<Shape> {
    let max = rules.element_bytes_max();
    let mut sizes = vec![max];
    if max > TODAY {
        // Today's limit, for kinds of scripts whose limit does not change.
        sizes.push(TODAY);
    }
    match extent {
        Extent::Smoke => {}
        // Three eighths of the maximum fit into a bare script.
        Extent::Quick => sizes.push(max * 3 / 8),
        Extent::Full => sizes.extend([64, max / 2, max * 3 / 8]),
    }
    let mut shapes = Vec::new();
    for wrap in [Wrap::Bare, Wrap::P2wsh, Wrap::Tapscript] {
        for copying in Copying::ALL {
            for hash in 0..HASHING_OPCODES.len() {
                if extent == Extent::Smoke && hash != 2 {
                    continue;
                }
                shapes.extend(sizes.iter().map(|&size| Shape { wrap, copying, hash, size }));
            }
        }
    }
    shapes
}

impl Cost {
    /// True if each operand is the previous result, so that nothing is hashed twice.
    pub(crate) fn is_chain(&self) -> bool {
        self.shape.copying == Copying::Chain
    }

    pub(crate) fn row(&self) -> Vec<String> {
        vec![
            self.shape.text(),
            name(&self.rules),
            format!("{:.2}", self.unit_weight),
            format!("{:.2}", self.unit_ns / 1e3),
            format!("{:.4}", self.unit_ns / 1e3 / self.unit_weight),
            format!("{:.2}", self.block_s),
        ]
    }

    /// A block of about this weight, full of the shape.
    pub(crate) fn block(&self, weight: u32) -> FullBlock {
        let shape = self.shape;
        if let Some(rounds) = shape.rounds_max() {
            return block::of_inputs(&shape.spend(rounds), weight, Split::NONE);
        }
        // One input, as long as allowed.
        let one = shape.spend(1).input_weight() as f64;
        let rounds = (f64::from(weight) - one - block::OVERHEAD) / self.unit_weight;
        block::of_inputs(&shape.spend(rounds as usize), weight, Split::NONE)
    }

    /// Number of hashes per input of this block, and bytes of each.
    pub(crate) fn hashed(&self, block: &FullBlock) -> u64 {
        let shape = self.shape;
        let rounds = match shape.rounds_max() {
            Some(rounds) => rounds as u64 * block.inputs as u64,
            None => ((block.weight as f64 - block::OVERHEAD) / self.unit_weight) as u64,
        };
        let each = if shape.copying == Copying::Chain { 32 } else { shape.size };
        rounds * shape.copying.operands() as u64 * each as u64
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) set: &'a RuleSet,
    /// Shapes of hashing scripts that pass under the rules, the worst first.
    pub(crate) costs: &'a [Cost],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_passes_under_rules_that_allow_it() {
        let rules = RuleSet::by_name("report-8000").expect("a name");
        for size in [64, 520, 3000] {
            let small = RuleSet::TODAY.with_element_bytes_max(size).expect("a limit");
            for shape in shapes(&small, Extent::Smoke) {
                let rounds = shape.rounds_max().unwrap_or(ROUNDS_LONG);
                let verdict = shape.spend(rounds).verify(&rules);
                assert!(verdict.is_ok(), "{verdict:?} {rounds} rounds of {}", shape.text());
            }
        }
        for (name, limited) in [
            ("report-8000-dup", &[Copying::Dup][..]),
            (
                "report-8000-copies",
                &[Copying::Dup, Copying::IfDup, Copying::Dup3, Copying::Pick][..],
            ),
        ] {
            let limiting = RuleSet::by_name(name).expect("a name");
            for shape in shapes(&rules, Extent::Smoke) {
                let is_small = shape.size <= TODAY;
                let fits = is_small || shape.wrap != Wrap::Bare || shape.copying != Copying::Dup3;
                let rounds = shape.rounds_max().unwrap_or(ROUNDS_LONG);
                let passes = rounds > 0 && shape.spend(rounds).verify(&limiting).is_ok();
                let allowed = is_small || !limited.contains(&shape.copying);
                assert_eq!(passes, fits && allowed, "{name}: {}", shape.text());
            }
        }
    }
}
