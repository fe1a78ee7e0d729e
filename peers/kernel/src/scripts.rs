//! Random transactions with random locks, verified input by input by both script interpreters.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use assay_consensus::script::opcode::op;
use assay_consensus::script::{Flags, Interpreter, ScriptError, TxContext};
use assay_engine::ImmediateChecker;
use assay_wire::{Encoding, OutPoint, Transaction, TxOut, Txid};
use bitcoinkernel::prelude::*;
use bitcoinkernel::{PrecomputedTransactionData, ScriptPubkey};
use serde::Serialize;

use crate::build::{
    Input, Item, KEY_COUNT, KeyForm, Lock, Output, Place, Rng, Sig, Tx, Writer, chaotic_lock,
    encoded_key, random_lock, unlock,
};
use crate::kernel::lock;

/// The flags that the kernel's interface supports, with the same bits as ours.
pub const KERNEL_FLAGS: [Flags; 7] = [
    Flags::P2SH,
    Flags::DERSIG,
    Flags::NULLDUMMY,
    Flags::CHECKLOCKTIMEVERIFY,
    Flags::CHECKSEQUENCEVERIFY,
    Flags::WITNESS,
    Flags::TAPROOT,
];

/// A random set of flags that the kernel accepts: no witnesses without pay-to-script-hash.
pub fn random_flags(rng: &mut Rng) -> Flags {
    if rng.chance(1, 2) {
        return Flags::BITCOIN_BLOCK;
    }
    let choice = rng.u64();
    flags_of_bits(choice as u8)
}

/// The set of flags selected by the low seven bits.
pub fn flags_of_bits(bits: u8) -> Flags {
    let mut flags = Flags::NONE;
    for (index, flag) in KERNEL_FLAGS.into_iter().enumerate() {
        if bits >> index & 1 == 1 {
            flags |= flag;
        }
    }
    if flags.contains(Flags::WITNESS) { flags | Flags::P2SH } else { flags }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputVerdict {
    pub engine: Result<(), ScriptError>,
    /// True if the kernel accepts the input.
    pub kernel: bool,
}

impl InputVerdict {
    pub fn agrees(&self) -> bool {
        self.engine.is_ok() == self.kernel
    }
}

/// Verdicts of both on a serialised transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxVerdict {
    /// Not decoded by one or both: (engine, kernel) are true for a decoded transaction.
    Undecodable(bool, bool),
    /// Verdicts by input, for the requested ones.
    Inputs(Vec<(usize, InputVerdict)>),
}

/// Verifies the inputs `which` of a transaction; `spent` has the outputs of all inputs in order.
pub fn judge_tx(
    raw: &[u8],
    spent: &[Output],
    which: impl IntoIterator<Item = usize>,
    flags: Flags,
    interpreter: &mut Interpreter,
) -> TxVerdict {
    let ours = Transaction::parse(raw.to_vec(), Encoding::Segwit);
    // The kernel ignores bytes after the transaction, since its callers cut them off.
    let theirs = bitcoinkernel::Transaction::new(raw)
        .ok()
        .filter(|theirs| theirs.consensus_encode().is_ok_and(|bytes| bytes.len() == raw.len()));
    let (Ok(ours), Some(theirs)) = (&ours, &theirs) else {
        return TxVerdict::Undecodable(ours.is_ok(), theirs.is_some());
    };
    if ours.view().input_count() != spent.len() || spent.is_empty() {
        return TxVerdict::Inputs(Vec::new());
    }
    let views: Vec<TxOut<'_>> = spent.iter().map(Output::view).collect();
    let context = TxContext::new(ours.view(), &views);
    let scripts: Vec<ScriptPubkey> = spent
        .iter()
        .map(|output| {
            ScriptPubkey::new(&output.script_pubkey).expect("any bytes are an output script")
        })
        .collect();
    let outputs: Vec<bitcoinkernel::TxOut> = scripts
        .iter()
        .zip(spent)
        .map(|(script, output)| bitcoinkernel::TxOut::new(script, output.value))
        .collect();
    let data = PrecomputedTransactionData::new(theirs, &outputs)
        .expect("there is one output for each input");
    let verdicts = which
        .into_iter()
        .map(|input| {
            let engine =
                interpreter.verify_input(&context, input, flags, &mut ImmediateChecker).map(|_| ());
            let kernel = bitcoinkernel::verify(
                &scripts[input],
                Some(spent[input].value),
                theirs,
                input,
                Some(flags.bits() as u32),
                &data,
            )
            .is_ok();
            (input, InputVerdict { engine, kernel })
        })
        .collect();
    TxVerdict::Inputs(verdicts)
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub seed: u64,
    pub inputs: u64,
    pub passed: u64,
    pub errors: BTreeMap<String, u64>,
    /// Transactions that neither decoded.
    pub undecodable: u64,
    pub elapsed_s: f64,
    pub disagreements: Vec<String>,
}

