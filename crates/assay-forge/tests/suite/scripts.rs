//! The script ledger against an independent implementation, its samples, and its file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{Chain, bch, bitcoin, forged};
use assay_forge::ledger::scripts::{CoinLine, ScriptLine, ScriptsLine};
use assay_forge::scripts::{ScriptChoice, ScriptLedger, ScriptLedgerError};
use assay_forge::{ForgeOptions, Recipe};
use assay_wire::{OutPoint, Txid};

fn chain(recipe: &Recipe, distinct_keys: bool) -> Chain {
    let scale = if recipe.name() == "bch-scaling" { 0.0002 } else { 0.01 };
    forged(recipe, &ForgeOptions { scale, seed: 7, distinct_keys, ..ForgeOptions::default() })
}

fn read(chain: &Chain, choice: ScriptChoice) -> ScriptLedger {
    ScriptLedger::read(chain.path(), choice, &mut |_, _| true).expect("a whole chain")
}

fn by_hash(ledger: &ScriptLedger) -> BTreeMap<String, ScriptLine> {
    ledger.scripts().map(|script| (script.script_hash.clone(), script)).collect()
}

fn unspent(script: &ScriptLine) -> impl Iterator<Item = &CoinLine> {
    script.coins.iter().filter(|coin| coin.spent.is_none())
}

/// History as (height, index in the block, txid), and unspent outputs.
type Plain = (BTreeSet<(u32, usize, Txid)>, BTreeSet<(OutPoint, u64)>);

/// Reference result by a plain UTXO set: histories as sets of (height, index in the block, txid), and unspent outputs.
fn plainly(chain: &Chain) -> BTreeMap<String, Plain> {
    let mut scripts: BTreeMap<String, Plain> = BTreeMap::new();
    let mut made: HashMap<OutPoint, (String, u64)> = HashMap::new();
    for line in &chain.ledger.blocks {
        let block = chain.block(line);
        for (place, tx) in block.txs().enumerate() {
            for (vout, output) in tx.outputs().enumerate() {
                if output.script_pubkey.first() == Some(&0x6a) {
                    continue;
                }
                // Printed reversed, as an id.
                let hash = Txid(assay_hash::sha256(output.script_pubkey)).to_string();
                let outpoint = OutPoint { txid: tx.txid(), vout: vout as u32 };
                made.insert(outpoint, (hash.clone(), output.value as u64));
                let script = scripts.entry(hash).or_default();
                script.0.insert((line.height, place, tx.txid()));
                script.1.insert((outpoint, output.value as u64));
            }
        }
        for (place, tx) in block.txs().enumerate().skip(1) {
            for input in tx.inputs() {
                let (hash, value) = &made[&input.prevout];
                let script = scripts.get_mut(hash).expect("it was paid");
                script.0.insert((line.height, place, tx.txid()));
                assert!(script.1.remove(&(input.prevout, *value)), "spent once");
            }
        }
    }
    scripts
}

#[test]
fn scripts_match_the_reference() {
    for (recipe, distinct) in [(bch(), false), (bch(), true), (bitcoin(), false)] {
        let chain = chain(&recipe, distinct);
        let ledger =
            read(&chain, ScriptChoice { scripts_max: usize::MAX / 4, ..ScriptChoice::default() });
        assert!(!ledger.is_sample);
        let (found, plain) = (by_hash(&ledger), plainly(&chain));
        assert!(found.keys().eq(plain.keys()), "{recipe}: the same scripts");
        assert_eq!(ledger.scripts_total, plain.len() as u64);
        let (mut count, mut amount) = (0, 0);
        for (hash, script) in &found {
            let (history, coins) = &plain[hash];
            let expected: Vec<_> =
                history.iter().map(|(height, _, txid)| (*height, txid.to_string())).collect();
            assert_eq!(script.history, expected, "{recipe}");
            let got: BTreeSet<_> = unspent(script)
                .map(|coin| {
                    let txid = coin.txid.parse().expect("a txid");
                    (OutPoint { txid, vout: coin.vout }, coin.value)
                })
                .collect();
            assert_eq!(&got, coins, "{recipe}");
            count += got.len() as u64;
            amount += got.iter().map(|(_, value)| value).sum::<u64>();
        }
        let tip = &chain.ledger.tip;
        assert_eq!(count, tip.utxo_count, "{recipe}: all coins belong to a script");
        assert_eq!(ledger.unspent_len(), tip.utxo_count);
        assert_eq!(amount, tip.utxo_amount);
    }
}

