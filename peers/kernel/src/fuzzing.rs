//! Bodies of the fuzz targets; a disagreement panics.

use std::cell::RefCell;
use std::collections::HashSet;

use assay_consensus::script::Interpreter;
use assay_hash::sha256;
use assay_wire::{Encoding, OutPoint, Transaction, Txid};
use tempfile::TempDir;

use crate::build::{Block, Flaw, Input, Item, KEY_COUNT, Lock, Output, Place, Sig, Tx, unlock};
use crate::compare::is_other_input;
use crate::judge::Pair;
use crate::kernel::{LogTap, listen};
use crate::scripts::{TxVerdict, describe, flags_of_bits, judge_tx};
use crate::verdict::Verdict;
use crate::world::World;

/// Reader of fuzz input; zeros after its end.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Bytes after a length prefix, at most 64 KiB.
    fn string(&mut self) -> &'a [u8] {
        let len = match self.byte() {
            255 => usize::from(self.u16()),
            len => usize::from(len),
        };
        self.take(len)
    }
}

/// Verifies one transaction: the first byte selects the rules, the second the format of the rest.
///
/// # Panics
/// If the verdicts differ.
pub fn script_case(data: &[u8]) {
    let mut bytes = Bytes(data);
    let flags = flags_of_bits(bytes.byte());
    let (raw, spent) =
        if bytes.byte() & 1 == 0 { raw_case(&mut bytes) } else { built_case(&mut bytes) };
    let mut interpreter = Interpreter::default();
    match judge_tx(&raw, &spent, 0..spent.len(), flags, &mut interpreter) {
        TxVerdict::Undecodable(engine, kernel) => {
            assert_eq!(engine, kernel, "decoding {}", faster_hex::hex_string(&raw));
        }
        TxVerdict::Inputs(verdicts) => {
            for (input, verdict) in verdicts {
                assert!(verdict.agrees(), "{}", describe(&raw, &spent, input, flags, &verdict));
            }
        }
    }
}

/// Serialised transaction, then one output per input.
fn raw_case(bytes: &mut Bytes<'_>) -> (Vec<u8>, Vec<Output>) {
    let raw = bytes.string().to_vec();
    let inputs =
        Transaction::parse(raw.clone(), Encoding::Segwit).map_or(0, |tx| tx.view().input_count());
    let spent = (0..inputs)
        .map(|_| Output { value: i64::from(bytes.u32()), script_pubkey: bytes.string().to_vec() })
        .collect();
    (raw, spent)
}

/// Locks with their elements, which are signed.
fn built_case(bytes: &mut Bytes<'_>) -> (Vec<u8>, Vec<Output>) {
    let count = 1 + usize::from(bytes.byte() & 1);
    let version = i32::from(bytes.byte() as i8);
    let lock_time = bytes.u32();
    let mut locks = Vec::new();
    let mut inputs = Vec::new();
    for index in 0..count {
        inputs
            .push(Input::new(OutPoint { txid: Txid([index as u8 + 1; 32]), vout: 0 }, bytes.u32()));
        locks.push(built_lock(bytes));
    }
    let outputs = (0..=bytes.byte() % 2)
        .map(|_| Output { value: i64::from(bytes.u32()), script_pubkey: vec![0x51] })
        .collect();
    let spent: Vec<Output> = locks
        .iter()
        .map(|lock| Output { value: 1_000_000, script_pubkey: lock.script_pubkey() })
        .collect();
    let mut tx = Tx { version, inputs, outputs, lock_time };
    unlock(&mut tx, &locks.iter().collect::<Vec<_>>(), &spent);
    (tx.bytes(), spent)
}

fn built_lock(bytes: &mut Bytes<'_>) -> Lock {
    const PLACES: [Place; 8] = {
        use Place::{Bare, NestedWpkh, NestedWsh, P2sh, TapKey, TapScript, Wpkh, Wsh};
        [Bare, P2sh, Wpkh, NestedWpkh, Wsh, NestedWsh, TapKey, TapScript]
    };
    let place = PLACES[usize::from(bytes.byte() % 8)];
    let script = bytes.string().to_vec();
    let items = (0..bytes.byte() % 6)
        .map(|_| match bytes.byte() {
            kind @ 0..=127 => {
                let flaw = Flaw::ALL[usize::from((kind % 8).saturating_sub(1))];
                let key = usize::from(bytes.byte()) % KEY_COUNT;
                Item::Sig(Sig { flaw, ..Sig::typed(key, bytes.byte()) })
            }
            _ => Item::Bytes(bytes.string().to_vec()),
        })
        .collect();
    let mut lock = Lock::new(place, script, items);
    lock.key = usize::from(bytes.byte()) % KEY_COUNT;
    match bytes.byte() {
        0 => lock.leaf_version = bytes.byte() & 0xfe,
        1 => lock.annex = Some([&[0x50], bytes.string()].concat()),
        2 => lock.path = vec![[3; 32]; usize::from(bytes.byte())],
        _ => {}
    }
    lock
}

