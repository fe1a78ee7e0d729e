//! Sorted runs: immutable files with all three tables for a range of transactions.
//!
//! A run is written once, sequentially, and read at random. Each table is a sequence of groups. A group is up to 255 pages of
//! rows ([`super::page`]) followed by one page of fences, the first row of each of these pages, so that a lookup reads one fence
//! page and one page of rows. The first rows of all groups are in memory. Layout: `docs/formats.md`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_store::io::{Io, IoFile};

use super::cache::{Cache, FileKey, PartKey, Reader, Reads};
use super::page::{self, BadPage, PAGE_BYTES, PageReader, PageWriter};
use super::row::{Row, Table, TxNumber};
use super::types::QueryError;

/// Row callback; may end a scan.
pub(crate) type Visit<'v> = dyn FnMut(Row) -> ControlFlow<()> + 'v;

/// Position of a table in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Section {
    /// Offset of the first page.
    start: u64,
    pages: u64,
    rows: u64,
    /// First row of each group.
    tops: Vec<u128>,
}

/// Continues or ends a scan after a page.
enum Scan {
    Next,
    Over(ControlFlow<()>),
}

pub(crate) struct Run {
    path: PathBuf,
    file: Arc<dyn IoFile>,
    /// Run number in the cache.
    number: u64,
    /// Rows are about the transactions from `first_tx` to before `end_tx`.
    pub(crate) first_tx: TxNumber,
    pub(crate) end_tx: TxNumber,
    pub(crate) bytes: u64,
    sections: [Section; 3],
}

impl Run {
    pub(crate) fn rows(&self, table: Table) -> u64 {
        self.sections[table as usize].rows
    }

