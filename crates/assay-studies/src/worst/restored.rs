//! The varops budget of BIP-0440: for each opcode of BIP-0441 and several sizes of its operands, the time of a block that
//! spends its whole budget on it.
//!
//! The draft claims that no block which keeps to its budget takes longer than one full of BIP340 checks. Each opcode is run
//! alone here, from operands that are copied before it, and its time for a budget is compared with that.

use std::hint::black_box;
use std::time::Instant;

use assay_bench::suite::{Extent, StudyTable};
use assay_bench::{BenchError, Progress};
use assay_consensus::script::opcode::op;
use assay_consensus::script::{
    CostTable, Evaluation, Flags, Interpreter, RuleSet, ScriptError, TxContext, asm,
};
use assay_engine::ImmediateChecker;
use assay_report::stats::ratio::Summary;
use assay_wire::encode;

use secp256k1::{Keypair, schnorr};

use super::block::{BLOCK_WEIGHT, HEIGHT, Split, of_inputs};
use super::checks::secret;
use super::classes::{Made, Rules, plain};
use crate::rules::name;
use crate::spend::Spend;

/// Weight of a block with one input, without elements and rounds.
const ROOM: usize = 3_000;

/// Bytes of operands that are tried; of two, both together have to fit a block.
const SIZES: [usize; 9] = [1, 8, 64, 520, 4_000, 32_000, 100_000, 1_000_000, 1_900_000];

/// An operand of this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    /// All bits set.
    Ones,
    /// Zeros with a one in the last byte: the worst case of a scan from the start.
    TopOne,
    /// All bits of half as many bytes.
    HalfOnes,
}

impl Operand {
    fn element(self, size: usize) -> Vec<u8> {
        match self {
            Self::Ones => vec![0xff; size],
            Self::TopOne => {
                let mut element = vec![0; size];
                if let Some(last) = element.last_mut() {
                    *last = 1;
                }
                element
            }
            Self::HalfOnes => vec![0xff; size.div_ceil(2)],
        }
    }
}

/// What is repeated: opcodes that leave the stack as it was, or change an element in place.
#[derive(Debug)]
struct Trial {
    name: &'static str,
    operands: &'static [Operand],
    /// The round, given the size of the operands.
    round: fn(usize) -> Vec<u8>,
    /// No larger operands.
    size_max: usize,
}

const fn trial(
    name: &'static str,
    operands: &'static [Operand],
    round: fn(usize) -> Vec<u8>,
) -> Trial {
    Trial { name, operands, round, size_max: usize::MAX }
}

const ONE: &[Operand] = &[Operand::Ones];
const TWO: &[Operand] = &[Operand::Ones; 2];
const ZERO: &[Operand] = &[Operand::TopOne];
const TWO_ZERO: &[Operand] = &[Operand::TopOne; 2];

fn unary(opcode: u8) -> Vec<u8> {
    vec![op::DUP, opcode, op::DROP]
}

fn binary(opcode: u8) -> Vec<u8> {
    vec![op::DUP2, opcode, op::DROP]
}

/// `OP_DUP`, a number, an opcode and `OP_DROP`.
fn with_number(opcode: u8, number: usize) -> Vec<u8> {
    let mut round = vec![op::DUP];
    push_natural(&mut round, number);
    round.extend([opcode, op::DROP]);
    round
}

/// As deep as there are elements.
fn rolling(elements: usize) -> Vec<u8> {
    let mut round = Vec::new();
    push_natural(&mut round, elements - 1);
    round.push(op::ROLL);
    round
}

/// Without the zero byte that a signed number would need.
fn push_natural(script: &mut Vec<u8>, number: usize) {
    let bytes = number.to_le_bytes();
    let length = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    match number {
        1..=16 => script.push(op::PUSH1 + number as u8 - 1),
        _ => asm::push(script, &bytes[..length]),
    }
}

