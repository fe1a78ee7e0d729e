//! `assay chain sql`.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use anyhow::{Context, bail};
use assay_report::Table;
use assay_report::csv::field;
use assay_stats::{
    Cell, Heights, Loaded, ReadOptions, Source, SqlError, describe_tables, list_tables, query,
};

use faster_hex::hex_string;

use super::source;
use crate::Outcome;
use crate::bar::Bar;
use crate::cli::SqlArguments;
use crate::output;

/// Rows that a table for people shows, bytes of them, and characters of one value: all of it is held until its columns
/// can be aligned.
const ROWS_SHOWN: usize = 10_000;
const BYTES_SHOWN: usize = 16 << 20;
const CHARS_SHOWN: usize = 500;

pub(crate) fn run(arguments: &SqlArguments) -> anyhow::Result<Outcome> {
    let Some(sql) = arguments.sql.as_deref().filter(|_| !arguments.tables) else {
        output::print(&describe_tables())?;
        return Ok(Outcome::Good);
    };
    source::need_tables()?;
    let loaded = match (&arguments.blocks, &arguments.parquet) {
        (_, Some(dir)) => ask(arguments, sql, Source::Parquet(dir), None)?,
        (Some(blocks), None) => {
            let ledger = source::ledger(blocks, None)?;
            let threads = source::threads(arguments.threads);
            let set = source::open(blocks, arguments.chain.as_deref(), ledger.as_ref(), threads)?;
            let options =
                ReadOptions { threads, many_inputs: arguments.many, ..ReadOptions::default() };
            let Heights { first, last } = set.heights();
            let count = u64::from(last - first) + 1;
            ask(arguments, sql, Source::Blocks(&set, &options), Some(count))?
        }
        (None, None) => bail!("name --blocks or --parquet"),
    };
    source::tell_damage(&loaded.damage, loaded.damage_count);
    Ok(if loaded.damage_count == 0 { Outcome::Good } else { Outcome::Negative })
}

fn ask(
    arguments: &SqlArguments,
    sql: &str,
    source: Source<'_>,
    blocks: Option<u64>,
) -> anyhow::Result<Loaded> {
    let form = match (arguments.csv, arguments.json) {
        (true, _) => Form::Csv,
        (false, true) => Form::Json,
        (false, false) => Form::Table(Table::new("", &[], 0)),
    };
    let mut answer = Answer {
        out: BufWriter::new(io::stdout().lock()),
        form,
        rows: 0,
        bytes: 0,
        cut: Cut::default(),
        failed: None,
    };
    let bar = Bar::new("reading [{bar:25}] {pos}/{len} blocks  {per_sec}  ETA {eta}");
    let answer_cell = std::cell::RefCell::new(&mut answer);
    let outcome = query(
        sql,
        source,
        &mut |loaded| {
            if let Some(total) = blocks {
                bar.set(loaded.blocks, total);
            }
        },
        &mut |names| answer_cell.borrow_mut().begin(names),
        &mut |row| answer_cell.borrow_mut().row(&row),
    );
    drop(bar);
    let loaded = match outcome {
        Ok(loaded) => loaded,
        Err(SqlError::Syntax { message, offset }) => {
            bail!(
                "{}\n\nThere are these tables (`assay chain sql --tables` says what they hold):\n{}",
                mark(sql, &message, offset),
                list_tables().trim_end()
            )
        }
        Err(error) => return Err(error.into()),
    };
    answer.end()?;
    Ok(loaded)
}

/// The message with the line it is about.
fn mark(sql: &str, message: &str, offset: Option<usize>) -> String {
    let mut text = format!("SQL: {message}");
    let Some((before, _)) = offset.and_then(|offset| sql.split_at_checked(offset)) else {
        return text;
    };
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = sql[line_start..].lines().next().unwrap_or_default();
    let column = before[line_start..].chars().count();
    // Writing to a string cannot fail.
    let _ = write!(text, "\n  {line}\n  {}^", " ".repeat(column));
    text
}

enum Form {
    /// For people, at the end.
    Table(Table),
    Csv,
    Json,
}

/// Standard output, row by row.
struct Answer<W: Write> {
    out: W,
    form: Form,
    rows: usize,
    /// Bytes that a table for people holds.
    bytes: usize,
    cut: Cut,
    failed: Option<io::Error>,
}

/// What a table for people does not show.
#[derive(Default)]
struct Cut {
    rows: bool,
    values: bool,
}

