//! Coins in the database of a closed kernel, since its interface does not expose them.
//!
//! Keys are `C`, txid and output index; values hold height, amount and script, compressed (Core `txdb.cpp`,
//! `coins.h`, `compressor.h`) and obfuscated by a key stored in the database itself (`dbwrapper.cpp`).

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use assay_hash::MuHash3072;
use assay_wire::{BlockHash, encode};
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
///
/// # Errors
/// If there is no such database, or it has malformed coins.
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
        let coin = Coin::decode(&key[1..], &reveal(&value))
            .with_context(|| format!("coin {}", faster_hex::hex_string(&key)))?;
        set.coins += 1;
        set.amount_sat += coin.value;
        muhash.insert(&coin.to_hash());
    }
    set.muhash = BlockHash(muhash.finalize()).to_string();
    Ok(set)
}

struct Coin {
    txid: [u8; 32],
    vout: u32,
    /// Twice the height, plus one for an output of a coinbase.
    code: u32,
    value: u64,
    script_pubkey: Vec<u8>,
}

impl Coin {
    fn decode(key: &[u8], value: &[u8]) -> Result<Self> {
        let (txid, rest) = key.split_first_chunk::<32>().context("the key is too short")?;
        let mut rest = Reader(rest);
        let vout = rest.varint()?.try_into()?;
        let mut reader = Reader(value);
        let code = reader.varint()?.try_into()?;
        let value = decompress_amount(reader.varint()?);
        let script_pubkey = reader.script()?;
        ensure!(reader.0.is_empty(), "{} bytes too many", reader.0.len());
        Ok(Self { txid: *txid, vout, code, value, script_pubkey })
    }

    /// Serialisation of a coin in the set hash (Core `kernel/coinstats.cpp`, `TxOutSer`).
    fn to_hash(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.script_pubkey.len());
        out.extend_from_slice(&self.txid);
        out.extend_from_slice(&self.vout.to_le_bytes());
        out.extend_from_slice(&self.code.to_le_bytes());
        out.extend_from_slice(&self.value.to_le_bytes());
        encode::var_bytes(&mut out, &self.script_pubkey);
        out
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Result<Vec<u8>> {
        let (taken, rest) = self.0.split_at_checked(count).context("it ends too early")?;
        self.0 = rest;
        Ok(taken.to_vec())
    }

    /// Core's `VARINT`: seven bits per byte, most significant first, with one added for each continuation byte.
    fn varint(&mut self) -> Result<u64> {
        let mut number = 0u64;
        loop {
            let byte = self.take(1)?[0];
            ensure!(number <= u64::MAX >> 7, "a number is too large");
            number = (number << 7) | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            number += 1;
        }
    }

    /// Six special forms encode scripts with a hash or a key; other scripts are stored unchanged.
    fn script(&mut self) -> Result<Vec<u8>> {
        let form = self.varint()?;
        Ok(match form {
            0 => [&[0x76, 0xa9, 20][..], &self.take(20)?, &[0x88, 0xac]].concat(),
            1 => [&[0xa9, 20][..], &self.take(20)?, &[0x87]].concat(),
            2 | 3 => [&[33, form as u8][..], &self.take(32)?, &[0xac]].concat(),
            4 | 5 => {
                let key = [&[form as u8 - 2][..], &self.take(32)?].concat();
                let key = PublicKey::from_slice(&key).context("no public key")?;
                [&[65][..], &key.serialize_uncompressed(), &[0xac]].concat()
            }
            length if length - 6 <= 1 << 32 => self.take(length as usize - 6)?,
            length => bail!("a script of {} bytes", length - 6),
        })
    }
}

/// Core's `DecompressAmount`: trailing zeros are counted, the last other digit is stored separately.
fn decompress_amount(compressed: u64) -> u64 {
    if compressed == 0 {
        return 0;
    }
    let mut rest = compressed - 1;
    let zeros = rest % 10;
    rest /= 10;
    let number = if zeros < 9 {
        let digit = rest % 9 + 1;
        rest / 9 * 10 + digit
    } else {
        rest + 1
    };
    number * 10u64.pow(zeros as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of values in Core's `compress_tests.cpp`.
    #[test]
    fn amounts() {
        const COIN: u64 = 100_000_000;
        for (compressed, amount) in [
            (0, 0),
            (1, 1),
            (7, 1_000_000),
            (9, COIN),
            (0x32, 50 * COIN),
            (0x1406f40, 21_000_000 * COIN),
        ] {
            assert_eq!(decompress_amount(compressed), amount);
        }
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
            assert_eq!(Reader(bytes).varint().unwrap(), number, "{bytes:x?}");
        }
        assert!(Reader(&[0xff; 30]).varint().is_err());
        assert!(Reader(&[0x80]).varint().is_err());
    }

    #[test]
    fn scripts() {
        let hash = [7; 20];
        let script = Reader(&[&[0][..], &hash].concat()).script().unwrap();
        assert_eq!(script, [&[0x76, 0xa9, 20][..], &hash, &[0x88, 0xac]].concat());
        let other = Reader(&[8, 0x51, 0x52]).script().unwrap();
        assert_eq!(other, [0x51, 0x52]);
        assert!(Reader(&[9, 0x51, 0x52]).script().is_err());
        // The generator of the curve, odd or even, decompressed.
        let x = secp256k1::constants::GENERATOR_X;
        let script = Reader(&[&[4][..], &x].concat()).script().unwrap();
        assert_eq!((script[0], script[1], script.len(), script[66]), (65, 4, 67, 0xac));
        assert_eq!(script[34..66], secp256k1::constants::GENERATOR_Y);
    }

    #[test]
    fn a_folder_without_coins_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("chainstate"));
    }
}
