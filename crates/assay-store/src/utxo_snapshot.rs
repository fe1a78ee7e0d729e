//! Snapshots of the UTXO set in files, as Bitcoin Core's `dumptxoutset` writes them and `loadtxoutset` reads them (Core
//! `node/utxo_snapshot.h`, `rpc/blockchain.cpp`, `compressor.cpp`).
//!
//! Coins are in the order of Core's database: by txid as stored, then by the bytes of the index as `VARINT`, so the same set
//! always gives the same file. Keys of 65 bytes are compressed if they are points of the curve; [`KeyForms`] supplies that test.
//! Layout: `docs/formats.md`.

use std::io::{self, Read, Write};

use assay_wire::{BlockHash, Coin, OutPoint, Script, Txid, encode};

use crate::codec::{CoinRef, compress_amount, decompress_amount, write_varint};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// Message start of the network.
    pub magic: [u8; 4],
    /// Base block of the UTXO set.
    pub base: BlockHash,
    pub coins: u64,
}

/// Conversion between compressed and uncompressed public keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyForms {
    /// True for 65 bytes with prefix 4 that are a point of the curve.
    pub is_point: fn(&[u8; 65]) -> bool,
    /// The uncompressed form of a compressed key, if it is a point.
    pub expand: fn(&[u8; 33]) -> Option<[u8; 65]>,
}

/// Damage with its offset in the file, and the number of coins read before.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(
        "Invalid UTXO set snapshot magic bytes. Please check if this is indeed a snapshot file or if you are using an outdated \
         snapshot format."
    )]
    Magic,
    #[error("Version of snapshot {version} does not match any of the supported versions.")]
    Version { version: u16 },
    /// The coin count of a transaction exceeds the remaining coins.
    #[error("Mismatch in coins count in snapshot metadata and actual snapshot data")]
    Count { offset: u64 },
    /// A height or an output index is out of range.
    #[error("Bad snapshot data after deserializing {coins} coins")]
    Value { coins: u64, offset: u64 },
    /// An amount exceeds the money supply.
    #[error("Bad snapshot data after deserializing {coins} coins - bad tx out value")]
    Amount { coins: u64, offset: u64 },
    /// A number is not in its canonical encoding, or the file ends too early.
    #[error("Bad snapshot format or truncated snapshot after deserializing {coins} coins")]
    Format { coins: u64, offset: u64 },
    #[error("Bad snapshot - coins left over after deserializing {coins} coins")]
    Trailing { coins: u64, offset: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SnapshotError {
    /// File offset of the damage, in bytes.
    pub const fn offset(&self) -> Option<u64> {
        match *self {
            Self::Magic => Some(0),
            Self::Version { .. } => Some(MAGIC.len() as u64),
            Self::Count { offset }
            | Self::Value { offset, .. }
            | Self::Amount { offset, .. }
            | Self::Format { offset, .. }
            | Self::Trailing { offset, .. } => Some(offset),
            Self::Io(_) => None,
        }
    }
}

impl SnapshotHeader {
    /// Length of a header, bytes.
    pub const SIZE: usize = 51;
    /// File offset of the network's message start.
    pub const MAGIC_OFFSET: u64 = 7;
    /// File offset of the hash of the base block.
    pub const BASE_OFFSET: u64 = 11;

    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        out[..5].copy_from_slice(&MAGIC);
        out[5..7].copy_from_slice(&VERSION.to_le_bytes());
        out[7..11].copy_from_slice(&self.magic);
        out[11..43].copy_from_slice(&self.base.0);
        out[43..].copy_from_slice(&self.coins.to_le_bytes());
        out
    }

    /// Inverse of [`SnapshotHeader::to_bytes`].
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Result<Self, SnapshotError> {
        let (magic, rest) = bytes.split_first_chunk::<5>().ok_or(SnapshotError::Magic)?;
        if *magic != MAGIC {
            return Err(SnapshotError::Magic);
        }
        let version = u16::from_le_bytes([rest[0], rest[1]]);
        if version != VERSION {
            return Err(SnapshotError::Version { version });
        }
        let mut header = Self { magic: [0; 4], base: BlockHash::ZERO, coins: 0 };
        header.magic.copy_from_slice(&rest[2..6]);
        header.base.0.copy_from_slice(&rest[6..38]);
        let mut coins = [0; 8];
        coins.copy_from_slice(&rest[38..]);
        header.coins = u64::from_le_bytes(coins);
        Ok(header)
    }
}

