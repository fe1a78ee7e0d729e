//! Block connection during attacks on the mempool.
//!
//! Blocks form pairs: one without other load, one while hostile threads submit continuously. Some threads submit clusters of 64
//! tangled transactions, each cluster paying slightly more than the previous one, so that a full mempool always evicts. The
//! others repeatedly submit one replacement that conflicts with a hundred such clusters and pays for them, but would reduce
//! miners' income; every second time with another txid.

mod chain;
mod hostile;
mod report;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

use anyhow::Result;
use assay_engine::{Config, Engine, SubmitOutcome};

use self::chain::{CoinOf, Mint, MintedBlock};
use self::hostile::{COINS_PER_CLUSTER, Cluster, VICTIMS, replacement, variant};
use crate::{chain, open_engine, temporary_folder, threads};
use assay_bench::options::MempoolOptions;
use assay_bench::{Progress, experiment, wrong_answer};
use assay_report::record::Record;
use assay_report::stats::random::SplitMix64;

const WARM_UP: usize = 2;
/// Fee rate of the first hostile cluster, thousandths of a satoshi per virtual byte.
const RATE_FIRST: i64 = 2000;
/// Increase of the fee rate from cluster to cluster.
const RATE_STEP: i64 = 20;
/// Above all hostile clusters' rates.
const RATE_ABOVE: i64 = 40_000;
/// Upper bound of a cluster's memory in the mempool: half of all hostile clusters fit, with room for two more.
const CLUSTER_BYTES: u64 = 147_500;

/// Work of hostile threads until they are stopped.
struct Attack<'a> {
    engine: &'a Engine,
    clusters: &'a [Cluster],
    replacement: &'a [u8],
    /// Held in shared mode during a submission, exclusively to pause submissions.
    gate: RwLock<()>,
    is_over: AtomicBool,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    /// Seconds until each replacement was rejected.
    replacements_s: Vec<f64>,
    /// Seconds per transaction of a cluster.
    clusters_s: Vec<f64>,
    verdicts: BTreeMap<String, u64>,
    wrong: Option<String>,
}

pub(crate) fn run(options: &MempoolOptions, progress: &dyn Progress) -> Result<Record> {
    let threads = threads(options.threads);
    let options = &MempoolOptions { threads, ..options.clone() };
    let (clusters, txs) = (options.clusters.get(), options.txs.get());
    let record = experiment::record("mempool");
    let dir = temporary_folder()?;
    let engine = open(dir.path(), options)?;
    let coins_wanted = (clusters + VICTIMS) * COINS_PER_CLUSTER + txs;
    let (mut mint, blocks, mut coins) = Mint::new(engine.params(), coins_wanted);
    for block in &blocks {
        submit(&engine, block)?;
    }
    let mut moving = coins.split_off(coins.len() - txs);
    let (victims, clusters) = hostile_clusters(options, &coins);
    // Fills up with other clusters: the mempool is full from the first hostile transaction on.
    let (first, others) = clusters.split_at(clusters.len() / 2);
    for cluster in victims.iter().chain(first) {
        fill(&engine, cluster)?;
    }
    let replacement = replacement(&victims);
    let attack = Attack {
        engine: &engine,
        clusters: others,
        replacement: &replacement,
        gate: RwLock::new(()),
        is_over: AtomicBool::new(false),
        tally: Mutex::default(),
    };
    let times = attack.run(options, &mut mint, &mut moving, progress)?;
    let tally = attack.tally.into_inner().unwrap_or_default();
    check(&engine, &victims, &moving, tally.wrong.as_deref())?;
    Ok(report::fill(record, options, &times, &tally, moving.len() as u64))
}

fn open(dir: &Path, options: &MempoolOptions) -> Result<Engine> {
    let mut config = Config::new(dir, Arc::new(chain("regtest")));
    config.threads = options.threads;
    config.cache_bytes_max = 450 << 20;
    config.mempool_bytes_max = (2 + VICTIMS + options.clusters.get() / 2) as u64 * CLUSTER_BYTES;
    config.persist_mempool = false;
    open_engine(config)
}

/// The clusters that stay, and those that hostile threads submit.
fn hostile_clusters(options: &MempoolOptions, coins: &[CoinOf]) -> (Vec<Cluster>, Vec<Cluster>) {
    let mut random = SplitMix64::new(options.seed);
    let mut coins = coins.chunks_exact(COINS_PER_CLUSTER);
    let mut next =
        |rate| Cluster::new(&mut random, coins.next().expect("coins for each cluster"), rate);
    let count = options.clusters.get() as i64;
    let victims = (0..VICTIMS).map(|_| next(RATE_ABOVE + RATE_STEP * count)).collect();
    let clusters = (0..count).map(|number| next(RATE_FIRST + RATE_STEP * number));
    (victims, clusters.collect())
}

/// Adds a cluster to the mempool while it fits.
fn fill(engine: &Engine, cluster: &Cluster) -> Result<()> {
    let raws = cluster.txs.iter().map(|tx| tx.bytes().to_vec()).collect();
    let verdicts = engine.mempool().submit_all(raws, None);
    let reject = verdicts.into_iter().find_map(Result::err);
    reject.map_or(Ok(()), |reject| {
        Err(wrong(format!("one of the first clusters is not admitted: {}", reject.reason)))
    })
}