/// Two chains at the end of a base chain, and blocks to change.
struct Bench {
    base: Vec<Vec<u8>>,
    templates: Vec<Block>,
    world: World,
    pair: Option<(Pair, TempDir)>,
    /// Hashes of blocks accepted by both: repeating one would only cost new chains.
    taken: HashSet<[u8; 32]>,
    cases: u32,
    _tap: LogTap,
}

const TEMPLATES: usize = 64;
/// Number of cases before both chains are replaced, to bound their trees.
const CASES_MAX: u32 = 2000;

thread_local! {
    static BENCH: RefCell<Option<Bench>> = const { RefCell::new(None) };
}

impl Bench {
    fn new() -> Self {
        let tap = listen().expect("the kernel's log can be listened to");
        let mut world = World::new(0, 0).expect("regtest is known");
        let mut base = Vec::new();
        while let Some(raw) = world.base_block() {
            let hash = assay_wire::Block::parse(raw.clone(), Encoding::Segwit)
                .expect("a made block parses")
                .hash();
            world.note(&raw, &Verdict::Accepted, hash).expect("a made block is known");
            base.push(raw);
        }
        let templates = (0..TEMPLATES).map(|index| world.block(1 + index % 4)).collect();
        Self { base, templates, world, pair: None, taken: HashSet::new(), cases: 0, _tap: tap }
    }

    fn pair(&mut self) -> &Pair {
        if self.cases >= CASES_MAX {
            self.pair = None;
        }
        if self.pair.is_none() {
            self.cases = 0;
        }
        self.cases += 1;
        let base = &self.base;
        let (pair, _) = self.pair.get_or_insert_with(|| {
            let dir = tempfile::tempdir().expect("a folder can be made");
            let pair = Pair::open(dir.path()).expect("both open on empty folders");
            for raw in base {
                let judged = pair.submit(raw);
                assert_eq!(judged.kernel, Verdict::Accepted, "base blocks are valid");
                assert!(judged.agrees(), "base blocks are valid for both");
            }
            (pair, dir)
        });
        pair
    }
}

/// Verifies one changed block: the template, the parts to recompute, then changes of its bytes.
///
/// # Panics
/// If verdict, reason or tip differ.
pub fn block_case(data: &[u8]) {
    BENCH.with_borrow_mut(|bench| {
        let bench = bench.get_or_insert_with(Bench::new);
        let mut bytes = Bytes(data);
        let mut block = bench.templates[usize::from(bytes.byte()) % TEMPLATES].clone();
        block.seal(&bench.world.params);
        let fit = bytes.byte();
        let mut raw = block.bytes();
        while !bytes.0.is_empty() {
            change(&mut raw, &mut bytes);
        }
        if let Ok(parsed) = assay_wire::Block::parse_prefix(raw.clone(), Encoding::Segwit) {
            let mut changed = Block::from_wire(&parsed);
            if fit & 1 == 0 && changed.commitment_index().is_some() {
                changed.commit();
            }
            if fit & 2 == 0 {
                changed.set_root();
            }
            if changed.header.bits == 0x207f_ffff && fit & 4 == 0 {
                changed.mine(&bench.world.params);
            }
            raw = changed.bytes();
        }
        let digest = sha256(&raw);
        if bench.taken.contains(&digest) {
            return;
        }
        let judged = bench.pair().submit(&raw);
        assert!(
            judged.agrees() || is_other_input(&bench.world, &raw, &judged),
            "engine {} at {:?}, kernel {} at {:?}: {}",
            judged.engine,
            judged.engine_tip,
            judged.kernel,
            judged.kernel_tip,
            faster_hex::hex_string(&raw)
        );
        if matches!(judged.kernel, Verdict::Accepted | Verdict::Inconclusive) {
            bench.pair = None;
            bench.taken.insert(digest);
        }
    });
}

fn change(raw: &mut Vec<u8>, bytes: &mut Bytes<'_>) {
    let kind = bytes.byte();
    if raw.is_empty() {
        return;
    }
    let at = usize::from(bytes.u16()) % raw.len();
    match kind % 5 {
        0 => raw[at] ^= 1 << (bytes.byte() % 8),
        1 => raw[at] = bytes.byte(),
        2 => {
            raw.remove(at);
        }
        3 => {
            let piece = bytes.string().to_vec();
            raw.splice(at..at, piece);
        }
        _ => {
            let len = usize::from(bytes.byte()).min(raw.len() - at);
            let piece = raw[at..at + len].to_vec();
            let to = usize::from(bytes.u16()) % raw.len();
            raw.splice(to..to, piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Rng;

    #[test]
    fn any_bytes_make_a_script_case() {
        let mut rng = Rng::new("fuzz cases", 1, 0);
        for _ in 0..2000 {
            let len = rng.below(200);
            script_case(&rng.bytes(len));
        }
    }

    #[test]
    fn any_bytes_make_a_block_case() {
        let mut rng = Rng::new("fuzz cases", 2, 0);
        for _ in 0..60 {
            let len = rng.within(3, 16);
            block_case(&rng.bytes(len));
        }
    }
}
