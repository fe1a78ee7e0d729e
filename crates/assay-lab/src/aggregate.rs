//! From blocks to phases.

use crate::plan::Plan;
use crate::results::{Admission, BlockRecord, PhaseResult};
use crate::stats::{median, rate};

const MIB: f64 = 1_048_576.0;

/// Figures per phase, in the order in which the phases first appear.
pub(crate) fn phases(blocks: &[BlockRecord]) -> Vec<PhaseResult> {
    let mut names: Vec<&str> = Vec::new();
    for block in blocks {
        if !names.contains(&block.phase.as_str()) {
            names.push(&block.phase);
        }
    }
    names
        .iter()
        .map(|name| {
            let of_phase: Vec<_> = blocks.iter().filter(|block| block.phase == *name).collect();
            summarise(name, &of_phase)
        })
        .collect()
}

/// Figures over all phases that the plan measures.
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
        admission: admission(blocks),
        seen_measured: rate(sum(|block| block.txs_in_mempool) as f64, candidates as f64),
    }
}

/// The sum; zero of nothing, where the standard library says minus zero.
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
    use crate::report::fixture;

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
    fn nothing_is_zero() {
        let nothing = summarise("nothing", &[]);
        assert!(nothing.tx_per_s.abs() < 1e-12 && nothing.seen_measured.abs() < 1e-12);
        assert_eq!(nothing.cpu_s, Some(0.0));
    }
}
