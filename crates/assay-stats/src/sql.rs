//! SQL over the tables, by `SQLite`.
//!
//! The statement is prepared against empty tables first, which tells the tables and columns it reads. Only those are
//! copied into a private database, which `SQLite` keeps in its cache and spills to an unnamed temporary file when it grows;
//! then the statement runs. Nothing but a query is let through.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Statement, ToSql};

use crate::answer::{Cell, Loaded, Source};
use crate::block_set::{BlockSet, Heights};
use crate::columns::{BLOCKS, Column, Get, TXS, Table, Values, outputs_by_type_view};
use crate::parquet_files::{BLOCKS_FILE, ParquetError, TXS_FILE, ranges_in, read_table};
use crate::read::{Detail, Item, ReadOptions, read};

/// Damaged blocks that are named.
const DAMAGE_MAX: usize = 16;

/// Memory of the database before it spills, KiB; sorting takes as much again.
const CACHE_KIB: u32 = 64 << 10;

/// Longest text or bytes that a query may make: what it makes is held in memory, several times over.
const VALUE_BYTES_MAX: i32 = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The statement is not one.
    #[error("{message}")]
    Syntax {
        /// What `SQLite` says.
        message: String,
        /// Where, in bytes of the statement.
        offset: Option<usize>,
    },
    /// The statement is something other than one query.
    #[error("only one query is possible: SELECT … or WITH …")]
    NotAQuery,
    /// A value is too long.
    #[error("the query makes a value of more than {bytes_max} bytes")]
    TooLong {
        /// The longest possible.
        bytes_max: u32,
    },
    /// A Parquet file cannot be read.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// `SQLite` failed, for example by an overflow or a full disk.
    #[error("{0}")]
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::TooBig) => Self::TooLong { bytes_max: VALUE_BYTES_MAX as u32 },
            _ => Self::Database(error),
        }
    }
}

/// What a statement reads, and whether it asked for something that is refused.
#[derive(Debug, Default)]
struct Needs {
    blocks: BTreeSet<String>,
    txs: BTreeSet<String>,
    is_refused: bool,
    reads_blocks: bool,
    reads_txs: bool,
}

/// Runs one query. `on_progress` learns how many rows are loaded, `on_columns` the names of the answer's columns, `on_row`
/// each row, and may break off.
///
/// # Errors
/// When the query is none, or data cannot be read.
pub fn query(
    sql: &str,
    source: Source<'_>,
    on_progress: &mut dyn FnMut(&Loaded),
    on_columns: &mut dyn FnMut(&[String]),
    on_row: &mut dyn FnMut(Vec<Cell>) -> ControlFlow<()>,
) -> Result<Loaded, SqlError> {
    // An empty name is a private database in an unnamed temporary file.
    let mut connection = Connection::open("")?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{CACHE_KIB};
         {}; {}; {};",
        create(&BLOCKS),
        create(&TXS),
        outputs_by_type_view(),
    ))?;
    let needs = watch(&mut connection)?;
    prepare(&connection, sql, &needs)?;
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
    let loaded = {
        let mut needs = needs.lock().unwrap_or_else(PoisonError::into_inner);
        needs.add_joins(sql);
        let transaction = connection.transaction()?;
        let loaded = match source {
            Source::Blocks(set, options) => {
                load_blocks(&transaction, &needs, set, options, on_progress)?
            }
            Source::Parquet(dir) => load_parquet(&transaction, &needs, dir, on_progress)?,
        };
        transaction.commit()?;
        loaded
    };
    let needs = watch(&mut connection)?;
    let mut statement = prepare(&connection, sql, &needs)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    on_columns(&names);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let cells = (0..names.len())
            .map(|index| row.get_ref(index).map(cell))
            .collect::<Result<Vec<Cell>, _>>()?;
        if on_row(cells).is_break() {
            break;
        }
    }
    Ok(loaded)
}

