//! Snapshots of the UTXO set: any bytes are read without harm, and what is read is written and read again unchanged.

#![no_main]

use assay_store::{CoinRef, KeyForms, SnapshotReader, SnapshotWriter};
use assay_wire::{Coin, OutPoint};
use libfuzzer_sys::fuzz_target;
use secp256k1::PublicKey;

const KEYS: KeyForms = KeyForms {
    is_point: |key| PublicKey::from_slice(key).is_ok(),
    expand: |key| PublicKey::from_slice(key).ok().map(|key| key.serialize_uncompressed()),
};

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = SnapshotReader::new(data, KEYS) else { return };
    let mut header = *reader.header();
    let mut coins = Vec::new();
    while let Ok(Some((outpoint, coin))) = reader.next_coin() {
        // No larger amount is loaded.
        if !(0..=MONEY_MAX).contains(&coin.value) {
            break;
        }
        coins.push((outpoint, coin));
    }
    header.coins = coins.len() as u64;
    let mut writer = SnapshotWriter::new(Vec::new(), &header, KEYS).expect("memory takes all");
    for (outpoint, coin) in &coins {
        writer.push(outpoint, CoinRef::from(coin)).expect("memory takes all");
    }
    let (count, bytes) = writer.finish().expect("memory takes all");
    assert_eq!(count, header.coins);
    // The writer takes the shortest form of every script, which need not be the one that was read.
    assert!(bytes.len() <= data.len());
    let mut again = SnapshotReader::new(&bytes[..], KEYS).expect("our own header");
    let mut read = Vec::new();
    while let Some(coin) = again.next_coin().expect("our own coin") {
        read.push(coin);
    }
    // The writer orders the coins of a transaction.
    let text = |coin: &(OutPoint, Coin)| format!("{coin:?}");
    coins.sort_by_cached_key(text);
    read.sort_by_cached_key(text);
    assert_eq!(read, coins);
});

const MONEY_MAX: i64 = 21_000_000 * 100_000_000;
