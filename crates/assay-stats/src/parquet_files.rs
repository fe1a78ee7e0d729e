//! Tables as Parquet files: written row group by row group, and read back column by column.

use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArray, DataType, FixedLenByteArray, FixedLenByteArrayType, Int64Type,
};
use parquet::errors::ParquetError as Fault;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::columns::{BLOCKS, Column, Get, TXS, Table, Values};
use crate::rows::{BlockRow, TxRow};

/// Name of the file with a row for each block.
pub const BLOCKS_FILE: &str = "blocks.parquet";

/// Name of the file with a row for each transaction.
pub const TXS_FILE: &str = "txs.parquet";

/// Rows of a row group, which are held in memory: some 13 MB of transactions.
const ROWS_PER_GROUP: usize = 1 << 17;

/// Rows that are read at a time: other programs write row groups of any length.
const ROWS_PER_PIECE: usize = 1 << 14;

/// Why a Parquet file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is damaged, or could not be written.
    #[error("{}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What the library said.
        source: Fault,
    },
    /// The file lacks a column, or has one of another type.
    #[error("{}: has no column {column} of the type that `assay chain stats --parquet` writes", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// The file contradicts itself in a way that the library does not expect.
    #[error("{}: the file is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Columns of a row group differ in length.
    #[error("{}: columns of a row group differ in length", path.display())]
    Uneven {
        /// The file.
        path: PathBuf,
    },
    /// There are no files.
    #[error("{}: neither {BLOCKS_FILE} there nor folders that have one", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// Two ranges have a height in common, or are of two chains.
    #[error("{} and {}: {why}", first.display(), second.display())]
    Unlike {
        /// A folder.
        first: PathBuf,
        /// Another.
        second: PathBuf,
        /// What does not fit.
        why: String,
    },
}

/// Writes both files of a chain into a folder. They get their names when both are whole.
#[derive(Debug)]
pub struct ParquetWriter {
    blocks: TableWriter<BlockRow>,
    txs: TableWriter<TxRow>,
}

impl ParquetWriter {
    /// Begins both files in `dir`, which is made when missing.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn create(dir: &Path, chain: &str, many_inputs: u32) -> Result<Self, ParquetError> {
        fs::create_dir_all(dir)
            .map_err(|source| ParquetError::Io { path: dir.to_path_buf(), source })?;
        let about = [("chain", chain.to_owned()), ("many_inputs", many_inputs.to_string())];
        Ok(Self {
            blocks: TableWriter::create(&BLOCKS, dir.join(BLOCKS_FILE), &about)?,
            txs: TableWriter::create(&TXS, dir.join(TXS_FILE), &about)?,
        })
    }

    /// Adds a block.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn block(&mut self, row: &BlockRow) -> Result<(), ParquetError> {
        self.blocks.push([row.clone()])
    }

    /// Adds transactions.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn txs(&mut self, rows: Vec<TxRow>) -> Result<(), ParquetError> {
        self.txs.push(rows)
    }

    /// Writes what is left and gives the files their names; gives the bytes of both.
    ///
    /// # Errors
    /// When they cannot be written; nothing is left behind then.
    pub fn finish(mut self) -> Result<u64, ParquetError> {
        let bytes = self.blocks.end()? + self.txs.end()?;
        self.blocks.rename()?;
        self.txs.rename()?;
        Ok(bytes)
    }
}

/// One file that is being written.
#[derive(Debug)]
struct TableWriter<R: 'static> {
    table: &'static Table<R>,
    path: PathBuf,
    part: PathBuf,
    writer: Option<SerializedFileWriter<File>>,
    rows: Vec<R>,
}