/// Lets queries alone through, and writes down what they read.
fn watch(connection: &mut Connection) -> Result<Arc<Mutex<Needs>>, rusqlite::Error> {
    let needs = Arc::new(Mutex::new(Needs::default()));
    let shared = Arc::clone(&needs);
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        let mut needs = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match context.action {
            AuthAction::Select | AuthAction::Function { .. } | AuthAction::Recursive => {}
            AuthAction::Read { table_name, column_name } => {
                let column = column_name.to_owned();
                if table_name == BLOCKS.name {
                    needs.reads_blocks = true;
                    needs.blocks.insert(column);
                } else if table_name == TXS.name {
                    needs.reads_txs = true;
                    needs.txs.insert(column);
                }
            }
            _ => {
                needs.is_refused = true;
                return Authorization::Deny;
            }
        }
        Authorization::Allow
    }))?;
    Ok(needs)
}

fn prepare<'c>(
    connection: &'c Connection,
    sql: &str,
    needs: &Mutex<Needs>,
) -> Result<Statement<'c>, SqlError> {
    let prepared = connection.prepare(sql);
    if needs.lock().unwrap_or_else(PoisonError::into_inner).is_refused {
        return Err(SqlError::NotAQuery);
    }
    match prepared {
        Ok(statement) if statement.column_count() == 0 || !statement.readonly() => {
            Err(SqlError::NotAQuery)
        }
        Ok(statement) => Ok(statement),
        Err(rusqlite::Error::MultipleStatement) => Err(SqlError::NotAQuery),
        Err(rusqlite::Error::SqlInputError { msg, offset, .. }) => {
            Err(SqlError::Syntax { message: msg, offset: usize::try_from(offset).ok() })
        }
        Err(rusqlite::Error::SqliteFailure(_, Some(message))) => {
            Err(SqlError::Syntax { message, offset: None })
        }
        Err(error) => Err(error.into()),
    }
}

fn create<R>(table: &Table<R>) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| format!("{} {}", column.name, column.sql_type()))
        .collect();
    format!("CREATE TABLE {} ({})", table.name, columns.join(", "))
}

/// The columns of a table that a query may read; the first one where rows are only counted.
fn wanted<R>(table: &Table<R>, names: &BTreeSet<String>) -> Vec<&'static Column<R>> {
    let read: Vec<_> = table.columns.iter().filter(|column| names.contains(column.name)).collect();
    if read.is_empty() { table.columns.iter().take(1).collect() } else { read }
}

impl Needs {
    /// Adds what `SQLite` does not tell of: columns that a join equates by itself, and tables of which no other is read.
    /// In `USING` both have their names in the text; `NATURAL` joins may equate any.
    fn add_joins(&mut self, sql: &str) {
        let text = sql.to_ascii_lowercase();
        let words: BTreeSet<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let is_natural = words.contains("natural");
        if !is_natural && !words.contains("using") {
            return;
        }
        self.reads_blocks |= words.contains(BLOCKS.name) || words.contains("outputs_by_type");
        self.reads_txs |= words.contains(TXS.name);
        let is_read = |name: &str| is_natural || words.contains(name);
        let add = |columns: &mut BTreeSet<String>, name: &str| {
            if is_read(name) {
                columns.insert(name.to_owned());
            }
        };
        BLOCKS.columns.iter().for_each(|column| add(&mut self.blocks, column.name));
        TXS.columns.iter().for_each(|column| add(&mut self.txs, column.name));
    }
}

fn insert<'c, R>(
    connection: &'c Connection,
    table: &Table<R>,
    columns: &[&'static Column<R>],
) -> Result<Statement<'c>, rusqlite::Error> {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let places = vec!["?"; columns.len()].join(", ");
    connection.prepare(&format!(
        "INSERT INTO {} ({}) VALUES ({places})",
        table.name,
        names.join(", ")
    ))
}

