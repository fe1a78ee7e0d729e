//! A piece of the UTXO set that is left over.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_store::{CoinRef, KeyForms, SnapshotReader};

use super::tally::{CoinFigures, Hashing, RECORDS_AT_ONCE, Records, Tally};
use super::{ShardError, io_failed};

/// Place of the piece in the file.
pub(crate) struct Piece<'a> {
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) coins: u64,
}

/// Adds the coins up as spent: they are what all blocks have left.
pub(crate) fn add_up(
    piece: &Piece<'_>,
    hashing: &Hashing,
    keys: KeyForms,
    stop: &AtomicBool,
) -> Result<(Tally, CoinFigures), ShardError> {
    let path = piece.path;
    let mut file = File::open(path).map_err(io_failed(path))?;
    file.seek(SeekFrom::Start(piece.offset)).map_err(io_failed(path))?;
    let input = BufReader::with_capacity(1 << 20, file).take(piece.bytes);
    let mut reader = SnapshotReader::of_piece(input, keys, piece.offset, piece.coins);
    let (mut tally, mut figures) = (hashing.tally(), CoinFigures::new());
    let mut records = Records::default();
    let mut add = |figures: &mut CoinFigures, records: &mut Records| {
        figures.hash(records);
        tally.spent.add(hashing, records);
    };
    let failed = |source| ShardError::Coins { path: path.to_path_buf(), source };
    while let Some((outpoint, coin)) = reader.next_coin().map_err(failed)? {
        let coin = CoinRef::from(&coin);
        figures.count(&outpoint, coin);
        records.push(&outpoint, coin);
        if records.len() == RECORDS_AT_ONCE {
            add(&mut figures, &mut records);
            if stop.load(Ordering::Relaxed) {
                return Err(ShardError::Interrupted);
            }
        }
    }
    add(&mut figures, &mut records);
    Ok((tally, figures))
}
