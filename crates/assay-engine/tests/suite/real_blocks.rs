//! Real blocks with their spent outputs: all are valid, and nearly every flipped bit makes them invalid.
//!
//! Needs the test data (`ASSAY_TEST_DATA`); prints `skipped: …` without it.

use std::collections::BTreeMap;

use assay_consensus::block::BlockError;
use assay_consensus::params::ChainParams;
use assay_consensus::script::opcode::Instructions;
use assay_consensus::script::{Flags, Interpreter, ScriptError, TxContext};
use assay_consensus::tx::output_total;
use assay_engine::{BlockVerifier, ImmediateChecker, VerifyBlockError, parse_prevouts};
use assay_testkit::random::Random;
use assay_wire::{Block, Tx, TxOut, encode};
use rayon::prelude::*;

/// A block with its spent outputs.
struct Case {
    name: String,
    params: ChainParams,
    height: u32,
    raw: Vec<u8>,
    prevouts: Vec<u8>,
}

impl Case {
    fn block(&self) -> Block {
        Block::parse(self.raw.clone(), self.params.encoding).unwrap()
    }

    fn flags(&self) -> Flags {
        self.params.block_script_flags(self.height, &self.block().hash())
    }
}

fn cases() -> Vec<Case> {
    let Some(root) = assay_testkit::data::folder() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(root.join("blocks")) else { return Vec::new() };
    let mut cases = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "prevouts") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (chain, height) = name.split_once('-').unwrap();
        let chain = if chain == "mainnet" { "main" } else { "test" };
        cases.push(Case {
            params: ChainParams::by_name(chain).unwrap(),
            height: height.parse().unwrap(),
            raw: std::fs::read(path.with_extension("blk")).unwrap(),
            prevouts: std::fs::read(&path).unwrap(),
            name,
        });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

#[test]
fn real_blocks_are_valid() {
    let cases = cases();
    if cases.is_empty() {
        println!("skipped: no real blocks in the test data");
    }
    for case in &cases {
        let block = case.block();
        let verifier = BlockVerifier::new(&case.params, &block, case.height, None);
        let spent = parse_prevouts(&case.prevouts, verifier.input_count()).unwrap();
        let (sums, counts) = verifier.verify(&spent).unwrap();
        assert_eq!(counts.total().inputs, spent.len() as u64, "{}", case.name);
        assert!(counts.total().sig_checks >= counts.total().inputs && sums.fees > 0);
        // Real miners leave nothing behind.
        let paid = output_total(block.tx(0));
        assert_eq!(paid, verifier.rules().subsidy + sums.fees, "{}", case.name);
        for script_batch in [None, Some(1), Some(300), Some(2048)] {
            let verifier = BlockVerifier::new(&case.params, &block, case.height, None)
                .with_script_batch(script_batch);
            let again = verifier.verify_scripts(&spent, 0..block.tx_count()).unwrap();
            assert_eq!(again, counts, "{} in batches of {script_batch:?}", case.name);
        }
        println!("{}: {} inputs, {} signatures", case.name, spent.len(), counts.total().sig_checks);
    }
}

/// Owner of a flipped bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Signature,
    Key,
    InputScript,
    SpentScript,
    SpentAmount,
    OutputAmount,
}

const PARTS: [Part; 6] = [
    Part::Signature,
    Part::Key,
    Part::InputScript,
    Part::SpentScript,
    Part::SpentAmount,
    Part::OutputAmount,
];

/// A byte to be flipped.
#[derive(Clone, Copy, Debug)]
struct Site {
    part: Part,
    tx_index: usize,
    /// Offset in the block, or in the file of spent outputs.
    offset: usize,
    in_block: bool,
}

