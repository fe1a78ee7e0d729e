//! Synthetic results for tests of the report.

use std::collections::BTreeMap;

use assay_report::number::in_percent;

use super::{
    BlockDisk, BlockRecord, ChainSummary, Check, IndexInfo, IndexRun, Results, Run, SCHEMA, Status,
    TargetResults, aggregate,
};
use crate::electrum::check::LedgerCheck;
use crate::electrum::watch::Reached;
use crate::machine::disk::DiskUse;
use crate::machine::{Machine, ReferenceRate, Software};
use crate::plan::{Delivery, IndexKind, Plan};
use crate::process::sample::Samples;

/// Phase, blocks, transactions per block without the coinbase, inputs and outputs of each.
const PHASES: [(&str, u32, u64, u64, u64); 6] = [
    ("maturity", 100, 0, 0, 0),
    ("fan-out", 10, 3_564, 1, 26),
    ("steady-1", 5, 1_360, 25, 2),
    ("fan-in", 2, 42, 64, 1),
    ("steady-2", 5, 1_200, 1, 2),
    ("steady-3", 5, 1_500, 2, 2),
];

/// A plan of two targets with 0 % and 90 % pre-relayed; the first has an index.
pub(crate) fn results() -> Results {
    let mut results = node_results();
    let target = &mut results.targets[0];
    target.name.push_str("+index");
    target.index = Some(IndexInfo { kind: IndexKind::Own, version: "Assay 0.1.0".to_owned() });
    for run in &mut target.runs {
        run.id = run.id.replace("assay", "assay+index");
        let late = |block: &BlockRecord| block.tip_at_s + 0.0007 + 2e-8 * block.outputs as f64;
        let reached = |block: &BlockRecord| Reached { at_s: late(block), disk: None };
        let reached: Vec<Reached> = run.blocks.iter().map(reached).collect();
        aggregate::note_index(&mut run.blocks, &reached, None);
        run.index = Some(index_run(&results.plan, run));
        run.checks.push(Check {
            what: "index: header of the tip".to_owned(),
            expected: "00".repeat(80),
            found: Some("00".repeat(80)),
        });
    }
    results
}

fn index_run(plan: &Plan, run: &Run) -> IndexRun {
    IndexRun {
        server: "Assay 0.1.0".to_owned(),
        protocol: "1.6".to_owned(),
        phases: aggregate::index_phases(&run.blocks),
        total: aggregate::index_total(plan, &run.blocks),
        lag_end_s: Some(0.0008),
        ledger: Some(LedgerCheck {
            scripts: 31_000,
            scripts_total: 31_000,
            history: 950_000,
            unspent: 900_000,
            seconds: 4.0,
            ..LedgerCheck::default()
        }),
        index_bytes: Some(60 << 20),
        node_bytes: Some(140 << 20),
        cpu_s: Some(21.0),
        rss_peak_bytes: Some(170 << 20),
        written_bytes: Some(260 << 20),
        ..IndexRun::default()
    }
}

/// Two targets on transactions of several widths: one hashes ten times as fast as the other.
pub(crate) fn scaling_results() -> Results {
    let mut results = node_results();
    results.plan = Plan::builtin("sighash-scaling").expect("a built-in plan is valid");
    results.plan.scaling.truncate(2);
    let template = results.targets[0].runs[0].blocks[0].clone();
    for (target, hash_s) in results.targets.iter_mut().zip([3e-9, 30e-9]) {
        target.runs.truncate(1);
        for run in &mut target.runs {
            let mut blocks = Vec::new();
            for (series, growing) in [("legacy", hash_s), ("segwit", 0.0)] {
                for width in [1, 10, 100, 500, 1000, 2500, 5000u32] {
                    for block in 0..4u32 {
                        let uneven = 1.0 + 0.01 * f64::from(block);
                        let n = f64::from(width);
                        let service_s = 5000.0 * (15e-6 + 3e-6 / n + growing * n) * uneven;
                        let send_at_s = blocks.len() as f64;
                        blocks.push(BlockRecord {
                            height: blocks.len() as u32 + 1,
                            phase: format!("{series}-{width}"),
                            txs: 1 + u64::from(5000 / width),
                            inputs: 5000,
                            signatures: 5000,
                            send_at_s,
                            tip_at_s: send_at_s + service_s,
                            service_s,
                            ..template.clone()
                        });
                    }
                }
            }
            run.phases = aggregate::phases(&blocks);
            run.total = aggregate::total(&results.plan, &blocks);
            run.blocks = blocks;
        }
    }
    results
}