#[test]
fn samples_are_subsets() {
    let chain = chain(&bch(), true);
    let all = read(&chain, ScriptChoice { scripts_max: usize::MAX / 4, ..ScriptChoice::default() });
    let whole = by_hash(&all);
    let of = |scripts_max, entries_max, seed| {
        read(&chain, ScriptChoice { scripts_max, entries_max, seed })
    };
    for seed in [1, 2] {
        let sample = of(500, usize::MAX, seed);
        assert_eq!((sample.len(), sample.sample_seed()), (500, Some(seed)));
        for (hash, script) in by_hash(&sample) {
            assert_eq!(script, whole[&hash], "seed {seed}");
        }
        let (estimate, exact) = (sample.scripts_total as f64, whole.len() as f64);
        assert!((estimate / exact - 1.0).abs() < 0.25, "{estimate} of {exact}");
        // A smaller sample with the same seed is a subset of the larger one.
        let larger = by_hash(&sample);
        assert!(by_hash(&of(100, usize::MAX, seed)).keys().all(|hash| larger.contains_key(hash)));
    }
    assert_ne!(by_hash(&of(500, usize::MAX, 1)), by_hash(&of(500, usize::MAX, 2)));
    // With the entry limit, whole scripts are omitted.
    let bounded = of(usize::MAX / 4, 3000, 1);
    assert!(bounded.is_sample && !bounded.is_empty());
    let entries: usize =
        bounded.scripts().map(|script| script.history.len() + script.coins.len()).sum();
    assert!(entries <= 3000, "{entries}");
    assert!(bounded.scripts().all(|script| script == whole[&script.script_hash]));
}

#[test]
fn a_known_status() {
    // Protocol documentation, "Status": SHA-256 of "txid:height:" of each entry.
    let chain = chain(&bitcoin(), false);
    let ledger = read(&chain, ScriptChoice::default());
    let script = ledger.scripts().max_by_key(|script| script.history.len()).expect("scripts");
    let mut text = String::new();
    for (height, txid) in &script.history {
        text += &[txid.clone(), height.to_string(), String::new()].join(":");
    }
    let status = faster_hex::hex_string(&assay_hash::sha256(text.as_bytes()));
    assert_eq!(script.status, Some(status));
}

#[test]
fn file_matches_the_ledger() {
    let chain = chain(&bitcoin(), false);
    let ledger = read(&chain, ScriptChoice::default());
    let write = |with_spent| {
        let mut bytes = Vec::new();
        ledger.write(with_spent, &mut bytes).expect("memory takes it");
        String::from_utf8(bytes).expect("text")
    };
    let text = write(true);
    let (first, rest) = text.split_once('\n').expect("a first line");
    assert!(first.starts_with("{\"kind\":\"scripts\""), "{first}");
    let first: ScriptsLine = serde_json::from_str(first).expect("each line is JSON");
    let last = chain.ledger.blocks.last().expect("blocks");
    let header = faster_hex::hex_string(&chain.block(last).header().to_bytes());
    assert_eq!((first.scripts, first.tip_header), (ledger.len() as u64, header));
    assert_eq!(first.unspent, chain.ledger.tip.utxo_count);
    assert_eq!(first.tip_hash, chain.ledger.tip.hash);
    let lines = |text: &str| -> Vec<ScriptLine> {
        let line = |line| serde_json::from_str(line).expect("each line is JSON");
        text.lines().map(line).collect()
    };
    let mut scripts: Vec<ScriptLine> = ledger.scripts().collect();
    assert_eq!(lines(rest), scripts);
    for script in &mut scripts {
        script.coins.retain(|coin| coin.spent.is_none());
    }
    let text = write(false);
    assert_eq!(lines(text.split_once('\n').expect("a first line").1), scripts);
}

#[test]
fn rejects_damaged_chains() {
    let chain = chain(&bitcoin(), false);
    let stopped =
        ScriptLedger::read(chain.path(), ScriptChoice::default(), &mut |done, _| done < 9);
    assert!(matches!(stopped, Err(ScriptLedgerError::Interrupted { height: 10 })));
    let line = &chain.ledger.blocks[4];
    let path = chain.path().join(&line.file);
    let mut file = std::fs::read(&path).expect("a block file");
    file[line.offset as usize + 70] ^= 1;
    std::fs::write(&path, &file).expect("writable");
    let error = ScriptLedger::read(chain.path(), ScriptChoice::default(), &mut |_, _| true);
    assert!(matches!(error, Err(ScriptLedgerError::OtherBlock { height: 5, .. })));
    file.truncate(line.offset as usize + 100);
    std::fs::write(&path, &file).expect("writable");
    let error = ScriptLedger::read(chain.path(), ScriptChoice::default(), &mut |_, _| true);
    assert!(matches!(error, Err(ScriptLedgerError::Parse { height: 5, .. })));
    std::fs::remove_file(&path).expect("removable");
    let error = ScriptLedger::read(chain.path(), ScriptChoice::default(), &mut |_, _| true);
    assert!(matches!(error, Err(ScriptLedgerError::Read { height: 1, .. })));
}