/// All ranges of bytes in a block that a flip may hit.
fn ranges(case: &Case, block: &Block) -> BTreeMap<Part, Vec<(usize, usize, usize)>> {
    let mut ranges: BTreeMap<Part, Vec<(usize, usize, usize)>> = BTreeMap::new();
    let base = block.bytes().as_ptr() as usize;
    let at = |bytes: &[u8]| bytes.as_ptr() as usize - base;
    let mut add = |part, tx_index, offset, length: usize| {
        if length > 0 {
            ranges.entry(part).or_default().push((tx_index, offset, length));
        }
    };
    let verifier = BlockVerifier::new(&case.params, block, case.height, None);
    let spent = parse_prevouts(&case.prevouts, verifier.input_count()).unwrap();
    for tx_index in 1..block.tx_count() {
        let tx = block.tx(tx_index);
        for (input, output) in verifier.spent_by(&spent, tx_index).iter().enumerate() {
            let script_sig = tx.input(input).script_sig;
            let pushes = Instructions::new(script_sig).flatten().map(|push| push.data);
            for item in pushes.chain(tx.witness(input).iter()) {
                match (item.len(), item.first()) {
                    (60..=73, Some(0x30)) => {
                        add(Part::Signature, tx_index, at(item), item.len());
                    }
                    (33, Some(2 | 3)) | (65, Some(4)) => {
                        add(Part::Key, tx_index, at(item), item.len());
                    }
                    _ => {}
                }
            }
            add(Part::InputScript, tx_index, at(script_sig), script_sig.len());
            for item in &tx.witness(input) {
                add(Part::InputScript, tx_index, at(item), item.len());
            }
            let script = output.script_pubkey;
            let offset = script.as_ptr() as usize - case.prevouts.as_ptr() as usize;
            add(Part::SpentScript, tx_index, offset, script.len());
            add(Part::SpentAmount, tx_index, offset - 12, 8);
        }
        for output in tx.outputs() {
            let script = output.script_pubkey;
            let length_bytes = encode::compact_size_len(script.len() as u64);
            add(Part::OutputAmount, tx_index, at(script) - length_bytes - 8, 8);
        }
    }
    ranges
}

struct Verdict {
    /// Verdict on the scripts of its transaction alone, without any commitments.
    scripts: Result<u64, (usize, ScriptError)>,
    whole: Result<(), VerifyBlockError>,
}

/// All inputs of a transaction, one by one: the number of signature checks, or the first input that fails.
fn verify_tx(tx: Tx<'_>, spent: &[TxOut<'_>], flags: Flags) -> Result<u64, (usize, ScriptError)> {
    let (context, mut interpreter) = (TxContext::new(tx, spent), Interpreter::new());
    let verify = |input| {
        let verdict = interpreter.verify_input(&context, input, flags, &mut ImmediateChecker);
        verdict.map(|stats| u64::from(stats.sig_checks)).map_err(|error| (input, error))
    };
    (0..spent.len()).map(verify).sum()
}