/// The same without an index.
pub(crate) fn node_results() -> Results {
    let plan = Plan::builtin("bch-scaling").expect("a built-in plan is valid");
    let targets =
        [("assay", "assay", "Assay 0.1.0", 1.0), ("bchn-28.0.1", "bchn", "BCHN v28.0.1", 6.0)];
    let run = |name: &str, seen: f64, slowness: f64| run(&plan, name, seen, slowness);
    let targets: Vec<TargetResults> = targets
        .iter()
        .map(|(name, family, version, slowness)| TargetResults {
            name: (*name).to_owned(),
            family: (*family).to_owned(),
            version: (*version).to_owned(),
            runs: vec![run(name, 0.0, *slowness), run(name, 0.9, *slowness)],
            ..TargetResults::default()
        })
        .collect();
    let all = &targets[0].runs[0].blocks;
    let sum = |count: fn(&BlockRecord) -> u64| all.iter().map(count).sum::<u64>();
    let chain = ChainSummary {
        recipe: "bch-scaling".to_owned(),
        chain: "bch-regtest".to_owned(),
        seed: 1,
        scale: 0.02,
        variant: "intended".to_owned(),
        assay_version: "0.1.0".to_owned(),
        recipe_sha256: Some("00".repeat(32)),
        height: all.len() as u32,
        tip: "aa".repeat(32),
        utxo_count: 900_000,
        utxo_amount: 635_000_000_000,
        utxo_muhash: "bb".repeat(32),
        txs: sum(|block| block.txs),
        inputs: sum(|block| block.inputs),
        outputs: sum(|block| block.outputs),
        bytes: sum(|block| block.bytes),
        signatures: sum(|block| block.signatures),
        forge_s: Some(6.5),
        ..ChainSummary::default()
    };
    let reference_rate = |rate: f64| ReferenceRate {
        library: Some("libsecp256k1".to_owned()),
        ecdsa_verify_per_s: Some(rate),
        schnorr_verify_per_s: Some(rate),
        ecdsa_sign_per_s: Some(rate * 1.4),
        schnorr_sign_per_s: None,
        batch_ecdsa_verify_per_s: Some(4.0 * rate),
        batch_backend: Some("avx2".to_owned()),
    };
    Results {
        schema: SCHEMA,
        created: "2026-01-02T03:04:05Z".to_owned(),
        plan,
        chain,
        more_chains: Vec::new(),
        machine: Machine {
            cpu: Some("Example Processor".to_owned()),
            cores: 2,
            memory_bytes: Some(24 << 30),
            virtual_machine: true,
            ..Machine::default()
        },
        software: Software {
            assay: "0.1.0".to_owned(),
            rustc: "rustc 1.95.0".to_owned(),
            profile: "release".to_owned(),
            ..Software::default()
        },
        reference_rates: vec![reference_rate(38_000.0), reference_rate(37_000.0)],
        targets,
        rerun: "assay run bch-scaling --out results".to_owned(),
        pairs_planned: None,
        unable: Vec::new(),
        profiles: Vec::new(),
    }
}

fn run(plan: &Plan, target: &str, seen: f64, slowness: f64) -> Run {
    let blocks = blocks(seen, slowness);
    let total = aggregate::total(plan, &blocks);
    let found = |what: &str, value: String, found: bool| Check {
        what: what.to_owned(),
        expected: value.clone(),
        found: found.then_some(value),
    };
    let has_muhash = target == "assay";
    let tx_errors = [("-26: dust".to_owned(), 3)];
    Run {
        id: format!("{target}-{}", in_percent(seen)),
        status: Status::Valid,
        seen_requested: seen,
        seen_measured: total.seen_measured,
        started: "2026-01-02T03:00:00Z".to_owned(),
        tip: Some("aa".repeat(32)),
        utxo_muhash: has_muhash.then(|| "bb".repeat(32)),
        command: vec![target.to_owned(), "-datadir=<new>".to_owned()],
        phases: aggregate::phases(&blocks),
        total,
        checks: vec![
            found("tip", "aa".repeat(32), true),
            found("UTXO MuHash", "bb".repeat(32), has_muhash),
        ],
        tx_errors: if seen > 0.0 { BTreeMap::from(tx_errors) } else { BTreeMap::new() },
        startup_s: Some(0.25),
        shutdown_s: Some(0.5 * slowness),
        samples: samples(blocks.last().map_or(0.0, |block| block.tip_at_s), has_muhash),
        blocks,
        lab_cpu_s: Some(0.31),
        control_ns: vec![100_000_000, 101_500_000],
        ..Run::default()
    }
}