impl<R> TableWriter<R> {
    fn create(
        table: &'static Table<R>,
        path: PathBuf,
        about: &[(&str, String)],
    ) -> Result<Self, ParquetError> {
        let part = path.with_extension("parquet.part");
        let file = File::create(&part)
            .map_err(|source| ParquetError::Io { path: part.clone(), source })?;
        let format = |source| ParquetError::Format { path: part.clone(), source };
        let schema = parse_message_type(&schema(table)).map_err(format)?;
        let about = about
            .iter()
            .map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()))
            .collect();
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("assay {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(about));
        for column in table.columns.iter().filter(|column| matches!(column.get, Get::Hash(_))) {
            // No two are equal, and their order says nothing.
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_statistics_enabled(path, EnabledStatistics::None);
        }
        let writer =
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
                .map_err(format)?;
        Ok(Self { table, path, part, writer: Some(writer), rows: Vec::new() })
    }

    fn push(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), ParquetError> {
        for row in rows {
            self.rows.push(row);
            if self.rows.len() >= ROWS_PER_GROUP {
                self.write_group()?;
            }
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.rows.is_empty()) else {
            return Ok(());
        };
        let columns = self.table.columns;
        let write = |writer: &mut SerializedFileWriter<File>| -> Result<(), Fault> {
            let mut group = writer.next_row_group()?;
            for column in columns {
                let Some(mut chunk) = group.next_column()? else { break };
                write_values(&mut chunk, column.values(&self.rows))?;
                chunk.close()?;
            }
            group.close().map(|_| ())
        };
        write(writer).map_err(|source| ParquetError::Format { path: self.part.clone(), source })?;
        self.rows.clear();
        Ok(())
    }

    /// Writes what is left and the footer, and waits for the disk.
    fn end(&mut self) -> Result<u64, ParquetError> {
        self.write_group()?;
        let failed = |source| ParquetError::Io { path: self.part.clone(), source };
        if let Some(mut writer) = self.writer.take() {
            writer
                .finish()
                .map_err(|source| ParquetError::Format { path: self.part.clone(), source })?;
            writer.inner().sync_all().map_err(failed)?;
        }
        fs::metadata(&self.part).map(|metadata| metadata.len()).map_err(failed)
    }

    fn rename(&self) -> Result<(), ParquetError> {
        fs::rename(&self.part, &self.path)
            .map_err(|source| ParquetError::Io { path: self.path.clone(), source })
    }
}

impl<R> Drop for TableWriter<R> {
    fn drop(&mut self) {
        // Gone when it has its name. What cannot be removed is overwritten next time.
        let _ = fs::remove_file(&self.part);
    }
}

fn schema<R>(table: &Table<R>) -> String {
    let mut text = format!("message {} {{", table.name);
    for column in table.columns {
        let kind = match column.get {
            Get::Int(_) => "INT64",
            Get::Bool(_) => "BOOLEAN",
            Get::Hash(_) => "FIXED_LEN_BYTE_ARRAY (32)",
        };
        // Writing to a string cannot fail.
        let _ = write!(text, " REQUIRED {kind} {};", column.name);
    }
    text.push_str(" }");
    text
}

fn write_values(chunk: &mut SerializedColumnWriter<'_>, values: Values) -> Result<(), Fault> {
    match values {
        Values::Int(values) => chunk.typed::<Int64Type>().write_batch(&values, None, None)?,
        Values::Bool(values) => chunk.typed::<BoolType>().write_batch(&values, None, None)?,
        Values::Hash(values) => {
            let count = values.len();
            // One buffer, of which every value is a part.
            let all = ByteArray::from(values.into_flattened());
            let values: Vec<FixedLenByteArray> =
                (0..count).map(|index| all.slice(index * 32, 32).into()).collect();
            chunk.typed::<FixedLenByteArrayType>().write_batch(&values, None, None)?
        }
    };
    Ok(())
}

/// The folders of a chain's ranges by height, or the folder itself where it has the files.
///
/// # Errors
/// When there are none, or they are not ranges of one chain: every height is in one of them at most.
pub(crate) fn ranges_in(dir: &Path) -> Result<Vec<PathBuf>, ParquetError> {
    if dir.join(BLOCKS_FILE).is_file() || dir.join(TXS_FILE).is_file() {
        return Ok(vec![dir.to_path_buf()]);
    }
    let failed = |source| ParquetError::Io { path: dir.to_path_buf(), source };
    let mut ranges = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.join(BLOCKS_FILE).is_file() {
            ranges.push((heights_of(&path.join(BLOCKS_FILE))?, path));
        }
    }
    if ranges.is_empty() {
        return Err(ParquetError::Empty { path: dir.to_path_buf() });
    }
    ranges.sort();
    for two in ranges.windows(2) {
        let [((about, _, last), first), ((other, next, _), second)] = two else { continue };
        let unlike =
            |why| ParquetError::Unlike { first: first.clone(), second: second.clone(), why };
        if about != other {
            return Err(unlike("of other chains, or written with other arguments".to_owned()));
        }
        if next <= last {
            return Err(unlike(format!("both have height {next}")));
        }
    }
    Ok(ranges.into_iter().map(|(_, path)| path).collect())
}