/// Writes a snapshot. The input is ordered by txid; the coins of one transaction are buffered.
pub struct SnapshotWriter<W> {
    out: W,
    keys: KeyForms,
    txid: Option<Txid>,
    /// Sort key of the index, the index, and the encoded coin.
    coins: Vec<(Vec<u8>, u32, Vec<u8>)>,
    written: u64,
}

impl<W: Write> SnapshotWriter<W> {
    /// Writes the header.
    pub fn new(mut out: W, header: &SnapshotHeader, keys: KeyForms) -> io::Result<Self> {
        out.write_all(&header.to_bytes())?;
        Ok(Self { out, keys, txid: None, coins: Vec::new(), written: 0 })
    }

    /// Adds a coin; all coins of a transaction must be consecutive.
    pub fn push(&mut self, outpoint: &OutPoint, coin: CoinRef<'_>) -> io::Result<()> {
        if self.txid != Some(outpoint.txid) {
            self.write_tx()?;
            self.txid = Some(outpoint.txid);
        }
        let (mut order, mut bytes) = (Vec::new(), Vec::new());
        write_varint(&mut order, outpoint.vout.into());
        write_coin(&mut bytes, coin, self.keys);
        self.coins.push((order, outpoint.vout, bytes));
        Ok(())
    }

    fn write_tx(&mut self) -> io::Result<()> {
        let Some(txid) = self.txid else { return Ok(()) };
        self.coins.sort_unstable();
        let mut head = txid.0.to_vec();
        encode::compact_size(&mut head, self.coins.len() as u64);
        self.out.write_all(&head)?;
        for (_, vout, coin) in self.coins.drain(..) {
            head.clear();
            encode::compact_size(&mut head, vout.into());
            self.out.write_all(&head)?;
            self.out.write_all(&coin)?;
            self.written += 1;
        }
        Ok(())
    }

    /// Completes the snapshot. Returns the number of coins written and the writer.
    pub fn finish(mut self) -> io::Result<(u64, W)> {
        self.write_tx()?;
        self.out.flush()?;
        Ok((self.written, self.out))
    }
}

/// Reads a snapshot sequentially; memory use does not depend on the counts in the file.
pub struct SnapshotReader<R> {
    input: Counted<R>,
    keys: KeyForms,
    header: SnapshotHeader,
    /// Coins not read yet, in the file and in the current transaction.
    left: u64,
    left_of_tx: u64,
    txid: Txid,
    /// Offset of the number being read or read last.
    number_offset: u64,
    /// Positions in the last coin.
    places: CoinPlaces,
    unsorted: Option<u64>,
}

