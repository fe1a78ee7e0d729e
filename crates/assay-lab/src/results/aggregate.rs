//! Aggregates blocks into phases.

use assay_report::stats::{median, rate};

use super::{Admission, BlockDisk, BlockRecord, IndexBlock, IndexPhase, PhaseResult};
use crate::electrum::watch::Reached;
use crate::machine::disk::DiskUse;
use crate::plan::Plan;

const MIB: f64 = 1_048_576.0;

/// Figures per phase, in order of first appearance.
pub(crate) fn phases(blocks: &[BlockRecord]) -> Vec<PhaseResult> {
    by_phase(blocks).iter().map(|(name, of_phase)| summarise(name, of_phase)).collect()
}

/// Blocks by phase, in order of first appearance.
fn by_phase(blocks: &[BlockRecord]) -> Vec<(&str, Vec<&BlockRecord>)> {
    let mut phases: Vec<(&str, Vec<&BlockRecord>)> = Vec::new();
    for block in blocks {
        match phases.iter_mut().find(|(name, _)| *name == block.phase) {
            Some((_, of_phase)) => of_phase.push(block),
            None => phases.push((&block.phase, vec![block])),
        }
    }
    phases
}

/// Records when an index had each block; `reached` has an entry per height from 1, `start` is the disk usage before.
pub(crate) fn note_index(blocks: &mut [BlockRecord], reached: &[Reached], start: Option<DiskUse>) {
    let mut before_s = 0.0_f64;
    let mut disk_before = start;
    for block in blocks {
        let Some(&Reached { at_s, disk }) = reached.get(block.height as usize - 1) else { return };
        let since = |start_s: f64| round_us((at_s - start_s.max(before_s)).max(0.0));
        block.index = Some(IndexBlock {
            reached_at_s: round_us(at_s),
            service_s: since(block.tip_at_s),
            queue_s: round_us((before_s - block.tip_at_s).max(0.0)),
            pair_s: since(block.send_at_s),
            disk: disk.zip(disk_before).map(|(now, before)| now.since(before)),
        });
        before_s = at_s;
        disk_before = disk;
    }
}