    /// Visits the rows with `from <= order < to`.
    pub(crate) fn scan(
        &self,
        reader: &Reader<'_>,
        table: Table,
        range: (u128, u128),
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        let section = &self.sections[table as usize];
        if section.pages == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let mut page = self.first_page(reader, section, range.0)?;
        let mut ahead = 1;
        while page < section.pages {
            let offset = page_offset(section, page);
            if let Some(bytes) = reader.cached(&self.part(offset)) {
                page += 1;
                match self.scan_page(table, offset, &bytes, range, visit)? {
                    Scan::Next => continue,
                    Scan::Over(flow) => return Ok(flow),
                }
            }
            let count = (GROUP_PAGES - page % GROUP_PAGES).min(section.pages - page).min(ahead);
            let bytes = self.read(reader, offset, count as usize * PAGE_BYTES)?;
            for (offset, bytes) in
                (offset..).step_by(PAGE_BYTES).zip(bytes.chunks_exact(PAGE_BYTES))
            {
                page::check(bytes).map_err(|bad| self.damaged(offset, bad.0))?;
                reader.keep(self.part(offset), bytes);
                if let Scan::Over(flow) = self.scan_page(table, offset, bytes, range, visit)? {
                    return Ok(flow);
                }
            }
            page += count;
            ahead = (ahead * 4).min(GROUP_PAGES);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The page where the rows from `from` on begin. Equal rows may span pages, so its first row is less than `from`, if any is.
    fn first_page(
        &self,
        reader: &Reader<'_>,
        section: &Section,
        from: u128,
    ) -> Result<u64, QueryError> {
        let group = section.tops.partition_point(|&top| top < from).saturating_sub(1) as u64;
        let pages = (section.pages - group * GROUP_PAGES).min(GROUP_PAGES);
        let offset = page_offset(section, group * GROUP_PAGES) + pages * PAGE_BYTES as u64;
        let key = self.part(offset);
        let fences: Arc<[u8]> = if let Some(fences) = reader.cached(&key) {
            fences
        } else {
            let fences = Arc::from(self.read_sums(reader, offset, pages as usize)?);
            reader.keep(key, Arc::clone(&fences));
            fences
        };
        let fences = fences.as_chunks::<16>().0;
        let is_before = |fence: &[u8; 16]| u128::from_le_bytes(*fence) < from;
        Ok(group * GROUP_PAGES + fences.partition_point(is_before).saturating_sub(1) as u64)
    }

    /// Visits the rows of a verified page.
    fn scan_page(
        &self,
        table: Table,
        offset: u64,
        bytes: &[u8],
        (from, to): (u128, u128),
        visit: &mut Visit<'_>,
    ) -> Result<Scan, QueryError> {
        let damaged = |bad: BadPage| self.damaged(offset, bad.0);
        for row in PageReader::of_checked(table, self.first_tx, bytes).map_err(damaged)? {
            let row = row.map_err(damaged)?;
            if row.order >= to {
                return Ok(Scan::Over(ControlFlow::Continue(())));
            }
            if row.order >= from && visit(row).is_break() {
                return Ok(Scan::Over(ControlFlow::Break(())));
            }
        }
        Ok(Scan::Next)
    }

    pub(crate) fn stream(self: &Arc<Self>, table: Table) -> RunStream {
        RunStream { run: Arc::clone(self), table, page: 0, rows: Vec::new().into_iter() }
    }

    /// Opens a finished run and verifies its tail.
    pub(crate) fn open(io: &dyn Io, path: &Path, cache: &Cache) -> Result<Self, QueryError> {
        let failed = |source| QueryError::Io { path: path.to_path_buf(), source };
        let file = io.open(path, false).map_err(failed)?;
        let bytes = file.size().map_err(failed)?;
        let mut run = Self {
            path: path.to_path_buf(),
            file,
            number: cache.number(),
            first_tx: 0,
            end_tx: 0,
            bytes,
            sections: Default::default(),
        };
        let reader = &Reader::new(cache, Reads::Any);
        let Some(tail_at) = bytes.checked_sub(TAIL_BYTES as u64) else {
            return Err(run.damaged(bytes, "the run has no end"));
        };
        let tail = run.read(reader, tail_at, TAIL_BYTES)?;
        let (sum, fields) = tail.split_at(4);
        if crc32fast::hash(fields).to_le_bytes() != *sum || fields[..8] != MAGIC {
            return Err(run.damaged(tail_at, "the run does not end as runs do"));
        }
        let mut fields =
            fields[8..].as_chunks::<8>().0.iter().map(|field| u64::from_le_bytes(*field));
        let mut next = || fields.next().unwrap_or_default();
        (run.first_tx, run.end_tx) = (next(), next());
        let mut tops_at = next();
        for index in 0..run.sections.len() {
            let (start, pages, rows) = (next(), next(), next());
            let groups = pages.div_ceil(GROUP_PAGES);
            let is_inside = groups.checked_mul(16).and_then(|bytes| bytes.checked_add(tops_at));
            if is_inside.is_none_or(|end| end + 4 > tail_at) {
                return Err(run.damaged(tail_at, "the run names more groups than it has"));
            }
            let tops = run.read_sums(reader, tops_at, groups as usize)?;
            let tops = tops.as_chunks::<16>().0.iter().map(|top| u128::from_le_bytes(*top));
            run.sections[index] = Section { start, pages, rows, tops: tops.collect() };
            tops_at += groups * 16 + 4;
        }
        Ok(run)
    }

    fn part(&self, offset: u64) -> PartKey {
        PartKey { file: FileKey::Run(self.number), offset }
    }

    /// Reads `count` numbers of 16 bytes, followed by their CRC-32.
    fn read_sums(
        &self,
        reader: &Reader<'_>,
        offset: u64,
        count: usize,
    ) -> Result<Vec<u8>, QueryError> {
        let mut bytes = self.read(reader, offset, count * 16 + 4)?;
        let (numbers, sum) = bytes.split_at(count * 16);
        if crc32fast::hash(numbers).to_le_bytes() != *sum {
            return Err(self.damaged(offset, "the fences do not have their checksum"));
        }
        bytes.truncate(count * 16);
        Ok(bytes)
    }

    fn read(&self, reader: &Reader<'_>, offset: u64, length: usize) -> Result<Vec<u8>, QueryError> {
        self.read_by(offset, length, |bytes| reader.fill(&*self.file, bytes, offset))
    }

    fn read_by(
        &self,
        offset: u64,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> std::io::Result<()>,
    ) -> Result<Vec<u8>, QueryError> {
        let mut bytes = vec![0; length];
        match fill(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(source) => Err(QueryError::of_read(source, &self.path, offset)),
        }
    }

    fn damaged(&self, offset: u64, what: &'static str) -> QueryError {
        QueryError::Damaged { path: self.path.clone(), offset, what }
    }
}

fn page_offset(section: &Section, page: u64) -> u64 {
    section.start
        + (page / GROUP_PAGES * (GROUP_PAGES + 1) + page % GROUP_PAGES) * PAGE_BYTES as u64
}

/// Iterator over the rows of a table that reads several pages at a time.
pub(crate) struct RunStream {
    run: Arc<Run>,
    table: Table,
    page: u64,
    rows: std::vec::IntoIter<Row>,
}

impl RunStream {
    /// Pages per read: merging many runs seeks between them.
    const PAGES: u64 = 51;

    fn refill(&mut self) -> Result<(), QueryError> {
        let section = &self.run.sections[self.table as usize];
        let in_group = (GROUP_PAGES - self.page % GROUP_PAGES).min(section.pages - self.page);
        let count = in_group.min(Self::PAGES);
        let offset = page_offset(section, self.page);
        let (run, length) = (&self.run, count as usize * PAGE_BYTES);
        let bytes = run.read_by(offset, length, |bytes| run.file.read_exact_at(bytes, offset))?;
        let mut rows = Vec::with_capacity(count as usize * 256);
        for (index, bytes) in bytes.chunks_exact(PAGE_BYTES).enumerate() {
            let damaged = |what| self.run.damaged(offset + (index * PAGE_BYTES) as u64, what);
            let page = PageReader::new(self.table, self.run.first_tx, bytes);
            for row in page.map_err(|bad| damaged(bad.0))? {
                rows.push(row.map_err(|bad| damaged(bad.0))?);
            }
        }
        self.page += count;
        self.rows = rows.into_iter();
        Ok(())
    }
}

impl Iterator for RunStream {
    type Item = Result<Row, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            if self.page >= self.run.sections[self.table as usize].pages {
                return None;
            }
            if let Err(error) = self.refill() {
                self.page = u64::MAX;
                return Some(Err(error));
            }
        }
    }
}

