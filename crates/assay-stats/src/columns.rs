//! The columns of the tables, once: what Parquet files hold is what SQL sees.

use std::fmt::Write;

use assay_wire::{BlockHash, Txid};

use crate::kind::OutputKind;
use crate::rows::{BlockRow, TxRow, clamp};

/// How the value of a column is got from a row.
#[derive(Debug)]
pub(crate) enum Get<R> {
    /// A number.
    Int(fn(&R) -> i64),
    /// Yes or no.
    Bool(fn(&R) -> bool),
    /// A hash, in the order in which it is printed.
    Hash(fn(&R) -> [u8; 32]),
}

impl<R> Clone for Get<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Get<R> {}

/// One column.
#[derive(Debug)]
pub(crate) struct Column<R> {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) get: Get<R>,
}

/// One table.
#[derive(Debug)]
pub(crate) struct Table<R: 'static> {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) columns: &'static [Column<R>],
}

/// Values of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Int(Vec<i64>),
    Bool(Vec<bool>),
    Hash(Vec<[u8; 32]>),
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Hash(values) => values.len(),
        }
    }
}

impl<R> Column<R> {
    const fn int(name: &'static str, what: &'static str, get: fn(&R) -> i64) -> Self {
        Self { name, what, get: Get::Int(get) }
    }

    const fn bool(name: &'static str, what: &'static str, get: fn(&R) -> bool) -> Self {
        Self { name, what, get: Get::Bool(get) }
    }

    const fn hash(name: &'static str, what: &'static str, get: fn(&R) -> [u8; 32]) -> Self {
        Self { name, what, get: Get::Hash(get) }
    }

    /// The values of this column in rows.
    pub(crate) fn values(&self, rows: &[R]) -> Values {
        match self.get {
            Get::Int(get) => Values::Int(rows.iter().map(get).collect()),
            Get::Bool(get) => Values::Bool(rows.iter().map(get).collect()),
            Get::Hash(get) => Values::Hash(rows.iter().map(get).collect()),
        }
    }

    pub(crate) fn sql_type(&self) -> &'static str {
        match self.get {
            Get::Int(_) | Get::Bool(_) => "INTEGER",
            Get::Hash(_) => "TEXT",
        }
    }
}

/// The bytes of a hash in the order in which they are printed.
fn printed(mut hash: [u8; 32]) -> [u8; 32] {
    hash.reverse();
    hash
}

fn block_hash(hash: &BlockHash) -> [u8; 32] {
    printed(hash.0)
}

fn tx_id(txid: &Txid) -> [u8; 32] {
    printed(txid.0)
}

macro_rules! kind_columns {
    ($($kind:ident $name:literal),*) => {
        [
            $(
                Column::int(
                    concat!("outputs_", $name),
                    concat!("outputs of the kind ", $name),
                    |row: &BlockRow| row.counts.of_kind(OutputKind::$kind).outputs as i64,
                ),
                Column::int(
                    concat!("value_", $name),
                    "their sum, satoshi",
                    |row: &BlockRow| clamp(row.counts.of_kind(OutputKind::$kind).value),
                ),
            )*
        ]
    };
}

static BLOCK_COLUMNS: [Column<BlockRow>; 36] = {
    let [p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17] = kind_columns!(
        P2pk "p2pk", P2pkh "p2pkh", P2sh "p2sh", P2wpkh "p2wpkh", P2wsh "p2wsh", P2tr "p2tr",
        Multisig "multisig", OpReturn "op_return", Other "other"
    );
    [
        Column::int("height", "height", |row| i64::from(row.height)),
        Column::hash("hash", "block hash", |row| block_hash(&row.hash)),
        Column::int("time", "time in the header, seconds since 1970", |row| i64::from(row.time)),
        Column::int("version", "version in the header", |row| i64::from(row.version)),
        Column::int("bits", "target in compact form", |row| i64::from(row.bits)),
        Column::int("bytes", "serialised bytes, with witnesses", |row| row.counts.bytes as i64),
        Column::int("stripped_bytes", "serialised bytes without witnesses", |row| {
            row.counts.stripped_bytes as i64
        }),
        Column::int("weight", "BIP141 weight", |row| row.counts.weight as i64),
        Column::int("txs", "transactions, with the coinbase", |row| row.counts.txs as i64),
        Column::int("inputs", "inputs, without the coinbase's", |row| row.counts.inputs as i64),
        Column::int("outputs", "outputs, with the coinbase's", |row| row.counts.outputs as i64),
        Column::int("segwit_txs", "transactions with a witness, without the coinbase", |row| {
            row.counts.segwit_txs as i64
        }),
        Column::int("segwit_inputs", "inputs with a witness, without the coinbase's", |row| {
            row.counts.segwit_inputs as i64
        }),
        Column::int(
            "many_input_segwit_txs",
            "transactions with a witness and more inputs than --many",
            |row| row.counts.many_input_segwit_txs as i64,
        ),
        Column::int(
            "many_input_legacy_txs",
            "transactions without a witness and with more inputs than --many",
            |row| row.counts.many_input_legacy_txs as i64,
        ),
        Column::int("largest_tx_inputs", "inputs of the transaction with the most", |row| {
            row.counts.largest_tx_inputs as i64
        }),
        Column::int("output_value", "sum of the outputs, satoshi", |row| {
            clamp(row.counts.output_value)
        }),
        Column::int("coinbase_value", "sum of the coinbase's outputs, satoshi", |row| {
            clamp(row.counts.coinbase_value)
        }),
        p0,
        p1,
        p2,
        p3,
        p4,
        p5,
        p6,
        p7,
        p8,
        p9,
        p10,
        p11,
        p12,
        p13,
        p14,
        p15,
        p16,
        p17,
    ]
};

