//! What is worst today: signatures, and above all the messages that they sign.

use std::time::Instant;

use assay_bench::plan::Wrap;
use assay_bench::suite::Extent;
use assay_bench::{BenchError, Progress};
use assay_consensus::script::TxContext;
use assay_consensus::script::asm;
use assay_consensus::script::opcode::op;
use assay_report::stats::ratio::Summary;
use assay_wire::{Encoding, OutPoint, Transaction, TxOut, Txid, encode};
use secp256k1::{PublicKey, SecretKey};

use super::spend::Spend;
use super::worst::verify_one;
use super::worst_block::BLOCK_WEIGHT;

/// `OP_2DUP OP_CHECKSIG OP_DROP OP_CODESEPARATOR` in 201 operations.
const CHECKS: usize = 50;

/// Cost of signature operations that a block may have (BIP-0141).
const SIGOP_COST_MAX: f64 = 80_000.0;

/// The classes, measured: class, limits, shape, seconds.
pub(super) fn rows(
    extent: Extent,
    progress: &dyn Progress,
) -> Result<Vec<Vec<String>>, BenchError> {
    let row = |class: &str, shape: String, seconds: f64| {
        vec![class.to_owned(), "any".to_owned(), shape, format!("{seconds:.2}")]
    };
    let inputs = if extent == Extent::Smoke { 100 } else { BLOCK_WEIGHT as usize / 4 / 41 - 5 };
    let measured = if extent == Extent::Full { 7 } else { 3 };
    progress.begin("worst block: signatures", 2 * measured as u64 + 1);
    let all = legacy(1, inputs, measured, progress)?;
    let none = legacy(0x82, inputs, measured, progress)?;
    let witness = witness()?;
    progress.step();
    Ok(vec![
        row(
            "legacy signature messages, in outputs of earlier blocks",
            format!(
                "`OP_2DUP OP_CHECKSIG OP_DROP OP_CODESEPARATOR` x {CHECKS} in bare outputs, {inputs} inputs of one transaction, {measured} of them measured"
            ),
            all,
        ),
        row(
            "legacy signatures, in outputs of earlier blocks",
            format!(
                "the same with SIGHASH_NONE and ANYONECANPAY: short messages, not counted as operations, {inputs} inputs"
            ),
            none,
        ),
        row(
            "witness signatures, as many as a block may have",
            "`OP_2DUP OP_CHECKSIG OP_DROP OP_CODESEPARATOR` in P2WSH, 80,000 operations".to_owned(),
            witness,
        ),
    ])
}

/// A script with many checks of a signature that is well formed and wrong, each of another message.
fn script(hash_type: u8) -> Vec<u8> {
    let secret = SecretKey::from_secret_bytes([1; 32]).expect("a key");
    let key = PublicKey::from_secret_key(&secret).serialize();
    // The shortest strict DER.
    let sig = [0x30, 6, 2, 1, 1, 2, 1, 1, hash_type];
    let mut script = Vec::new();
    asm::push(&mut script, &sig);
    asm::push(&mut script, &key);
    for _ in 0..CHECKS {
        script.extend([op::DUP2, op::CHECKSIG, op::DROP, op::CODESEPARATOR]);
    }
    script
}

/// Seconds of a transaction that fills a block: measured on a few inputs, since all would take minutes. Those at the end
/// are cheaper, because the engine shares what comes before the signed input among messages.
fn legacy(
    hash_type: u8,
    inputs: usize,
    measured: usize,
    progress: &dyn Progress,
) -> Result<f64, BenchError> {
    let spend = Spend::new(Wrap::Bare, &script(hash_type), Vec::new());
    let mut raw = vec![2, 0, 0, 0];
    encode::compact_size(&mut raw, inputs as u64);
    for number in 0..inputs {
        let mut txid = [7; 32];
        txid[..8].copy_from_slice(&(number as u64).to_le_bytes());
        raw.extend_from_slice(&OutPoint { txid: Txid(txid), vout: 0 }.to_bytes());
        raw.push(0);
        raw.extend_from_slice(&[0xff; 4]);
    }
    raw.push(1);
    raw.extend_from_slice(&1i64.to_le_bytes());
    encode::var_bytes(&mut raw, &[0x51]);
    raw.extend_from_slice(&[0; 4]);
    let tx =
        Transaction::parse(raw, Encoding::Segwit).map_err(|error| BenchError::WrongAnswer {
            benchmark: "worst block".to_owned(),
            alternative: "transaction".to_owned(),
            detail: error.to_string(),
        })?;
    let spent = vec![TxOut { value: 2, script_pubkey: &spend.script_pubkey }; inputs];
    let context = TxContext::new(tx.view(), &spent);
    let mut samples = Vec::new();
    for sample in 0..measured {
        // The middle of each part. What is shared with the inputs before is brought up to date outside the time.
        let input = (2 * sample + 1) * inputs / (2 * measured);
        verify_one(&context, input, &spend)?;
        let start = Instant::now();
        verify_one(&context, input, &spend)?;
        samples.push(start.elapsed().as_secs_f64());
        progress.step();
    }
    Ok(samples.iter().sum::<f64>() / measured as f64 * inputs as f64)
}

/// Seconds of as many signature operations as a block may have, in P2WSH.
fn witness() -> Result<f64, BenchError> {
    let mut script = script(1);
    // The last separator and its signature leave two elements.
    script.push(op::NIP);
    let spend = Spend::new(Wrap::P2wsh, &script, Vec::new());
    let spent = spend.spent();
    let context = TxContext::new(spend.tx.view(), &spent);
    let mut samples = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        verify_one(&context, 0, &spend)?;
        samples.push(start.elapsed().as_secs_f64());
    }
    Ok(Summary::of(&samples).median / CHECKS as f64 * SIGOP_COST_MAX)
}