fn judge(case: &Case, site: &Site, mask: u8) -> Verdict {
    let (mut raw, mut prevouts) = (case.raw.clone(), case.prevouts.clone());
    let bytes = if site.in_block { &mut raw } else { &mut prevouts };
    bytes[site.offset] ^= mask;
    let block = Block::parse(raw, case.params.encoding).unwrap();
    let verifier = BlockVerifier::new(&case.params, &block, case.height, None);
    let spent = parse_prevouts(&prevouts, verifier.input_count()).unwrap();
    let outputs: &[TxOut<'_>] = verifier.spent_by(&spent, site.tx_index);
    let scripts = verify_tx(block.tx(site.tx_index), outputs, case.flags());
    // A batch must give the same result, with the same input.
    let neighbours = site.tx_index..block.tx_count().min(site.tx_index + 3);
    let verifier = verifier.with_script_batch(Some(500));
    match verifier.verify_scripts(&spent, neighbours) {
        Err(BlockError::Script { tx_index, source }) => {
            assert_eq!(tx_index, site.tx_index);
            assert_eq!(scripts, Err((source.input, source.error)));
        }
        verdict => assert!(scripts.is_ok() && verdict.is_ok(), "{verdict:?} {scripts:?}"),
    }
    // All other transactions are unchanged, so their scripts need not run again.
    let whole = verifier
        .check_alone()
        .map_err(VerifyBlockError::from)
        .and_then(|()| verifier.check_spends(&spent))
        .and_then(|_| {
            let txs = site.tx_index..site.tx_index + 1;
            verifier.verify_scripts(&spent, txs).map(|_| ()).map_err(VerifyBlockError::from)
        });
    Verdict { scripts, whole }
}

/// True if a flip may leave the block valid. Consensus ignores two kinds:
/// - an amount without a committing signature has grown, and with it the fee;
/// - an output has become spendable by anyone, as when a longer push swallows the comparing opcode.
fn may_be_ignored(case: &Case, site: &Site, mask: u8) -> bool {
    match site.part {
        Part::SpentAmount => {
            let grew = case.prevouts[site.offset] & mask == 0;
            grew && !case.block().tx(site.tx_index).has_witness()
        }
        Part::SpentScript => {
            // Only an opcode can do that, never a hash or key.
            let hash_bytes = |script: &[u8], at: usize| match script {
                [0xa9, 0x14, ..] => (2..22).contains(&at),
                [0x76, 0xa9, 0x14, ..] => (3..23).contains(&at),
                [0, length, ..] => *length > 1 && at >= 2,
                _ => false,
            };
            let inputs = case.block().input_count() - 1;
            let spent = parse_prevouts(&case.prevouts, inputs).unwrap();
            let start = |output: &TxOut<'_>| {
                output.script_pubkey.as_ptr() as usize - case.prevouts.as_ptr() as usize
            };
            spent
                .iter()
                .find(|output| {
                    let start = start(output);
                    (start..start + output.script_pubkey.len()).contains(&site.offset)
                })
                .is_some_and(|output| {
                    !hash_bytes(output.script_pubkey, site.offset - start(output))
                })
        }
        _ => false,
    }
}

const FLIPS_PER_PART: usize = 60;

#[test]
fn detects_every_flipped_bit() {
    let cases = cases();
    if cases.is_empty() {
        println!("skipped: no real blocks in the test data");
        return;
    }
    let seed = 20_261_120;
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut flips = Vec::new();
    for case in &cases {
        let block = case.block();
        let ranges = ranges(case, &block);
        for part in PARTS {
            let ranges = &ranges[&part];
            for _ in 0..FLIPS_PER_PART {
                let (tx_index, offset, length) = ranges[random.below(ranges.len())];
                let offset = offset + random.below(length);
                let in_block = !matches!(part, Part::SpentScript | Part::SpentAmount);
                let site = Site { part, tx_index, offset, in_block };
                flips.push((case, site, 1u8 << random.below(8)));
            }
        }
    }
    assert!(flips.len() >= 2000, "{} flips", flips.len());
    let verdicts: Vec<Verdict> =
        flips.par_iter().map(|(case, site, mask)| judge(case, site, *mask)).collect();
    let mut ignored = 0;
    let mut table: BTreeMap<Part, [usize; 3]> = BTreeMap::new();
    for ((case, site, mask), verdict) in flips.iter().zip(&verdicts) {
        let row = table.entry(site.part).or_default();
        row[0] += 1;
        row[1] += usize::from(verdict.scripts.is_err());
        row[2] += usize::from(verdict.whole.is_err());
        let name = &case.name;
        if site.in_block {
            // Regardless of scripts, a header or a coinbase commits to every byte.
            let error = verdict.whole.as_ref().expect_err("committed to");
            let is_commitment = matches!(
                error,
                VerifyBlockError::Invalid(
                    BlockError::MerkleRoot { .. } | BlockError::WitnessCommitment { .. }
                )
            );
            assert!(is_commitment, "{name} {site:?} {mask:#04x}: {error}");
        } else if verdict.whole.is_ok() {
            assert!(may_be_ignored(case, site, *mask), "{name} {site:?} {mask:#04x}");
            ignored += 1;
        }
        if verdict.scripts.is_ok() && site.part != Part::SpentAmount {
            println!("scripts do not notice: {name} {site:?} {mask:#04x}");
        }
    }
    println!("{} flips, {ignored} leave a valid block", flips.len());
    for (part, [flips, scripts, whole]) in &table {
        println!(
            "{part:?}: {flips} flips, scripts reject {scripts}, the block is rejected {whole} times"
        );
    }
}
