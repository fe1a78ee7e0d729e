//! Runs the tests of backend selection as on older processors: with CPU features hidden step by step.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::finish;
use crate::test_programs;

/// Features hidden in each round, with Linux's name of the first one. Rounds that hide nothing are skipped.
const ROUNDS: [(&str, &str); 3] =
    [("avx512ifma", "avx512ifma"), ("avx512f", "avx512f"), ("avx2,sha", "avx2")];

/// Crates with kernels of their own, or that verify with these: package, target, and names of its tests (all if empty; all but those after `-`).
/// Crates above them (node, Electrum, laboratory) use hashes and signatures through these alone.
const TESTED: [(&str, &str, &[&str]); 15] = [
    ("assay-hash", "lib", &[]),
    ("assay-secp", "lib", EACH_BACKEND_BY_NAME),
    ("assay-secp", "suite", &[]),
    ("assay-secp-c", "lib", &[]),
    ("assay-pairing", "lib", &[]),
    ("assay-pq", "lib", &[]),
    ("assay-wire", "lib", &[]),
    ("assay-consensus", "lib", &[]),
    ("assay-store", "lib", &[]),
    ("assay-engine", "lib", &[]),
    ("assay-engine", "suite", VERDICTS),
    ("assay-engine", "vectors", &[]),
    ("assay-forge", "suite", &["forged::"]),
    ("assay-bench", "lib", &[]),
    ("assay-studies", "lib", &[]),
];

/// Long tests of every backend that the processor has: `cargo xtask ci tests` ran them with nothing hidden, so with more backends.
const EACH_BACKEND_BY_NAME: &[&str] = &[
    "-batch::differential::",
    "-batch::tests::every_exceptional_addition_is_detected",
    "-batch::tests::weighted_sums_verify",
    "-lanes::small_groups::",
];

/// Whole chains through every way to connect a block. The rest of the suite is about order, files and faults.
const VERDICTS: &[&str] = &[
    "forged::bad_blocks::",
    "forged::mempool::",
    "forged::reorg::",
    "forged::sync::",
    "forged::trials::",
    "rules::",
    "validate::validates_a_forged_directory",
];

pub(crate) fn run() -> anyhow::Result<()> {
    let tests = test_programs::build(|_| ())?;
    let cpus = std::fs::read_to_string("/proc/cpuinfo").context("cannot read /proc/cpuinfo")?;
    for (hidden, first) in ROUNDS {
        if !cpus.split_whitespace().any(|word| word == first) {
            println!("this processor has no {first} to hide: `cargo xtask ci tests` ran these");
            continue;
        }
        for (package, target, names) in &TESTED {
            let is_it =
                |test: &&test_programs::TestProgram| test.is_of(package) && test.target == *target;
            let Some(test) = tests.iter().find(is_it) else {
                bail!("cargo built no tests `{target}` of {package}: are those still the names?");
            };
            let mut command = Command::new(&test.executable);
            for name in *names {
                let skipped = name.strip_prefix('-');
                let mut list = Command::new(&test.executable);
                list.args([skipped.unwrap_or(name), "--list"]).current_dir(&test.folder);
                test_programs::require_tests(&mut list)?;
                command.args(skipped.map(|_| "--skip")).arg(skipped.unwrap_or(name));
            }
            let start = Instant::now();
            command.arg("--quiet").current_dir(&test.folder);
            finish(command.env("ASSAY_HIDE_CPU_FEATURES", hidden))?;
            let seconds = start.elapsed().as_secs_f64();
            println!("without {hidden}: {package} {target}: {seconds:.1} s");
        }
    }
    Ok(())
}
