//! `assay shard run --all`: worker processes of this program run the parts from a common queue.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use assay_engine::Salt;
use assay_report::child;

use super::part::Summary;
use super::{open, report, salt_of};
use crate::Outcome;
use crate::cli::ShardRunArguments;
use crate::commands::{stop_flag, threads};
use crate::output;

pub(super) fn run(arguments: &ShardRunArguments) -> anyhow::Result<Outcome> {
    let stop = stop_flag();
    let plan = open(&arguments.plan)?;
    let out = &arguments.out;
    let salt = salt_in(out)?;
    let there = report::read_all(&plan, out, Some(&salt))?;
    let missing: Vec<usize> = (0..there.len()).filter(|part| there[*part].is_none()).collect();
    if missing.len() < there.len() {
        let done = there.len() - missing.len();
        output::complain(&format!("{done} of {} parts have a result", there.len()));
    }
    let processes = threads(arguments.processes);
    let work = Work {
        arguments,
        salt: &salt,
        missing: &missing,
        next: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        state: Mutex::new(State::new(processes)),
    };
    std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..processes.min(missing.len()))
            .map(|slot| scope.spawn(move || work.take_parts(slot)))
            .collect();
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            if stop.load(Ordering::Relaxed) {
                work.end_all();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    if stop.load(Ordering::Relaxed) {
        return Ok(Outcome::Interrupted);
    }
    let state = work.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = state.failure {
        bail!("{failure}; the same command goes on with what is left");
    }
    if state.parts > 0 {
        let elapsed_s = state.start.elapsed().as_secs_f64();
        let rate = state.inputs as f64 / elapsed_s;
        output::complain(&format!("{} parts in {elapsed_s:.2} s, {rate:.0} inputs/s", state.parts));
    }
    report::merge(&plan, out, arguments.json, Some(&salt))
}

struct Work<'a> {
    arguments: &'a ShardRunArguments,
    salt: &'a Salt,
    missing: &'a [usize],
    next: AtomicUsize,
    /// Set when a part is rejected or fails: no further part starts.
    is_over: AtomicBool,
    state: Mutex<State>,
}

struct State {
    start: Instant,
    shown: Instant,
    parts: usize,
    inputs: u64,
    failure: Option<String>,
    /// Standard inputs of the workers, by slot. A worker ends when its input closes.
    inputs_of: Vec<Option<ChildStdin>>,
}

impl State {
    fn new(processes: usize) -> Self {
        let (start, failure) = (Instant::now(), None);
        let inputs_of = (0..processes).map(|_| None).collect();
        Self { start, shown: start, parts: 0, inputs: 0, failure, inputs_of }
    }
}

impl Work<'_> {
    fn take_parts(&self, slot: usize) {
        if let Err(error) = self.try_parts(slot)
            && !self.is_over.swap(true, Ordering::SeqCst)
        {
            self.state().failure = Some(format!("{error:#}"));
        }
    }

    fn try_parts(&self, slot: usize) -> anyhow::Result<()> {
        let mut child = self.start(slot)?;
        let answers = child.stdout.take().context("the standard output of a process is gone")?;
        let mut answers = BufReader::new(answers);
        while let Some(part) = self.claim() {
            // A failure is visible in the exit status.
            if let Some(input) = &mut self.state().inputs_of[slot] {
                let _ = writeln!(input, "{part}").and_then(|()| input.flush());
            }
            match answer(&mut answers) {
                Some(summary) if summary.part == part => self.note(&summary),
                _ => {
                    let status = child.wait()?;
                    bail!("part {part}: its process ended with {status}");
                }
            }
        }
        self.state().inputs_of[slot] = None;
        child.wait()?;
        Ok(())
    }

    fn claim(&self) -> Option<usize> {
        if self.is_over.load(Ordering::SeqCst) {
            return None;
        }
        self.missing.get(self.next.fetch_add(1, Ordering::SeqCst)).copied()
    }

    fn start(&self, slot: usize) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("cannot find the file of this program")?;
        let mut command = Command::new(program);
        command.args(["shard", "run", "--follow", "--par"]);
        command.arg(self.arguments.par.unwrap_or(1).to_string());
        command.arg("--out").arg(&self.arguments.out);
        let inputs = &self.arguments.inputs;
        let flags = [
            ("--blocks", &inputs.blocks),
            ("--spent", &inputs.spent),
            ("--coins", &inputs.coins),
            ("--hints", &inputs.hints),
        ];
        for (flag, path) in flags {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        }
        command.arg(&self.arguments.plan).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child::spawn(&mut command).context("cannot start a process")?;
        let mut input = child.stdin.take().context("the standard input of a process is gone")?;
        let line = format!("{}\n", faster_hex::hex_string(self.salt));
        let _ = input.write_all(line.as_bytes()).and_then(|()| input.flush());
        self.state().inputs_of[slot] = Some(input);
        Ok(child)
    }

    fn end_all(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.state().inputs_of.iter_mut().for_each(|input| *input = None);
    }

    fn note(&self, summary: &Summary) {
        // The result has the reason.
        self.is_over.fetch_or(summary.rejected.is_some(), Ordering::SeqCst);
        let mut state = self.state();
        state.parts += 1;
        state.inputs += summary.inputs;
        if state.shown.elapsed() < Duration::from_secs(2) {
            return;
        }
        state.shown = Instant::now();
        let elapsed_s = state.start.elapsed().as_secs_f64();
        let (parts, all) = (state.parts, self.missing.len());
        let left_s = elapsed_s / parts as f64 * (all - parts) as f64;
        let rate = state.inputs as f64 / elapsed_s;
        output::complain(&format!("{parts} of {all} parts, {rate:.0} inputs/s, ETA {left_s:.0} s"));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Result of a part as a worker prints it; `None` if the worker has ended.
fn answer(answers: &mut BufReader<ChildStdout>) -> Option<Summary> {
    let mut line = String::new();
    answers.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// The salt of the results in a folder; a new one if there is none. Only its owner may read the
/// file: the author of the coin files must not know the salt before the verdict is final.
fn salt_in(out: &Path) -> anyhow::Result<Salt> {
    fs::create_dir_all(out).with_context(|| format!("{}", out.display()))?;
    let path = out.join("salt");
    match fs::read_to_string(&path) {
        Ok(text) => return salt_of(&text).with_context(|| format!("{}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("{}", path.display())),
    }
    let mut salt = Salt::default();
    getrandom::fill(&mut salt)
        .map_err(|error| anyhow!("the system gives no random bytes: {error}"))?;
    // Written under another name until complete.
    let fresh = out.join("salt.new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&fresh).and_then(|mut file| {
        file.write_all(format!("{}\n", faster_hex::hex_string(&salt)).as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    });
    written.with_context(|| format!("{}", path.display()))?;
    Ok(salt)
}