const TRIALS: &[Trial] = &[
    trial("OP_DUP", ONE, |_| vec![op::DUP, op::DROP]),
    trial("OP_3DUP", &[Operand::Ones; 3], |_| vec![op::DUP3, op::DROP2, op::DROP]),
    trial("OP_IFDUP", ZERO, |_| vec![op::IFDUP, op::DROP]),
    Trial { size_max: 32_000, ..trial("OP_ROLL, through elements of a byte", &[], rolling) },
    trial("OP_VERIFY", ZERO, |_| vec![op::DUP, op::VERIFY]),
    trial("OP_EQUAL", TWO, |_| binary(op::EQUAL)),
    trial("OP_NOT", ZERO, |_| unary(op::NOT)),
    trial("OP_BOOLAND", TWO_ZERO, |_| binary(op::BOOLAND)),
    trial("OP_NUMEQUAL", TWO, |_| binary(op::NUMEQUAL)),
    trial("OP_LESSTHAN", TWO, |_| binary(op::LESSTHAN)),
    trial("OP_MIN", TWO_ZERO, |_| binary(op::MIN)),
    trial("OP_WITHIN", &[Operand::Ones; 3], |_| vec![op::DUP3, op::WITHIN, op::DROP]),
    trial("OP_SHA256", ONE, |_| unary(op::SHA256)),
    trial("OP_HASH160", ONE, |_| unary(op::HASH160)),
    trial("OP_HASH256", ONE, |_| unary(op::HASH256)),
    Trial { size_max: 520, ..trial("OP_RIPEMD160", ONE, |_| unary(op::RIPEMD160)) },
    Trial { size_max: 520, ..trial("OP_SHA1", ONE, |_| unary(op::SHA1)) },
    trial("OP_CAT", TWO, |_| binary(op::CAT)),
    trial("OP_LEFT", ONE, |size| with_number(op::LEFT, size)),
    trial("OP_RIGHT", ONE, |size| with_number(op::RIGHT, size)),
    trial("OP_INVERT", ONE, |_| unary(op::INVERT)),
    trial("OP_AND", TWO, |_| binary(op::AND)),
    trial("OP_OR", TWO, |_| binary(op::OR)),
    trial("OP_OR, one byte", ONE, |_| vec![op::PUSH1, op::OR]),
    trial("OP_XOR", TWO, |_| binary(op::XOR)),
    trial("OP_ADD", TWO, |_| binary(op::ADD)),
    trial("OP_1ADD", ONE, |_| unary(op::ADD1)),
    trial("OP_SUB", TWO, |_| binary(op::SUB)),
    trial("OP_1SUB", ZERO, |_| unary(op::SUB1)),
    trial("OP_2MUL", ONE, |_| unary(op::MUL2)),
    trial("OP_2DIV", ONE, |_| unary(op::DIV2)),
    trial("OP_MUL", TWO, |_| binary(op::MUL)),
    trial("OP_MUL, one byte", ONE, |_| with_number(op::MUL, 0xff)),
    trial("OP_DIV, half", &[Operand::Ones, Operand::HalfOnes], |_| binary(op::DIV)),
    trial("OP_DIV, one byte", ONE, |_| with_number(op::DIV, 0xfb)),
    trial("OP_MOD, half", &[Operand::Ones, Operand::HalfOnes], |_| binary(op::MOD)),
    trial("OP_UPSHIFT, one bit", ONE, |_| with_number(op::LSHIFT, 1)),
    trial("OP_UPSHIFT, its own length", ONE, |size| with_number(op::LSHIFT, 8 * size)),
    trial("OP_DOWNSHIFT, one bit", ONE, |_| with_number(op::RSHIFT, 1)),
];

/// What a trial costs at one size of its operands.
#[derive(Clone, Debug)]
pub(crate) struct Priced {
    trial: &'static Trial,
    size: usize,
    /// Varops of a round.
    varops: u64,
    /// Rounds that a block has room and budget for.
    rounds: u64,
    is_bound_by_budget: bool,
    round_ns: f64,
}

impl Priced {
    /// Seconds of a block full of it.
    fn block_s(&self) -> f64 {
        self.round_ns * self.rounds as f64 / 1e9
    }