static TX_COLUMNS: [Column<TxRow>; 14] = [
    Column::int("height", "height of the block", |row| i64::from(row.height)),
    Column::int("tx_index", "place in the block; 0 is the coinbase", |row| i64::from(row.index)),
    Column::hash("txid", "txid", |row| tx_id(&row.txid)),
    Column::int("version", "version", |row| i64::from(row.version)),
    Column::int("locktime", "lock time", |row| i64::from(row.lock_time)),
    Column::bool("coinbase", "whether it is the coinbase", |row| row.is_coinbase),
    Column::bool("segwit", "whether it carries a witness", |row| row.is_segwit),
    Column::int("inputs", "inputs; 0 for a coinbase, which spends nothing", |row| {
        i64::from(row.inputs)
    }),
    Column::int("segwit_inputs", "inputs with a witness; 0 for a coinbase", |row| {
        i64::from(row.segwit_inputs)
    }),
    Column::int("outputs", "outputs", |row| i64::from(row.outputs)),
    Column::int("bytes", "serialised bytes, with witnesses", |row| i64::from(row.bytes)),
    Column::int("stripped_bytes", "serialised bytes without witnesses", |row| {
        i64::from(row.stripped_bytes)
    }),
    Column::int("weight", "BIP141 weight", |row| row.weight() as i64),
    Column::int("output_value", "sum of the outputs, satoshi", |row| row.output_value),
];

/// One row for each block.
pub(crate) static BLOCKS: Table<BlockRow> =
    Table { name: "blocks", what: "one row for each block", columns: &BLOCK_COLUMNS };

/// One row for each transaction.
pub(crate) static TXS: Table<TxRow> =
    Table { name: "txs", what: "one row for each transaction", columns: &TX_COLUMNS };

/// The view over the columns of [`BLOCKS`] that count outputs by kind, as SQL.
pub(crate) fn outputs_by_type_view() -> String {
    let part = |kind: &OutputKind| {
        let name = kind.name();
        format!(
            "SELECT height, '{name}' AS type, outputs_{name} AS outputs, value_{name} AS value FROM blocks"
        )
    };
    let parts: Vec<String> = OutputKind::ALL.iter().map(part).collect();
    format!("CREATE VIEW outputs_by_type AS {}", parts.join(" UNION ALL "))
}

/// The tables and the names of their columns, in a few lines.
pub fn list_tables() -> String {
    let mut out = String::new();
    list(BLOCKS.name, BLOCKS.columns.iter().map(|column| column.name), &mut out);
    list(TXS.name, TXS.columns.iter().map(|column| column.name), &mut out);
    list("outputs_by_type", BY_TYPE_COLUMNS.iter().map(|(name, ..)| *name), &mut out);
    out
}

fn list(table: &str, columns: impl Iterator<Item = &'static str>, out: &mut String) {
    let mut line = format!("  {table}:");
    for (index, column) in columns.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        line.push_str(comma);
        if line.len() + column.len() + 2 > LINE_CHARS {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{line}");
            line = String::from("   ");
        }
        let _ = write!(line, " {column}");
    }
    let _ = writeln!(out, "{line}");
}

/// Longest line of a list.
const LINE_CHARS: usize = 100;

/// The columns of the view `outputs_by_type`.
const BY_TYPE_COLUMNS: [(&str, &str, &str); 4] = [
    ("height", "INTEGER", "height of the block"),
    ("type", "TEXT", "p2pk, p2pkh, p2sh, p2wpkh, p2wsh, p2tr, multisig, op_return, other"),
    ("outputs", "INTEGER", "outputs of this kind"),
    ("value", "INTEGER", "their sum, satoshi"),
];

/// The tables with their columns, for people.
pub fn describe_tables() -> String {
    let mut out = String::new();
    describe(&BLOCKS, &mut out);
    describe(&TXS, &mut out);
    out.push_str("outputs_by_type: one row for each block and kind of output\n");
    for (name, kind, what) in BY_TYPE_COLUMNS {
        line(name, kind, what, &mut out);
    }
    out
}

fn describe<R>(table: &Table<R>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}: {}", table.name, table.what);
    for column in table.columns {
        line(column.name, column.sql_type(), column.what, out);
    }
    out.push('\n');
}

fn line(name: &str, kind: &str, what: &str, out: &mut String) {
    let _ = writeln!(out, "  {name:<22} {kind:<8} {what}");
}
