//! Progress events, and a reporter for terminals.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::builds::{Made, Outcome, Watch};
use crate::chain::Chain;
use crate::electrum::check::LedgerCheck;
use crate::plan::{Plan, TargetSpec};
use crate::results::{BlockRecord, Run, Status};
use crate::target::TargetError;

/// A progress event. Sent by the laboratory's main thread to the caller's [`Reporter`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A complete chain of the plan was found.
    ChainReused {
        dir: &'a Path,
        chain: &'a Chain,
    },
    ForgeStarted {
        plan: &'a Plan,
        dir: &'a Path,
    },
    ForgeProgress {
        /// Bytes of block files so far.
        bytes: u64,
        seconds: f64,
    },
    ChainForged {
        chain: &'a Chain,
        /// Duration in seconds.
        seconds: f64,
    },
    /// A target of the plan is skipped.
    TargetLeftOut {
        /// Target as in the plan.
        target: &'a TargetSpec,
        why: &'a TargetError,
    },
    /// The node that serves blocks to peers is being filled.
    SourceFills {
        blocks: usize,
    },
    /// A process orphaned by a killed laboratory was stopped.
    StaleProcessStopped {
        name: &'a str,
    },
    /// A target loads the snapshot of its runs.
    SnapshotLoads {
        target: &'a str,
        coins: u64,
    },
    SnapshotLoaded {
        target: &'a str,
        /// Duration of the call in seconds.
        seconds: f64,
    },
    /// A target cannot load the snapshot, and is skipped.
    TargetUnable {
        target: &'a str,
        why: &'a str,
    },
    /// The reference signature library is being measured.
    ReferenceRate,
    RunStarted {
        /// Name of the run, warm-up runs included.
        id: &'a str,
        /// Number of the run, from 1.
        number: usize,
        of: usize,
        /// Number of blocks to feed.
        blocks: usize,
    },
    /// The run was finished earlier; its results are reused.
    RunSkipped {
        run: &'a Run,
    },
    TargetReady {
        seconds: f64,
    },
    /// Transactions of a block were sent.
    Transactions {
        height: u32,
        sent: u64,
        total: u64,
    },
    /// A block is the tip.
    Block {
        block: &'a BlockRecord,
        phase: &'a str,
    },
    /// All blocks are fed; the index is behind.
    CatchingUp,
    /// Index responses are being compared.
    CheckingScripts {
        done: u64,
        of: u64,
    },
    /// Index responses were compared.
    ScriptsChecked {
        check: &'a LedgerCheck,
    },
    /// The script ledger of a chain is being created.
    ScriptLedger,
    /// The end state is being compared.
    Verifying,
    Stopping,
    RunFinished {
        run: &'a Run,
    },
    /// A node that is never killed connects the chains to record the expected states.
    StraightRun {
        /// Blocks of the first chain.
        blocks: usize,
    },
    KillsStarted {
        of: u32,
    },
    Killed {
        /// Kills so far.
        number: u32,
        of: u32,
    },
    KillsFinished,
    /// A run of several nodes starts with a sync.
    NetworkRun {
        /// Number of the run, from 1.
        number: usize,
        of: usize,
        /// Description of the peers.
        what: &'a str,
    },
    /// Transactions and a block are relayed through the target.
    RelayRound {
        /// Number of the block, from 1.
        number: u32,
        of: u32,
    },
    /// The nodes of a network start and load the initial chain.
    NetworkStarts {
        nodes: usize,
        blocks: usize,
    },
    NetworkLoad {
        /// Time since the start of the load.
        elapsed: Duration,
        of: Duration,
        txs: u64,
        blocks: u64,
        partitions: u64,
        is_cut: bool,
    },
    /// A case of a mempool benchmark starts.
    MempoolCase {
        /// Round, from 1.
        round: u32,
        of: u32,
        case: &'a str,
    },
    /// The load of a network is over; the nodes must converge.
    NetworkConverges,
    /// The last run of several nodes is done.
    NetworkFinished,
    ReportWritten {
        dir: &'a Path,
    },
}

