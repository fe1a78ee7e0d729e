//! Random programs: scripts that mostly succeed, for a transaction with a known form.

use assay_consensus::script::asm::{push, push_number};
use assay_consensus::script::opcode::op;
use assay_hash::{hash160, sha256};

use super::keys::Key;
use assay_report::stats::random::SplitMix64;

/// Form of a transaction without its prevouts and input scripts.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) version: i32,
    pub(super) lock_time: u32,
    pub(super) sequences: Vec<u32>,
    /// Satoshi of each spent output.
    pub(super) spent: Vec<i64>,
    pub(super) outputs: Vec<(i64, Vec<u8>)>,
}

/// Push of the input script before the redeem script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Bytes(Vec<u8>),
    /// A signature of the transaction with this hash type.
    Signature {
        key: Key,
        is_schnorr: bool,
        hash_type: u8,
    },
    DataSignature {
        key: Key,
        is_schnorr: bool,
        hash: [u8; 32],
    },
}

/// Locking script of an output and its unlocking data.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) script: Vec<u8>,
    pub(super) items: Vec<Item>,
    pub(super) is_p2sh: bool,
}

const EDGES: [i64; 16] = [
    0,
    1,
    -1,
    16,
    17,
    127,
    128,
    -255,
    520,
    521,
    i32::MAX as i64,
    -(i32::MAX as i64) - 1,
    1 << 39,
    i64::MAX,
    -i64::MAX,
    i64::MAX / 2 + 1,
];

/// Prefix of outputs with tokens (May 2023). Versions that support tokens use a separate reject reason for spends of earlier
/// coins with it, while older versions report an unknown opcode.
const PREFIX_TOKEN: u8 = 0xef;

impl Form {
    pub(super) fn random(random: &mut SplitMix64) -> Self {
        let inputs = 1 + random.below(3) as usize;
        let outputs = 1 + random.below(3) as usize;
        let spent: Vec<i64> = (0..inputs).map(|_| 10_000 + random.below(5000) as i64).collect();
        let share = (spent.iter().sum::<i64>() - 3000) / outputs as i64;
        let outputs = (0..outputs)
            .map(|_| {
                let length = [0, 1, 25, 30, 519, 520, 521][random.below(7) as usize];
                (random.below(share as u64) as i64, vec![op::PUSH1; length + 10])
            })
            .collect();
        let version = [1, 2, 2, 2, 0, 3, -1, i32::MIN, i32::MAX][random.below(9) as usize];
        // Mostly final now: otherwise no script is executed.
        let lock_times = [0, 0, 0, 1, 1000, 1_296_000_000, 1_300_000_000, 2_000_000_000];
        let lock_time = lock_times[random.below(8) as usize];
        let sequence = |random: &mut SplitMix64| {
            let sequences = [0, 1, u32::MAX - 1, 0x4000_0000, 0x40_0001, 0x8000_0000];
            let at = random.below(12) as usize;
            sequences.get(at).copied().unwrap_or(u32::MAX)
        };
        let sequences = (0..inputs).map(|_| sequence(random)).collect();
        Self { version, lock_time, sequences, spent, outputs }
    }
}

impl Program {
    pub(super) fn random(random: &mut SplitMix64, form: &Form, input: usize) -> Self {
        if random.below(8) == 0 {
            return Self::pay_to_key_hash(random);
        }
        let mut program =
            Self { script: Vec::new(), items: Vec::new(), is_p2sh: random.below(2) == 0 };
        if random.below(2) == 0 {
            program.signature(random);
        }
        for _ in 0..=random.below(4) {
            match random.below(8) {
                0..=2 => program.arithmetic(random),
                3..=5 => program.introspection(random, form, input),
                6 => program.bytes(random),
                _ => program.lock_time(random),
            }
        }
        if random.below(6) == 0 {
            program.noise(random);
        }
        program.script.push(op::PUSH1);
        if random.below(3) == 0 {
            mutate(random, &mut program.script);
        }
        if let Some(first @ &mut PREFIX_TOKEN) = program.script.first_mut() {
            *first = op::NOP;
        }
        program
    }

