//! Rows as CSV and JSON.

use std::fmt::Write;

use assay_report::csv_field;
use serde_json::{Map, Value, json};

use super::{Row, STEPS, Steps, Txs};

/// Version of the JSON that `assay logs` prints.
pub const SCHEMA: u32 = 2;

/// CSV columns of a row, followed by those of [`STEPS`].
pub const CSV_HEAD: &str = "file,line,session,format,meaning,height,elapsed_s,running_s,clock_s,\
                            txs_total,txs,blocks,inputs,cache_bytes,cache_coins,share,background,\
                            hash,step_txs,step_inputs";

const MIB: f64 = 1_048_576.0;

pub fn csv_row(file: &str, row: &Row, out: &mut String) {
    let progress = &row.progress;
    out.push_str(&csv_field(file));
    // Writing to a string cannot fail.
    let _ = write!(out, ",{},{},", row.line, row.session);
    out.push_str(&csv_field(progress.format.name()));
    let _ = write!(out, ",");
    out.push_str(&csv_field(&progress.format.meaning().to_string()));
    let _ = write!(out, ",{}", progress.height);
    for seconds in [row.elapsed_s, row.running_s, clock_s(row)] {
        cell(seconds.map(|seconds| format!("{seconds:.6}")), out);
    }
    cell(row.txs_total, out);
    cell(txs(row), out);
    cell(progress.blocks, out);
    cell(progress.inputs, out);
    cell(progress.cache_bytes, out);
    cell(progress.cache_coins, out);
    cell(progress.share, out);
    let _ = write!(out, ",{},", progress.background);
    if let Some(hash) = progress.hash {
        out.push_str(&faster_hex::hex_string(&hash));
    }
    let steps = row.steps.unwrap_or_default();
    cell(steps.txs, out);
    cell(steps.inputs, out);
    for ms in steps.ms {
        cell(ms, out);
    }
    out.push('\n');
}

/// A row as JSON without unknown values.
pub fn json_row(file: &str, row: &Row) -> Value {
    let progress = &row.progress;
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            object.insert(key.to_owned(), value);
        }
    };
    put("file", json!(file));
    put("line", json!(row.line));
    put("session", json!(row.session));
    put("format", json!(progress.format.name()));
    put("meaning", json!(progress.format.meaning().to_string()));
    put("height", json!(progress.height));
    put("elapsed_s", json!(row.elapsed_s));
    put("running_s", json!(row.running_s));
    put("clock_s", json!(clock_s(row)));
    put("txs_total", json!(row.txs_total));
    put("txs", json!(txs(row)));
    put("blocks", json!(progress.blocks));
    put("inputs", json!(progress.inputs));
    put("cache_bytes", json!(progress.cache_bytes));
    put("cache_mib", json!(progress.cache_bytes.map(|bytes| bytes as f64 / MIB)));
    put("cache_coins", json!(progress.cache_coins));
    put("share", json!(progress.share));
    put("background", if progress.background { json!(true) } else { Value::Null });
    put("hash", json!(progress.hash.map(|hash| faster_hex::hex_string(&hash))));
    put("steps", row.steps.as_ref().map_or(Value::Null, json_steps));
    Value::Object(object)
}

fn json_steps(steps: &Steps) -> Value {
    let mut object = Map::new();
    let counts = [("txs", steps.txs), ("inputs", steps.inputs)];
    for (name, count) in counts.into_iter().filter_map(|(name, count)| Some((name, count?))) {
        object.insert(name.to_owned(), json!(count));
    }
    for ((_, _, column), ms) in STEPS.into_iter().zip(steps.ms) {
        if let Some(ms) = ms {
            object.insert(column.to_owned(), json!(ms));
        }
    }
    Value::Object(object)
}

/// The log's own clock, if it has a date.
fn clock_s(row: &Row) -> Option<f64> {
    row.progress.stamp.filter(|stamp| stamp.is_dated).map(|stamp| stamp.us as f64 / 1e6)
}

/// Transactions since the previous line, or of the block, depending on the line.
fn txs(row: &Row) -> Option<u64> {
    match row.progress.txs {
        Txs::Since(txs) | Txs::OfBlock(txs) => Some(txs),
        _ => None,
    }
}

fn cell(value: Option<impl std::fmt::Display>, out: &mut String) {
    out.push(',');
    if let Some(value) = value {
        let _ = write!(out, "{value}");
    }
}
