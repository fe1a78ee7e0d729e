//! First inputs of every target: blocks, transactions, scripts and files of small forged chains, and the texts that come with
//! the program.

mod peers;
mod shard;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;

use assay_consensus::script::Flags;
use assay_forge::{ForgeError, ForgeOptions, Ledger, OptionsError, Recipe, forge};
use assay_lab::plan::Plan;
use assay_store::{CoinRef, KeyForms, SnapshotHeader, SnapshotWriter, UndoWriter};
use assay_wire::p2p::{FilterLoad, Message};
use assay_wire::{Block, BlockHash, Coin, Encoding, OutPoint, Tx};

/// Larger inputs only make every round slower.
const BYTES_MAX: usize = 1 << 15;

/// Makes a folder for each target in `root`, with a file for each input, and prints their numbers.
pub fn write(root: PathBuf) {
    let mut seeds = Seeds { root, count: HashMap::new() };
    for name in Recipe::builtin_names() {
        // The chain of widths cannot be small; its blocks hold nothing that the others lack.
        if name != "sighash-scaling" {
            forged(&mut seeds, name);
        }
        seeds.add("recipe", Recipe::builtin_text(name).expect("a listed name").as_bytes());
    }
    for (_, text) in Plan::BUILTIN {
        seeds.add("plan", text.as_bytes());
    }
    for text in REQUESTS {
        seeds.add("jsonrpc", &[&[3, 5, 8, 13], text.as_bytes()].concat());
    }
    for line in include_str!("../../crates/assay-lab/tests/suite/lines.txt").lines() {
        seeds.add("logs", format!("\x07{line}\n{line}\n").as_bytes());
    }
    for text in ELECTRUM_LINES {
        seeds.add("electrum", text.as_bytes());
    }
    peers::add(&mut seeds);
    shard::add(&mut seeds);
    // Bytes without a pattern, for targets that hash or compute.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for length in [1usize, 8, 16, 33, 65, 100, 200, 400, 1000] {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                (state >> 56) as u8
            })
            .collect();
        for target in [
            "hashes",
            "muhash",
            "signature",
            "numbers",
            "compact",
            "transport",
            "slh_dsa",
            "curves",
        ] {
            seeds.add(target, &bytes);
        }
    }
    for bits in [0x1d00_ffffu32, 0x207f_ffff, 0x1c05_a3f4, 0x0492_3456, 0xff12_3456, 0x2100_ffff] {
        seeds.add("compact", &[&bits.to_le_bytes()[..], &[0x7f; 32], &[0x80; 8]].concat());
    }
    for (target, count) in &seeds.count {
        println!("{target}: {count}");
    }
}

struct Seeds {
    root: PathBuf,
    count: HashMap<&'static str, usize>,
}

impl Seeds {
    fn add(&mut self, target: &'static str, bytes: &[u8]) {
        let count = self.count.entry(target).or_default();
        if bytes.len() > BYTES_MAX || *count >= 400 {
            return;
        }
        let folder = self.root.join(target);
        fs::create_dir_all(&folder).expect("a folder for seeds");
        fs::write(folder.join(format!("seed-{count:03}")), bytes).expect("a seed");
        *count += 1;
    }
}

