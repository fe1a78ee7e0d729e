//! Big-number arithmetic by different compilers against assembly: "Compiler caveats" of report 5, measured.
//!
//! Kernels in three styles are compiled by every compiler of the plan that the machine has, and run as processes that
//! time themselves. A kernel is timed only after its results equal those of plain Rust on edge cases and random
//! operands. Instructions, bytes and stack are counted in the programs' machine code.

mod build;
mod code;
mod discover;
mod kernel;
mod published;
mod stack_usage;
mod studies;
mod tables;

use std::cell::OnceCell;
use std::env;

use anyhow::{Context as _, Result, anyhow, bail};
use assay_bench::Progress;
use assay_bench::harness::{Alternative, Row, Sample};
use assay_bench::plan::CompilersSettings;
use assay_bench::suite::{Benchmark, Extent, Published, Study, Suite};
use tempfile::TempDir;

use build::{Build, Flags};
use discover::{Absent, Compiler, Found};
use kernel::{KERNELS, Kernel, Style};

/// Length of an epoch: long against the clock and a pipe, short enough for rounds over a hundred programs.
const EPOCH_NS: f64 = 1e6;

/// Number of calls that calibrate an epoch.
const TRIAL_CALLS: u64 = 2_000;

/// Maximum number of calls per epoch.
const CALLS_MAX: f64 = 1e8;

/// Error on a machine on which no benchmark can run.
fn other_machine() -> anyhow::Error {
    anyhow!(
        "the kernels need Linux on x86-64 (intrinsics, assembly and ELF files); this is {} on {}",
        env::consts::OS,
        env::consts::ARCH
    )
}

#[derive(Debug)]
pub(crate) struct CompilersSuite {
    settings: CompilersSettings,
    /// Found and compiled on preparation of the first benchmark.
    programs: OnceCell<Programs>,
}

/// A program that could not be built.
#[derive(Debug)]
struct Missing {
    compiler: usize,
    flags: Flags,
    why: anyhow::Error,
}

#[derive(Debug)]
struct Programs {
    found: Found,
    builds: Vec<Build>,
    missing: Vec<Missing>,
    /// True if the processor has MULX, ADCX and ADOX.
    has_mulx: bool,
    /// Folder of the programs, removed on drop.
    _folder: TempDir,
}

const fn is_supported() -> bool {
    cfg!(all(target_arch = "x86_64", target_os = "linux"))
}

#[cfg(target_arch = "x86_64")]
fn has_mulx() -> bool {
    std::arch::is_x86_feature_detected!("bmi2") && std::arch::is_x86_feature_detected!("adx")
}

#[cfg(not(target_arch = "x86_64"))]
const fn has_mulx() -> bool {
    false
}

impl CompilersSuite {
    pub(crate) const fn new(settings: CompilersSettings) -> Self {
        Self { settings, programs: OnceCell::new() }
    }

    fn kernels(&self) -> impl Iterator<Item = Kernel> {
        let is_wanted =
            |kernel: &Kernel| self.settings.kernels.iter().any(|name| name == kernel.name);
        KERNELS.into_iter().filter(is_wanted)
    }

    fn programs(&self, extent: Extent) -> Result<&Programs> {
        if let Some(programs) = self.programs.get() {
            return Ok(programs);
        }
        let programs = Programs::make(&self.settings, extent)?;
        Ok(self.programs.get_or_init(|| programs))
    }

    /// Compares all programs with plain Rust, and returns the alternatives.
    fn alternatives(
        &self,
        kernel: Kernel,
        timing: &'static str,
        extent: Extent,
    ) -> Result<Vec<Alternative<'_>>> {
        let programs = self.programs(extent)?;
        let inputs = kernel.inputs(self.settings.seed, self.settings.checks);
        let mut alternatives = Vec::new();
        for (build, style) in programs.runnable(kernel) {
            let name = programs.label(build, style);
            build.check(&name, (kernel, style), &inputs)?;
            alternatives.push(timed(&name, build, kernel.symbol(style), timing));
        }
        Ok(alternatives)
    }
}

/// A timed alternative, calibrated on first use.
fn timed<'a>(
    name: &str,
    build: &'a Build,
    symbol: String,
    timing: &'static str,
) -> Alternative<'a> {
    let mut calls = None;
    Alternative::fallible(name, move || {
        let calls = match calls {
            Some(calls) => calls,
            None => *calls.insert(trial(|| build.time(&symbol, timing, TRIAL_CALLS))?),
        };
        build.time(&symbol, timing, calls)
    })
}

/// The fastest of three counts, against interference.
fn trial(time: impl Fn() -> Result<Sample>) -> Result<u64> {
    let mut least_ns = f64::INFINITY;
    for _ in 0..3 {
        let sample = time()?;
        least_ns = least_ns.min(sample.wall_ns as f64 / sample.ops as f64);
    }
    Ok((EPOCH_NS / least_ns).clamp(1.0, CALLS_MAX) as u64)
}

