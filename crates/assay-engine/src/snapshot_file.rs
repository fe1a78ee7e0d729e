//! Checks a UTXO snapshot file without a chain: its coins, and their hash (Core's `hash_serialized_3`).

use std::io::{self, Read, Write};

use assay_consensus::amount::MAX_MONEY;
use assay_hash::Sha256;
use assay_store::{
    CoinError, CoinRef, CoinSnapshot, KeyForms, SnapshotError, SnapshotHeader, SnapshotReader,
    SnapshotWriter,
};
use assay_wire::{BlockHash, Coin, OutPoint};

use crate::stats::serialise;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotDigest {
    pub coins: u64,
    /// Hash of the coins; programs know it for some blocks.
    pub hash: BlockHash,
    /// File offset of the first txid out of order, if any: then the hash is meaningless.
    pub unsorted: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum WriteCoinsError {
    Read(CoinError),
    Write(io::Error),
    Interrupted,
}

/// Writes the coins of a snapshot in Core's format; `header` has their number. Calls `goes_on` periodically; false stops.
pub(crate) fn write_coins<W: Write>(
    snapshot: &CoinSnapshot,
    header: &SnapshotHeader,
    (out, keys): (W, KeyForms),
    goes_on: &dyn Fn() -> bool,
) -> Result<W, WriteCoinsError> {
    const PARTS: u32 = 1024;
    let mut writer = SnapshotWriter::new(out, header, keys).map_err(WriteCoinsError::Write)?;
    for part in 0..PARTS {
        if !goes_on() {
            return Err(WriteCoinsError::Interrupted);
        }
        let mut written = Ok(());
        let read = snapshot.for_each_in_shard(part, PARTS, |outpoint, coin| {
            if written.is_ok() {
                written = writer.push(outpoint, coin);
            }
        });
        read.map_err(WriteCoinsError::Read)?;
        written.map_err(WriteCoinsError::Write)?;
    }
    let (count, out) = writer.finish().map_err(WriteCoinsError::Write)?;
    assert_eq!(count, header.coins, "a snapshot does not change");
    Ok(out)
}

/// The next coin, if it is possible in the UTXO set at `height`.
///
/// # Errors
/// The file is damaged or cannot be read.
pub(crate) fn next_coin<R: Read>(
    reader: &mut SnapshotReader<R>,
    height: u32,
) -> Result<Option<(OutPoint, Coin)>, SnapshotError> {
    let coins = reader.coins_read();
    let Some((outpoint, coin)) = reader.next_coin()? else { return Ok(None) };
    let places = reader.places();
    if coin.height > height {
        return Err(SnapshotError::Value { coins, offset: places.height });
    }
    if !(0..=MAX_MONEY).contains(&coin.value) {
        return Err(SnapshotError::Amount { coins, offset: places.amount });
    }
    Ok(Some((outpoint, coin)))
}

/// Reads a snapshot of the block at `height` completely; memory holds the coins of one transaction. `on_coins` receives the
/// number of coins so far, periodically.
///
/// # Errors
/// The file is damaged or cannot be read.
pub fn digest_snapshot<R: Read>(
    mut reader: SnapshotReader<R>,
    height: u32,
    on_coins: &dyn Fn(u64),
) -> Result<SnapshotDigest, SnapshotError> {
    let mut hasher = Sha256::new();
    let mut of_tx: Vec<(OutPoint, Coin)> = Vec::new();
    let mut bytes = Vec::new();
    let mut add = |coins: &mut Vec<(OutPoint, Coin)>| {
        // The file orders them by the bytes of the index as a variable integer, the hash by its value.
        coins.sort_unstable_by_key(|(outpoint, _)| outpoint.vout);
        for (outpoint, coin) in coins.drain(..) {
            bytes.clear();
            serialise(&outpoint, CoinRef::from(&coin), &mut bytes);
            hasher.update(&bytes);
        }
    };
    while let Some((outpoint, coin)) = next_coin(&mut reader, height)? {
        if of_tx.last().is_some_and(|(last, _)| last.txid != outpoint.txid) {
            add(&mut of_tx);
        }
        of_tx.push((outpoint, coin));
        if reader.coins_read().is_multiple_of(COINS_AT_ONCE) {
            on_coins(reader.coins_read());
        }
    }
    add(&mut of_tx);
    Ok(SnapshotDigest {
        coins: reader.coins_read(),
        hash: BlockHash(hasher.finalize_double()),
        unsorted: reader.first_unsorted(),
    })
}

/// Coins between two reports of progress.
const COINS_AT_ONCE: u64 = 10_000;