/// What a file of blocks says about itself, and its first and last height.
fn heights_of(path: &Path) -> Result<(String, i64, i64), ParquetError> {
    let file =
        File::open(path).map_err(|source| ParquetError::Io { path: path.to_path_buf(), source })?;
    let reader = fenced(path, || SerializedFileReader::new(file))?;
    let about = reader.metadata().file_metadata().key_value_metadata();
    let about: Vec<String> =
        about.into_iter().flatten().map(|pair| format!("{}={:?}", pair.key, pair.value)).collect();
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    read_table::<BlockRow, ParquetError>(path, &[&BLOCKS.columns[0]], &mut |columns| {
        if let [Values::Int(heights)] = columns {
            first = heights.iter().copied().fold(first, i64::min);
            last = heights.iter().copied().fold(last, i64::max);
        }
        Ok(())
    })?;
    Ok((about.join(", "), first, last))
}

/// Reads some columns of one table, some rows at a time.
pub(crate) fn read_table<R, E: From<ParquetError>>(
    path: &Path,
    columns: &[&'static Column<R>],
    on_rows: &mut dyn FnMut(&[Values]) -> Result<(), E>,
) -> Result<(), E> {
    let file =
        File::open(path).map_err(|source| ParquetError::Io { path: path.to_path_buf(), source })?;
    let reader = fenced(path, || SerializedFileReader::new(file))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut places = Vec::with_capacity(columns.len());
    for column in columns {
        let wanted = match column.get {
            Get::Int(_) => (PhysicalType::INT64, None),
            Get::Bool(_) => (PhysicalType::BOOLEAN, None),
            Get::Hash(_) => (PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(32)),
        };
        let place = schema.columns().iter().position(|found| {
            found.path().string() == column.name
                && found.physical_type() == wanted.0
                && wanted.1.is_none_or(|length| found.type_length() == length)
                && found.max_def_level() == 0
                && found.max_rep_level() == 0
        });
        let missing = || ParquetError::Column { path: path.to_path_buf(), column: column.name };
        places.push(place.ok_or_else(missing)?);
    }
    for number in 0..reader.num_row_groups() {
        let group = fenced(path, || reader.get_row_group(number))?;
        let mut chunks = Vec::with_capacity(places.len());
        for place in &places {
            chunks.push(fenced(path, || group.get_column_reader(*place))?);
        }
        loop {
            let pieces: Vec<Values> =
                fenced(path, || chunks.iter_mut().map(read_values).collect())?;
            let length = pieces.first().map_or(0, Values::len);
            if pieces.iter().any(|values| values.len() != length) {
                return Err(ParquetError::Uneven { path: path.to_path_buf() }.into());
            }
            if length == 0 {
                break;
            }
            on_rows(&pieces)?;
        }
    }
    Ok(())
}

/// Calls the library, which takes for granted some things that a damaged file breaks, and then panics.
fn fenced<T>(path: &Path, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, ParquetError> {
    // What a panic leaves behind is dropped with the error and not looked at again.
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => {
            outcome.map_err(|source| ParquetError::Format { path: path.to_path_buf(), source })
        }
        Err(_) => Err(ParquetError::Damaged { path: path.to_path_buf() }),
    }
}

/// The next rows of a column; none at its end.
fn read_values(chunk: &mut ColumnReader) -> Result<Values, Fault> {
    Ok(match chunk {
        ColumnReader::Int64ColumnReader(reader) => Values::Int(read_piece(reader)?),
        ColumnReader::BoolColumnReader(reader) => Values::Bool(read_piece(reader)?),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            let hash = |value: FixedLenByteArray| {
                <[u8; 32]>::try_from(value.data())
                    .map_err(|_| Fault::General("a hash without 32 bytes".to_owned()))
            };
            Values::Hash(read_piece(reader)?.into_iter().map(hash).collect::<Result<_, _>>()?)
        }
        _ => return Err(Fault::General("a column of a type that is not ours".to_owned())),
    })
}

fn read_piece<T: DataType>(reader: &mut ColumnReaderImpl<T>) -> Result<Vec<T::T>, Fault> {
    let mut values = Vec::new();
    while values.len() < ROWS_PER_PIECE {
        let wanted = ROWS_PER_PIECE - values.len();
        if reader.read_records(wanted, None, None, &mut values)?.0 == 0 {
            break;
        }
    }
    Ok(values)
}