/// Receives events. Called between timed sections, except for [`Event::Transactions`]; an implementation should return fast.
pub trait Reporter {
    fn event(&self, event: &Event<'_>);

    /// True to stop the plan, for example after a signal. Polled before every block and ten times a second while the forge runs.
    /// The current run is then invalid, and finished runs are kept.
    fn wants_stop(&self) -> bool {
        false
    }

    /// Fails once the plan is to stop.
    fn check_stop(&self) -> Result<(), Interrupted> {
        if self.wants_stop() { Err(Interrupted) } else { Ok(()) }
    }
}

/// The user stopped an experiment.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// A reporter without output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Reporter for Silent {
    fn event(&self, _: &Event<'_>) {}
}

/// Reports to standard error: a bar on a terminal, one line per step elsewhere.
#[derive(Debug)]
pub struct Terminal {
    bar: Mutex<Option<ProgressBar>>,
    interactive: bool,
    stop: Arc<AtomicBool>,
    /// Time of the last periodic line.
    printed: Mutex<Option<Instant>>,
    /// Current stage of a build with its start time.
    stage: Mutex<(String, Instant)>,
}

impl Default for Terminal {
    fn default() -> Self {
        Self::stopped_by(Arc::default())
    }
}

impl Terminal {
    /// A reporter that stops the plan once `stop` is set, for example by a signal handler.
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        let interactive = std::io::stderr().is_terminal();
        let stage = Mutex::new((String::new(), Instant::now()));
        Self { bar: Mutex::new(None), interactive, stop, printed: Mutex::new(None), stage }
    }

    /// Prints a permanent line.
    fn say(&self, line: &str) {
        self.clear();
        // A closed standard error must not end a run.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn clear(&self) {
        let bar = self.bar.lock().ok().and_then(|mut bar| bar.take());
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }

    /// True if the next periodic line is due.
    fn is_due(&self) -> bool {
        let Ok(mut printed) = self.printed.lock() else { return false };
        let is_due = printed.is_none_or(|printed| printed.elapsed() >= LINE_EVERY);
        if is_due {
            *printed = Some(Instant::now());
        }
        is_due
    }

    /// Spinner on a terminal, periodic lines elsewhere.
    fn spin_or_say(&self, message: String) {
        if self.interactive {
            self.spin(message);
        } else if self.is_due() {
            self.say(&format!("  {message}"));
        }
    }

    fn spin(&self, message: String) {
        self.with_bar(None, |bar| bar.set_message(message));
    }

    /// Uses the bar, creating it on first use; `length` turns a spinner into a bar.
    fn with_bar(&self, length: Option<u64>, update: impl FnOnce(&ProgressBar)) {
        if !self.interactive {
            return;
        }
        let Ok(mut slot) = self.bar.lock() else { return };
        let bar = slot.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        if let Some(length) = length {
            let style = ProgressStyle::with_template("  {bar:28} {pos}/{len} blocks  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_length(length);
        }
        update(bar);
    }
}

/// Interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(20);
/// Scripts between two updates of the bar.
const SCRIPTS_PER_STEP: u64 = 1000;
/// Kills per line without a terminal.
const KILLS_PER_LINE: u32 = 50;

impl Terminal {
    fn with_kills(&self, of: u32, update: impl FnOnce(&ProgressBar)) {
        self.with_bar(Some(u64::from(of)), |bar| {
            let style = ProgressStyle::with_template(
                "  {bar:28} {pos}/{len} kills  {per_sec}  {eta_precise} left",
            );
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            update(bar);
        });
    }

    fn before_runs(&self, event: &Event<'_>) {
        match event {
            Event::StaleProcessStopped { name } => {
                self.say(&format!("ended what a killed run had left: {name}"));
            }
            Event::SnapshotLoads { target, coins } => {
                self.spin_or_say(format!("{target} loads the snapshot of {coins} coins"));
            }
            Event::SnapshotLoaded { target, seconds } => {
                self.say(&format!("{target} has loaded the snapshot in {seconds:.1} s"));
            }
            Event::SourceFills { blocks } => {
                self.spin(format!("filling the source with {blocks} blocks"));
            }
            Event::ReferenceRate => {
                self.spin("measuring the reference signature library".to_owned());
            }
            Event::TargetUnable { target, why } => {
                self.say(&format!("left out: {target} cannot begin with the snapshot: {why}"));
            }
            _ => {}
        }
    }