    pub(crate) fn text(&self) -> String {
        format!("{} on {} bytes", self.trial.name, self.size)
    }
}

/// What a script starts with.
fn elements(trial: &Trial, size: usize) -> Vec<Vec<u8>> {
    if trial.operands.is_empty() {
        return vec![vec![1]; size];
    }
    trial.operands.iter().map(|operand| operand.element(size)).collect()
}

fn weight_of(elements: &[Vec<u8>]) -> usize {
    let each = |element: &Vec<u8>| encode::compact_size_len(element.len() as u64) + element.len();
    elements.iter().map(each).sum()
}

/// The leaf version with costs, and these.
#[derive(Clone, Copy)]
struct Market {
    version: u8,
    costs: &'static CostTable,
}

/// Varops of a script that repeats a round, or why it fails.
fn evaluate(
    interpreter: &mut Interpreter,
    market: Market,
    script: &[u8],
    elements: &[&[u8]],
) -> Result<u64, ScriptError> {
    let nothing = Spend::of_version(market.version, &[], Vec::new(), 1);
    let spent = nothing.spent();
    let context = TxContext::new(nothing.tx.view(), &spent);
    let leaf = Evaluation {
        version: market.version,
        script,
        elements,
        annex: None,
        budget: u64::MAX,
        keeps_result: true,
    };
    let flags = Flags::BITCOIN_BLOCK;
    let found = interpreter.evaluate(&context, 0, flags, &mut ImmediateChecker, &leaf)?;
    Ok(found.varops)
}

