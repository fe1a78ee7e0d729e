//! Leaves of BIP-0441 against a model that copies every element and goes byte by byte; budgets and limits.

use std::cmp::Ordering;

use assay_wire::{Encoding, Transaction, TxOut};

use super::*;
use crate::script::checker::Unasked;
use crate::script::opcode::op::*;
use crate::script::witness::tests::{Scripted, Spend};
use crate::script::{Evaluated, Evaluation, Interpreter, RuleSet, TxContext};
use assay_testkit::chain::TxBuilder;

const LEAF: u8 = 0xc2;

fn evaluate(
    rules: &RuleSet,
    script: &[u8],
    elements: &[&[u8]],
    budget: u64,
) -> Result<Evaluated, ScriptError> {
    let builder = TxBuilder::new(2).input(7, 0, &[], 0).output(1, &[PUSH1]);
    let tx = Transaction::parse(builder.bytes(), Encoding::Segwit).expect("a transaction");
    let spent = [TxOut { value: 2, script_pubkey: &[] }];
    let context = TxContext::new(tx.view(), &spent);
    let leaf =
        Evaluation { version: LEAF, script, elements, annex: None, budget, keeps_result: true };
    Interpreter::with_rules(*rules).evaluate(&context, 0, Flags::BITCOIN_BLOCK, &mut Unasked, &leaf)
}

fn rules() -> RuleSet {
    RuleSet::by_name("bip441").expect("a rule set")
}

/// What the texts of BIP-0440 and BIP-0441 say, in their words: costs with the operands named from the top, A first.
#[derive(Default)]
struct Model {
    stack: Vec<Vec<u8>>,
    alt: Vec<Vec<u8>>,
    cost: u64,
}

fn wordspan(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).div_ceil(8) * 8
}

fn trimmed(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

/// Elements of the tests are so short that sixteen bytes hold every number.
fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
}

fn bytes_of(value: u128) -> Vec<u8> {
    trimmed(value.to_le_bytes().to_vec())
}

fn flag(value: bool) -> Vec<u8> {
    bytes_of(u128::from(value))
}

impl Model {
    fn pop(&mut self) -> Option<Vec<u8>> {
        self.stack.pop()
    }

    /// The depths that are copied to the top, from the deepest.
    fn copy(&mut self, count: usize, depths: &[usize]) -> Option<()> {
        let length = self.stack.len().checked_sub(count).map(|_| self.stack.len())?;
        for depth in depths {
            let element = self.stack[length - 1 - depth].clone();
            self.cost += 3 * element.len() as u64;
            self.stack.push(element);
        }
        Some(())
    }

    /// `None` where the opcode fails.
    fn step(&mut self, opcode: u8) -> Option<()> {
        match opcode {
            TOALTSTACK => self.alt.push(self.stack.pop()?),
            FROMALTSTACK => self.stack.push(self.alt.pop()?),
            DUP => self.copy(1, &[0])?,
            DUP2 => self.copy(2, &[1, 0])?,
            DUP3 => self.copy(3, &[2, 1, 0])?,
            OVER => self.copy(2, &[1])?,
            OVER2 => self.copy(4, &[3, 2])?,
            DROP => drop(self.pop()?),
            SWAP => {
                let (a, b) = (self.pop()?, self.pop()?);
                self.stack.extend([a, b]);
            }
            ROT => {
                let (a, b, c) = (self.pop()?, self.pop()?, self.pop()?);
                self.stack.extend([b, a, c]);
            }
            NIP => {
                let a = self.pop()?;
                self.pop()?;
                self.stack.push(a);
            }
            TUCK => {
                let (a, b) = (self.pop()?, self.pop()?);
                self.cost += 3 * a.len() as u64;
                self.stack.extend([a.clone(), b, a]);
            }
            IFDUP => {
                let a = self.pop()?;
                self.cost += 2 * wordspan(&a) + 3 * a.len() as u64;
                self.stack.push(a.clone());
                if number(&a) != 0 {
                    self.stack.push(a);
                }
            }
            PICK | ROLL => {
                let a = self.pop()?;
                let depth = usize::try_from(number(&a)).ok()?;
                let index = self.stack.len().checked_sub(1)?.checked_sub(depth)?;
                self.cost += 2 * wordspan(&a);
                if opcode == PICK {
                    self.cost += 3 * self.stack[index].len() as u64;
                    self.stack.push(self.stack[index].clone());
                } else {
                    self.cost += 48 * depth as u64;
                    let element = self.stack.remove(index);
                    self.stack.push(element);
                }
            }
            SIZE => self.stack.push(bytes_of(self.stack.last()?.len() as u128)),
            DEPTH => self.stack.push(bytes_of(self.stack.len() as u128)),
            INVERT | NOT | NOTEQUAL0 | ADD1 | SUB1 | MUL2 | DIV2 => {
                let a = self.pop()?;
                self.unary(opcode, &a)?;
            }
            SUBSTR | WITHIN => {
                let (a, b, c) = (self.pop()?, self.pop()?, self.pop()?);
                if opcode == WITHIN {
                    let span = |x: &[u8]| wordspan(x).max(wordspan(&c));
                    self.cost += 2 * (span(&b) + span(&a));
                    self.stack.push(flag((number(&b)..number(&a)).contains(&number(&c))));
                } else {
                    let begin = number(&b).min(c.len() as u128) as usize;
                    let taken = number(&a).min((c.len() - begin) as u128) as usize;
                    self.cost += 2 * (wordspan(&a) + wordspan(&b)) + 3 * taken as u64;
                    self.stack.push(c[begin..begin + taken].to_vec());
                }
            }
            _ => {
                // The texts call them A and B in the order in which they were pushed.
                let (b, a) = (self.pop()?, self.pop()?);
                self.binary(opcode, &a, &b)?;
            }
        }
        Some(())
    }

