//! Sorted rows packed into pages of 4 KiB.
//!
//! A page is self-contained: its first row is stored in full, each further one as the difference from its predecessor. Layout,
//! all numbers LEB128 except where noted: CRC-32 of the rest (4 bytes, little endian), row count (2 bytes), rows, zero padding. A
//! row: key minus the previous key; then, if that is not zero, the transaction number minus that of the run's first transaction,
//! else minus the previous row's; then `n`; value; tag (4 bytes, little endian), as far as the table has them.

use super::row::{Row, Table};

pub(crate) const PAGE_BYTES: usize = 4096;

const HEAD_BYTES: usize = 6;
/// Longest row: 11 bytes of key, 5 of transaction number, 3 of index, 10 of value, 4 of tag.
const ROW_BYTES_MAX: usize = 33;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadPage(pub(crate) &'static str);

pub(crate) struct PageWriter {
    table: Table,
    base_tx: u64,
    bytes: Vec<u8>,
    count: u16,
    previous: Option<Row>,
}

impl PageWriter {
    /// For rows with transactions from `base_tx` on.
    pub(crate) fn new(table: Table, base_tx: u64) -> Self {
        let mut bytes = Vec::with_capacity(PAGE_BYTES);
        bytes.resize(HEAD_BYTES, 0);
        Self { table, base_tx, bytes, count: 0, previous: None }
    }

    /// True if [`PageWriter::take`] must be called before the next row.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() + ROW_BYTES_MAX > PAGE_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends a row, which must not sort before the previous one.
    pub(crate) fn push(&mut self, row: Row) {
        let out = &mut self.bytes;
        let key = row.key_bits();
        match self.previous {
            Some(previous) if previous.key() == row.key() => {
                out.push(0);
                write_number(out, row.tx() - previous.tx());
            }
            previous => {
                let before = previous.map_or(0, |previous| previous.key_bits());
                write_wide(out, key - before + u128::from(previous.is_none()));
                write_number(out, row.tx() - self.base_tx);
            }
        }
        if self.table.has_n() {
            write_number(out, u64::from(row.n()));
        }
        if self.table.has_value() {
            write_number(out, row.value);
            out.extend_from_slice(&row.tag.to_le_bytes());
        }
        self.count += 1;
        self.previous = Some(row);
    }

    /// Appends the finished page to `out` and starts the next.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        self.bytes[4..HEAD_BYTES].copy_from_slice(&self.count.to_le_bytes());
        self.bytes.resize(PAGE_BYTES, 0);
        let crc = crc32fast::hash(&self.bytes[4..]);
        self.bytes[..4].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&self.bytes);
        self.bytes.truncate(HEAD_BYTES);
        (self.count, self.previous) = (0, None);
    }
}

/// Iterates over the rows of a page, in order.
pub(crate) struct PageReader<'a> {
    table: Table,
    base_tx: u64,
    rest: &'a [u8],
    left: u16,
    previous: Option<Row>,
}

pub(crate) fn check(page: &[u8]) -> Result<(), BadPage> {
    let Some((sum, rest)) = page.split_first_chunk::<4>() else {
        return Err(BadPage("the page is cut off"));
    };
    if crc32fast::hash(rest) == u32::from_le_bytes(*sum) {
        Ok(())
    } else {
        Err(BadPage("the page does not have its checksum"))
    }
}

impl<'a> PageReader<'a> {
    /// Verifies the page's checksum.
    pub(crate) fn new(table: Table, base_tx: u64, page: &'a [u8]) -> Result<Self, BadPage> {
        check(page)?;
        Self::of_checked(table, base_tx, page)
    }

    /// For a page already verified by [`check`].
    pub(crate) fn of_checked(table: Table, base_tx: u64, page: &'a [u8]) -> Result<Self, BadPage> {
        let Some((head, rest)) = page.split_first_chunk::<HEAD_BYTES>() else {
            return Err(BadPage("the page is cut off"));
        };
        let [_, _, _, _, n0, n1] = *head;
        Ok(Self { table, base_tx, rest, left: u16::from_le_bytes([n0, n1]), previous: None })
    }