/// A trial at one size; `None` where an element is too large, or the budget of a block does not reach.
fn price(
    rules: &RuleSet,
    market: Market,
    (trial, size): (&'static Trial, usize),
    repeats: usize,
) -> Result<Option<Priced>, BenchError> {
    let round = (trial.round)(size);
    let owned = elements(trial, size);
    let elements: Vec<&[u8]> = owned.iter().map(Vec::as_slice).collect();
    let room = (BLOCK_WEIGHT as usize).saturating_sub(weight_of(&owned) + ROOM);
    // What is worst for a network is not what is worst for the one interpreter that hashes an element once.
    let mut interpreter = Interpreter::with_rules(*rules).hashing_every_copy();
    let Ok(varops) = evaluate(&mut interpreter, market, &round, &elements) else { return Ok(None) };
    let by_weight = (room / round.len()) as u64;
    let by_budget = market.costs.budget(BLOCK_WEIGHT as usize - ROOM) / varops.max(1);
    let rounds = by_weight.min(by_budget);
    if rounds == 0 {
        return Ok(None);
    }
    let mut time = |count: u64| -> Result<f64, BenchError> {
        let script = round.repeat(count as usize);
        let start = Instant::now();
        evaluate(&mut interpreter, market, &script, &elements).map_err(|error| {
            BenchError::OwnBlock { height: HEIGHT, detail: format!("{}: {error}", trial.name) }
        })?;
        Ok(start.elapsed().as_nanos() as f64)
    };
    // Long enough for the clock, short enough for all of them.
    let (once, nothing) = (time(1)?, time(0)?);
    let estimate = (once - nothing).max(once / 20.0).max(20.0);
    let count = ((TRIAL_NS / estimate) as u64).clamp(1, rounds);
    let samples: Result<Vec<f64>, BenchError> =
        (0..repeats).map(|_| Ok((time(count)? - time(0)?) / count as f64)).collect();
    let round_ns = Summary::of(&samples?).median.max(0.0);
    let is_bound_by_budget = by_budget < by_weight;
    Ok(Some(Priced { trial, size, varops, rounds, is_bound_by_budget, round_ns }))
}

/// About so long is a trial run.
const TRIAL_NS: f64 = 2e7;

/// Every opcode at the size that is worst for it, the worst first; none under rules without costs.
pub(super) fn search(
    rules: &RuleSet,
    extent: Extent,
    progress: &dyn Progress,
) -> Result<Vec<Priced>, BenchError> {
    let Some((version, costs)) = rules.costs() else { return Ok(Vec::new()) };
    let market = Market { version, costs };
    let (sizes, repeats): (&[usize], usize) = match extent {
        Extent::Smoke => (&SIZES[2..4], 1),
        Extent::Quick => (&SIZES, 1),
        Extent::Full => (&SIZES, 5),
    };
    progress.begin(&format!("{}: opcodes and sizes", name(rules)), TRIALS.len() as u64);
    let mut worst = Vec::new();
    for trial in TRIALS {
        let mut found: Option<Priced> = None;
        for &size in sizes.iter().filter(|&&size| size <= trial.size_max) {
            let priced = price(rules, market, (trial, size), repeats)?;
            let is_worse =
                |priced: &Priced| found.as_ref().is_none_or(|it| it.block_s() < priced.block_s());
            found = priced.filter(is_worse).or(found);
        }
        worst.extend(found);
        progress.step();
    }
    worst.sort_by(|left, right| right.block_s().total_cmp(&left.block_s()));
    Ok(worst)
}

/// A block of the worst that was found, with an annex for what its script does not weigh.
pub(super) fn worst(rules: &Rules<'_>, weight: u32) -> Option<Made> {
    let (version, costs) = rules.set.costs()?;
    let fits = |priced: &&Priced| {
        let elements = elements(priced.trial, priced.size);
        let room = (weight as usize).checked_sub(weight_of(&elements) + ROOM);
        let budget = costs.budget((weight as usize).saturating_sub(ROOM));
        room.is_some_and(|room| room >= (priced.trial.round)(priced.size).len())
            && priced.varops + 8 <= budget
    };
    let priced = rules.restored.iter().find(fits)?;
    let elements = elements(priced.trial, priced.size);
    let round = (priced.trial.round)(priced.size);
    // What is left at the end is dropped, but for a one.
    let cleaning = elements.len() + 1;
    let room = weight as usize - weight_of(&elements) - ROOM;
    let by_weight = room.saturating_sub(cleaning) / round.len();
    let budget = costs.budget(weight as usize - ROOM) - 8 * costs.fast;
    let rounds = by_weight.min((budget / priced.varops.max(1)) as usize);
    let mut script = round.repeat(rounds);
    script.extend(vec![op::DROP; elements.len()]);
    script.push(op::PUSH1);
    let annex = room - rounds * round.len() - cleaning + 1;
    let spend = Spend::of_version(version, &script, elements, annex);
    let shape = format!("{}, {rounds} times", priced.text());
    Some(plain(of_inputs(&spend, weight, Split::NONE), &shape))
}

/// Which opcodes take longer than BIP340 checks that are made one by one.
pub(super) fn lead(rules: &RuleSet, found: &[Priced], one_by_one_s: f64) -> Option<String> {
    let (_, costs) = rules.costs()?;
    let worst = found.first()?;
    let above = found.iter().filter(|priced| priced.block_s() > one_by_one_s).count();
    Some(format!(
        "Of {} opcodes, {above} take our interpreter longer for what a block may spend ({}) than libsecp256k1 takes for 80,000 checks of BIP340, one by one; the worst is {}: \
         {:.2} s, {:.2} times as long.",
        found.len(),
        costs.name,
        worst.text(),
        worst.block_s(),
        worst.block_s() / one_by_one_s,
    ))
}

/// Checks of BIP340 that a block has room for, as BIP440 counts them.
const BLOCK_CHECKS: f64 = 80_000.0;

/// Seconds of a block of BIP340 checks, one by one by libsecp256k1, what BIP440 compares with.
pub(super) fn one_by_one_s() -> f64 {
    let keypair = Keypair::from_secret_key(&secret());
    let key = keypair.x_only_public_key().0;
    let message = [7; 32];
    let signature = schnorr::sign_no_aux_rand(&message, &keypair);
    let checks = 500;
    let mut samples = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..checks {
            let verdict = schnorr::verify(black_box(&signature), &message, &key);
            assert!(verdict.is_ok(), "a signature of ours");
        }
        samples.push(start.elapsed().as_secs_f64() / f64::from(checks));
    }
    Summary::of(&samples).median * BLOCK_CHECKS
}

