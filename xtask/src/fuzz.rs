//! A bounded run of every fuzz target: built with coverage counters on the ordinary compiler, with seeds from forged chains.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::finish;

/// The flags of `cargo fuzz run --sanitizer none`: counters and comparisons for libFuzzer.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1";

/// Longest input, bytes.
const INPUT_BYTES_MAX: u32 = 1 << 15;

/// Runs the named targets, or all, for `seconds` each.
pub(crate) fn run(seconds: u32, names: &[String]) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent")?;
    let fuzz = root.join("fuzz");
    let targets = targets(&fuzz, names)?;
    let host = host_triple()?;
    // With the same flags for the seeds' program too; otherwise everything would be built twice.
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--release", "--target", &host, "--example", "seeds"]);
    command.arg("--manifest-path").arg(fuzz.join("Cargo.toml"));
    command.arg("--target-dir").arg(fuzz.join("target")).env("RUSTFLAGS", RUSTFLAGS);
    for target in &targets {
        command.args(["--bin", target]);
    }
    finish(&mut command).context("building the targets")?;
    let binaries = fuzz.join("target").join(&host).join("release");
    let mut command = Command::new(binaries.join("examples/seeds"));
    finish(command.arg(fuzz.join("corpus"))).context("making seeds")?;

    println!("{:<14}{:>12}{:>10}{:>10}", "target", "executions", "per s", "findings");
    let mut failed = Vec::new();
    for target in &targets {
        if !run_one(&fuzz, &binaries.join(target), target, seconds)? {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("findings in {}: the inputs are in fuzz/artifacts", failed.join(", "))
}

/// The existing targets among `names`, or all.
fn targets(fuzz: &Path, names: &[String]) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(fuzz.join("fuzz_targets")).context("no fuzz targets")? {
        let path = entry?.path();
        if let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) {
            all.push(stem.to_owned());
        }
    }
    all.sort();
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!("there is no target `{unknown}`; there are {}", all.join(", "));
    }
    all.retain(|name| names.is_empty() || names.contains(name));
    Ok(all)
}

/// Runs one target; returns true if it found nothing.
fn run_one(fuzz: &Path, binary: &Path, target: &str, seconds: u32) -> anyhow::Result<bool> {
    let folder = |kind: &str| -> anyhow::Result<PathBuf> {
        let path = fuzz.join(kind).join(target);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    };
    let (corpus, artifacts) = (folder("corpus")?, folder("artifacts")?);
    let start = Instant::now();
    let child = Command::new(binary)
        .arg(&corpus)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    // `assay_fuzz::folder`: libFuzzer ends the process without removing it.
    let left = format!("assay-fuzz-{}", child.id());
    let output = child.wait_with_output().context("cannot read what it prints")?;
    for parent in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
        // Most targets have none.
        let _ = fs::remove_dir_all(parent.join(&left));
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let executions = log
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .and_then(|count| count.trim().parse::<u64>().ok())
        .unwrap_or_default();
    let clean = output.status.success();
    let rate = executions as f64 / start.elapsed().as_secs_f64();
    println!("{target:<14}{executions:>12}{rate:>10.0}{:>10}", u32::from(!clean));
    if !clean {
        let lines: Vec<&str> = log.lines().collect();
        eprintln!("{}", lines[lines.len().saturating_sub(60)..].join("\n"));
    }
    Ok(clean)
}

pub(crate) fn host_triple() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .context("rustc does not say what machine it is for")
}