/// Writes a run: table by table, each in order.
pub(crate) struct RunWriter {
    path: PathBuf,
    file: Arc<dyn IoFile>,
    /// Run number in the cache.
    number: u64,
    range: (TxNumber, TxNumber),
    /// Unwritten bytes, and their offset.
    buffer: Vec<u8>,
    written: u64,
    sections: [Section; 3],
    fences: Vec<u128>,
}

impl RunWriter {
    /// Creates a run over the transactions from `range.0` to before `range.1`.
    pub(crate) fn create(
        io: &dyn Io,
        path: &Path,
        range: (TxNumber, TxNumber),
        cache: &Cache,
    ) -> Result<Self, QueryError> {
        let failed = |source| QueryError::Io { path: path.to_path_buf(), source };
        let file = io.open(path, true).map_err(failed)?;
        // A crash may have left a partial file.
        file.set_size(0).map_err(failed)?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            number: cache.number(),
            range,
            buffer: Vec::with_capacity(BUFFER_BYTES + 2 * PAGE_BYTES),
            written: 0,
            sections: Default::default(),
            fences: Vec::with_capacity(GROUP_PAGES as usize),
        })
    }

    pub(crate) fn table(
        &mut self,
        table: Table,
        rows: impl Iterator<Item = Result<Row, QueryError>>,
    ) -> Result<(), QueryError> {
        let mut section = Section { start: self.offset(), ..Section::default() };
        let mut page = PageWriter::new(table, self.range.0);
        for row in rows {
            let row = row?;
            if page.is_full() {
                self.end_page(&mut page, &mut section)?;
            }
            if page.is_empty() {
                if self.fences.is_empty() {
                    section.tops.push(row.order);
                }
                self.fences.push(row.order);
            }
            page.push(row);
            section.rows += 1;
        }
        if !page.is_empty() {
            self.end_page(&mut page, &mut section)?;
        }
        if !self.fences.is_empty() {
            self.end_group();
        }
        self.sections[table as usize] = section;
        Ok(())
    }

    /// Finishes the run; on return its contents, but not its file name, survive a power cut.
    pub(crate) fn finish(mut self) -> Result<Run, QueryError> {
        let tops_at = self.offset();
        let mut fields = MAGIC.to_vec();
        for field in [self.range.0, self.range.1, tops_at] {
            fields.extend_from_slice(&field.to_le_bytes());
        }
        for index in 0..self.sections.len() {
            let section = &self.sections[index];
            for field in [section.start, section.pages, section.rows] {
                fields.extend_from_slice(&field.to_le_bytes());
            }
            push_sums(&mut self.buffer, &section.tops);
        }
        self.buffer.extend_from_slice(&crc32fast::hash(&fields).to_le_bytes());
        self.buffer.extend_from_slice(&fields);
        self.write_out()?;
        let failed = |source| QueryError::Io { path: self.path.clone(), source };
        self.file.sync_data().map_err(failed)?;
        let Self { path, file, number, range, written: bytes, sections, .. } = self;
        Ok(Run { path, file, number, first_tx: range.0, end_tx: range.1, bytes, sections })
    }

    fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn end_page(&mut self, page: &mut PageWriter, section: &mut Section) -> Result<(), QueryError> {
        page.take(&mut self.buffer);
        section.pages += 1;
        if self.fences.len() as u64 == GROUP_PAGES {
            self.end_group();
        }
        if self.buffer.len() >= BUFFER_BYTES { self.write_out() } else { Ok(()) }
    }

    fn end_group(&mut self) {
        let end = self.buffer.len() + PAGE_BYTES;
        push_sums(&mut self.buffer, &self.fences);
        self.buffer.resize(end, 0);
        self.fences.clear();
    }

    fn write_out(&mut self) -> Result<(), QueryError> {
        let failed = |source| QueryError::Io { path: self.path.clone(), source };
        self.file.write_all_at(&self.buffer, self.written).map_err(failed)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

fn push_sums(out: &mut Vec<u8>, numbers: &[u128]) {
    let start = out.len();
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let crc = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
}

/// Row pages per group: 1 MiB with the fences.
const GROUP_PAGES: u64 = 255;
const BUFFER_BYTES: usize = 1 << 20;
/// Trailer of every run; the last byte is the version.
const MAGIC: [u8; 8] = *b"assayrn\x01";
/// CRC, magic, range, offset of the tops, and three numbers per table.
const TAIL_BYTES: usize = 4 + 8 + 8 * (3 + 3 * 3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::row::N_MAX;
    use assay_store::io::SimIo;

    /// Rows of many keys: some with many rows, some equal.
    fn rows(table: Table, count: u64) -> Vec<Row> {
        let mut rows: Vec<Row> = (0..count)
            .map(|index| {
                let key = u128::from(index % 7 * index % 1_000_003) << 50;
                let n = if table.has_n() { index % u64::from(N_MAX) / 3 } else { 0 };
                let value = if table.has_value() { index } else { 0 };
                Row::from_parts(key, 10 + index / 50, n, value, value as u32).unwrap()
            })
            .collect();
        rows.sort_unstable();
        rows
    }

    fn write(io: &SimIo, path: &Path, tables: &[Vec<Row>; 3]) -> Result<Run, QueryError> {
        let mut writer = RunWriter::create(io, path, (10, 1 << 30), &Cache::new(0))?;
        for table in Table::ALL {
            writer.table(table, tables[table as usize].iter().copied().map(Ok))?;
        }
        writer.finish()
    }

    #[test]
    fn scans_find_every_range_before_and_after_reopening() {
        let io = SimIo::new();
        let path = Path::new("run");
        // More pages than one group, none, and one.
        let counts = [(Table::Scripts, 120_000), (Table::Spenders, 0), (Table::Txids, 10)];
        let tables = counts.map(|(table, count)| rows(table, count));
        let written = Arc::new(write(&io, path, &tables).unwrap());
        let cache = Cache::new(1 << 16);
        let reader = &Reader::new(&cache, Reads::Any);
        let opened = Arc::new(Run::open(&io, path, &cache).unwrap());
        assert_eq!(written.sections, opened.sections);
        assert_eq!(written.bytes, opened.bytes);
        for table in Table::ALL {
            let expected = &tables[table as usize];
            let all: Vec<Row> = opened.stream(table).collect::<Result<_, _>>().unwrap();
            assert!(all == *expected);
            for step in 0..200 {
                let Some(at) = expected.get(step * expected.len() / 200) else { continue };
                for from in [at.order, at.order + 1, 0] {
                    let to = from.saturating_add(1 << 80);
                    let mut found = Vec::new();
                    let visited = opened.scan(reader, table, (from, to), &mut |row| {
                        found.push(row);
                        ControlFlow::Continue(())
                    });
                    assert!(visited.unwrap().is_continue());
                    let first = expected.partition_point(|row| row.order < from);
                    let end = expected.partition_point(|row| row.order < to);
                    assert!(found == expected[first..end], "{table:?} from {from:x}");
                }
            }
        }
    }

    #[test]
    fn every_flipped_byte_is_detected_or_unused() {
        let path = Path::new("run");
        let tables = [rows(Table::Scripts, 500), rows(Table::Spenders, 30), rows(Table::Txids, 3)];
        let io = SimIo::new();
        let size = write(&io, path, &tables).unwrap().bytes;
        for at in 0..size {
            let io = io.restart(assay_store::io::Loss::Nothing);
            let file = io.open(path, false).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
            let cache = Cache::new(1 << 16);
            let reader = &Reader::new(&cache, Reads::Any);
            let Ok(run) = Run::open(&io, path, &cache) else { continue };
            let run = Arc::new(run);
            for table in Table::ALL {
                let expected = &tables[table as usize];
                for row in expected.iter().step_by(20) {
                    let mut found = Vec::new();
                    let range = (row.order, row.order + 1);
                    let scan = run.scan(reader, table, range, &mut |row| {
                        found.push(row);
                        ControlFlow::Continue(())
                    });
                    assert!(scan.is_err() || found.contains(row), "byte {at}");
                }
                if let Ok(all) = run.stream(table).collect::<Result<Vec<Row>, _>>() {
                    assert!(all == *expected, "byte {at}");
                }
            }
        }
    }
}
