//! A chain of a few blocks, as a directory, an oracle, and a server's data.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use assay_lab::load::Scripts;
use assay_ledger::scripts::{CoinLine, ScriptLine};
use faster_hex::hex_string;
use sha2::{Digest, Sha256};

/// Blocks; each has a coinbase and one transaction.
pub(crate) const BLOCKS: u32 = 12;
const HEADER: usize = 80;
const COINBASE: &[u8] = b"coinbase";

/// A chain with one script, paid by the transaction of each block, which spends the payment of the previous block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiny;

impl Tiny {
    pub(crate) fn txid(height: u32) -> [u8; 32] {
        Sha256::digest(format!("tx {height}")).into()
    }

    pub(crate) fn coinbase_id(height: u32) -> [u8; 32] {
        Sha256::digest(format!("coinbase {height}")).into()
    }

    pub(crate) fn raw(height: u32) -> Vec<u8> {
        format!("transaction of block {height}").into_bytes()
    }

    pub(crate) fn script_hash() -> [u8; 32] {
        Sha256::digest(b"script").into()
    }

    pub(crate) fn value(height: u32) -> u64 {
        1000 + u64::from(height)
    }

    pub(crate) fn header(height: u32) -> [u8; HEADER] {
        let once = Sha256::new()
            .chain_update(Self::coinbase_id(height))
            .chain_update(Self::txid(height))
            .finalize();
        let mut header = [height as u8; HEADER];
        header[36..68].copy_from_slice(&Sha256::digest(once));
        header
    }

    /// Its script.
    pub(crate) fn scripts() -> Scripts<'static> {
        let txid = |height| reversed(Self::txid(height));
        let coin = |height| CoinLine {
            height,
            txid: txid(height),
            vout: 0,
            value: Self::value(height),
            spent: (height < BLOCKS).then(|| height + 1),
        };
        Box::new(std::iter::once(ScriptLine {
            script_hash: reversed(Self::script_hash()),
            status: None,
            history: (1..=BLOCKS).map(|height| (height, txid(height))).collect(),
            coins: (1..=BLOCKS).map(coin).collect(),
        }))
    }

    /// Writes the chain directory.
    pub(crate) fn write(dir: &Path) {
        let (mut file, mut ledger) = (Vec::new(), String::new());
        ledger.push_str(r#"{"kind":"chain","format":1,"recipe":"tiny","chain":"regtest","seed":1,"scale":1.0,"variant":"intended","distinct_keys":false,"end_time":1,"magic":"fabfb5da","assay_version":"0","recipe_sha256":""}"#);
        fs::create_dir_all(dir.join("blocks")).expect("writable");
        fs::create_dir_all(dir.join("order")).expect("writable");
        let mut bytes = 0;
        for height in 1..=BLOCKS {
            let (offset, raw) = (file.len(), Self::raw(height));
            file.extend(Self::header(height));
            file.extend(COINBASE);
            file.extend(&raw);
            let length = file.len() - offset;
            bytes += length;
            write!(
                ledger,
                "\n{{\"kind\":\"block\",\"height\":{height},\"hash\":\"{height}\",\"phase\":\"maturity\",\"file\":\"blocks/blk00000.dat\",\"offset\":{offset},\"bytes\":{length},\"weight\":1,\"txs\":2,\"inputs\":1,\"outputs\":2,\"signatures\":1,\"time\":1}}"
            )
            .expect("writing to a string does not fail");
            let mut order = Self::txid(height).to_vec();
            order.extend(((HEADER + COINBASE.len()) as u32).to_le_bytes());
            order.extend((raw.len() as u32).to_le_bytes());
            fs::write(dir.join(format!("order/{height:06}.bin")), order).expect("writable");
        }
        write!(
            ledger,
            "\n{{\"kind\":\"tip\",\"height\":{BLOCKS},\"hash\":\"{BLOCKS}\",\"utxo_count\":1,\"utxo_amount\":1,\"utxo_muhash\":\"00\",\"txs\":{},\"inputs\":{BLOCKS},\"outputs\":{},\"bytes\":{bytes},\"signatures\":{BLOCKS}}}",
            2 * BLOCKS,
            2 * BLOCKS,
        )
        .expect("writing to a string does not fail");
        fs::write(dir.join("blocks/blk00000.dat"), file).expect("writable");
        fs::write(dir.join("ledger.jsonl"), ledger).expect("writable");
    }
}

/// A hash as in the protocol.
pub(crate) fn reversed(mut hash: [u8; 32]) -> String {
    hash.reverse();
    hex_string(&hash)
}