/// Verifies at least `inputs` inputs of random transactions on `jobs` threads.
pub fn run(seed: u64, inputs: u64, jobs: usize) -> Summary {
    const PER_STREAM: u64 = 2000;
    let start = Instant::now();
    let total = Mutex::new(Summary { seed, ..Summary::default() });
    share(jobs, inputs.div_ceil(PER_STREAM), |stream| {
        let part = run_stream(seed, stream, PER_STREAM);
        let mut total = lock(&total);
        total.inputs += part.inputs;
        total.passed += part.passed;
        total.undecodable += part.undecodable;
        total.disagreements.extend(part.disagreements);
        for (error, count) in part.errors {
            *total.errors.entry(error).or_default() += count;
        }
        true
    });
    let mut summary = total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    summary.elapsed_s = start.elapsed().as_secs_f64();
    summary
}

/// Does numbered pieces of work on `jobs` threads, until one returns false.
pub(crate) fn share(jobs: usize, pieces: u64, work: impl Fn(u64) -> bool + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= pieces {
                        break;
                    }
                    if !work(piece) {
                        next.store(pieces, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

fn run_stream(seed: u64, stream: u64, inputs: u64) -> Summary {
    let mut rng = Rng::new("assay peer kernel scripts", seed, stream);
    let mut interpreter = Interpreter::default();
    let mut summary = Summary::default();
    while summary.inputs < inputs {
        let (tx, spent) = random_tx(&mut rng);
        let mut raw = tx.bytes();
        if rng.chance(1, 10) {
            let at = rng.below(raw.len());
            raw[at] ^= 1 << rng.below(8);
        }
        let flags = random_flags(&mut rng);
        match judge_tx(&raw, &spent, 0..spent.len(), flags, &mut interpreter) {
            TxVerdict::Undecodable(ours, theirs) => {
                summary.undecodable += 1;
                if ours != theirs {
                    summary.disagreements.push(format!(
                        "decode: engine {ours}, kernel {theirs}: {}",
                        faster_hex::hex_string(&raw)
                    ));
                }
            }
            TxVerdict::Inputs(verdicts) => {
                for (input, verdict) in verdicts {
                    summary.inputs += 1;
                    match verdict.engine {
                        Ok(()) => summary.passed += 1,
                        Err(error) => {
                            *summary.errors.entry(error.name().to_owned()).or_default() += 1;
                        }
                    }
                    if !verdict.agrees() {
                        summary.disagreements.push(describe(&raw, &spent, input, flags, &verdict));
                    }
                }
            }
        }
    }
    summary
}

/// All data needed to repeat a disagreement.
pub fn describe(
    raw: &[u8],
    spent: &[Output],
    input: usize,
    flags: Flags,
    verdict: &InputVerdict,
) -> String {
    let outputs: Vec<String> = spent
        .iter()
        .map(|output| format!("{}:{}", output.value, faster_hex::hex_string(&output.script_pubkey)))
        .collect();
    let engine = verdict.engine.map_or_else(ScriptError::name, |()| "OK");
    format!(
        "input {input} flags {:#x}: engine {engine}, kernel {}: tx {} spends {}",
        flags.bits(),
        if verdict.kernel { "OK" } else { "fails" },
        faster_hex::hex_string(raw),
        outputs.join(" ")
    )
}

/// Changes a few bytes of a signature-like element, to reach edge cases of lax encodings.
fn bend_signature(rng: &mut Rng, tx: &mut Tx) {
    let at = rng.below(tx.inputs.len());
    let input = &mut tx.inputs[at];
    let is_signature = |item: &&mut Vec<u8>| (64..=74).contains(&item.len());
    let bytes = match input.witness.iter_mut().find(is_signature) {
        Some(item) => item,
        None => &mut input.script_sig,
    };
    for _ in 0..rng.within(1, 3) {
        if bytes.is_empty() {
            return;
        }
        // Lengths and tags of DER are at the start.
        let at =
            if rng.chance(1, 2) { rng.below(bytes.len().min(8)) } else { rng.below(bytes.len()) };
        match rng.below(6) {
            0 => bytes[at] = *rng.pick(&[0, 1, 2, 0x30, 0x20, 0x21, 0x7f, 0x80, 0x81, 0x82, 0xff]),
            1 => bytes[at] = bytes[at].wrapping_add(1),
            2 => bytes[at] = bytes[at].wrapping_sub(1),
            3 => bytes.insert(at, 0),
            4 => {
                bytes.remove(at);
            }
            _ => bytes[at] ^= 1 << rng.below(8),
        }
    }
}

/// A transaction whose spent script contains its signature, which is removed before hashing (`FindAndDelete`).
fn deleted_signature(rng: &mut Rng) -> (Tx, Vec<Output>) {
    let key = rng.below(KEY_COUNT);
    let public = encoded_key(key, KeyForm::Compressed);
    let many = rng.chance(1, 3);
    let signed = if many {
        let writer = Writer::new().op(op::DROP).num(1).push(&public).num(1);
        writer.op(op::CHECKMULTISIG).done()
    } else {
        Writer::new().op(op::DROP).push(&public).op(op::CHECKSIG).done()
    };
    let sig = Item::Sig(Sig::typed(key, *rng.pick(&[1, 2, 3, 0x81])));
    let items = if many { vec![Item::Bytes(Vec::new()), sig] } else { vec![sig] };
    let lock = Lock::new(Place::Bare, signed.clone(), items);
    let prevout = OutPoint { txid: Txid([key as u8; 32]), vout: 1 };
    let outputs = vec![Output { value: 5, script_pubkey: vec![op::PUSH1] }];
    let inputs = vec![Input::new(prevout, 7)];
    let mut tx = Tx { version: 2, inputs, outputs, lock_time: 0 };
    let mut spent = vec![Output { value: 6, script_pubkey: signed.clone() }];
    unlock(&mut tx, &[&lock], &spent);
    let from = usize::from(many);
    let pushed = tx.inputs[0].script_sig[from..].to_vec();
    let mut script = pushed.clone();
    match rng.below(4) {
        // A push in a longer form is a different byte sequence, and is kept.
        0 => script = [vec![op::PUSHDATA1], pushed].concat(),
        // Consecutive copies are all removed.
        1 => script = [pushed.clone(), pushed, vec![op::DROP]].concat(),
        _ => {}
    }
    script.extend_from_slice(&signed);
    spent[0].script_pubkey = script;
    (tx, spent)
}

/// A random transaction, signed as its locks require, and its spent outputs.
pub fn random_tx(rng: &mut Rng) -> (Tx, Vec<Output>) {
    if rng.chance(1, 50) {
        return deleted_signature(rng);
    }
    let count = if rng.chance(1, 3) { rng.within(2, 3) } else { 1 };
    let locks: Vec<Lock> = (0..count)
        .map(|_| if rng.chance(1, 4) { random_lock(rng) } else { chaotic_lock(rng) })
        .collect();
    let spent: Vec<Output> = locks
        .iter()
        .map(|lock| Output {
            value: rng.below(100_000_000) as i64,
            script_pubkey: lock.script_pubkey(),
        })
        .collect();
    let inputs = locks
        .iter()
        .map(|lock| {
            let mut txid = [0; 32];
            txid.copy_from_slice(&rng.bytes(32));
            let prevout = OutPoint { txid: Txid(txid), vout: rng.below(3) as u32 };
            let drawn = *rng.pick(&[u32::MAX, 0xffff_fffe, 0, 1, 2, 0x0040_0001, 0x8000_0000]);
            Input::new(prevout, lock.sequence.unwrap_or(drawn))
        })
        .collect();
    let outputs = (0..rng.within(1, 3))
        .map(|_| {
            let len = rng.below(30);
            Output { value: rng.below(1_000_000) as i64, script_pubkey: rng.bytes(len) }
        })
        .collect();
    let drawn = *rng.pick(&[0, 0, 1, 100, 499_999_999, 500_000_000, u32::MAX]);
    let lock_time = locks.iter().find_map(|lock| lock.lock_time).unwrap_or(drawn);
    let version = *rng.pick(&[1, 2, 2, 2, 0, -1, 3]);
    let mut tx = Tx { version, inputs, outputs, lock_time };
    let by: Vec<&Lock> = locks.iter().collect();
    unlock(&mut tx, &by, &spent);
    if rng.chance(1, 6) {
        bend_signature(rng, &mut tx);
    }
    if rng.chance(1, 10) {
        let at = rng.below(tx.inputs.len());
        let len = rng.below(40);
        let bytes = rng.bytes(len);
        match rng.below(3) {
            0 => tx.inputs[at].script_sig.extend(bytes),
            1 => tx.inputs[at].witness.push(bytes),
            _ => {
                tx.inputs[at].witness.pop();
            }
        }
    }
    (tx, spent)
}
