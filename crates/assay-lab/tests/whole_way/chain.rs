//! Tiny chains, written as the forge does. Nobody parses their contents: a "block" is a header and transactions, a "transaction" is
//! its txid followed by filling.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use assay_ledger::scripts::{CoinLine, ScriptLine, ScriptsLine};
use faster_hex::hex_string;
use serde_json::json;
use sha2::{Digest, Sha256};

/// Constants of the UTXO set that the fake node reports as well.
pub(crate) const UTXO_COUNT: u64 = 7;
pub(crate) const UTXO_AMOUNT: u64 = 750_000_000_001;

/// Phase and transactions (without the coinbase) of each block: of the plans, and of the load tests.
pub(crate) const OF_PLANS: [(&str, u32); 5] =
    [("maturity", 0), ("maturity", 0), ("fan-out", 20), ("fan-out", 20), ("steady-1", 10)];
pub(crate) const OF_LOAD: [(&str, u32); 12] = [("maturity", 1); 12];

pub(crate) const HEADER_BYTES: usize = 80;
pub(crate) const TX_BYTES: usize = 100;

/// `MuHash` that forge and node agree on.
pub(crate) fn muhash() -> String {
    "cd".repeat(32)
}

/// The "hash" of a block, in internal byte order.
pub(crate) fn hash(height: u32) -> [u8; 32] {
    let mut hash = [0xb0; 32];
    hash[0] = height as u8;
    hash
}

/// Txid by place in the block; the coinbase is 0.
pub(crate) fn txid(height: u32, place: u32) -> [u8; 32] {
    std::array::from_fn(|at| [height as u8, place as u8, 1][at % 3])
}

pub(crate) fn raw_tx(height: u32, place: u32) -> Vec<u8> {
    let mut raw = txid(height, place).to_vec();
    raw.resize(TX_BYTES, 0);
    raw
}

/// It begins with the hash, and has the merkle root of a coinbase and one transaction.
pub(crate) fn header(height: u32) -> [u8; HEADER_BYTES] {
    let once = Sha256::new().chain_update(txid(height, 0)).chain_update(txid(height, 1)).finalize();
    let mut header = [0; HEADER_BYTES];
    header[..32].copy_from_slice(&hash(height));
    header[36..68].copy_from_slice(&Sha256::digest(once));
    header
}

/// Bytes in internal order as RPC and Electrum print them.
pub(crate) fn shown(mut internal: [u8; 32]) -> String {
    internal.reverse();
    hex_string(&internal)
}

/// A script for each block of the plans, which its coinbase pays to.
pub(crate) fn scripts_of_plans() -> Vec<ScriptLine> {
    let script = |height: u32| {
        let (txid, value) = (shown(txid(height, 0)), 1000 * u64::from(height));
        ScriptLine {
            script_hash: format!("{height:02}").repeat(32),
            status: None,
            history: vec![(height, txid.clone())],
            coins: vec![CoinLine { height, txid, vout: 0, value, spent: None }],
        }
    };
    (1..=OF_PLANS.len() as u32).map(script).collect()
}

/// A script that the transaction of each block of the load tests pays to, spending the payment before.
pub(crate) fn script_of_load() -> ScriptLine {
    let heights = || 1..=OF_LOAD.len() as u32;
    let txid = |height| shown(txid(height, 1));
    let coin = |height| CoinLine {
        height,
        txid: txid(height),
        vout: 0,
        value: 1000 + u64::from(height),
        spent: Some(height + 1).filter(|height| heights().contains(height)),
    };
    ScriptLine {
        script_hash: "51".repeat(32),
        status: None,
        history: heights().map(|height| (height, txid(height))).collect(),
        coins: heights().map(coin).collect(),
    }
}

fn option(args: &[String], name: &str) -> Result<String, String> {
    let at = args.iter().position(|arg| arg == name).ok_or(format!("no {name}"))?;
    args.get(at + 1).cloned().ok_or(format!("no value of {name}"))
}