impl Programs {
    fn make(settings: &CompilersSettings, extent: Extent) -> Result<Self> {
        if !is_supported() {
            return Err(other_machine());
        }
        let temporary = env::temp_dir();
        let folder = tempfile::Builder::new().prefix("assay-compilers-").tempdir();
        let folder = folder.with_context(|| {
            format!("no folder for programs can be made in {}", temporary.display())
        })?;
        build::write_sources(folder.path()).context("the sources cannot be written")?;
        let path = env::var_os("PATH").unwrap_or_default();
        let mut found = Found::look(&settings.compilers, &path, folder.path());
        let mut levels = &settings.levels[..];
        if extent == Extent::Smoke {
            first_of_families(&mut found.compilers);
            levels = &levels[..levels.len().min(1)];
        }
        if found.compilers.is_empty() {
            let each = |one: &Absent| format!("{} ({})", one.name, one.why);
            let absent = found.absent.iter().map(each).collect::<Vec<_>>().join(", ");
            bail!("none of the compilers of the plan is there: {absent}");
        }
        let has_mulx = has_mulx();
        let (mut builds, mut missing) = (Vec::new(), Vec::new());
        for (index, compiler) in found.compilers.iter().enumerate() {
            for &level in levels {
                for mulx in [false, true].into_iter().filter(|mulx| !mulx || has_mulx) {
                    let flags = Flags { level, mulx };
                    match Build::make(folder.path(), index, compiler, flags) {
                        Ok(build) => builds.push(build),
                        Err(why) => missing.push(Missing { compiler: index, flags, why }),
                    }
                }
            }
        }
        match missing.pop() {
            Some(last) if builds.is_empty() => {
                return Err(last.why.context("no compiler could make a program"));
            }
            last => missing.extend(last),
        }
        Ok(Self { found, builds, missing, has_mulx, _folder: folder })
    }

    /// The variants of a kernel that this processor can run.
    fn runnable(&self, kernel: Kernel) -> impl Iterator<Item = (&Build, Style)> {
        let pairs = self.builds.iter().flat_map(|build| Style::ALL.map(|style| (build, style)));
        pairs.filter(move |(_, style)| self.has_mulx || !kernel.needs_mulx(*style))
    }

    fn compiler(&self, build: &Build) -> &Compiler {
        &self.found.compilers[build.compiler]
    }

    fn label(&self, build: &Build, style: Style) -> String {
        format!("{} {}, {}", self.compiler(build).label, build.flags.label(), style.name())
    }
}

/// Keeps one compiler of each family, which is enough to check every source of a kernel.
fn first_of_families(compilers: &mut Vec<Compiler>) {
    let mut seen = Vec::new();
    compilers.retain(|compiler| {
        let is_first = !seen.contains(&compiler.family);
        seen.push(compiler.family);
        is_first
    });
}

impl Suite for CompilersSuite {
    fn benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>> {
        // The smoke test also passes on machines without a compiler. Listing starts no compiler,
        // since every measurement lists all benchmarks first.
        let path = env::var_os("PATH").unwrap_or_default();
        let is_absent =
            || !is_supported() || !discover::any_exists(&self.settings.compilers, &path);
        if extent == Extent::Smoke && is_absent() {
            return Ok(Vec::new());
        }
        if !is_supported() {
            return Ok(vec![elsewhere()]);
        }
        let timings = assay_bench::plan::compilers::TIMINGS
            .into_iter()
            .filter(|timing| self.settings.timings.iter().any(|wanted| wanted == timing));
        let pairs =
            self.kernels().flat_map(|kernel| timings.clone().map(move |timing| (kernel, timing)));
        let benchmark = |(kernel, timing): (Kernel, &'static str)| Benchmark {
            name: benchmark_name(kernel, timing),
            series: benchmark_name(kernel, timing),
            size: None,
            unit: String::new(),
            bytes_per_op: None,
            baseline: None,
            make: Box::new(move || self.alternatives(kernel, timing, extent)),
        };
        Ok(pairs.map(benchmark).collect())
    }

    fn studies(
        &self,
        extent: Extent,
        rows: &[Row],
        _progress: &dyn Progress,
    ) -> Result<Vec<Study>> {
        Ok(studies::all(self.programs(extent)?, rows))
    }

    fn published(&self) -> Vec<Published> {
        // Published claims are ratios of other programs: a study compares them, since no
        // alternative here does the same work.
        Vec::new()
    }
}