    fn pay_to_key_hash(random: &mut SplitMix64) -> Self {
        let key = Key::random(random);
        let mut script = vec![op::DUP, op::HASH160];
        push(&mut script, &hash160(&key.public()));
        script.extend([op::EQUALVERIFY, op::CHECKSIG]);
        let public = key.public();
        let items = vec![signature(random, key), Item::Bytes(public)];
        Self { script, items, is_p2sh: false }
    }

    /// A signature check whose signature comes from the input script.
    fn signature(&mut self, random: &mut SplitMix64) {
        let (key, other) = (Key::random(random), Key::random(random));
        match random.below(4) {
            0 => {
                push(&mut self.script, &key.public());
                self.script.push(op::CHECKSIGVERIFY);
                self.items.push(signature(random, key));
            }
            1 => {
                let message = random.bytes::<20>();
                push(&mut self.script, &message);
                push(&mut self.script, &key.public());
                self.script.push(op::CHECKDATASIGVERIFY);
                let (is_schnorr, hash) = (random.below(2) == 0, sha256(&message));
                self.items.push(Item::DataSignature { key, is_schnorr, hash });
            }
            _ => {
                let is_schnorr = random.below(2) == 0;
                // The bit field of a Schnorr signature by the first key, or the empty dummy.
                self.items.push(Item::Bytes(if is_schnorr { vec![1] } else { Vec::new() }));
                let hash_type = hash_type(random);
                self.script.push(op::PUSH1);
                push(&mut self.script, &key.public());
                push(&mut self.script, &other.public());
                self.script.extend([op::PUSH1 + 1, op::CHECKMULTISIGVERIFY]);
                self.items.push(Item::Signature { key, is_schnorr, hash_type });
            }
        }
    }

    /// Two numbers, an operation, and its result.
    fn arithmetic(&mut self, random: &mut SplitMix64) {
        let (a, b) = (number(random), number(random));
        push_number(&mut self.script, a);
        push_number(&mut self.script, b);
        let (x, y) = (i128::from(a), i128::from(b));
        let (opcode, exact) = match random.below(9) {
            0 => (op::ADD, x + y),
            1 => (op::SUB, x - y),
            2 | 3 => (op::MUL, x.saturating_mul(y)),
            4 => (op::DIV, x.checked_div(y).unwrap_or(0)),
            5 => (op::MOD, x.checked_rem(y).unwrap_or(0)),
            6 => (op::MAX, x.max(y)),
            7 => (op::LESSTHAN, i128::from(x < y)),
            _ => (op::NUMNOTEQUAL, i128::from(x != y)),
        };
        self.script.push(opcode);
        push_number(&mut self.script, i64::try_from(exact).unwrap_or(i64::MAX));
        self.script.push(op::NUMEQUALVERIFY);
    }

    /// A field of the transaction, and its value.
    fn introspection(&mut self, random: &mut SplitMix64, form: &Form, input: usize) {
        let opcode = op::INPUTINDEX + random.below(14) as u8;
        let count = match opcode {
            op::OUTPUTVALUE | op::OUTPUTBYTECODE => form.outputs.len(),
            _ => form.spent.len(),
        };
        // Sometimes an index out of range.
        let index = random.below(count as u64 * 8 + 1) as usize;
        let index = if index == count * 8 { count } else { index % count };
        if opcode >= op::UTXOVALUE {
            push_number(&mut self.script, index as i64);
        }
        self.script.push(opcode);
        let output = form.outputs.get(index);
        let number = match opcode {
            op::INPUTINDEX => Some(input as i64),
            op::TXVERSION => Some(i64::from(form.version)),
            op::TXINPUTCOUNT => Some(form.spent.len() as i64),
            op::TXOUTPUTCOUNT => Some(form.outputs.len() as i64),
            op::TXLOCKTIME => Some(i64::from(form.lock_time)),
            op::UTXOVALUE => form.spent.get(index).copied(),
            op::INPUTSEQUENCENUMBER => form.sequences.get(index).map(|&value| i64::from(value)),
            op::OUTPUTVALUE => output.map(|(value, _)| *value),
            op::OUTPUTBYTECODE => {
                if let Some((_, script)) = output {
                    self.script.push(op::SIZE);
                    push_number(&mut self.script, script.len() as i64);
                    self.script.push(op::NUMEQUALVERIFY);
                }
                None
            }
            _ => None,
        };
        match number {
            Some(number) => {
                push_number(&mut self.script, number);
                self.script.push(op::NUMEQUALVERIFY);
            }
            // Both compute the hash from the same bytes; the size is compared instead.
            None => self.script.extend([op::SHA256, op::SIZE, op::NIP, 1, 32, op::NUMEQUALVERIFY]),
        }
    }