/// Connects a block, and returns the seconds taken.
fn submit(engine: &Engine, (expected, raw): &MintedBlock) -> Result<f64> {
    let raw = raw.clone();
    let start = Instant::now();
    let outcome = engine.blocks().submit(raw);
    let elapsed_s = start.elapsed().as_secs_f64();
    let tip = engine.chain().tip();
    match outcome {
        SubmitOutcome::Accepted if (tip.height, tip.hash) == (expected.height, expected.hash) => {
            Ok(elapsed_s)
        }
        other => Err(crate::own_block(expected.height, &other)),
    }
}

impl Attack<'_> {
    /// Seconds of each block: without load, and under attack.
    fn run(
        &self,
        options: &MempoolOptions,
        mint: &mut Mint,
        moving: &mut [CoinOf],
        progress: &dyn Progress,
    ) -> Result<[Vec<f64>; 2]> {
        let count = WARM_UP + options.blocks.get();
        progress.begin("blocks under attack", count as u64);
        std::thread::scope(|scope| {
            let hostile_threads = options.hostile_threads.get();
            for thread in 0..hostile_threads {
                scope.spawn(move || self.submit_until_over(thread, hostile_threads));
            }
            let mut times = [Vec::new(), Vec::new()];
            let mut measure = || -> Result<()> {
                for round in 0..count {
                    let (quiet, attacked) = (mint.moving(moving), mint.moving(moving));
                    let alone = self.gate.write();
                    let quiet_s = submit(self.engine, &quiet)?;
                    drop(alone);
                    std::thread::sleep(options.lead);
                    let attacked_s = submit(self.engine, &attacked)?;
                    if round >= WARM_UP {
                        times[0].push(quiet_s);
                        times[1].push(attacked_s);
                    }
                    progress.step();
                }
                Ok(())
            };
            let outcome = measure();
            self.is_over.store(true, Ordering::Release);
            outcome.map(|()| times)
        })
    }

    fn submit_until_over(&self, thread: usize, threads: usize) {
        let mut clusters = self.clusters.iter().flat_map(|cluster| &cluster.txs).cycle();
        let mut number = thread as u32;
        while !self.is_over.load(Ordering::Acquire) {
            let turn = if threads == 1 { number as usize } else { thread };
            let is_replacement = turn.is_multiple_of(2);
            let raw = if is_replacement {
                // Every second one repeats the previous one.
                variant(self.replacement, number / 4 * threads as u32 + thread as u32)
            } else {
                clusters.next().expect("there are clusters").bytes().to_vec()
            };
            number = number.wrapping_add(1);
            let quiet = self.gate.read();
            let start = Instant::now();
            let verdict = self.engine.mempool().submit(raw, None);
            let elapsed_s = start.elapsed().as_secs_f64();
            drop(quiet);
            let reason = verdict.map_or_else(|reject| reject.reason, |_| "admitted".to_owned());
            self.tally.lock().expect("nobody panics").add(is_replacement, reason, elapsed_s);
        }
    }
}

impl Tally {
    fn add(&mut self, is_replacement: bool, reason: String, elapsed_s: f64) {
        let expected: &[&str] = if is_replacement {
            self.replacements_s.push(elapsed_s);
            &["replacement-failed"]
        } else {
            self.clusters_s.push(elapsed_s);
            // The parents of an evicted transaction's children are missing.
            &[
                "admitted",
                "mempool full",
                "mempool min fee not met",
                "bad-txns-inputs-missingorspent",
            ]
        };
        if !expected.contains(&reason.as_str()) {
            self.wrong.get_or_insert_with(|| reason.clone());
        }
        *self.verdicts.entry(reason).or_default() += 1;
    }
}

fn check(
    engine: &Engine,
    victims: &[Cluster],
    moving: &[CoinOf],
    wrong_verdict: Option<&str>,
) -> Result<()> {
    if let Some(verdict) = wrong_verdict {
        return Err(wrong(format!("a hostile transaction got the verdict {verdict}")));
    }
    let info = engine.mempool().info();
    if info.usage > info.max_bytes || info.size != engine.mempool().txids().len() {
        let detail = format!("{} bytes of {}, {} entries", info.usage, info.max_bytes, info.size);
        return Err(wrong(detail));
    }
    if let Some(victim) = victims.iter().find(|one| engine.mempool().tx(&one.bait).is_none()) {
        return Err(wrong(format!("{} was replaced or evicted", victim.bait)));
    }
    for (outpoint, value) in moving {
        match engine.chain().coin(outpoint, false) {
            Ok(Some((coin, _))) if coin.value == *value => {}
            Ok(found) => {
                let value = found.map_or(0, |(coin, _)| coin.value);
                return Err(wrong(format!("coin {outpoint} has {value} satoshi")));
            }
            Err(error) => return Err(wrong(format!("coin {outpoint}: {error}"))),
        }
    }
    Ok(())
}

fn wrong(detail: String) -> anyhow::Error {
    wrong_answer("mempool", "assay", detail)
}