/// File offsets of the parts of a coin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoinPlaces {
    /// Offset of the output index.
    pub vout: u64,
    pub height: u64,
    pub amount: u64,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads the header.
    pub fn new(input: R, keys: KeyForms) -> Result<Self, SnapshotError> {
        let mut input = Counted { input, read: 0 };
        let mut bytes = [0; SnapshotHeader::SIZE];
        input.read_exact(&mut bytes)?;
        let header = SnapshotHeader::parse(&bytes)?;
        Ok(Self::after_header(input, keys, header))
    }

    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// The next coin; `None` after the last, which must end the file. As in Core, no order is checked; the hash over all is.
    pub fn next_coin(&mut self) -> Result<Option<(OutPoint, Coin)>, SnapshotError> {
        if self.left == 0 {
            let offset = self.input.read;
            return match self.input.read(&mut [0])? {
                0 => Ok(None),
                _ => Err(SnapshotError::Trailing { coins: self.header.coins, offset }),
            };
        }
        let read = self.read_coin();
        let coins = self.coins_read();
        match read {
            Err(SnapshotError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(SnapshotError::Format { coins, offset: self.input.read })
            }
            Err(error) => Err(error),
            Ok(coin) => {
                self.left -= 1;
                self.left_of_tx -= 1;
                Ok(Some(coin))
            }
        }
    }

    pub fn coins_read(&self) -> u64 {
        self.header.coins - self.left
    }

    /// Starts inside a snapshot at a transaction: `input` yields bytes from `offset` on; the reader stops after `coins` coins.
    pub fn of_piece(input: R, keys: KeyForms, offset: u64, coins: u64) -> Self {
        let header = SnapshotHeader { magic: [0; 4], base: BlockHash::ZERO, coins };
        Self::after_header(Counted { input, read: offset }, keys, header)
    }

    fn after_header(input: Counted<R>, keys: KeyForms, header: SnapshotHeader) -> Self {
        Self {
            number_offset: input.read,
            input,
            keys,
            header,
            left: header.coins,
            left_of_tx: 0,
            txid: Txid([0; 32]),
            places: CoinPlaces::default(),
            unsorted: None,
        }
    }

    pub fn offset(&self) -> u64 {
        self.input.read
    }

    /// True if the last coin was the last of its transaction.
    pub fn is_between_txs(&self) -> bool {
        self.left_of_tx == 0
    }

    /// Positions of the parts of the last coin.
    pub const fn places(&self) -> CoinPlaces {
        self.places
    }

    /// Offset of the first txid that is not greater than the previous one. Core and this crate write them in order and read them
    /// in any order; if the hash of a file is wrong, one of the two is damaged.
    pub const fn first_unsorted(&self) -> Option<u64> {
        self.unsorted
    }

    fn read_coin(&mut self) -> Result<(OutPoint, Coin), SnapshotError> {
        while self.left_of_tx == 0 {
            let (before, offset) = (self.txid, self.input.read);
            self.input.read_exact(&mut self.txid.0)?;
            if self.left < self.header.coins && self.txid.0 <= before.0 {
                self.unsorted = self.unsorted.or(Some(offset));
            }
            self.left_of_tx = self.compact_size()?;
            if self.left_of_tx > self.left {
                return Err(SnapshotError::Count { offset: self.number_offset });
            }
        }
        // No size exceeds 32 bits.
        let vout = self.compact_size()? as u32;
        self.places.vout = self.number_offset;
        let coin = self.coin()?;
        Ok((OutPoint { txid: self.txid, vout }, coin))
    }

    fn coin(&mut self) -> Result<Coin, SnapshotError> {
        let code = self.code()?;
        self.output(code)
    }

    /// [`Self::coin`] with an additional number, formerly the version of the transaction.
    fn undo_coin(&mut self) -> Result<Coin, SnapshotError> {
        let code = self.code()?;
        if code >> 1 > 0 {
            self.varint()?;
        }
        self.output(code)
    }

    /// Twice the height, plus 1 for a coinbase.
    fn code(&mut self) -> Result<u32, SnapshotError> {
        let code = u32::try_from(self.varint()?).map_err(|_| self.format_error())?;
        self.places.height = self.number_offset;
        Ok(code)
    }

    fn output(&mut self, code: u32) -> Result<Coin, SnapshotError> {
        let height = code >> 1;
        let amount = self.varint()?;
        self.places.amount = self.number_offset;
        let value = decompress_amount(amount).and_then(|value| i64::try_from(value).ok());
        let script_pubkey = self.script()?;
        // The height is checked before the amount.
        Ok(Coin {
            value: value.unwrap_or(i64::MAX),
            height,
            coinbase: code & 1 == 1,
            script_pubkey: Script::from(&script_pubkey[..]),
        })
    }

    fn script(&mut self) -> Result<Vec<u8>, SnapshotError> {
        let size = self.varint()?;
        let script = match size {
            0 => [&[0x76, 0xa9, 20][..], &self.bytes::<20>()?, &[0x88, 0xac]].concat(),
            1 => [&[0xa9, 20][..], &self.bytes::<20>()?, &[0x87]].concat(),
            2 | 3 => [&[33, size as u8][..], &self.bytes::<32>()?, &[0xac]].concat(),
            4 | 5 => {
                let mut short = [size as u8 - 2; 33];
                short[1..].copy_from_slice(&self.bytes::<32>()?);
                // Core stores no script there; no file written by Core has such a key.
                let long = (self.keys.expand)(&short).ok_or_else(|| self.format_error())?;
                [&[65][..], &long, &[0xac]].concat()
            }
            _ => {
                let length = size - SPECIAL;
                if length > SCRIPT_BYTES_MAX {
                    // Too long to be executed, so its contents are irrelevant (Core `compressor.h`).
                    let skipped = io::copy(&mut (&mut self.input).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                    }
                    return Ok(vec![OP_RETURN]);
                }
                let mut script = vec![0; length as usize];
                self.input.read_exact(&mut script)?;
                script
            }
        };
        Ok(script)
    }

    fn format_error(&self) -> SnapshotError {
        SnapshotError::Format { coins: self.coins_read(), offset: self.number_offset }
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A number in its canonical encoding (Core `serialize.h`, `ReadCompactSize`).
    fn compact_size(&mut self) -> Result<u64, SnapshotError> {
        self.number_offset = self.input.read;
        let [first] = self.bytes::<1>()?;
        let (number, least) = match first {
            253 => (u16::from_le_bytes(self.bytes()?).into(), 253),
            254 => (u32::from_le_bytes(self.bytes()?).into(), 0x1_0000),
            255 => (u64::from_le_bytes(self.bytes()?), 0x1_0000_0000),
            _ => (first.into(), 0),
        };
        if number < least || number > SIZE_MAX { Err(self.format_error()) } else { Ok(number) }
    }

    fn varint(&mut self) -> Result<u64, SnapshotError> {
        self.number_offset = self.input.read;
        let mut number = 0u64;
        loop {
            let [byte] = self.bytes::<1>()?;
            if number > u64::MAX >> 7 {
                return Err(self.format_error());
            }
            number = number << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            number = number.checked_add(1).ok_or_else(|| self.format_error())?;
        }
    }
}

