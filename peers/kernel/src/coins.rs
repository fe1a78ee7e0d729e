//! Coins in the database of a closed kernel, since its interface does not expose them.
//!
//! Keys are `C`, txid and output index; values hold height, amount and script, compressed (Core `txdb.cpp`,
//! `coins.h`, `compressor.h`) and obfuscated by a key stored in the database itself (`dbwrapper.cpp`).

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use assay_hash::MuHash3072;
use assay_store::{KeyForms, SnapshotReader};
use assay_wire::{BlockHash, Coin, OutPoint, Txid, encode};
use rusty_leveldb::{DB, LdbIterator as _, Options};
use secp256k1::PublicKey;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoinSet {
    pub best_block: String,
    pub coins: u64,
    pub amount_sat: u64,
    /// In the format of `gettxoutsetinfo muhash`.
    pub muhash: String,
}

/// Key of the obfuscation key: a serialised string.
const OBFUSCATION: &[u8] = b"\x0e\0obfuscate_key";
/// Key of the hash of the best block.
const BEST_BLOCK: &[u8] = b"B";
const COIN: u8 = b'C';

/// Counts and hashes the coins in the data folder of a kernel that is not running.
pub fn read(datadir: &Path) -> Result<CoinSet> {
    let dir = datadir.join("chainstate");
    ensure!(dir.is_dir(), "there is no {}", dir.display());
    let options = Options { create_if_missing: false, ..Options::default() };
    let mut db = DB::open(&dir, options).with_context(|| format!("opening {}", dir.display()))?;
    let key = match db.get(OBFUSCATION) {
        Some(value) => value.get(1..9).context("the obfuscation key is too short")?.to_vec(),
        None => vec![0; 8],
    };
    let reveal = |value: &[u8]| -> Vec<u8> {
        value.iter().enumerate().map(|(at, byte)| byte ^ key[at % key.len()]).collect()
    };
    let best = db.get(BEST_BLOCK).context("the database names no best block")?;
    let best = reveal(&best).try_into().ok().context("the best block is no hash")?;
    let mut set = CoinSet {
        best_block: BlockHash(best).to_string(),
        coins: 0,
        amount_sat: 0,
        muhash: String::new(),
    };
    let mut muhash = MuHash3072::new();
    let mut entries = db.new_iter().context("reading the database")?;
    while let Some((key, value)) = entries.next() {
        if key.first() != Some(&COIN) {
            continue;
        }
        let (outpoint, coin) = decode(&key[1..], &reveal(&value))
            .with_context(|| format!("coin {}", faster_hex::hex_string(&key)))?;
        set.coins += 1;
        set.amount_sat = set.amount_sat.saturating_add(coin.value.unsigned_abs());
        muhash.insert(&serialized(&outpoint, &coin));
    }
    set.muhash = BlockHash(muhash.finalize()).to_string();
    Ok(set)
}

/// Serialisation of a coin in the set hash (Core `kernel/coinstats.cpp`, `TxOutSer`).
fn serialized(outpoint: &OutPoint, coin: &Coin) -> Vec<u8> {
    let mut out = outpoint.to_bytes().to_vec();
    out.extend_from_slice(&(coin.height << 1 | u32::from(coin.coinbase)).to_le_bytes());
    out.extend_from_slice(&coin.value.to_le_bytes());
    encode::var_bytes(&mut out, &coin.script_pubkey);
    out
}

/// Reads an entry without the first byte of its key. A value is a coin as in a snapshot of coins, where an output index and the
/// transaction with the number of its coins come before it.
fn decode(key: &[u8], value: &[u8]) -> Result<(OutPoint, Coin)> {
    const KEYS: KeyForms = KeyForms {
        is_point: |key| PublicKey::from_slice(key).is_ok(),
        expand: |key| PublicKey::from_slice(key).ok().map(|key| key.serialize_uncompressed()),
    };
    let (txid, index) = key.split_first_chunk::<32>().context("the key is too short")?;
    let vout = varint(index)?.try_into()?;
    let piece = [&txid[..], &[1, 0], value].concat();
    let mut reader = SnapshotReader::of_piece(&piece[..], KEYS, 0, 1);
    let (_, coin) = reader.next_coin()?.context("no coin")?;
    ensure!(reader.next_coin()?.is_none(), "a second coin");
    Ok((OutPoint { txid: Txid(*txid), vout }, coin))
}

/// Core's `VARINT`: seven bits per byte, most significant first, with one added for each continuation byte.
fn varint(bytes: &[u8]) -> Result<u64> {
    let (last, first) = bytes.split_last().context("it ends too early")?;
    let mut number = 0u64;
    for byte in first {
        ensure!(number <= u64::MAX >> 8 && byte & 0x80 != 0, "no number");
        number = (number << 7 | u64::from(byte & 0x7f)) + 1;
    }
    ensure!(number <= u64::MAX >> 7 && last & 0x80 == 0, "no number");
    Ok(number << 7 | u64::from(*last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pairs of amounts in Core's `compress_tests.cpp`, and forms of scripts.
    #[test]
    fn coins() {
        let key = [&[9; 32][..], &[0x80, 0x00]].concat();
        let coin = |amount: &[u8], script: &[u8]| {
            let (outpoint, coin) = decode(&key, &[&[0x0b][..], amount, script].concat())?;
            assert_eq!((outpoint.txid, outpoint.vout), (Txid([9; 32]), 128));
            assert_eq!((coin.height, coin.coinbase), (5, true));
            anyhow::Ok((coin.value, coin.script_pubkey.to_vec()))
        };
        let hash = [7; 20];
        let (value, script) = coin(&[9], &[&[0][..], &hash].concat()).unwrap();
        assert_eq!(value, 100_000_000);
        assert_eq!(script, [&[0x76, 0xa9, 20][..], &hash, &[0x88, 0xac]].concat());
        let (value, script) = coin(&[0x89, 0x80, 0xdd, 0x40], &[8, 0x51, 0x52]).unwrap();
        assert_eq!((value, &script[..]), (21_000_000 * 100_000_000, &[0x51, 0x52][..]));
        assert!(coin(&[9], &[9, 0x51, 0x52]).is_err());
        assert!(coin(&[9], &[7, 0x51, 0x52]).is_err());
        // The generator of the curve, odd or even, decompressed.
        let x = secp256k1::constants::GENERATOR_X;
        let (_, script) = coin(&[9], &[&[4][..], &x].concat()).unwrap();
        assert_eq!((script[0], script[1], script.len(), script[66]), (65, 4, 67, 0xac));
        assert_eq!(script[34..66], secp256k1::constants::GENERATOR_Y);
    }

    /// Examples in Core's `serialize.h`.
    #[test]
    fn varints() {
        for (bytes, number) in [
            (&[0x00][..], 0),
            (&[0x7f], 127),
            (&[0x80, 0x00], 128),
            (&[0x80, 0x7f], 255),
            (&[0x81, 0x00], 256),
            (&[0xfe, 0x7f], 16383),
            (&[0xff, 0x00], 16384),
            (&[0x82, 0xfe, 0x7f], 65535),
            (&[0x8e, 0xfe, 0xfe, 0xff, 0x00], 1 << 32),
        ] {
            assert_eq!(varint(bytes).unwrap(), number, "{bytes:x?}");
        }
        assert!(varint(&[0xff; 30]).is_err());
        assert!(varint(&[0x80]).is_err());
    }

    #[test]
    fn a_folder_without_coins_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("chainstate"));
    }
}