/// The list on unsupported machines: one benchmark that names its requirement.
fn elsewhere<'a>() -> Benchmark<'a> {
    Benchmark {
        name: "compilers/x86-64".to_owned(),
        series: "compilers/x86-64".to_owned(),
        size: None,
        unit: String::new(),
        bytes_per_op: None,
        baseline: None,
        make: Box::new(|| Err(other_machine())),
    }
}

fn benchmark_name(kernel: Kernel, timing: &str) -> String {
    format!("{}/{timing}", kernel.name)
}

#[cfg(test)]
mod tests {
    use assay_bench::Silent;
    use assay_bench::harness::{Rounds, compare};

    use super::*;

    fn suite(compilers: &[&str]) -> CompilersSuite {
        CompilersSuite::new(CompilersSettings {
            compilers: compilers.iter().map(|&name| name.to_owned()).collect(),
            checks: 20,
            ..CompilersSettings::default()
        })
    }

    /// Every kernel and style by one compiler of each family, with and without MULX, against plain Rust.
    #[test]
    fn kernels_of_this_machine_s_compilers() {
        let suite =
            suite(&["gcc", "clang", "clang-14", "clang-16", "clang-19", "rustc", "no-such-gcc"]);
        if let Err(error) = suite.programs(Extent::Smoke) {
            eprintln!("skipped: {error}");
            return;
        }
        let benchmarks = suite.benchmarks(Extent::Smoke).expect("settings are right");
        assert_eq!(benchmarks.len(), 10);
        let rounds = Rounds { count: 1, warm_up: 0 };
        let mut rows = Vec::new();
        for benchmark in &benchmarks {
            let mut alternatives = (benchmark.make)().expect("all give what plain Rust gives");
            rows.push(
                compare(&benchmark.name, &mut alternatives, rounds, &mut || {}).expect("it runs"),
            );
        }
        let studies = suite.studies(Extent::Smoke, &rows, &Silent).expect("programs are there");
        let lead = studies[0].lead.as_deref().expect("products were timed");
        assert!(lead.starts_with("A Montgomery multiplication of 6 words takes"), "{lead}");
        for table in studies.iter().flat_map(|study| &study.tables) {
            assert!(!table.rows.is_empty(), "{}", table.caption);
            assert!(
                table.rows.iter().all(|row| row.len() == table.head.len()),
                "{}",
                table.caption
            );
        }
        let absent =
            studies.iter().flat_map(|study| &study.tables).find(|table| table.caption == "Absent");
        let rows = &absent.expect("no-such-gcc is").rows;
        assert!(rows.iter().any(|row| row[0] == "no-such-gcc"), "{rows:?}");
    }

    /// Instruction counts of the assembly are known: rows of MULX, two chains of carries.
    #[test]
    fn instructions_of_assembly_are_those_written() {
        let suite = suite(&["gcc", "clang", "clang-14", "clang-16", "clang-19", "rustc"]);
        let programs = match suite.programs(Extent::Smoke) {
            Ok(programs) => programs,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        for build in &programs.builds {
            for (kernel, words) in [(KERNELS[3], 4), (KERNELS[4], 6)] {
                let routine = build.routine(kernel, Style::Assembly).expect("it is in the program");
                let (code, chains) = (routine.code, words * (2 * words - 1));
                assert_eq!((code.mulx, code.adcx, code.adox), (2 * words * words, chains, chains));
                assert_eq!((code.mul, code.branches, code.calls), (words, 0, 0));
                if let Some(reported) = routine.reported_stack {
                    assert!(reported <= code.stack_bytes, "{reported} {code:?}");
                }
            }
        }
    }

    #[test]
    fn without_any_compiler() {
        let nothing = suite(&["no-such-gcc"]);
        assert!(nothing.benchmarks(Extent::Smoke).expect("tests pass").is_empty());
        let benchmarks = nothing.benchmarks(Extent::Full).expect("listing needs no compiler");
        let error = (benchmarks[0].make)().expect_err("none is there").to_string();
        let said = if is_supported() { "no-such-gcc (not on PATH; install it" } else { "x86-64" };
        assert!(error.contains(said), "{error}");
    }

    #[test]
    fn a_compiler_that_fails_is_no_program() {
        if !is_supported() {
            eprintln!("skipped: {}", other_machine());
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gcc");
        let script = "#!/bin/sh\ncase $1 in --version) echo 'gcc 99'; echo 'Free Software Foundation';; *) echo 'error: no' >&2; exit 1;; esac\n";
        std::fs::write(&path, script).expect("writable");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("our file");
        let error =
            suite(&[&path.display().to_string()]).programs(Extent::Full).expect_err("it fails");
        assert_eq!(error.to_string(), "no compiler could make a program");
        let source = error.chain().nth(1).expect("its reason").to_string();
        assert!(source.contains("cannot compile: error: no"), "{source}");
    }
}
