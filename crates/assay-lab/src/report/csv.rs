//! `blocks.csv`: one row per block per run; `curves.csv`: elapsed seconds at heights.

use std::collections::BTreeMap;
use std::fmt::Write;

use assay_report::csv_field;

use super::series::{self, Series};
use crate::results::Results;

const HEAD: &str = "target,run,status,seen_requested,repeat,height,phase,txs,inputs,outputs,bytes,\
signatures,txs_sent,txs_accepted,txs_in_mempool,first_tx_at_s,last_tx_at_s,send_at_s,reply_at_s,\
tip_at_s,service_s,queue_s,cpu_s,index_at_s,index_service_s,index_queue_s,index_pair_s,\
read_bytes,written_bytes,read_bytes_between,written_bytes_between\n";

/// All blocks of all runs. Missing values are empty fields.
pub(super) fn blocks(results: &Results) -> String {
    let mut out = HEAD.to_owned();
    for target in &results.targets {
        for run in &target.runs {
            let status = run.status.as_str();
            let (seen, repeat) = (run.seen_requested, run.repeat);
            let head = format!(
                "{},{},{status},{seen},{repeat}",
                csv_field(&target.name),
                csv_field(&run.id)
            );
            for block in &run.blocks {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    out,
                    "{head},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                    block.height,
                    csv_field(&block.phase),
                    block.txs,
                    block.inputs,
                    block.outputs,
                    block.bytes,
                    block.signatures,
                    block.txs_sent,
                    block.txs_accepted,
                    block.txs_in_mempool,
                    optional(block.first_tx_at_s),
                    optional(block.last_tx_at_s),
                    block.send_at_s,
                    block.reply_at_s,
                    block.tip_at_s,
                    block.service_s,
                    block.queue_s,
                    optional(block.cpu_s),
                    optional(block.index.map(|index| index.reached_at_s)),
                    optional(block.index.map(|index| index.service_s)),
                    optional(block.index.map(|index| index.queue_s)),
                    optional(block.index.map(|index| index.pair_s)),
                    optional(block.disk.map(|disk| disk.service.read_bytes)),
                    optional(block.disk.map(|disk| disk.service.written_bytes)),
                    optional(block.disk.map(|disk| disk.between.read_bytes)),
                    optional(block.disk.map(|disk| disk.between.written_bytes)),
                );
            }
        }
    }
    out
}

/// Elapsed seconds at heights, a column per target, from the median run.
pub(super) fn curves(results: &Results) -> String {
    let all = series::all(results);
    let mut out = "height".to_owned();
    let mut rows: BTreeMap<u32, Vec<Option<f64>>> = BTreeMap::new();
    for (column, series) in all.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(out, ",{}", csv_field(&series.label));
        for block in Series::middle_run(series).iter().flat_map(|run| &run.blocks) {
            let row = rows.entry(block.height).or_insert_with(|| vec![None; all.len()]);
            row[column] = Some(block.tip_at_s);
        }
    }
    for (height, row) in rows {
        let _ = write!(out, "\n{height}");
        for time_s in row {
            let time_s = time_s.map_or_else(String::new, |time_s| format!("{time_s:.3}"));
            let _ = write!(out, ",{time_s}");
        }
    }
    out.push('\n');
    out
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn one_row_per_block_per_run() {
        let results = fixture::results();
        let text = blocks(&results);
        let rows: usize = results.runs().map(|run| run.blocks.len()).sum();
        assert_eq!(text.lines().count(), rows + 1);
        let commas = |line: &str| line.matches(',').count();
        assert!(text.lines().all(|line| commas(line) == commas(HEAD)));
        let shown: Vec<&str> = text.lines().take(4).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn curves_have_a_column_for_each_target() {
        let results = fixture::syncs();
        let wide = curves(&results);
        let heights = results.targets[0].runs[0].blocks.len();
        assert_eq!(wide.lines().count(), heights + 1);
        assert!(wide.starts_with("height,assay,bchn-28.0.1\n1,0.002,0.002\n"), "{wide:.80}");
        assert!(wide.lines().all(|line| line.matches(',').count() == 2));
    }
}