impl<W: Write> Answer<W> {
    fn begin(&mut self, names: &[String]) {
        let text = match &mut self.form {
            Form::Table(table) => {
                table.head = names.to_vec();
                return;
            }
            Form::Csv => {
                let names: Vec<String> = names.iter().map(|name| field(name)).collect();
                format!("{}\n", names.join(","))
            }
            Form::Json => format!(
                "{{\n\"schema\": 1,\n\"columns\": {},\n\"rows\": [",
                serde_json::Value::from(names)
            ),
        };
        self.put(&text);
    }

    fn row(&mut self, cells: &[Cell]) -> ControlFlow<()> {
        let text = match &mut self.form {
            Form::Table(_) if self.rows >= ROWS_SHOWN || self.bytes >= BYTES_SHOWN => {
                // There may be no end to them.
                self.cut.rows = true;
                return ControlFlow::Break(());
            }
            Form::Table(table) => {
                let cells: Vec<String> =
                    cells.iter().map(|cell| short(shown(cell), &mut self.cut.values)).collect();
                self.rows += 1;
                self.bytes += cells.iter().map(String::len).sum::<usize>();
                table.rows.push(cells);
                return ControlFlow::Continue(());
            }
            Form::Csv => {
                let cells: Vec<String> = cells.iter().map(csv_cell).collect();
                format!("{}\n", cells.join(","))
            }
            Form::Json => {
                let comma = if self.rows == 0 { "" } else { "," };
                let cells: serde_json::Value = cells.iter().map(json_cell).collect();
                format!("{comma}\n{cells}")
            }
        };
        self.rows += 1;
        self.put(&text);
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn end(mut self) -> anyhow::Result<()> {
        match &self.form {
            Form::Table(table) => {
                let mut text = String::new();
                table.text(&mut text);
                let text = text.trim_start_matches('\n').to_owned();
                self.put(&text);
                if self.cut.rows {
                    output::complain(&format!(
                        "only the first {} rows are shown; --csv and --json give all",
                        self.rows
                    ));
                }
                if self.cut.values {
                    output::complain(&format!(
                        "values are cut after {CHARS_SHOWN} characters; --csv and --json give all"
                    ));
                }
            }
            Form::Csv => {}
            Form::Json => self.put("\n]\n}\n"),
        }
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
        .context("cannot write to standard output")
    }

    fn put(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).err();
        }
    }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Int(value) => value.to_string(),
        Cell::Real(value) => value.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Blob(bytes) => hex_string(bytes),
    }
}

/// A value on one line of a table.
fn short(text: String, is_cut: &mut bool) -> String {
    let end = text.char_indices().nth(CHARS_SHOWN).map(|(end, _)| end);
    if end.is_none() && !text.contains(char::is_control) {
        return text;
    }
    *is_cut |= end.is_some();
    let kept = text[..end.unwrap_or(text.len())].chars();
    let mut line: String = kept.map(|c| if c.is_control() { ' ' } else { c }).collect();
    if end.is_some() {
        line.push('…');
    }
    line
}

fn csv_cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => field(text),
        other => shown(other),
    }
}

fn json_cell(cell: &Cell) -> serde_json::Value {
    match cell {
        Cell::Null => serde_json::Value::Null,
        Cell::Int(value) => (*value).into(),
        Cell::Real(value) => (*value).into(),
        Cell::Text(text) => text.as_str().into(),
        Cell::Blob(bytes) => hex_string(bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_quoted_and_errors_point_at_their_place() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(csv_cell(&Cell::Blob(vec![0, 255])), "00ff");
        assert_eq!(
            mark("SELECT 1\nFROM é x", "no such table: x", Some(16)),
            "SQL: no such table: x\n  FROM é x\n         ^".replace("         ^", "        ^")
        );
        assert_eq!(mark("x", "bad", Some(9)), "SQL: bad");
    }

    #[test]
    fn values_of_a_table_stay_on_one_short_line() {
        let mut is_cut = false;
        assert_eq!(short("a\nb".to_owned(), &mut is_cut), "a b");
        let whole = "é".repeat(CHARS_SHOWN);
        assert_eq!(short(whole.clone(), &mut is_cut), whole);
        assert!(!is_cut);
        assert_eq!(short(format!("{whole}x"), &mut is_cut), format!("{whole}…"));
        assert!(is_cut);
    }
}