/// Reads the coins that a block spent from an undo record of Bitcoin Core (`undo.h`, `TxInUndoFormatter`).
pub(crate) fn decode_core_undo(
    mut undo: &[u8],
    keys: KeyForms,
) -> Result<Vec<Coin>, SnapshotError> {
    let mut reader = SnapshotReader::of_piece(&mut undo, keys, 0, u64::MAX);
    let mut coins = Vec::new();
    for _ in 0..reader.compact_size()? {
        for _ in 0..reader.compact_size()? {
            coins.push(reader.undo_coin()?);
        }
    }
    let offset = reader.offset();
    if undo.is_empty() { Ok(coins) } else { Err(SnapshotError::Trailing { coins: 0, offset }) }
}

struct Counted<R> {
    input: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.read += length as u64;
        Ok(length)
    }
}

fn write_coin(out: &mut Vec<u8>, coin: CoinRef<'_>, keys: KeyForms) {
    write_varint(out, u64::from(coin.height) << 1 | u64::from(coin.coinbase));
    write_varint(out, compress_amount(coin.value.cast_unsigned()));
    match coin.script_pubkey {
        [0x76, 0xa9, 20, hash @ .., 0x88, 0xac] if hash.len() == 20 => special(out, 0, hash),
        [0xa9, 20, hash @ .., 0x87] if hash.len() == 20 => special(out, 1, hash),
        [33, tag @ (2 | 3), x @ .., 0xac] if x.len() == 32 => special(out, *tag, x),
        [65, key @ .., 0xac] if is_long_key(key, keys) => {
            special(out, 4 | key[64] & 1, &key[1..33]);
        }
        script => {
            write_varint(out, script.len() as u64 + SPECIAL);
            out.extend_from_slice(script);
        }
    }
}

fn is_long_key(key: &[u8], keys: KeyForms) -> bool {
    <&[u8; 65]>::try_from(key).is_ok_and(|key| key[0] == 4 && (keys.is_point)(key))
}