    fn unary(&mut self, opcode: u8, a: &[u8]) -> Option<()> {
        let span = wordspan(a);
        let (cost, result) = match opcode {
            INVERT => (4 * span, a.iter().map(|byte| byte ^ 0xff).collect()),
            NOT => (2 * span, flag(number(a) == 0)),
            NOTEQUAL0 => (2 * span, flag(number(a) != 0)),
            ADD1 => (9 * span.max(8), bytes_of(number(a).checked_add(1)?)),
            SUB1 => (6 * span.max(8), bytes_of(number(a).checked_sub(1)?)),
            MUL2 => (7 * span, bytes_of(number(a).checked_mul(2)?)),
            _ => (4 * span, bytes_of(number(a) / 2)),
        };
        self.cost += cost;
        self.stack.push(result);
        Some(())
    }

    fn binary(&mut self, opcode: u8, a: &[u8], b: &[u8]) -> Option<()> {
        let (x, y) = (number(a), number(b));
        let (longest, shortest) = (wordspan(a).max(wordspan(b)), wordspan(a).min(wordspan(b)));
        let both = wordspan(a) + wordspan(b);
        let by_byte = |combine: fn(u8, u8) -> u8| {
            let at = |bytes: &[u8], index: usize| bytes.get(index).copied().unwrap_or_default();
            let length = a.len().max(b.len());
            (0..length).map(|index| combine(at(a, index), at(b, index))).collect::<Vec<u8>>()
        };
        let compared = |ordering: fn(Ordering) -> bool| (2 * longest, flag(ordering(x.cmp(&y))));
        let taken = y.min(a.len() as u128) as usize;
        let (cost, result) = match opcode {
            CAT => (3 * (a.len() + b.len()) as u64, [a, b].concat()),
            LEFT => (2 * wordspan(b), a[..taken].to_vec()),
            RIGHT => (2 * wordspan(b) + 3 * taken as u64, a[a.len() - taken..].to_vec()),
            AND => (2 * both, by_byte(|x, y| x & y)),
            OR => (4 * shortest, by_byte(|x, y| x | y)),
            XOR => (4 * shortest, by_byte(|x, y| x ^ y)),
            EQUAL => (if a.len() == b.len() { 2 * a.len() as u64 } else { 0 }, flag(a == b)),
            BOOLAND => (2 * both, flag(x != 0 && y != 0)),
            BOOLOR => (2 * both, flag(x != 0 || y != 0)),
            NUMEQUAL => compared(Ordering::is_eq),
            NUMNOTEQUAL => compared(Ordering::is_ne),
            LESSTHAN => compared(Ordering::is_lt),
            GREATERTHAN => compared(Ordering::is_gt),
            LESSTHANOREQUAL => compared(Ordering::is_le),
            GREATERTHANOREQUAL => compared(Ordering::is_ge),
            MIN => (4 * longest, bytes_of(x.min(y))),
            MAX => (4 * longest, bytes_of(x.max(y))),
            ADD => (9 * longest, bytes_of(x.checked_add(y)?)),
            SUB => (6 * longest, bytes_of(x.checked_sub(y)?)),
            MUL => {
                let cost = 3 * (a.len() + b.len()) as u64 + wordspan(a) / 8 * wordspan(b) * 27;
                (cost, bytes_of(x.checked_mul(y)?))
            }
            DIV | MOD => {
                let (a, b) = (wordspan(a), wordspan(b));
                let result = if opcode == DIV { x.checked_div(y)? } else { x.checked_rem(y)? };
                (18 * a + 4 * b + a * a * 2 / 3, bytes_of(result))
            }
            LSHIFT => return self.shift_up(a, b),
            _ => {
                let kept = (a.len() as u128).saturating_sub(y / 8) as usize;
                let moved = if y < 128 { x >> y } else { 0 };
                let cost = 2 * wordspan(b) + 3 * kept as u64;
                (cost, moved.to_le_bytes()[..kept].to_vec())
            }
        };
        self.cost += cost;
        self.stack.push(result);
        Some(())
    }