fn round_us(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Figures of the index per phase, only for phases with all blocks indexed.
pub(crate) fn index_phases(blocks: &[BlockRecord]) -> Vec<IndexPhase> {
    by_phase(blocks).iter().filter_map(|(name, of_phase)| summarise_index(name, of_phase)).collect()
}

/// Figures of the index over all measured phases.
pub(crate) fn index_total(plan: &Plan, blocks: &[BlockRecord]) -> IndexPhase {
    let measured: Vec<_> = blocks.iter().filter(|block| plan.is_measured(&block.phase)).collect();
    summarise_index("total", &measured).unwrap_or_default()
}

fn summarise_index(name: &str, blocks: &[&BlockRecord]) -> Option<IndexPhase> {
    let stamps: Vec<IndexBlock> = blocks.iter().map(|block| block.index).collect::<Option<_>>()?;
    let sum = |count: fn(&BlockRecord) -> u64| {
        blocks.iter().map(|block| count(block)).sum::<u64>() as f64
    };
    let (seconds, pair_s) = (
        sum_s(stamps.iter().map(|stamp| stamp.service_s)),
        sum_s(stamps.iter().map(|stamp| stamp.pair_s)),
    );
    let lags = blocks.iter().zip(&stamps).map(|(block, at)| at.reached_at_s - block.tip_at_s);
    let txs = blocks.iter().map(|block| block.txs).sum();
    let script_hashes = sum(|block| block.inputs + block.outputs);
    Some(IndexPhase {
        name: name.to_owned(),
        blocks: blocks.len() as u64,
        txs,
        seconds,
        tx_per_s: rate(txs as f64, seconds),
        inputs_per_s: rate(sum(|block| block.inputs), seconds),
        outputs_per_s: rate(sum(|block| block.outputs), seconds),
        mib_per_s: rate(sum(|block| block.bytes) / MIB, seconds),
        queue_s: sum_s(stamps.iter().map(|stamp| stamp.queue_s)),
        lag_s_max: lags.fold(0.0, f64::max),
        pair_s,
        pair_tx_per_s: rate(txs as f64, pair_s),
        pair_inputs_per_s: rate(sum(|block| block.inputs), pair_s),
        script_hashes_per_s: rate(script_hashes, seconds),
        pair_script_hashes_per_s: rate(script_hashes, pair_s),
        disk: stamps.iter().map(|stamp| stamp.disk).sum(),
    })
}

/// Figures over all measured phases.
pub(crate) fn total(plan: &Plan, blocks: &[BlockRecord]) -> PhaseResult {
    let measured: Vec<_> = blocks.iter().filter(|block| plan.is_measured(&block.phase)).collect();
    summarise("total", &measured)
}

fn summarise(name: &str, blocks: &[&BlockRecord]) -> PhaseResult {
    let sum = |count: fn(&BlockRecord) -> u64| blocks.iter().map(|block| count(block)).sum::<u64>();
    let total_s = |time: fn(&BlockRecord) -> f64| sum_s(blocks.iter().map(|block| time(block)));
    let seconds = total_s(|block| block.service_s);
    let (txs, inputs, outputs) =
        (sum(|block| block.txs), sum(|block| block.inputs), sum(|block| block.outputs));
    let (bytes, signatures) = (sum(|block| block.bytes), sum(|block| block.signatures));
    let service: Vec<f64> = blocks.iter().map(|block| block.service_s).collect();
    let cpu: Option<Vec<f64>> = blocks.iter().map(|block| block.cpu_s).collect();
    let disk: Option<BlockDisk> = blocks.iter().map(|block| block.disk).sum();
    let candidates = txs - blocks.len() as u64;
    PhaseResult {
        name: name.to_owned(),
        blocks: blocks.len() as u64,
        txs,
        inputs,
        outputs,
        bytes,
        signatures,
        seconds,
        tx_per_s: rate(txs as f64, seconds),
        inputs_per_s: rate(inputs as f64, seconds),
        outputs_per_s: rate(outputs as f64, seconds),
        mib_per_s: rate(bytes as f64 / MIB, seconds),
        signatures_per_s: rate(signatures as f64, seconds),
        service_s_median: median(&service),
        service_s_max: service.iter().copied().fold(0.0, f64::max),
        rpc_s: total_s(|block| block.reply_at_s - block.send_at_s),
        queue_s: total_s(|block| block.queue_s),
        cpu_s: cpu.map(|cpu| sum_s(cpu.into_iter())),
        disk,
        admission: admission(blocks),
        seen_measured: rate(sum(|block| block.txs_in_mempool) as f64, candidates as f64),
    }
}

/// The sum; zero of an empty iterator, for which the standard library returns minus zero.
fn sum_s(times: impl Iterator<Item = f64>) -> f64 {
    times.fold(0.0, |sum, time| sum + time)
}

fn admission(blocks: &[&BlockRecord]) -> Admission {
    let sum = |count: fn(&BlockRecord) -> u64| blocks.iter().map(|block| count(block)).sum::<u64>();
    let time = |block: &&BlockRecord| Some(block.last_tx_at_s? - block.first_tx_at_s?);
    let seconds = sum_s(blocks.iter().filter_map(time));
    let accepted = sum(|block| block.txs_accepted);
    Admission {
        sent: sum(|block| block.txs_sent),
        accepted,
        bytes: sum(|block| block.txs_sent_bytes),
        seconds,
        tx_per_s: rate(accepted as f64, seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn phases_add_up() {
        let results = fixture::results();
        let run = &results.targets[0].runs[0];
        let phases = phases(&run.blocks);
        assert_eq!(phases.iter().map(|phase| phase.txs).sum::<u64>(), results.chain.txs);
        let total = total(&results.plan, &run.blocks);
        let measured = phases.iter().filter(|phase| results.plan.is_measured(&phase.name));
        let seconds: f64 = measured.map(|phase| phase.seconds).sum();
        assert!((total.seconds - seconds).abs() < 1e-9);
        assert!((total.tx_per_s * total.seconds - total.txs as f64).abs() < 1e-6);
    }

    #[test]
    fn index_time_is_service_or_queue() {
        let mut blocks = fixture::results().targets[0].runs[0].blocks[..4].to_vec();
        for (block, (send_at_s, tip_at_s)) in
            blocks.iter_mut().zip([(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)])
        {
            (block.send_at_s, block.tip_at_s) = (send_at_s, tip_at_s);
        }
        // Before the tip was observed; late; late and together with the next.
        let written = [3, 8, 20, 20].map(|written_bytes| DiskUse { read_bytes: 0, written_bytes });
        let reached = [0.9, 5.0, 7.0, 7.0].into_iter().zip(written);
        let reached: Vec<_> =
            reached.map(|(at_s, disk)| Reached { at_s, disk: Some(disk) }).collect();
        note_index(&mut blocks, &reached, Some(written[0]));
        let stamps: Vec<IndexBlock> = blocks.iter().filter_map(|block| block.index).collect();
        let of = |time: fn(&IndexBlock) -> f64| stamps.iter().map(time).collect::<Vec<_>>();
        assert_eq!(of(|stamp| stamp.service_s), [0.0, 3.0, 2.0, 0.0]);
        assert_eq!(of(|stamp| stamp.queue_s), [0.0, 0.0, 2.0, 3.0]);
        assert_eq!(of(|stamp| stamp.pair_s), [0.9, 4.0, 2.0, 0.0]);
        let [phase] = &index_phases(&blocks)[..] else { panic!("one phase") };
        assert!((phase.seconds - 5.0).abs() < 1e-9 && (phase.queue_s - 5.0).abs() < 1e-9);
        assert!((phase.lag_s_max - 4.0).abs() < 1e-9 && (phase.pair_s - 6.9).abs() < 1e-9);
        assert_eq!(phase.disk, Some(DiskUse { read_bytes: 0, written_bytes: 17 }));
        let scripts: u64 = blocks.iter().map(|block| block.inputs + block.outputs).sum();
        assert!((phase.script_hashes_per_s * 5.0 - scripts as f64).abs() < 1e-6);
        // An index in the node's process has no disk usage of its own.
        note_index(&mut blocks, &reached, None);
        blocks[0].index = blocks[0].index.map(|stamp| IndexBlock { disk: None, ..stamp });
        assert_eq!(index_phases(&blocks)[0].disk, None);
        // An index that did not get there has no figures for the phase.
        blocks[3].index = None;
        assert!(index_phases(&blocks).is_empty());
    }

    #[test]
    fn empty_sums_are_zero() {
        let nothing = summarise("nothing", &[]);
        assert!(nothing.tx_per_s.abs() < 1e-12 && nothing.seen_measured.abs() < 1e-12);
        assert_eq!(nothing.cpu_s, Some(0.0));
    }
}