fn load_blocks(
    connection: &Connection,
    needs: &Needs,
    set: &BlockSet,
    options: &ReadOptions,
    on_progress: &mut dyn FnMut(&Loaded),
) -> Result<Loaded, SqlError> {
    let mut loaded = Loaded::default();
    if !needs.reads_blocks && !needs.reads_txs {
        return Ok(loaded);
    }
    let block_columns = wanted(&BLOCKS, &needs.blocks);
    let tx_columns = wanted(&TXS, &needs.txs);
    let has_txids = tx_columns.iter().any(|column| matches!(column.get, Get::Hash(_)));
    let detail = match (needs.reads_txs, has_txids) {
        (false, _) => Detail::Blocks,
        (true, false) => Detail::Txs,
        (true, true) => Detail::TxIds,
    };
    let options = ReadOptions { detail, ..*options };
    let mut blocks = insert(connection, &BLOCKS, &block_columns)?;
    let mut txs = insert(connection, &TXS, &tx_columns)?;
    let mut failed = None;
    read(set, Heights::ALL, &options, &mut |item| {
        let outcome = match item {
            Item::Txs(rows) => {
                loaded.txs += rows.len() as u64;
                rows.iter().try_for_each(|row| insert_row(&mut txs, &tx_columns, row))
            }
            Item::Block(row) => {
                loaded.blocks += 1;
                on_progress(&loaded);
                if needs.reads_blocks {
                    insert_row(&mut blocks, &block_columns, &row)
                } else {
                    Ok(())
                }
            }
            Item::Damage(damage) => {
                loaded.damage_count += 1;
                if loaded.damage.len() < DAMAGE_MAX {
                    loaded.damage.push(*damage);
                }
                Ok(())
            }
        };
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(loaded),
    }
}

fn insert_row<R>(
    statement: &mut Statement<'_>,
    columns: &[&'static Column<R>],
    row: &R,
) -> Result<(), rusqlite::Error> {
    for (index, column) in columns.iter().enumerate() {
        match column.get {
            Get::Int(get) => statement.raw_bind_parameter(index + 1, get(row))?,
            Get::Bool(get) => statement.raw_bind_parameter(index + 1, get(row))?,
            Get::Hash(get) => statement.raw_bind_parameter(index + 1, Hex::new(&get(row)))?,
        }
    }
    statement.raw_execute().map(|_| ())
}

fn load_parquet(
    connection: &Connection,
    needs: &Needs,
    dir: &Path,
    on_progress: &mut dyn FnMut(&Loaded),
) -> Result<Loaded, SqlError> {
    let mut loaded = Loaded::default();
    for range in ranges_in(dir)? {
        if needs.reads_blocks {
            let columns = wanted(&BLOCKS, &needs.blocks);
            load_table(connection, &BLOCKS, &columns, &range.join(BLOCKS_FILE), &mut |rows| {
                loaded.blocks += rows;
                on_progress(&loaded);
            })?;
        }
        if needs.reads_txs {
            let columns = wanted(&TXS, &needs.txs);
            load_table(connection, &TXS, &columns, &range.join(TXS_FILE), &mut |rows| {
                loaded.txs += rows;
                on_progress(&loaded);
            })?;
        }
    }
    Ok(loaded)
}

fn load_table<R>(
    connection: &Connection,
    table: &'static Table<R>,
    columns: &[&'static Column<R>],
    path: &Path,
    on_rows: &mut dyn FnMut(u64),
) -> Result<(), SqlError> {
    let mut statement = insert(connection, table, columns)?;
    read_table::<R, SqlError>(path, columns, &mut |group| {
        let count = group.first().map_or(0, Values::len);
        for row in 0..count {
            for (index, values) in group.iter().enumerate() {
                match values {
                    Values::Int(values) => statement.raw_bind_parameter(index + 1, values[row])?,
                    Values::Bool(values) => statement.raw_bind_parameter(index + 1, values[row])?,
                    Values::Hash(values) => {
                        statement.raw_bind_parameter(index + 1, Hex::new(&values[row]))?;
                    }
                }
            }
            statement.raw_execute()?;
        }
        on_rows(count as u64);
        Ok(())
    })
}

/// A hash as text, without a string of its own.
struct Hex([u8; 64]);

impl Hex {
    fn new(bytes: &[u8; 32]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(text)
    }
}

impl ToSql for Hex {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Real(value),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}
