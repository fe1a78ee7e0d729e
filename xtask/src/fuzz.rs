//! A bounded run of every fuzz target: built with coverage counters on the ordinary compiler, with seeds from forged chains.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::finish;

/// The flags of `cargo fuzz run --sanitizer none`, but for its single codegen unit: counters and comparisons for libFuzzer.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Longest input, bytes.
const INPUT_BYTES_MAX: u32 = 1 << 15;

/// Seconds of a run from which optimising all code first gives more executions.
const LONG_RUN_S: u32 = 60;

/// Runs the named targets, or all, for `seconds` each, and as many at the same time as there are cores.
pub(crate) fn run(seconds: u32, names: &[String]) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent")?;
    let fuzz = root.join("fuzz");
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--release", "--target", &host_triple()?]);
    command.arg("--manifest-path").arg(fuzz.join("Cargo.toml"));
    command.arg("--target-dir").arg(fuzz.join("target")).env("RUSTFLAGS", RUSTFLAGS);
    if seconds >= LONG_RUN_S {
        command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    }
    finish(&mut command).context("building the targets")?;
    let binary = program(root)?;
    let targets = targets(&binary, names)?;
    let seeds = format!("--seeds={}", fuzz.join("corpus").display());
    finish(Command::new(&binary).arg(seeds)).context("making seeds")?;

    println!("{:<14}{:>12}{:>10}{:>10}", "target", "executions", "per s", "findings");
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<&str>> {
        let mut failed = Vec::new();
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !run_one(&fuzz, &binary, target, seconds)? {
                failed.push(target.as_str());
            }
        }
        Ok(failed)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let failed = results.into_iter().collect::<anyhow::Result<Vec<_>>>()?.concat();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("findings (inputs in fuzz/artifacts) or no executed input: {}", failed.join(", "))
}

/// The program of all targets.
pub(crate) fn program(root: &Path) -> anyhow::Result<PathBuf> {
    Ok(root.join("fuzz/target").join(host_triple()?).join("release/fuzz"))
}

/// The existing targets among `names`, or all.
fn targets(binary: &Path, names: &[String]) -> anyhow::Result<Vec<String>> {
    let output = Command::new(binary).arg("--list").output().context("cannot list the targets")?;
    let mut all: Vec<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    if all.is_empty() {
        bail!("{} lists no target", binary.display());
    }
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!("there is no target `{unknown}`; there are {}", all.join(", "));
    }
    all.retain(|name| names.is_empty() || names.contains(name));
    Ok(all)
}

/// Runs one target; false if it failed.
fn run_one(fuzz: &Path, binary: &Path, target: &str, seconds: u32) -> anyhow::Result<bool> {
    let folder = |kind: &str| -> anyhow::Result<PathBuf> {
        let path = fuzz.join(kind).join(target);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    };
    let (corpus, artifacts) = (folder("corpus")?, folder("artifacts")?);
    let start = Instant::now();
    let child = Command::new(binary)
        .arg(format!("--target={target}"))
        .arg(&corpus)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    // `folder` of fuzz/src/input.rs: libFuzzer ends the process without removing it.
    let left = format!("assay-fuzz-{}", child.id());
    let output = child.wait_with_output().context("cannot read what it prints")?;
    for parent in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
        // Most targets have none.
        let _ = fs::remove_dir_all(parent.join(&left));
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let executions = executed_units(&log);
    let is_clean = output.status.success();
    let rate = executions as f64 / start.elapsed().as_secs_f64();
    println!("{target:<14}{executions:>12}{rate:>10.0}{:>10}", u32::from(!is_clean));
    if is_clean && executions > 0 {
        return Ok(true);
    }
    let lines: Vec<&str> = log.lines().collect();
    eprintln!("{}", lines[lines.len().saturating_sub(60)..].join("\n"));
    Ok(false)
}

/// Executed inputs by libFuzzer's final statistics; zero without them.
fn executed_units(log: &str) -> u64 {
    log.lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or_default()
}

pub(crate) fn host_triple() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .context("rustc does not say what machine it is for")
}

#[cfg(test)]
mod tests {
    use super::executed_units;

    #[test]
    fn executed_inputs_are_those_of_the_final_statistics() {
        let log = "#0\tREAD units: 9\nDone 20113 runs in 3 second(s)\n\
            stat::number_of_executed_units: 20113\nstat::average_exec_per_sec:     6704\n";
        assert_eq!(executed_units(log), 20113);
        for log in ["", "#20113\tpulse\n", "stat::number_of_executed_units: 0\n"] {
            assert_eq!(executed_units(log), 0, "{log}");
        }
    }
}