    fn shift_up(&mut self, a: &[u8], bits: &[u8]) -> Option<()> {
        let count = usize::try_from(number(bits)).ok()?;
        // Longer than elements are here.
        let (whole, part) = (count / 8, count % 8);
        if whole > 15 {
            return None;
        }
        self.cost += 2 * wordspan(bits) + 2 * whole as u64 + 3 * a.len() as u64;
        let mut result = vec![0; whole];
        if part == 0 {
            result.extend(a);
        } else {
            self.cost += 4 * (a.len() + whole).div_ceil(8) as u64 * 8;
            let shifted = number(a) << part;
            result.extend(&shifted.to_le_bytes()[..=a.len()]);
        }
        self.stack.push(result);
        Some(())
    }
}

const OPCODES: [u8; 50] = [
    TOALTSTACK,
    FROMALTSTACK,
    DUP,
    DUP2,
    DUP3,
    OVER,
    OVER2,
    DROP,
    SWAP,
    ROT,
    NIP,
    TUCK,
    IFDUP,
    PICK,
    ROLL,
    SIZE,
    DEPTH,
    INVERT,
    NOT,
    NOTEQUAL0,
    ADD1,
    SUB1,
    MUL2,
    DIV2,
    SUBSTR,
    WITHIN,
    CAT,
    LEFT,
    RIGHT,
    AND,
    OR,
    XOR,
    EQUAL,
    BOOLAND,
    BOOLOR,
    NUMEQUAL,
    NUMNOTEQUAL,
    LESSTHAN,
    GREATERTHAN,
    LESSTHANOREQUAL,
    GREATERTHANOREQUAL,
    MIN,
    MAX,
    ADD,
    SUB,
    MUL,
    DIV,
    MOD,
    LSHIFT,
    RSHIFT,
];

/// Programs of random opcodes that succeed, on elements that stay so short that the model can hold their numbers.
#[test]
fn random_programs_as_the_model_says() {
    let mut seed = 1u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let (mut run, mut counts) = (0, [0u32; 256]);
    for _ in 0..4_000 {
        let mut model = Model::default();
        let initial: Vec<Vec<u8>> = (0..random(4))
            .map(|_| (0..random(12)).map(|_| [0, 0xff, 3, random(256) as u8][random(4)]).collect())
            .collect();
        model.stack.clone_from(&initial);
        let mut script = Vec::new();
        for _ in 0..60 {
            let before = (model.stack.clone(), model.alt.clone(), model.cost);
            // Shorter elements, small numbers and combinations in place more often than others.
            let opcode = match random(8) {
                0 => PUSH1 + random(16) as u8,
                1 => [OR, XOR, DUP, SWAP, LEFT, DUP2][random(6)],
                _ => OPCODES[random(OPCODES.len())],
            };
            let done = if (PUSH1..=PUSH16).contains(&opcode) {
                model.stack.push(vec![opcode - PUSH1 + 1]);
                Some(())
            } else {
                model.step(opcode)
            };
            let fits = model.stack.iter().all(|element| element.len() <= 15);
            if done.is_some() && fits {
                script.push(opcode);
                counts[usize::from(opcode)] += 1;
            } else {
                (model.stack, model.alt, model.cost) = before;
            }
        }
        let elements: Vec<&[u8]> = initial.iter().map(Vec::as_slice).collect();
        let found = evaluate(&rules(), &script, &elements, u64::MAX);
        let expected = Evaluated { elements: model.stack, varops: model.cost };
        assert_eq!(found.as_ref(), Ok(&expected), "{script:02x?} on {initial:02x?}");
        // One unit less is too little.
        if let Some(less) = expected.varops.checked_sub(1) {
            assert_eq!(
                evaluate(&rules(), &script, &elements, less),
                Err(ScriptError::VaropsBudget)
            );
        }
        run += script.len();
    }
    assert!(run > 100_000, "{run}");
    for opcode in OPCODES {
        assert!(counts[usize::from(opcode)] > 200, "{opcode:02x}");
    }
}

