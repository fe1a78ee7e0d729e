//! A forge that writes a tiny chain. A "block" is its hash followed by its transactions, a "transaction" is its txid followed by
//! filling; nothing is hashed.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Constants of the UTXO set that the fake node reports as well.
pub(crate) const UTXO_COUNT: u64 = 7;
pub(crate) const UTXO_AMOUNT: u64 = 750_000_000_001;

/// `MuHash` that both agree on.
pub(crate) fn muhash() -> String {
    "cd".repeat(32)
}

/// Phase and transactions (without the coinbase) of each block.
const BLOCKS: [(&str, u32); 5] =
    [("maturity", 0), ("maturity", 0), ("fan-out", 20), ("fan-out", 20), ("steady-1", 10)];

const TX_BYTES: u32 = 100;

/// Acts as `forge RECIPE --seed S --scale F --out DIR`.
pub(crate) fn main(args: &[String]) -> Result<(), String> {
    let option = |name: &str| {
        let at = args.iter().position(|arg| arg == name).ok_or(format!("no {name}"))?;
        args.get(at + 1).cloned().ok_or(format!("no value of {name}"))
    };
    let (recipe, seed, scale) =
        (args.first().ok_or("no recipe")?, option("--seed")?, option("--scale")?);
    if recipe == "impossible" {
        return Err("recipe impossible: a coin of 5 cannot pay 6".to_owned());
    }
    let dir = option("--out")?;
    let distinct = args.iter().any(|arg| arg == "--distinct-keys");
    let named = [recipe.as_str(), &seed, &scale];
    write_chain(Path::new(&dir), named, distinct).map_err(|error| error.to_string())
}

fn write_chain(
    dir: &Path,
    [recipe, seed, scale]: [&str; 3],
    distinct: bool,
) -> std::io::Result<()> {
    fs::create_dir_all(dir.join("blocks"))?;
    fs::create_dir_all(dir.join("order"))?;
    let mut ledger = format!(
        r#"{{"kind":"chain","format":1,"recipe":"{recipe}","chain":"bch-regtest","seed":{seed},"scale":{scale},"variant":"intended","distinct_keys":{distinct},"end_time":1,"magic":"dab5bffa","assay_version":"test","recipe_sha256":"00"}}"#
    );
    let mut file = Vec::new();
    let (mut all_txs, mut all_bytes, mut all_inputs) = (0, 0, 0);
    for (index, (phase, txs)) in BLOCKS.iter().enumerate() {
        let height = index as u32 + 1;
        let mut raw = hash(height).to_vec();
        let mut order = Vec::new();
        for tx in 0..*txs {
            let txid = [height as u8, tx as u8 + 1, 1].repeat(11);
            order.extend(&txid[..32]);
            order.extend((raw.len() as u32).to_le_bytes());
            order.extend(TX_BYTES.to_le_bytes());
            raw.extend(&txid[..32]);
            raw.resize(raw.len() + TX_BYTES as usize - 32, 0);
        }
        file.extend([0xda, 0xb5, 0xbf, 0xfa]);
        file.extend((raw.len() as u32).to_le_bytes());
        let (offset, bytes, block_txs) = (file.len(), raw.len(), txs + 1);
        file.extend(&raw);
        fs::write(dir.join(format!("order/{height:06}.bin")), order)?;
        let shown = shown(&hash(height));
        // Writing to a string cannot fail.
        let _ = write!(
            ledger,
            "\n{}",
            format_args!(
                r#"{{"kind":"block","height":{height},"hash":"{shown}","phase":"{phase}","file":"blocks/blk00000.dat","offset":{offset},"bytes":{bytes},"weight":{bytes},"txs":{block_txs},"inputs":{txs},"outputs":{block_txs},"signatures":{txs},"time":1}}"#
            )
        );
        all_txs += u64::from(block_txs);
        all_inputs += u64::from(*txs);
        all_bytes += bytes;
    }
    fs::write(dir.join("blocks/blk00000.dat"), file)?;
    let (height, hash, muhash) = (BLOCKS.len(), shown(&hash(BLOCKS.len() as u32)), muhash());
    let _ = write!(
        ledger,
        "\n{}\n",
        format_args!(
            r#"{{"kind":"tip","height":{height},"hash":"{hash}","utxo_count":{UTXO_COUNT},"utxo_amount":{UTXO_AMOUNT},"utxo_muhash":"{muhash}","txs":{all_txs},"inputs":{all_inputs},"outputs":{all_txs},"bytes":{all_bytes},"signatures":{all_inputs}}}"#
        )
    );
    // Removes leftovers of an interrupted forge, like the real one.
    let _ = fs::remove_file(dir.join("ledger.jsonl.part"));
    fs::write(dir.join("ledger.jsonl"), ledger)
}

/// Number of blocks.
pub(crate) fn heights() -> usize {
    BLOCKS.len()
}

/// The "hash" of a block, in internal byte order.
pub(crate) fn hash(height: u32) -> [u8; 32] {
    let mut hash = [0xb0; 32];
    hash[0] = height as u8;
    hash
}

/// Bytes in internal order as RPC prints them.
pub(crate) fn shown(internal: &[u8]) -> String {
    internal.iter().rev().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