    /// Events of a network under load.
    fn network(&self, event: &Event<'_>) {
        match event {
            Event::NetworkStarts { nodes, blocks } => {
                self.say(&format!("{nodes} nodes, {blocks} blocks to begin with"));
                self.spin("nodes start".to_owned());
            }
            Event::NetworkLoad { elapsed, of, txs, blocks, partitions, is_cut } => {
                let (passed, left) = (elapsed.as_secs(), of.saturating_sub(*elapsed).as_secs());
                let cut = if *is_cut { ", parted" } else { "" };
                self.spin_or_say(format!(
                    "{txs} transactions, {blocks} blocks, {partitions} partitions{cut}; {passed} s, {left} s left"
                ));
            }
            Event::NetworkConverges => {
                self.say("load ended, links whole: waiting until all nodes agree");
                self.spin("waiting until all nodes agree".to_owned());
            }
            _ => {}
        }
    }
}

impl Reporter for Terminal {
    fn wants_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        match event {
            Event::ChainReused { dir, chain } => {
                self.say(&format!("chain: {} (found in {})", describe(chain), dir.display()));
            }
            Event::ForgeStarted { plan, dir } => {
                let chain = &plan.chain;
                let (recipe, seed, scale) = (&chain.recipe, chain.seed, chain.scale);
                let dir = dir.display();
                self.say(&format!("forging {recipe}, seed {seed}, scale {scale}, into {dir}"));
                self.spin("forging".to_owned());
            }
            Event::ForgeProgress { bytes, seconds } => {
                let mib = *bytes as f64 / 1_048_576.0;
                self.spin(format!("forging: {mib:.1} MiB in {seconds:.0} s"));
            }
            Event::ChainForged { chain, seconds } => {
                let rate = assay_report::stats::rate(chain.tip.signatures as f64, *seconds);
                let what = describe(chain);
                self.say(&format!("chain: {what}, in {seconds:.1} s ({rate:.0} signatures/s)"));
            }
            Event::TargetLeftOut { target, why } => {
                self.say(&format!("left out: {target}: {why}"));
            }
            Event::SourceFills { .. }
            | Event::ReferenceRate
            | Event::StaleProcessStopped { .. }
            | Event::SnapshotLoads { .. }
            | Event::SnapshotLoaded { .. }
            | Event::TargetUnable { .. } => self.before_runs(event),
            Event::RunStarted { id, number, of, blocks } => {
                self.say(&format!("run {number}/{of}: {id}"));
                self.with_bar(Some(*blocks as u64), |bar| bar.set_message("starting"));
            }
            Event::RunSkipped { run } => self.say(&format!("run {}: finished before", run.id)),
            Event::TargetReady { .. } => self.with_bar(None, |bar| bar.set_message("ready")),
            Event::Transactions { height, sent, total } => self.with_bar(None, |bar| {
                bar.set_message(format!("block {height}: {sent} of {total} transactions sent"));
            }),
            Event::Block { block, phase } => self.with_bar(None, |bar| {
                bar.inc(1);
                bar.set_message(format!("{phase}: {:.3} s", block.service_s));
            }),
            Event::ScriptLedger => self.spin("making the script ledger".to_owned()),
            Event::CatchingUp => {
                self.with_bar(None, |bar| bar.set_message("the index catches up"));
            }
            Event::CheckingScripts { done, of } => {
                if done % SCRIPTS_PER_STEP == 0 || done == of {
                    let message = format!("comparing answers: {done} of {of} scripts");
                    self.with_bar(None, |bar| bar.set_message(message));
                }
            }
            Event::ScriptsChecked { check } => self.say(&format!("  {}", check.summary())),
            Event::Verifying => self.with_bar(None, |bar| bar.set_message("comparing end state")),
            Event::Stopping => self.with_bar(None, |bar| bar.set_message("stopping")),
            Event::RunFinished { run } => self.say(&finished(run)),
            Event::StraightRun { blocks } => {
                self.say(&format!("straight run, two chains of about {blocks} blocks"));
                self.spin("a run without kills, for comparison".to_owned());
            }
            Event::KillsStarted { of } => {
                self.say(&format!("{of} kills"));
                self.with_kills(*of, |bar| bar.set_position(0));
            }
            Event::Killed { number, of } => {
                self.with_kills(*of, |bar| bar.set_position(u64::from(*number)));
                if !self.interactive && number % KILLS_PER_LINE == 0 {
                    self.say(&format!("  {number} of {of} kills"));
                }
            }
            Event::KillsFinished | Event::NetworkFinished => self.clear(),
            Event::NetworkRun { number, of, what } => {
                self.say(&format!("run {number}/{of}: {what}"));
                self.spin("the target syncs".to_owned());
            }
            Event::NetworkStarts { .. } | Event::NetworkLoad { .. } | Event::NetworkConverges => {
                self.network(event);
            }
            Event::MempoolCase { round, of, case } => {
                self.spin_or_say(format!("round {round} of {of}: {case}"));
            }
            Event::RelayRound { number, of } => {
                self.spin(format!("transactions and block {number} of {of} on their way"));
            }
            Event::ReportWritten { dir } => {
                self.say(&format!("report: {}", dir.join("report.html").display()));
            }
        }
    }
}