/// All opcodes at their worst; against a block of BIP340 checks on one thread, in lanes and one by one.
pub(super) fn table(
    rules: &RuleSet,
    found: &[Priced],
    (reference_s, one_by_one_s): (Option<f64>, f64),
) -> Option<StudyTable> {
    let (_, costs) = rules.costs()?;
    let head = [
        "opcode",
        "bytes of an operand",
        "varops a round",
        "rounds",
        "bound by",
        "ns a round",
        "ns for 1,000 varops",
        "s a block",
        "times BIP340 here",
        "times BIP340 one by one",
    ];
    let row = |priced: &Priced| {
        vec![
            priced.trial.name.to_owned(),
            priced.size.to_string(),
            priced.varops.to_string(),
            priced.rounds.to_string(),
            if priced.is_bound_by_budget { "budget" } else { "weight" }.to_owned(),
            format!("{:.0}", priced.round_ns),
            if priced.varops == 0 {
                "-".to_owned()
            } else {
                format!("{:.1}", priced.round_ns * 1e3 / priced.varops as f64)
            },
            format!("{:.3}", priced.block_s()),
            reference_s.map_or_else(
                || "-".to_owned(),
                |reference| format!("{:.2}", priced.block_s() / reference),
            ),
            format!("{:.2}", priced.block_s() / one_by_one_s),
        ]
    };
    Some(StudyTable {
        caption: format!(
            "{}, costs of {}: one thread, operands copied before each opcode",
            name(rules),
            costs.name
        ),
        head: head.iter().map(|&word| word.to_owned()).collect(),
        word_columns: 1,
        rows: found.iter().map(row).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_bench::Silent;

    #[test]
    fn every_opcode_has_a_price_and_the_worst_makes_a_block() {
        for rules in ["bip441", "bip441-gsr"] {
            let set = RuleSet::by_name(rules).expect("a name");
            let found = search(&set, Extent::Smoke, &Silent).expect("prices");
            assert_eq!(found.len(), TRIALS.len());
            let table = table(&set, &found, (Some(1.0), 2.0)).expect("a table");
            assert_eq!(table.rows.len(), TRIALS.len());
            // Every one of them makes a block that keeps to its budget.
            for priced in &found {
                let alone = std::slice::from_ref(priced);
                let rules = Rules { set: &set, costs: &[], restored: alone };
                let made = worst(&rules, 40_000).expect("a block");
                made.block.verify(&set).expect("valid");
                assert!((37_500..40_000).contains(&made.block.weight), "{}", made.block.weight);
            }
        }
    }

    /// No input goes beyond the budget of its transaction, but all together do.
    #[test]
    fn inputs_share_the_budget_of_their_transaction() {
        let set = RuleSet::by_name("bip441").expect("a name");
        let block = |hashes: usize| {
            let script = [unary(op::SHA256).repeat(hashes), vec![op::DROP, op::PUSH1]].concat();
            let spend = Spend::of_version(0xc2, &script, vec![vec![1; 1_000]], 1);
            of_inputs(&spend, 100_000, Split::NONE)
        };
        let (few, many) = (block(400), block(700));
        assert!(few.inputs > 20 && many.inputs > 20);
        few.verify(&set).expect("valid");
        many.verify(&RuleSet::TODAY).expect("another version succeeds");
        let error = many.verify(&set).expect_err("too much").to_string();
        assert!(error.contains("left of the budget"), "{error}");
        let input = error.split("input ").nth(1).and_then(|rest| {
            rest.split(|it: char| !it.is_ascii_digit()).next()?.parse::<usize>().ok()
        });
        assert!(input.is_some_and(|input| input > many.inputs * 3 / 4), "{error}");
    }
}
