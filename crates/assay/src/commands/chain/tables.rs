//! Tables of a chain as CSV files: one row per block, and one per transaction.
//!
//! Fields are numbers, hexadecimal hashes, `true` and `false`, so none needs the quotes of RFC 4180.

use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use assay_report::Temporary;
use assay_report::atomic_file::{self, WriteError};
use assay_stats::{BlockRow, Counts, OutputKind, TxRow};

const BLOCKS_FILE: &str = "blocks.csv";
const TXS_FILE: &str = "transactions.csv";

/// Columns of blocks only, before those of [`COUNTS`].
const BLOCK_COLUMNS: &str = "height,hash,time,version,bits";

const TX_COLUMNS: &str = "height,tx_index,txid,version,locktime,coinbase,segwit,inputs,segwit_inputs,outputs,bytes,stripped_bytes,weight,\
     output_value";

type Column = (&'static str, fn(&Counts) -> i128);

/// Columns of a block or a range, before two for each kind of output.
const COUNTS: [Column; 13] = [
    ("bytes", |counts| counts.bytes.into()),
    ("stripped_bytes", |counts| counts.stripped_bytes.into()),
    ("weight", |counts| counts.weight.into()),
    ("txs", |counts| counts.txs.into()),
    ("inputs", |counts| counts.inputs.into()),
    ("outputs", |counts| counts.outputs.into()),
    ("segwit_txs", |counts| counts.segwit_txs.into()),
    ("segwit_inputs", |counts| counts.segwit_inputs.into()),
    ("many_input_segwit_txs", |counts| counts.many_input_segwit_txs.into()),
    ("many_input_legacy_txs", |counts| counts.many_input_legacy_txs.into()),
    ("largest_tx_inputs", |counts| counts.largest_tx_inputs.into()),
    ("output_value", |counts| counts.output_value),
    ("coinbase_value", |counts| counts.coinbase_value),
];

/// Appends the names of all columns of counts, each after a comma.
pub(super) fn add_count_names(line: &mut String) {
    for (name, _) in COUNTS {
        line.extend([",", name]);
    }
    for kind in OutputKind::ALL {
        // Writing to a string cannot fail.
        let _ = write!(line, ",outputs_{0},value_{0}", kind.name());
    }
}

/// Appends the values of the same columns.
pub(super) fn add_counts(counts: &Counts, line: &mut String) {
    for (_, get) in COUNTS {
        let _ = write!(line, ",{}", get(counts));
    }
    for count in &counts.by_kind {
        let _ = write!(line, ",{},{}", count.outputs, count.value);
    }
}

/// Writes both files under temporary names and renames them when both are complete.
pub(super) struct TablesWriter {
    blocks: TableFile,
    txs: TableFile,
}

impl TablesWriter {
    /// Begins both files in `dir`, which is created when missing.
    pub(super) fn create(dir: &Path) -> Result<Self, WriteError> {
        atomic_file::create_folder(dir)?;
        let mut head = BLOCK_COLUMNS.to_owned();
        add_count_names(&mut head);
        Ok(Self {
            blocks: TableFile::create(dir.join(BLOCKS_FILE), &head)?,
            txs: TableFile::create(dir.join(TXS_FILE), TX_COLUMNS)?,
        })
    }

    pub(super) fn block(&mut self, row: &BlockRow) -> Result<(), WriteError> {
        let BlockRow { height, hash, time, version, bits, counts, .. } = row;
        let mut line = format!("{height},{hash},{time},{version},{bits}");
        add_counts(counts, &mut line);
        self.blocks.line(format_args!("{line}"))
    }

    pub(super) fn txs(&mut self, rows: &[TxRow]) -> Result<(), WriteError> {
        rows.iter().try_for_each(|row| {
            self.txs.line(format_args!(
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                row.height,
                row.index,
                row.txid,
                row.version,
                row.lock_time,
                row.is_coinbase,
                row.is_segwit,
                row.inputs,
                row.segwit_inputs,
                row.outputs,
                row.bytes,
                row.stripped_bytes,
                row.weight(),
                row.output_value,
            ))
        })
    }

    /// Syncs and renames both files; returns their total length.
    pub(super) fn finish(mut self) -> Result<u64, WriteError> {
        let bytes = self.blocks.sync()? + self.txs.sync()?;
        self.blocks.rename()?;
        self.txs.rename()?;
        Ok(bytes)
    }
}

/// A file that is being written.
struct TableFile {
    path: PathBuf,
    part: Temporary,
    out: BufWriter<File>,
}

impl TableFile {
    fn create(path: PathBuf, head: &str) -> Result<Self, WriteError> {
        let create = |part: &Path| File::create(part);
        match Temporary::file(path.with_extension("csv.part"), create) {
            Ok((part, file)) => {
                let mut table = Self { path, part, out: BufWriter::with_capacity(1 << 20, file) };
                table.line(format_args!("{head}"))?;
                Ok(table)
            }
            Err(source) => Err(WriteError { path, source }),
        }
    }

    fn line(&mut self, line: fmt::Arguments<'_>) -> Result<(), WriteError> {
        writeln!(self.out, "{line}").map_err(|source| self.failed(source))
    }

    /// Syncs the file; returns its length.
    fn sync(&mut self) -> Result<u64, WriteError> {
        self.out
            .flush()
            .and_then(|()| self.out.get_ref().sync_all())
            .and_then(|()| self.out.get_ref().metadata())
            .map(|metadata| metadata.len())
            .map_err(|source| self.failed(source))
    }

    fn rename(&self) -> Result<(), WriteError> {
        fs::rename(self.part.path(), &self.path).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> WriteError {
        WriteError { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use assay_store::BlockPlace;
    use assay_wire::{BlockHash, Txid};

    use super::*;

    #[test]
    fn files_are_renamed_when_both_are_complete() {
        let block = BlockRow {
            height: 1,
            hash: BlockHash::ZERO,
            time: 2,
            version: -3,
            bits: 4,
            place: BlockPlace { file: 0, offset: 0, size: 0 },
            counts: Counts::default(),
        };
        let tx = TxRow {
            height: 1,
            index: 0,
            txid: Txid::default(),
            version: 2,
            lock_time: 3,
            is_coinbase: true,
            is_segwit: false,
            inputs: 0,
            segwit_inputs: 0,
            outputs: 1,
            bytes: 100,
            stripped_bytes: 100,
            output_value: i128::from(i64::MAX) * 2,
        };
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path().join("tables");
        let write = || {
            let mut writer = TablesWriter::create(&dir).expect("writable");
            writer.block(&block).expect("writable");
            writer.txs(&[tx.clone(), tx.clone()]).expect("writable");
            writer
        };
        drop(write());
        assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 0);
        let bytes = write().finish().expect("writable");
        assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 2);
        let texts =
            [BLOCKS_FILE, TXS_FILE].map(|name| fs::read_to_string(dir.join(name)).expect("a file"));
        assert_eq!(bytes, texts.iter().map(|text| text.len() as u64).sum::<u64>());
        for (text, rows) in texts.iter().zip([1, 2]) {
            let fields: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
            assert_eq!(fields, vec![fields[0]; rows + 1], "{text}");
        }
        let zeros = "0".repeat(64);
        assert!(texts[0].contains(&format!("\n1,{zeros},2,-3,4,0,")), "{}", texts[0]);
        let line = format!("1,0,{zeros},2,3,true,false,0,0,1,100,100,400,{}\n", tx.output_value);
        assert!(texts[1].ends_with(&line), "{}", texts[1]);
        drop(write());
        assert_eq!(fs::read_to_string(dir.join(BLOCKS_FILE)).expect("a file"), texts[0]);
    }

    #[test]
    fn every_column_is_documented() {
        let formats = include_str!("../../../../../docs/formats.md");
        let mut names = format!("{BLOCK_COLUMNS},{TX_COLUMNS}");
        add_count_names(&mut names);
        for name in names.split(',') {
            let kind = name.strip_prefix("outputs_").or_else(|| name.strip_prefix("value_"));
            let wanted = kind.unwrap_or(name);
            assert!(formats.contains(&format!("`{wanted}`")), "{name}");
        }
    }
}
