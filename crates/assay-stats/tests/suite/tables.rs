//! Parquet files and SQL against the ledger and against each other.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use assay_stats::{
    BLOCKS_FILE, BlockSet, Cell, Detail, Heights, Item, Loaded, OutputKind, ParquetError,
    ParquetWriter, ReadOptions, Source, SqlError, TXS_FILE, describe_tables, list_tables, query,
    read,
};

use crate::support::{BITCOIN, CASH, Forged, all};

fn write(set: &BlockSet, dir: &Path) {
    write_range(set, Heights::ALL, dir);
}

fn write_range(set: &BlockSet, heights: Heights, dir: &Path) {
    let options = ReadOptions { threads: 2, detail: Detail::TxIds, ..ReadOptions::default() };
    let mut writer = ParquetWriter::create(dir, set.params().name, 50).expect("writable");
    read(set, heights, &options, &mut |item| {
        match item {
            Item::Txs(rows) => writer.txs(rows).expect("writable"),
            Item::Block(row) => writer.block(&row).expect("writable"),
            Item::Damage(damage) => panic!("{damage}"),
        }
        ControlFlow::Continue(())
    });
    assert!(writer.finish().expect("writable") > 0);
}

type Answer = (Vec<String>, Vec<Vec<Cell>>, Loaded);

fn ask(sql: &str, source: Source<'_>) -> Result<Answer, SqlError> {
    let (mut names, mut rows) = (Vec::new(), Vec::new());
    let loaded =
        query(sql, source, &mut |_| (), &mut |found| names = found.to_vec(), &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
    Ok((names, rows, loaded))
}

const QUESTIONS: [&str; 9] = [
    "SELECT SUM(txs), SUM(inputs), SUM(outputs), SUM(bytes) FROM blocks",
    "SELECT COUNT(*), SUM(inputs), SUM(outputs) FROM txs",
    "SELECT height, COUNT(*), SUM(bytes), SUM(weight), MAX(inputs) FROM txs GROUP BY height ORDER BY height",
    "SELECT * FROM blocks ORDER BY height",
    "SELECT * FROM txs ORDER BY height, tx_index",
    "SELECT type, SUM(outputs), SUM(value) FROM outputs_by_type GROUP BY type ORDER BY type",
    "SELECT b.hash, t.txid FROM txs t JOIN blocks b USING (height) WHERE t.coinbase ORDER BY b.height",
    "WITH s AS (SELECT segwit, inputs > 50 AS many FROM txs) SELECT segwit, many, COUNT(*) FROM s GROUP BY 1, 2",
    "SELECT 1 + 1 AS two, NULL, 'x', 0.5, x'00'",
];

fn check(forged: &Forged) {
    let set = forged.open(&forged.path());
    let dir = tempfile::tempdir().expect("a folder");
    write(&set, dir.path());
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, [BLOCKS_FILE, TXS_FILE], "no part is left");
    let options = ReadOptions { threads: 2, ..ReadOptions::default() };
    let from_blocks = |sql: &str| ask(sql, Source::Blocks(&set, &options)).expect("an answer");
    let from_parquet = |sql: &str| ask(sql, Source::Parquet(dir.path())).expect("an answer");
    for sql in QUESTIONS {
        let (blocks, parquet) = (from_blocks(sql), from_parquet(sql));
        assert_eq!((&blocks.0, &blocks.1), (&parquet.0, &parquet.1), "{sql}");
        assert!(!blocks.1.is_empty(), "{sql}");
    }
    let tip = &forged.ledger.tip;
    let numbers = |values: &[u64]| values.iter().map(|value| Cell::Int(*value as i64)).collect();
    let sums: Vec<Cell> = numbers(&[tip.txs, tip.inputs, tip.outputs, tip.bytes]);
    assert_eq!(from_blocks(QUESTIONS[0]).1, [sums]);
    let sums: Vec<Cell> = numbers(&[tip.txs, tip.inputs, tip.outputs]);
    assert_eq!(from_blocks(QUESTIONS[1]).1, [sums]);
    let hashes = from_parquet("SELECT hash FROM blocks ORDER BY height").1;
    let of_ledger: Vec<Vec<Cell>> =
        forged.ledger.blocks.iter().map(|line| vec![Cell::Text(line.hash.clone())]).collect();
    assert_eq!(hashes, of_ledger);
    // Bytes of a block are those of its transactions, its header and the count of its transactions.
    let sql = "SELECT COUNT(*) FROM blocks b JOIN (SELECT height, SUM(bytes) AS bytes, COUNT(*) AS n FROM txs GROUP BY 1) t \
               USING (height) WHERE b.bytes <> t.bytes + 80 + CASE WHEN n < 253 THEN 1 WHEN n < 65536 THEN 3 ELSE 5 END";
    assert_eq!(from_parquet(sql).1, [[Cell::Int(0)]]);
}

#[test]
fn sql_over_files_and_over_blocks_equals_the_ledger() {
    all().into_iter().for_each(check);
}

#[test]
fn ranges_of_heights_are_one_chain() {
    let set = BITCOIN.open(&BITCOIN.path());
    let Heights { first, last } = set.heights();
    let (whole, ranges) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    write(&set, whole.path());
    let cuts = [first, first + 1, last / 3, last / 2, last + 1];
    for (number, two) in cuts.windows(2).enumerate() {
        let heights = Heights { first: two[0], last: two[1] - 1 };
        // Names in another order than heights.
        write_range(&set, heights, &ranges.path().join(format!("range-{}", 9 - number)));
    }
    for sql in QUESTIONS {
        let of = |dir: &Path| ask(sql, Source::Parquet(dir)).expect("an answer");
        let (one, many) = (of(whole.path()), of(ranges.path()));
        assert_eq!((one.0, one.1), (many.0, many.1), "{sql}");
    }
    let rejected = |why: &str| {
        let found = ask("SELECT COUNT(*) FROM blocks", Source::Parquet(ranges.path()));
        let error = found.expect_err("not one chain").to_string();
        assert!(error.contains(why), "{error}");
    };
    write_range(&set, Heights { first: last, last }, &ranges.path().join("again"));
    rejected(&format!("both have height {last}"));
    fs::remove_dir_all(ranges.path().join("again")).expect("a folder");
    write(&CASH.open(&CASH.path()), &ranges.path().join("again"));
    rejected("of other chains");
    fs::remove_dir_all(ranges.path()).expect("a folder");
    fs::create_dir(ranges.path()).expect("a folder");
    rejected("neither blocks.parquet there");
}