impl Watch for Terminal {
    fn begin(&self, revision: &str, number: usize, of: usize) {
        self.say(&format!("build {number}/{of}: {revision}"));
    }

    fn stage(&self, what: &str) {
        if let Ok(mut stage) = self.stage.lock() {
            *stage = (what.to_owned(), Instant::now());
        }
        if let Ok(mut printed) = self.printed.lock() {
            *printed = None;
        }
        self.clear();
        self.spin_or_say(what.to_owned());
    }

    fn step(&self, done: u64, total: Option<u64>) {
        let Ok(stage) = self.stage.lock() else { return };
        let (what, elapsed_s) = (&stage.0, stage.1.elapsed().as_secs_f64());
        self.spin_or_say(format!("{what}: {}", steps(done, total, elapsed_s)));
    }

    fn end(&self, made: &Made) {
        let text = match &made.outcome {
            Outcome::Built { build } => format!("built in {:.0} s: {}", build.seconds, build.key),
            Outcome::Found { build } => format!("built before: {}", build.key),
            Outcome::Failed { .. } => format!("FAILED: {}", made.error().unwrap_or_default()),
        };
        self.say(&format!("  {text}"));
    }

    fn wants_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Steps of a build with their rate, and the estimated remaining time.
fn steps(done: u64, total: Option<u64>, elapsed_s: f64) -> String {
    let rate = assay_report::stats::rate(done as f64, elapsed_s);
    let per_minute = rate * 60.0;
    match total {
        None => format!("{done} steps, {per_minute:.0}/min"),
        Some(total) => {
            let left_s = total.saturating_sub(done) as f64 / rate.max(1e-9);
            format!("{done}/{total}, {per_minute:.0}/min, {left_s:.0} s left")
        }
    }
}

fn describe(chain: &Chain) -> String {
    let (tip, mib) = (&chain.tip, chain.tip.bytes as f64 / 1_048_576.0);
    let (height, txs, signatures) = (tip.height, tip.txs, tip.signatures);
    if chain.header.files.is_some() {
        let name = &chain.header.chain;
        return format!("{height} blocks of {name}, {txs} transactions, {mib:.1} MiB");
    }
    format!("{height} blocks, {txs} transactions, {signatures} signatures, {mib:.1} MiB")
}

fn finished(run: &Run) -> String {
    let total = &run.total;
    match run.status {
        Status::Valid | Status::Disturbed => format!(
            "  {} valid: {:.0} tx/s, {:.2} MiB/s, {:.1} % pre-relayed",
            run.id,
            total.tx_per_s,
            total.mib_per_s,
            run.seen_measured * 100.0
        ),
        Status::Void => {
            let reason = run.void_reason.as_deref().unwrap_or_default();
            format!("  {} VOID: {}", run.id, reason.lines().next().unwrap_or_default())
        }
    }
}