    fn read(&mut self) -> Option<Row> {
        let delta = read_wide(&mut self.rest)?;
        let tx = read_number(&mut self.rest)?;
        let (key, tx) = match self.previous {
            Some(previous) if delta == 0 => (previous.key_bits(), previous.tx().checked_add(tx)?),
            previous => {
                let before = previous.map_or(0, |previous| previous.key_bits());
                let key = (before + delta).checked_sub(u128::from(previous.is_none()))?;
                (key, self.base_tx.checked_add(tx)?)
            }
        };
        let n = if self.table.has_n() { read_number(&mut self.rest)? } else { 0 };
        let (mut value, mut tag) = (0, 0);
        if self.table.has_value() {
            value = read_number(&mut self.rest)?;
            let (bytes, rest) = self.rest.split_first_chunk()?;
            (tag, self.rest) = (u32::from_le_bytes(*bytes), rest);
        }
        Row::from_parts(key, tx, n, value, tag)
    }
}

impl Iterator for PageReader<'_> {
    type Item = Result<Row, BadPage>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let row = self.read();
        self.previous = row;
        if row.is_none() {
            self.left = 0;
        }
        Some(row.ok_or(BadPage("a row of the page does not read")))
    }
}

fn write_number(out: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn write_wide(out: &mut Vec<u8>, mut n: u128) {
    while n > 0x7f {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[inline]
fn read_number(input: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        n |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(n);
        }
    }
    None
}

#[inline]
fn read_wide(input: &mut &[u8]) -> Option<u128> {
    let mut n = 0;
    for shift in (0..84).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        n |= u128::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::row::{N_MAX, TX_NUMBER_MAX};
    use super::*;
    use proptest::prelude::*;

    fn rows(table: Table) -> impl Strategy<Value = Vec<Row>> {
        let few = prop_oneof![Just(0u128), Just(1), Just((1 << 77) - 1), 0..1u128 << 77];
        let tx = prop_oneof![Just(100u64), Just(TX_NUMBER_MAX - 1), 100..5000u64];
        let row = (few, tx, 0..N_MAX, any::<u64>(), any::<u32>()).prop_map(
            move |(key, tx, n, value, tag)| {
                let n = if table.has_n() { n } else { 0 };
                let (value, tag) = if table.has_value() { (value, tag) } else { (0, 0) };
                Row::from_parts(key, tx, u64::from(n), value, tag).unwrap()
            },
        );
        proptest::collection::vec(row, 0..600).prop_map(|mut rows| {
            rows.sort_unstable();
            rows
        })
    }

    fn pack(table: Table, rows: &[Row]) -> Vec<u8> {
        let mut writer = PageWriter::new(table, 100);
        let mut out = Vec::new();
        for &row in rows {
            if writer.is_full() {
                writer.take(&mut out);
            }
            writer.push(row);
        }
        if !writer.is_empty() {
            writer.take(&mut out);
        }
        out
    }

    proptest! {
        #[test]
        fn rows_round_trip_and_damage_is_detected(
            (table, rows) in prop::sample::select(Table::ALL.to_vec())
                .prop_flat_map(|table| (Just(table), rows(table))),
            at in any::<prop::sample::Index>(),
        ) {
            let mut packed = pack(table, &rows);
            let mut found = Vec::new();
            for page in packed.chunks(PAGE_BYTES) {
                for row in PageReader::new(table, 100, page).unwrap() {
                    found.push(row.unwrap());
                }
            }
            prop_assert_eq!(&found, &rows);
            if !packed.is_empty() {
                let at = at.index(packed.len());
                packed[at] ^= 1;
                let page = packed.chunks(PAGE_BYTES).nth(at / PAGE_BYTES).unwrap();
                prop_assert!(PageReader::new(table, 100, page).is_err());
            }
        }

        #[test]
        fn arbitrary_bytes_with_valid_checksum_do_not_panic(mut page in proptest::collection::vec(any::<u8>(), HEAD_BYTES..300)) {
            let crc = crc32fast::hash(&page[4..]);
            page[..4].copy_from_slice(&crc.to_le_bytes());
            for table in Table::ALL {
                let _ = PageReader::new(table, u64::MAX - 3, &page).unwrap().count();
            }
        }
    }
}