#[test]
fn only_what_is_named_is_read() {
    let set = BITCOIN.open(&BITCOIN.path());
    let options = ReadOptions::default();
    let loaded = |sql: &str| ask(sql, Source::Blocks(&set, &options)).expect("an answer").2;
    let tip = &BITCOIN.ledger.tip;
    let none = loaded("SELECT 1");
    assert_eq!((none.blocks, none.txs), (0, 0));
    let blocks = loaded("SELECT COUNT(*) FROM outputs_by_type");
    assert_eq!((blocks.blocks, blocks.txs), (u64::from(tip.height), 0));
    assert_eq!(loaded("SELECT MAX(inputs) FROM txs").txs, tip.txs);
    // Columns that joins equate are read although SQLite does not tell of them.
    for join in ["JOIN txs USING (Height)", "NATURAL JOIN (SELECT height FROM txs)"] {
        let sql = format!("SELECT COUNT(*) FROM blocks {join}");
        let answer = ask(&sql, Source::Blocks(&set, &options)).expect("an answer");
        assert_eq!(answer.1, [[Cell::Int(tip.txs as i64)]], "{sql}");
    }
    // A folder without transactions answers questions about blocks.
    let dir = tempfile::tempdir().expect("a folder");
    write(&set, dir.path());
    fs::remove_file(dir.path().join(TXS_FILE)).expect("a file");
    let source = Source::Parquet(dir.path());
    ask("SELECT COUNT(*) FROM blocks", source).expect("an answer");
    let missing = ask("SELECT COUNT(*) FROM txs", source);
    assert!(matches!(missing, Err(SqlError::Parquet(ParquetError::Io { .. }))));
    fs::copy(dir.path().join(BLOCKS_FILE), dir.path().join(TXS_FILE)).expect("a copy");
    let other = ask("SELECT txid FROM txs", source);
    assert!(
        matches!(other, Err(SqlError::Parquet(ParquetError::Column { column: "txid", .. }))),
        "{other:?}"
    );
    fs::write(dir.path().join(BLOCKS_FILE), b"PAR1 is how it begins").expect("a file");
    let damaged = ask("SELECT COUNT(*) FROM blocks", source);
    assert!(matches!(damaged, Err(SqlError::Parquet(ParquetError::Format { .. }))));
}

#[test]
fn mistakes_and_anything_but_queries_are_refused() {
    let set = BITCOIN.open(&BITCOIN.path());
    let options = ReadOptions::default();
    let ask = |sql: &str| ask(sql, Source::Blocks(&set, &options)).map(|_| ());
    let syntax = |sql: &str, part: &str| match ask(sql) {
        Err(SqlError::Syntax { message, .. }) => assert!(message.contains(part), "{message}"),
        other => panic!("{sql}: {other:?}"),
    };
    syntax("SELECT nothing FROM blocks", "nothing");
    syntax("SELECT * FROM transactions", "transactions");
    syntax("SELEC 1", "SELEC");
    for sql in [
        "",
        "-- nothing",
        "DELETE FROM txs",
        "CREATE TABLE t (a)",
        "ATTACH 'other.db' AS o",
        "PRAGMA journal_mode = WAL",
        "SELECT 1; SELECT 2",
        "BEGIN",
        "VACUUM INTO 'copy.db'",
    ] {
        assert!(matches!(ask(sql), Err(SqlError::NotAQuery)), "{sql}: {:?}", ask(sql));
    }
    assert!(matches!(
        ask("SELECT SUM(9223372036854775807) FROM blocks"),
        Err(SqlError::Database(_))
    ));
    // What would not fit into memory.
    for sql in ["SELECT randomblob(100000000)", "SELECT hex(zeroblob(40000000))"] {
        assert!(matches!(ask(sql), Err(SqlError::TooLong { bytes_max: 0x0400_0000 })), "{sql}");
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_what_was_there() {
    let dir = tempfile::tempdir().expect("a folder");
    write(&CASH.open(&CASH.path()), dir.path());
    let before = fs::read(dir.path().join(TXS_FILE)).expect("a file");
    drop(ParquetWriter::create(dir.path(), "regtest", 50).expect("writable"));
    assert_eq!(fs::read(dir.path().join(TXS_FILE)).expect("a file"), before);
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 2);
}

#[test]
fn every_column_is_documented() {
    let formats = include_str!("../../../../docs/formats.md");
    let text = describe_tables();
    let columns = text.lines().filter_map(|line| line.strip_prefix("  "));
    let mut count = 0;
    for name in columns.filter_map(|line| line.split_whitespace().next()) {
        let kind = OutputKind::ALL.iter().find(|kind| {
            ["outputs_", "value_"].iter().any(|sort| name == format!("{sort}{}", kind.name()))
        });
        let wanted = kind.map_or(name, |kind| kind.name());
        assert!(formats.contains(&format!("`{wanted}`")), "{name}");
        assert!(list_tables().contains(name), "{name}");
        count += 1;
    }
    assert_eq!(count, 36 + 14 + 4);
}