fn forged(seeds: &mut Seeds, name: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recipe = Recipe::builtin(name).expect("a listed name");
    let mut options =
        ForgeOptions { seed: 1, scale: 0.01, stop_height: Some(106), ..ForgeOptions::default() };
    let mut forged = forge(&recipe, &options, folder.path(), &mut ());
    // A chain of eras has a block for each of them at least, and blocks may be too full for all that is asked of them.
    for _ in 0..2 {
        match forged {
            Err(ForgeError::Options(OptionsError::Scale { min, .. })) => options.scale = min,
            Err(ForgeError::Options(OptionsError::ByteScale { max, .. })) => {
                options.byte_scale = max
            }
            _ => break,
        }
        forged = forge(&recipe, &options, folder.path(), &mut ());
    }
    forged.expect("a forged chain");
    let ledger = Ledger::read(folder.path()).expect("its ledger");
    let text = fs::read(folder.path().join("ledger.jsonl")).expect("its ledger");
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    seeds.add("ledger", &text);
    seeds.add("ledger", &[lines[0], lines[1], lines[lines.len() - 1]].concat());

    let encoding =
        if ledger.chain.chain == "regtest" { Encoding::Segwit } else { Encoding::Legacy };
    let mut coins: HashMap<OutPoint, (i64, Vec<u8>)> = HashMap::new();
    for line in &ledger.blocks {
        let file = fs::read(folder.path().join(&line.file)).expect("its block file");
        let start = line.offset as usize;
        let raw = &file[start..start + line.bytes as usize];
        let block = Block::parse(raw.to_vec(), encoding).expect("a forged block");
        if line.height % 25 == 1 || block.tx_count() > 1 {
            seeds.add("block", raw);
            seeds.add("stats", &[&[0], &file[start - 8..start + raw.len()]].concat());
            seeds.add("core_files", &[&[0], &file[start - 8..start + raw.len()]].concat());
            store(seeds, &file[start - 8..start + raw.len()], raw);
        }
        seeds.add("mempool_file", &mempool(&block));
        let mut undo = UndoWriter::new();
        let mut spent = BTreeMap::new();
        let (mut prevouts, mut inputs) = (Vec::new(), 0u8);
        for (index, tx) in block.txs().enumerate() {
            for (vout, output) in tx.outputs().enumerate() {
                let outpoint = OutPoint { txid: tx.txid(), vout: vout as u32 };
                coins.insert(outpoint, (output.value, output.script_pubkey.to_vec()));
                seeds.add("script_text", output.script_pubkey);
            }
            if index % 7 < 2 {
                let filter =
                    FilterLoad { bits: &[9; 30], functions: 3, tweak: index as u32, flags: 1 };
                let mut sent = Vec::new();
                Message::FilterLoad(filter).encode(&mut sent);
                seeds.add("bloom", &[&[sent.len() as u8], &sent[..], tx.raw()].concat());
                seeds.add("transaction", tx.raw());
            }
            if index == 0 || inputs == u8::MAX {
                continue;
            }
            for (at, input) in tx.inputs().enumerate().take(3) {
                let Some((value, script)) = coins.get(&input.prevout) else { continue };
                seeds.add("script", &script_input(tx, at, script));
                seeds.add("script_text", input.script_sig);
                let coin = CoinRef {
                    value: *value,
                    height: line.height,
                    coinbase: false,
                    script_pubkey: script,
                };
                undo.push(coin);
                spent.insert(input.prevout, coin.to_coin());
                prevouts.extend(value.to_le_bytes());
                prevouts.extend((script.len() as u32).to_le_bytes());
                prevouts.extend(script);
                inputs = inputs.saturating_add(1);
            }
        }
        if inputs > 0 {
            seeds.add("undo", &undo.finish());
            seeds.add("utxo_snapshot", &snapshot(&spent));
            prevouts.insert(0, inputs);
            seeds.add("prevouts", &prevouts);
        }
        seeds.add("ids", line.hash.as_bytes());
    }
}

fn snapshot(coins: &BTreeMap<OutPoint, Coin>) -> Vec<u8> {
    let keys = KeyForms { is_point: |_| false, expand: |_| None };
    let base = BlockHash([7; 32]);
    let header =
        SnapshotHeader { magic: [0xfa, 0xbf, 0xb5, 0xda], base, coins: coins.len() as u64 };
    let mut writer =
        SnapshotWriter::new(Vec::new(), &header, keys).expect("memory takes everything");
    for (outpoint, coin) in coins {
        writer.push(outpoint, CoinRef::from(coin)).expect("memory takes everything");
    }
    writer.finish().expect("memory takes everything").1
}

