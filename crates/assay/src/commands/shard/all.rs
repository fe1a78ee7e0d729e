//! `assay shard run --all`: processes of this program take one part after the other.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use assay_engine::{Part, Plan, Salt};

use super::{cores, open, report, salt_of};
use crate::Outcome;
use crate::cli::ShardRunArguments;
use crate::commands::stop_flag;
use crate::output;

pub(super) fn run(arguments: &ShardRunArguments) -> anyhow::Result<Outcome> {
    let stop = stop_flag()?;
    let plan = open(&arguments.plan)?;
    let out = &arguments.out;
    let salt = salt_in(out)?;
    let there = report::read_all(&plan, out, Some(&salt))?;
    let missing: Vec<usize> = (0..there.len()).filter(|part| there[*part].is_none()).collect();
    if missing.len() < there.len() {
        output::complain(&format!(
            "{} of {} parts have a result",
            there.len() - missing.len(),
            there.len()
        ));
    }
    let processes = if arguments.processes > 0 { arguments.processes } else { cores() };
    let work = Work {
        arguments,
        plan: &plan,
        salt: &salt,
        missing: &missing,
        next: AtomicUsize::new(0),
        stop: &stop,
        is_over: AtomicBool::new(false),
        state: Mutex::new(State {
            start: Instant::now(),
            shown: Instant::now(),
            parts: 0,
            inputs: 0,
            failure: None,
        }),
    };
    std::thread::scope(|scope| {
        for _ in 0..processes.min(missing.len()) {
            scope.spawn(|| work.take_parts());
        }
    });
    if stop.load(Ordering::Relaxed) {
        return Ok(Outcome::Interrupted);
    }
    let state = work.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = state.failure {
        bail!("{failure}; the same command goes on with what is left");
    }
    if state.inputs > 0 {
        let elapsed_s = state.start.elapsed().as_secs_f64();
        let rate = state.inputs as f64 / elapsed_s;
        output::complain(&format!("{} parts in {elapsed_s:.2} s, {rate:.0} inputs/s", state.parts));
    }
    report::merge(&plan, out, arguments.json, Some(&salt))
}

struct Work<'a> {
    arguments: &'a ShardRunArguments,
    plan: &'a Plan,
    salt: &'a Salt,
    missing: &'a [usize],
    next: AtomicUsize,
    stop: &'a AtomicBool,
    /// A part was refused, or failed: no other begins.
    is_over: AtomicBool,
    state: Mutex<State>,
}

struct State {
    start: Instant,
    shown: Instant,
    parts: usize,
    inputs: u64,
    failure: Option<String>,
}

impl Work<'_> {
    fn take_parts(&self) {
        while !self.is_over.load(Ordering::Relaxed) && !self.stop.load(Ordering::Relaxed) {
            let Some(part) = self.missing.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            match self.judge(*part) {
                Ok(true) => self.note(*part),
                // The result says why.
                Ok(false) => self.is_over.store(true, Ordering::Relaxed),
                Err(error) => {
                    self.is_over.store(true, Ordering::Relaxed);
                    let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                    state.failure.get_or_insert(format!("part {part}: {error:#}"));
                }
            }
        }
    }

    /// Whether a part passes.
    fn judge(&self, part: usize) -> anyhow::Result<bool> {
        let mut child = self.start(part)?;
        let mut input = child.stdin.take().context("its standard input is gone")?;
        let line = format!("{}\n", faster_hex::hex_string(self.salt));
        // What is wrong shows in its exit status.
        let _ = input.write_all(line.as_bytes()).and_then(|()| input.flush());
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if self.stop.load(Ordering::Relaxed) {
                // It ends when its standard input closes.
                drop(input);
                child.wait()?;
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        match status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => bail!("its process ended with {status}"),
        }
    }

    fn start(&self, part: usize) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut command = Command::new(program);
        command.args(["shard", "run", "--with-parent", "--part", &part.to_string()]);
        command.arg("--par").arg(self.arguments.par.unwrap_or(1).to_string());
        command.arg("--out").arg(&self.arguments.out);
        let inputs = &self.arguments.inputs;
        for (flag, path) in
            [("--blocks", &inputs.blocks), ("--spent", &inputs.spent), ("--coins", &inputs.coins)]
        {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        }
        command.arg(&self.arguments.plan).stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().context("cannot start a process")
    }

    fn note(&self, part: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parts += 1;
        if let Part::Blocks { inputs, .. } = self.plan.parts()[part] {
            state.inputs += inputs;
        }
        if state.shown.elapsed() < Duration::from_secs(2) {
            return;
        }
        state.shown = Instant::now();
        let elapsed_s = state.start.elapsed().as_secs_f64();
        let left_s = elapsed_s / state.parts as f64 * (self.missing.len() - state.parts) as f64;
        let rate = state.inputs as f64 / elapsed_s;
        output::complain(&format!(
            "{} of {} parts, {rate:.0} inputs/s, ETA {left_s:.0} s",
            state.parts,
            self.missing.len()
        ));
    }
}

/// The salt of the results in a folder; a new one where there is none. Only its owner may read the file: whoever makes the
/// files of coins must not know it before the verdict stands.
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
    // Under another name until it is whole.
    let fresh = out.join("salt.new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&fresh).and_then(|mut file| {
        file.write_all(format!("{}\n", faster_hex::hex_string(&salt)).as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    });
    written.with_context(|| format!("{}", path.display()))?;
    Ok(salt)
}