fn blocks(seen: f64, slowness: f64) -> Vec<BlockRecord> {
    let (mut height, mut now_s, mut out) = (0, 0.5, Vec::new());
    for (phase, count, txs, inputs, outputs) in PHASES {
        for index in 0..count {
            height += 1;
            let bytes = 181 + txs * (10 + 147 * inputs + 34 * outputs);
            let sent = (txs as f64 * seen).floor() as u64;
            let uneven = 1.0 + 0.1 * f64::from(index % 3);
            let admission_s = sent as f64 * inputs as f64 * 20e-6 * slowness;
            let work_s = (txs * inputs) as f64 * 15e-6 * (1.0 - 0.8 * seen);
            let service_s = (0.0004 + (work_s + bytes as f64 * 2e-9) * slowness) * uneven;
            let send_at_s = now_s + admission_s + 0.0005;
            out.push(BlockRecord {
                height,
                phase: phase.to_owned(),
                txs: txs + 1,
                inputs: txs * inputs,
                outputs: txs * outputs + 1,
                bytes,
                signatures: txs * inputs,
                txs_sent: sent,
                txs_accepted: sent,
                txs_sent_bytes: sent * 500,
                txs_in_mempool: sent,
                first_tx_at_s: (sent > 0).then_some(now_s),
                last_tx_at_s: (sent > 0).then_some(now_s + admission_s),
                send_at_s,
                reply_at_s: send_at_s + service_s,
                tip_at_s: send_at_s + service_s,
                service_s,
                queue_s: 0.0005,
                cpu_s: Some(service_s * 1.8),
                disk: Some(BlockDisk {
                    service: DiskUse { read_bytes: 0, written_bytes: bytes },
                    between: DiskUse { read_bytes: 0, written_bytes: sent * 100 },
                }),
                ..BlockRecord::default()
            });
            now_s = send_at_s + service_s;
        }
    }
    out
}

fn samples(until_s: f64, has_disk: bool) -> Samples {
    let count = (until_s * 10.0) as usize + 1;
    let column = |value: fn(f64) -> f64| (0..count).map(move |index| value(index as f64 / 10.0));
    let bytes = |per_s: fn(f64) -> f64| column(per_s).map(|bytes| Some(bytes as u64));
    Samples {
        period_s: 0.1,
        time_s: column(|time| time).collect(),
        cpu_s: column(|time| 1.7 * time).map(Some).collect(),
        rss_bytes: bytes(|time| 4e7 + 3e7 * time.sqrt()).collect(),
        read_bytes: bytes(|_| 0.0).map(|bytes| bytes.filter(|_| has_disk)).collect(),
        write_bytes: bytes(|time| 2e7 * time).map(|bytes| bytes.filter(|_| has_disk)).collect(),
        threads: vec![Some(6); count],
        rss_peak_bytes: Some(150 << 20),
    }
}

/// Two builds that sync the same chain in four rounds; the second is a quarter faster in the later half, with its own delivery.
pub(crate) fn syncs() -> Results {
    let mut results = node_results();
    results.plan.feed.by = Delivery::Peer;
    results.plan.feed.seen = vec![0.0];
    results.plan.runs.repeat = 4;
    results.pairs_planned = Some(4);
    for (number, target) in results.targets.iter_mut().enumerate() {
        let model = target.runs[0].clone();
        if number == 1 {
            target.delivery = Some("files".to_owned());
        }
        target.runs =
            (0..4).map(|repeat| sync_run(&results.plan, &model, number, repeat)).collect();
    }
    results
}

fn sync_run(plan: &Plan, model: &Run, target: usize, repeat: u32) -> Run {
    let luck = [1.0, 1.02, 0.99, 1.005][repeat as usize % 4];
    let mut blocks = model.blocks.clone();
    let (half, mut now_s) = (blocks.len() / 2, 0.0);
    for (index, block) in blocks.iter_mut().enumerate() {
        let faster = if target == 1 && index > half { 0.75 } else { 1.0 };
        let service_s = (0.002 + block.inputs as f64 * 1e-5) * luck * faster;
        block.send_at_s = now_s;
        now_s += service_s;
        (block.reply_at_s, block.tip_at_s, block.service_s) = (now_s, now_s, service_s);
        block.queue_s = 0.0;
    }
    // ABBA order.
    let place = u32::try_from(target).unwrap_or_default();
    let turn = 2 * repeat + if repeat.is_multiple_of(2) { place } else { 1 - place };
    Run {
        id: format!("{}-{}", model.id, repeat + 1),
        repeat,
        started: format!("2026-01-02T03:{turn:02}:00.000Z"),
        phases: aggregate::phases(&blocks),
        total: aggregate::total(plan, &blocks),
        control_ns: vec![100_000_000, 100_500_000],
        blocks,
        ..model.clone()
    }
}