fn special(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

/// Core's `SNAPSHOT_MAGIC_BYTES`.
const MAGIC: [u8; 5] = *b"utxo\xff";
const VERSION: u16 = 2;
/// Core's `nSpecialScripts`.
const SPECIAL: u64 = 6;
/// Core's `MAX_SIZE` (`serialize.h`).
const SIZE_MAX: u64 = 0x0200_0000;
/// Core's `MAX_SCRIPT_SIZE`.
const SCRIPT_BYTES_MAX: u64 = 10_000;
const OP_RETURN: u8 = 0x6a;

#[cfg(test)]
mod tests {
    use super::*;

    /// Not the real curve: the uncompressed form has x twice, and the last byte matches the prefix of the compressed form.
    const KEYS: KeyForms = KeyForms {
        is_point: |key| key[1..32] == key[33..64] && key[32] | 1 == key[64] | 1,
        expand: |key| {
            let mut long = [4; 65];
            long[1..33].copy_from_slice(&key[1..]);
            long[33..].copy_from_slice(&key[1..]);
            long[64] = long[64] & !1 | key[0] & 1;
            Some(long)
        },
    };

    fn coins() -> Vec<(OutPoint, Coin)> {
        let key = |tag: u8| [&[33, tag][..], &[7; 32], &[0xac]].concat();
        let long = |last: u8| [&[65, 4][..], &[6; 63], &[last, 0xac]].concat();
        let scripts = [
            [&[0x76, 0xa9, 20][..], &[1; 20], &[0x88, 0xac]].concat(),
            [&[0xa9, 20][..], &[2; 20], &[0x87]].concat(),
            key(2),
            key(3),
            key(4),
            long(6),
            long(7),
            long(8),
            Vec::new(),
            vec![0x51; 10_000],
        ];
        let txid = |id: u8| Txid([id; 32]);
        let mut coins: Vec<(OutPoint, Coin)> = (0u32..)
            .zip(scripts)
            .map(|(index, script)| {
                let coin = Coin {
                    value: i64::from(index) * 5_000_000_001,
                    height: index * 1000,
                    coinbase: index % 2 == 1,
                    script_pubkey: Script::from(&script[..]),
                };
                (OutPoint { txid: txid(index as u8 / 3), vout: index }, coin)
            })
            .collect();
        let last = coins[0].1.clone();
        // 16,512 comes before 256 in Core's database, since it begins with 0x80 0x80.
        for vout in [255, 16_512, 256] {
            coins.push((OutPoint { txid: txid(9), vout }, last.clone()));
        }
        coins
    }

    fn write(coins: &[(OutPoint, Coin)]) -> Vec<u8> {
        let header = SnapshotHeader {
            magic: [1, 2, 3, 4],
            base: BlockHash([5; 32]),
            coins: coins.len() as u64,
        };
        let mut writer = SnapshotWriter::new(Vec::new(), &header, KEYS).unwrap();
        for (outpoint, coin) in coins {
            writer.push(outpoint, CoinRef::from(coin)).unwrap();
        }
        let (count, bytes) = writer.finish().unwrap();
        assert_eq!(count, coins.len() as u64);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<(OutPoint, Coin)>, SnapshotError> {
        let mut reader = SnapshotReader::new(bytes, KEYS)?;
        let mut coins = Vec::new();
        while let Some(coin) = reader.next_coin()? {
            coins.push(coin);
        }
        Ok(coins)
    }

    #[test]
    fn reads_back_coins_with_indexes_in_any_order() {
        let coins = coins();
        let bytes = write(&coins);
        assert_eq!(read(&bytes).unwrap(), coins);
        let mut other = coins.clone();
        let length = other.len();
        other[length - 3..].reverse();
        assert_eq!(write(&other), bytes);
    }

    #[test]
    fn damage_is_found() {
        let bytes = write(&coins());
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            read(&bytes).unwrap_err()
        };
        assert!(matches!(changed(0, b'U'), SnapshotError::Magic));
        assert!(matches!(changed(5, 3), SnapshotError::Version { version: 3 }));
        let end = bytes.len() as u64;
        assert!(matches!(changed(43, 1), SnapshotError::Count { offset: 83 }));
        assert!(
            matches!(changed(43, 99), SnapshotError::Format { coins: 13, offset } if offset == end)
        );
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(
            read(&longer),
            Err(SnapshotError::Trailing { coins: 13, offset }) if offset == end
        ));
        assert_eq!(changed(5, 3).offset(), Some(5));
    }

    #[test]
    fn places_are_those_in_the_file() {
        let coins = coins();
        let bytes = write(&coins);
        let mut reader = SnapshotReader::new(&bytes[..], KEYS).unwrap();
        for (outpoint, coin) in &coins {
            let read = reader.next_coin().unwrap();
            assert_eq!(read, Some((*outpoint, coin.clone())));
            let at = |place: u64| &bytes[place as usize..];
            let number = |number: u64| {
                let mut bytes = Vec::new();
                write_varint(&mut bytes, number);
                bytes
            };
            let places = reader.places();
            let mut vout = Vec::new();
            encode::compact_size(&mut vout, outpoint.vout.into());
            assert!(at(places.vout).starts_with(&vout));
            let height = u64::from(coin.height) << 1 | u64::from(coin.coinbase);
            assert!(at(places.height).starts_with(&number(height)));
            let amount = compress_amount(coin.value.cast_unsigned());
            assert!(at(places.amount).starts_with(&number(amount)));
        }
        assert_eq!(reader.first_unsorted(), None);
    }

    #[test]
    fn detects_a_txid_out_of_order() {
        let coins = coins();
        let bytes = write(&coins);
        // The second transaction starts at its txid.
        let at = bytes.windows(32).position(|window| window == [1; 32]).unwrap();
        let unsorted = |flip: usize| {
            let mut bytes = bytes.clone();
            bytes[flip] ^= 0x80;
            let mut reader = SnapshotReader::new(&bytes[..], KEYS).unwrap();
            while reader.next_coin().unwrap().is_some() {}
            reader.first_unsorted()
        };
        // Greater than the next txid, and not less than the previous one.
        let next = bytes.windows(32).position(|window| window == [2; 32]).unwrap();
        assert_eq!(unsorted(at), Some(next as u64));
        assert_eq!(unsorted(bytes.len() - 1), None);
    }
}