/// Acts as `forge RECIPE --seed S --scale F --out DIR`.
pub(crate) fn forge(args: &[String]) -> Result<(), String> {
    let recipe = args.first().ok_or("no recipe")?;
    if recipe == "impossible" {
        return Err("recipe impossible: a coin of 5 cannot pay 6".to_owned());
    }
    let seed = option(args, "--seed")?.parse().map_err(|_| "a number")?;
    let scale = option(args, "--scale")?.parse().map_err(|_| "a number")?;
    let distinct = args.iter().any(|arg| arg == "--distinct-keys");
    let dir = option(args, "--out")?;
    write(Path::new(&dir), (recipe, seed, scale, distinct), &OF_PLANS)
        .map_err(|error| error.to_string())
}

/// Writes a chain directory.
pub(crate) fn write(
    dir: &Path,
    (recipe, seed, scale, distinct): (&str, u64, f64, bool),
    blocks: &[(&str, u32)],
) -> std::io::Result<()> {
    fs::create_dir_all(dir.join("blocks"))?;
    fs::create_dir_all(dir.join("order"))?;
    let chain = json!({
        "kind": "chain", "format": 1, "recipe": recipe, "chain": "bch-regtest", "seed": seed, "scale": scale,
        "variant": "intended", "distinct_keys": distinct, "end_time": 1, "magic": "dab5bffa", "assay_version": "test",
        "recipe_sha256": "00",
    });
    let mut ledger = chain.to_string();
    let mut file = Vec::new();
    let (mut all_txs, mut all_bytes, mut all_inputs) = (0, 0, 0);
    for (height, (phase, inputs)) in (1..).zip(blocks) {
        let (mut raw, mut order) = (header(height).to_vec(), Vec::new());
        raw.extend(raw_tx(height, 0));
        for place in 1..=*inputs {
            order.extend(txid(height, place));
            order.extend((raw.len() as u32).to_le_bytes());
            order.extend((TX_BYTES as u32).to_le_bytes());
            raw.extend(raw_tx(height, place));
        }
        file.extend([0xda, 0xb5, 0xbf, 0xfa]);
        file.extend((raw.len() as u32).to_le_bytes());
        let (offset, bytes, txs) = (file.len(), raw.len(), inputs + 1);
        file.extend(&raw);
        fs::write(dir.join(format!("order/{height:06}.bin")), order)?;
        let block = json!({
            "kind": "block", "height": height, "hash": shown(hash(height)), "phase": phase,
            "file": "blocks/blk00000.dat", "offset": offset, "bytes": bytes, "weight": bytes, "txs": txs,
            "inputs": inputs, "outputs": txs, "signatures": inputs, "time": 1,
        });
        // Writing to a string cannot fail.
        let _ = write!(ledger, "\n{block}");
        all_txs += txs;
        all_inputs += inputs;
        all_bytes += bytes;
    }
    fs::write(dir.join("blocks/blk00000.dat"), file)?;
    let tip = json!({
        "kind": "tip", "height": blocks.len(), "hash": shown(hash(blocks.len() as u32)),
        "utxo_count": UTXO_COUNT, "utxo_amount": UTXO_AMOUNT, "utxo_muhash": muhash(), "txs": all_txs,
        "inputs": all_inputs, "outputs": all_txs, "bytes": all_bytes, "signatures": all_inputs,
    });
    let _ = writeln!(ledger, "\n{tip}");
    // Removes leftovers of an interrupted forge, like the real one.
    let _ = fs::remove_file(dir.join("ledger.jsonl.part"));
    fs::write(dir.join("ledger.jsonl"), ledger)
}

/// Acts as `scripts DIR --sample N --seed S --out FILE`.
pub(crate) fn scripts(args: &[String]) -> Result<(), String> {
    let sample: usize = option(args, "--sample")?.parse().map_err(|_| "a number")?;
    let seed: u64 = option(args, "--seed")?.parse().map_err(|_| "a number")?;
    let mut scripts = scripts_of_plans();
    let (tip_height, all) = (scripts.len() as u32, scripts.len() as u64);
    scripts.truncate(sample);
    let listed = scripts.len() as u64;
    let first = ScriptsLine {
        format: 1,
        tip_height,
        tip_hash: shown(hash(tip_height)),
        tip_header: "00".to_owned(),
        scripts: listed,
        scripts_total: all,
        sample_seed: (listed < all).then_some(seed),
        history: listed,
        unspent: listed,
    };
    let mut text = json!(first).to_string();
    for script in scripts {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}", json!(script));
    }
    fs::write(option(args, "--out")?, text).map_err(|error| error.to_string())
}