    fn bytes(&mut self, random: &mut SplitMix64) {
        let length = [0, 1, 4, 8, 9, 20, 255, 256, 260, 520][random.below(10) as usize];
        let mut data = vec![0; length];
        random.fill(&mut data);
        push_minimal(&mut self.script, &data);
        match random.below(6) {
            0 => {
                let at = random.below(length as u64 + 2) as i64;
                push_number(&mut self.script, at);
                self.script.extend([op::SPLIT, op::CAT, op::DROP]);
            }
            1 => self.script.extend([op::REVERSEBYTES, op::DROP]),
            2 => self.script.extend([op::BIN2NUM, op::ADD1, op::DROP]),
            3 => {
                push_number(&mut self.script, number(random));
                self.script.extend([op::NUM2BIN, op::DROP]);
            }
            4 => self.script.extend([op::DUP, op::XOR, op::BIN2NUM, op::NOT, op::VERIFY]),
            _ => self.script.extend([op::DUP, op::CAT, op::SIZE, op::DROP2]),
        }
    }

    fn lock_time(&mut self, random: &mut SplitMix64) {
        push_number(&mut self.script, number(random));
        let opcode =
            if random.below(2) == 0 { op::CHECKLOCKTIMEVERIFY } else { op::CHECKSEQUENCEVERIFY };
        self.script.extend([opcode, op::DROP]);
    }

    fn noise(&mut self, random: &mut SplitMix64) {
        for _ in 0..=random.below(6) {
            if random.below(2) == 0 {
                push_number(&mut self.script, number(random));
            } else {
                self.script.push(op::NOP + random.below(256 - u64::from(op::NOP)) as u8);
            }
        }
    }
}

fn number(random: &mut SplitMix64) -> i64 {
    match random.below(3) {
        0 => EDGES[random.below(EDGES.len() as u64) as usize],
        1 => random.below(40) as i64 - 20,
        _ => {
            let magnitude = (random.next() >> 1 >> random.below(63)) as i64;
            if random.below(2) == 0 { magnitude } else { -magnitude }
        }
    }
}

/// Mostly one with the fork's bit.
fn hash_type(random: &mut SplitMix64) -> u8 {
    [0x41, 0x41, 0x41, 0x42, 0x43, 0xc1, 0xc2, 0xc3, 0x61, 0x01, 0x44, 0x40]
        [random.below(12) as usize]
}

fn signature(random: &mut SplitMix64, key: Key) -> Item {
    Item::Signature { key, is_schnorr: random.below(2) == 0, hash_type: hash_type(random) }
}

/// Pushes data minimally, as the minimal-data rule requires.
pub(super) fn push_minimal(script: &mut Vec<u8>, data: &[u8]) {
    match data {
        [] => script.push(0),
        [small @ 1..=16] => script.push(op::PUSH1 - 1 + small),
        [0x81] => script.push(op::NEGATE1),
        _ => push(script, data),
    }
}

pub(super) fn mutate(random: &mut SplitMix64, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(4) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.insert(at, random.next() as u8),
        }
    }
}
