//! A run: an engine over its own folder, driven in steps until a difference is found.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use assay_engine::{BlockOffer, Config, Engine, Pruning, Taken, defect};
use assay_testkit::random::Random;
use tempfile::TempDir;

use crate::model::{Difference, Model, PRUNE_KEEPS};
use crate::snapshot::Snapshot;
use crate::step::{self, Step};
use crate::universe::{BASE, Universe, base};

/// Steps of a run: at the end its chain has a few hundred blocks.
const STEPS: usize = 48;
/// Delays of threads per step.
const DELAYS: u32 = 12;

/// Steps of all runs so far.
pub(crate) static STEPS_DONE: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) ops: u64,
    pub(crate) blocks: u64,
    pub(crate) restarts: u64,
    pub(crate) snapshots: u64,
}

/// An engine with its inputs and its model.
struct Run {
    rng: Random,
    universe: Universe,
    model: Model,
    config: Config,
    snapshot: Option<&'static Snapshot>,
    threads_max: usize,
    weights: [usize; step::OPS.len()],
    /// `None` while the engine is reopened.
    engine: Option<Engine>,
    tally: Tally,
    /// Log of the last step.
    log: Vec<String>,
    _dir: TempDir,
}

/// Runs everything determined by a seed, except for the order of threads and time.
///
/// # Errors
/// A difference between engine and model, with the log of the last step.
pub(crate) fn run(seed: u64, tally: &mut Tally) -> Result<(), Difference> {
    let mut run = Run::new(seed);
    let outcome = (0..STEPS).try_for_each(|number| {
        run.step().map_err(|difference| {
            let log = run.log.join("\n  ");
            format!("seed {seed}, step {number}: {difference}\n{}\n  {log}", run.settings())
        })
    });
    defect::set_delays(0, 0);
    tally.steps += run.tally.steps;
    tally.ops += run.tally.ops;
    tally.blocks += run.universe.blocks.len() as u64;
    tally.restarts += run.tally.restarts;
    tally.snapshots += u64::from(run.model.known().is_loaded);
    outcome
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Random(seed);
        let dir = folder();
        let all = Snapshot::get();
        let universe = Universe::clone(&base());
        let mut config = Config::new(dir.path(), all.params.clone());
        config.threads = [1, 1, 2, 3][rng.below(4)];
        config.read_threads = 1 + rng.below(2);
        config.script_batch = [None, Some(8), Some(8), Some(24), Some(200)][rng.below(5)];
        config.exact_near_tip = [0, 0, 2, u32::MAX][rng.below(4)];
        config.cache_bytes_max = [1 << 20, 16 << 20][rng.below(2)];
        config.policy.require_standard = false;
        config.flush_interval = Duration::from_millis([0, 0, 2, 10_000][rng.below(4)]);
        if rng.below(2) == 0 {
            // Near the tip, by its clock.
            let last = universe.blocks[BASE as usize].header.time;
            config.clock.set(u64::from(last) + 3600 * 5);
        }
        if rng.below(3) == 0 {
            config.prune = Some(Pruning::Manual);
            config.prune_keeps = PRUNE_KEEPS;
            config.prune_after_height = 0;
            config.block_file_bytes_max = 20_000;
        }
        let snapshot = (rng.below(3) > 0).then_some(all);
        let engine = Engine::open(config.clone()).expect("the folder is new");
        let (model, tally, log) = (Model::default(), Tally::default(), Vec::new());
        // The blocks with signatures arrive while the chain below a snapshot is validated.
        let run_up = 1..=if snapshot.is_some() { 100 } else { BASE as usize };
        for index in run_up.clone() {
            let offer = BlockOffer::requested(universe.blocks[index].raw.clone());
            let taken = engine.blocks().take(offer);
            assert!(matches!(taken, Taken::Kept(_)), "{taken:?}");
        }
        model.known().data.extend(run_up.clone());
        model.known().headers.extend(run_up);
        let (threads_max, weights) = (1 + rng.below(4), step::weights(&mut rng));
        Self {
            rng,
            universe,
            model,
            config,
            snapshot,
            threads_max,
            weights,
            engine: Some(engine),
            tally,
            log,
            _dir: dir,
        }
    }

    /// The settings chosen by the seed.
    fn settings(&self) -> String {
        let Config { threads, script_batch, exact_near_tip, flush_interval, .. } = &self.config;
        let (clock, prune) = (self.config.clock.set_to_s(), self.config.prune);
        format!(
            "{threads} threads, batches of {script_batch:?}, exact {exact_near_tip}, flush {flush_interval:?}, clock {clock:?}, {prune:?}, \
             snapshot {}",
            self.snapshot.is_some()
        )
    }

    fn step(&mut self) -> Result<(), Difference> {
        for _ in 0..=self.rng.below(3) {
            self.universe.grow(&mut self.rng);
        }
        self.tally.steps += 1;
        STEPS_DONE.fetch_add(1, Ordering::Relaxed);
        self.log.clear();
        let Self { rng, universe, model, snapshot, engine, .. } = self;
        let engine = engine.as_ref().expect("it is open between steps");
        let (threads, delays) = (1 + rng.below(self.threads_max), rng.next() | 1);
        let is_closing = rng.below(16) == 0;
        let mut weights = self.weights;
        if snapshot.is_some() {
            let is_loaded = model.known().is_loaded;
            step::favour_history(&mut weights, is_loaded, engine.chain().historical().is_some());
        }
        let open = {
            let known = model.known();
            (1..universe.blocks.len()).filter(|index| !known.data.contains(index)).collect()
        };
        let step = Step {
            engine,
            universe,
            model,
            snapshot: *snapshot,
            weights,
            may_prune: self.config.prune.is_some(),
            is_alone: threads == 1 && !is_closing,
            open,
            is_closing: AtomicBool::new(false),
            control: Mutex::default(),
            ops: AtomicU64::new(0),
            log: Mutex::default(),
            difference: Mutex::default(),
        };
        defect::set_delays(if rng.below(4) == 0 { 0 } else { delays }, DELAYS);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            if step.snapshot.is_some() {
                scope.spawn(|| step.follow_history(&is_over));
            }
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    let (mut rng, count) = (Random(rng.next()), 1 + rng.below(6));
                    let step = &step;
                    scope.spawn(move || step.work(thread, count, &mut rng))
                })
                .collect();
            if is_closing {
                std::thread::sleep(Duration::from_micros(rng.below(8000) as u64));
                step.is_closing.store(true, Ordering::SeqCst);
                if let Err(error) = engine.shutdown() {
                    step.differ(format!("shutdown: {error}"));
                }
            }
            for worker in workers {
                // The scope reports the panic of a thread.
                let _ = worker.join();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        defect::set_delays(0, 0);
        self.tally.ops += step.ops.into_inner();
        self.log = step.log.into_inner().unwrap_or_default();
        if let Some(difference) = step.difference.into_inner().unwrap_or_default() {
            return Err(difference);
        }
        match rng.below(16) {
            _ if is_closing => self.reopen(false)?,
            0 => self.reopen(true)?,
            1 => self.reopen(false)?,
            _ => {}
        }
        let engine = self.engine.as_ref().expect("it is open between steps");
        self.model.check(engine, &self.universe)
    }

    /// Reopens the engine over the same folder, after a clean shutdown or a kill.
    fn reopen(&mut self, is_clean: bool) -> Result<(), Difference> {
        self.log.push(format!("reopen, clean: {is_clean}"));
        self.tally.restarts += 1;
        let engine = self.engine.take().expect("it is open between steps");
        if is_clean {
            engine.shutdown().map_err(|error| format!("shutdown: {error}"))?;
        } else {
            // It continues from the last flushed coins.
            self.model.known().tip = None;
        }
        drop(engine);
        let engine = Engine::open(self.config.clone()).map_err(|error| format!("open: {error}"))?;
        self.engine = Some(engine);
        Ok(())
    }
}

/// A new folder, in memory if possible, since most of the time would be spent on syncs.
fn folder() -> TempDir {
    let in_memory = Path::new("/dev/shm");
    let folder = if in_memory.is_dir() && std::env::var_os("TMPDIR").is_none() {
        tempfile::tempdir_in(in_memory)
    } else {
        tempfile::tempdir()
    };
    folder.expect("a folder")
}