/// One input in the layout of the target `script`.
fn script_input(tx: Tx<'_>, input: usize, script_pubkey: &[u8]) -> Vec<u8> {
    let mut seed = Flags::BITCOIN_STANDARD.bits().to_le_bytes().to_vec();
    seed.extend(u64::MAX.to_le_bytes());
    seed.extend(tx.input(input).sequence.to_le_bytes());
    seed.extend(tx.lock_time().to_le_bytes());
    seed.extend(tx.version().to_le_bytes());
    counted(&mut seed, tx.input(input).script_sig);
    counted(&mut seed, script_pubkey);
    seed.push(tx.witness(input).len() as u8);
    for item in tx.witness(input).iter() {
        counted(&mut seed, item);
    }
    counted(&mut seed, tx.output(0).script_pubkey);
    seed
}

/// The first transactions of a block as a plain mempool file.
fn mempool(block: &Block) -> Vec<u8> {
    let txs: Vec<_> = block.txs().take(4).collect();
    let mut file = 1u64.to_le_bytes().to_vec();
    file.extend((txs.len() as u64).to_le_bytes());
    for tx in txs {
        file.extend(tx.raw());
        file.extend([1; 8]);
        file.extend([0; 8]);
    }
    file.extend([0; 2]);
    file
}

/// A data directory with one block in the layout of the target `store`.
fn store(seeds: &mut Seeds, frame: &[u8], raw: &[u8]) {
    let mut record = raw[..80].to_vec();
    record.resize(137, 0);
    let mut seed = vec![2, 1];
    counted(&mut seed, &record);
    seed.extend([1, 0, 2]);
    counted(&mut seed, &[]);
    seed.extend([0, 0, 0]);
    counted(&mut seed, frame);
    seeds.add("store", &seed);
}

fn counted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u16).to_le_bytes());
    out.extend(bytes);
}

const REQUESTS: [&str; 12] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"getblockcount","params":[]}"#,
    r#"{"jsonrpc":"1.0","id":"a","method":"submitblock","params":["00aabbccddeeff00112233445566778899"]}"#,
    r#"{"id":null,"method":"sendrawtransaction","params":["0100000000ff",0.1]}"#,
    r#"{"id":7,"method":"getblock","params":{"blockhash":"0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206","verbosity":2}}"#,
    r#"[{"id":1,"method":"getblockhash","params":[0]},{"jsonrpc":"2.0","method":"stop"}]"#,
    r#"{"id":1,"method":"testmempoolaccept","params":[["0100","0200"],"0.00001"]}"#,
    r#"{"id":1,"method":"gettxout","params":["4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b",0,true]}"#,
    r#"{"id":1,"method":"getrawtransaction","params":["4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b",1]}"#,
    r#"{"id":1,"method":"gettxoutsetinfo","params":["muhash"]}"#,
    r#"{"id":1,"method":"waitforblockheight","params":[5,1000]}"#,
    r#"{"method":"help","params":["help"],"id":"é\n"}"#,
    "[]",
];

const ELECTRUM_LINES: [&str; 8] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"server.version","params":["4.6",["1.4","1.6"]]}"#,
    r#"{"id":1,"method":"blockchain.scripthash.get_history","params":["8b01df4e368ea28f8dc0423bcf7a4923e3a12d307c875e47a0cfbf90b5c39161"]}"#,
    r#"{"id":"a","method":"blockchain.transaction.get","params":{"tx_hash":"4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b","verbose":true}}"#,
    r#"{"id":2,"method":"blockchain.outpoint.subscribe","params":["4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b",0,"51"]}"#,
    r#"{"id":3,"method":"blockchain.transaction.broadcast_package","params":[["0100","02"],false]}"#,
    r#"[{"id":4,"method":"blockchain.block.header","params":[5,8]},{"method":"server.ping","params":[1,"00"]},7]"#,
    r#"{"id":5,"method":"blockchain.estimatefee","params":[2,"ECONOMICAL"]}"#,
    "[]",
];