/// Large elements are changed in place, but for those that something else refers to, through reclaiming as well.
#[test]
fn elements_in_place_are_nobody_elses() {
    let large = vec![5; 3_000_000];
    // A copy on the other stack, 400 combinations in place, of which each pushes a large element on the way.
    let mut script = vec![DUP, TOALTSTACK];
    for _ in 0..400 {
        script.extend([PUSH1 + 1, XOR, 1, 0x0f, OR, PUSH1, PUSH16, LSHIFT, DROP]);
    }
    script.push(FROMALTSTACK);
    let found = evaluate(&rules(), &script, &[&large], u64::MAX).expect("no limit is reached");
    let mut changed = large.clone();
    changed[0] = 0x0f;
    assert!(found.elements[0] == changed, "the combined one");
    assert!(found.elements[1] == large, "the copy");
}

#[test]
fn limits_of_stacks() {
    let run = |script: &[u8], elements: &[&[u8]]| {
        evaluate(&rules(), script, elements, u64::MAX).map(|found| found.elements.len())
    };
    let large = vec![1; 4_000_000];
    assert_eq!(run(&[DUP], &[&large]), Ok(2));
    assert_eq!(run(&[DUP, PUSH1], &[&large]), Err(ScriptError::TotalStackSize));
    assert_eq!(run(&[DUP, 1, 9], &[&large]), Err(ScriptError::TotalStackSize));
    // What is dropped or shortened is counted no longer, wherever it lay.
    assert_eq!(run(&[DUP, DROP, PUSH1, NIP, DUP], &[&large]), Ok(2));
    let less = &large[1..];
    assert_eq!(run(&[DUP, TOALTSTACK, PUSH1, LEFT, FROMALTSTACK, DUP], &[less]), Ok(3));
    let beyond = [DUP, TOALTSTACK, PUSH1, LEFT, FROMALTSTACK, DUP, DUP2];
    assert_eq!(run(&beyond, &[less]), Err(ScriptError::TotalStackSize));
    assert_eq!(run(&[PUSH1 + 1, ROLL, DUP], &[&large, &[], &[]]), Ok(4));
    assert_eq!(
        run(&[PUSH1 + 1, ROLL, DUP, PUSH1], &[&large, &[], &[]]),
        Err(ScriptError::TotalStackSize)
    );
    assert_eq!(run(&[CAT], &[&large, &[1]]), Err(ScriptError::StackElementSize));
    assert_eq!(run(&[ADD1], &[&vec![0xff; 4_000_000]]), Err(ScriptError::StackElementSize));
}

/// A whole spend: the budget is that of the transaction's weight, and the result must be a number that is not zero.
#[test]
fn spends_have_the_budget_of_their_transaction() {
    let spend = |script: &[u8], elements: &[&[u8]]| {
        Spend::of_leaf(LEAF, script, elements, None).with_context(|context| {
            let mut interpreter = Interpreter::with_rules(rules());
            let flags = Flags::BITCOIN_BLOCK;
            let stats = interpreter.verify_input(context, 0, flags, &mut Scripted::default())?;
            Ok((stats.varops, 10_000 * context.tx().weight() as u64))
        })
    };
    assert!(spend(&[PUSH1], &[]).is_ok_and(|(spent, _)| spent == 16));
    // A negative zero elsewhere.
    assert!(spend(&[NOP], &[&[0x80]]).is_ok());
    assert_eq!(spend(&[NOP], &[&[0, 0]]), Err(ScriptError::EvalFalse));
    assert_eq!(spend(&[PUSH1, DUP], &[]), Err(ScriptError::CleanStack));
    // A hash of a thousand bytes, three weight units of script, costs what five units bring.
    let hashes = |count: usize| [[DUP, SHA256, DROP].repeat(count), vec![DROP, PUSH1]].concat();
    let element = [1; 1_000];
    let most = (1..2_000).take_while(|&count| spend(&hashes(count), &[&element]).is_ok()).last();
    let most = most.expect("some fit");
    let (spent, budget) = spend(&hashes(most), &[&element]).expect("it fits");
    assert!(spent <= budget && budget - spent < 53_000, "{most}: {spent} of {budget}");
    assert_eq!(spend(&hashes(most + 1), &[&element]), Err(ScriptError::VaropsBudget));
}
