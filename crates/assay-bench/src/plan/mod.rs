//! Plans of benchmarks, TOML files of `kind = "bench"`, and plans of all kinds: [`Experiment`].

mod bench_bitcoin;
pub mod compilers;
mod experiment;
mod pairing;
mod stack;
mod steps;

use std::path::{Path, PathBuf};

use assay_lab::plan::{BadValue, Kind, distinct, valid};
use serde::{Deserialize, Serialize};

use crate::suite::Published;

pub use self::bench_bitcoin::{CoreBuild, CoreSettings};
pub use self::compilers::CompilersSettings;
pub use self::experiment::{Change, Experiment, PlanText};
pub use self::pairing::{PairingSettings, SubjectSettings};
pub use self::stack::{LimitSettings, StackSettings, Wrap};
pub use self::steps::{BaseRevision, Related, Step, StepBenchmark, StepsPlan};
pub use toml::Value;

const FORMAT: u32 = 1;

/// Maximum number of rounds of a plan.
pub const ROUNDS_MAX: usize = 10_001;

/// Benchmarks to run, and their comparisons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchPlan {
    pub format: u32,
    pub kind: Kind,
    /// Short name: small letters, digits, `-`.
    pub name: String,
    pub title: String,
    pub summary: String,
    #[serde(default)]
    pub questions: Vec<String>,
    /// Measured rounds, instead of the extent's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstSettings>,
    /// Optimisations of the initial block download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ibd: Option<IbdSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairing: Option<PairingSettings>,
    /// Compilers of big-number arithmetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compilers: Option<CompilersSettings>,
    /// `bench_bitcoin` of several builds of Bitcoin Core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<CoreSettings>,
    /// Published figures, in addition to those of the suites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Builds of this program to compare.
    #[serde(default, rename = "build", skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<Build>,
}

/// A build of this program: another compiler, other flags, another version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Name in the report.
    pub name: String,
    /// The program and arguments before the subcommand; a relative path with a `/` is relative to the plan's folder.
    pub command: Vec<String>,
    /// Benchmarks to compare, by substrings or patterns of names; all if empty.
    #[serde(default)]
    pub benchmarks: Vec<String>,
}

impl BenchPlan {
    /// Built-in plans: names and texts.
    pub const BUILTIN: [(&'static str, &'static str); 5] = [
        ("stack-element-size", include_str!("../../../../plans/stack-element-size.toml")),
        ("worst-blocks", include_str!("../../../../plans/worst-blocks.toml")),
        ("ibd-tracking", include_str!("../../../../plans/ibd-tracking.toml")),
        ("pairing-curves", include_str!("../../../../plans/pairing-curves.toml")),
        ("compilers", include_str!("../../../../plans/compilers.toml")),
    ];

    /// Validates values that TOML types cannot express.
    pub(super) fn check(&self) -> Result<(), BadValue> {
        let Self { rounds, compilers, core, .. } = self;
        valid(self.format == FORMAT, "format", &self.format, "only format 1 is known")?;
        valid(self.kind == Kind::Bench, "kind", &self.kind.as_str(), "use \"bench\"")?;
        let is_plain = is_name(&self.name) && !self.name.contains('.');
        valid(is_plain, "name", &self.name, "use small letters, digits and '-'")?;
        if let Some(rounds) = rounds {
            valid((1..=ROUNDS_MAX).contains(rounds), "rounds", rounds, "use 1 to 10001")?;
        }
        let has_section = self.stack.is_some()
            || self.worst.is_some()
            || self.ibd.is_some()
            || self.pairing.is_some()
            || compilers.is_some()
            || core.is_some();
        let keys = "stack, worst, ibd, pairing, compilers, core";
        valid(has_section, keys, &"none", "name a section at least")?;
        compilers.iter().try_for_each(CompilersSettings::check)?;
        core.iter().try_for_each(CoreSettings::check)?;
        check_builds("build.name", self.builds.iter().map(|build| build.name.as_str()))?;
        for build in &self.builds {
            let is_program = build.command.first().is_some_and(|program| !program.is_empty());
            valid(is_program, "build.command", &"[]", "name a program")?;
        }
        match &self.builds[..] {
            [build] => valid(false, "build", &build.name, "it takes two to compare"),
            _ => Ok(()),
        }
    }

    /// Makes relative paths relative to the folder of the plan.
    pub(super) fn enter(&mut self, folder: &Path) {
        let programs = self.builds.iter_mut().filter_map(|build| build.command.first_mut());
        let cores = self.core.iter_mut().flat_map(|core| &mut core.builds);
        let is_revision = |name: &String| name.starts_with("core@");
        let targets = cores.map(|build| &mut build.target).filter(|name| !is_revision(name));
        for program in programs.chain(targets).filter(|name| name.contains('/')) {
            *program = folder.join(PathBuf::from(&*program)).display().to_string();
        }
    }
}

fn check_builds<'a>(
    key: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), BadValue> {
    for name in names.clone() {
        valid(is_name(name), key, &name, "use small letters, digits, '-' and '.'")?;
    }
    distinct(key, names, "each build once")
}

/// Small letters, digits, `-` and `.`.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
}

/// The section `[worst]` of a plan: worst blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorstSettings {
    /// Names of rule sets (docs/consensus.md, "Rule sets").
    pub rules: Vec<String>,
    /// Names of classes; all if empty.
    pub classes: Vec<String>,
    /// Maximum expected seconds of a block; above 0 and at most 3600.
    pub seconds_max: f64,
    /// The wrapper of Bitcoin Core's kernel; by default its place in Cargo's target folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<PathBuf>,
    /// The same built with a limit of 8,000 bytes (peers/kernel/README.md); by default its place in Cargo's target folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_8000: Option<PathBuf>,
    /// Nodes that receive the blocks over RPC, as in `assay run --target`, which overrides them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
}

impl Default for WorstSettings {
    fn default() -> Self {
        let rules = ["today", "bip54", "report-8000", "pqsig", "cat", "ctv", "bip448", "p2mr"];
        Self {
            rules: rules.map(str::to_owned).to_vec(),
            classes: Vec::new(),
            seconds_max: 15.0,
            kernel: None,
            kernel_8000: None,
            nodes: Vec::new(),
        }
    }
}

/// The section `[ibd]` of a plan: operations of the initial block download.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IbdSettings {
    /// Folder with `mainnet-413567.blk`, or with a folder `blocks` that contains it; `ASSAY_TEST_DATA` if not given. Without it
    /// only the synthetic block is measured.
    pub data: Option<PathBuf>,
    /// Seed of the forged block and other generated data.
    pub seed: u64,
    /// Sizes to obfuscate, bytes; at least 64.
    pub xor_bytes: Vec<u64>,
    /// Inputs of the transaction that is checked for duplicates.
    pub duplicate_inputs: Vec<u64>,
    /// Coin cache sizes written to disk, coins; at least 16.
    pub flush_coins: Vec<u64>,
}

impl Default for IbdSettings {
    fn default() -> Self {
        Self {
            data: None,
            seed: 784_588,
            xor_bytes: vec![4 << 10, 32 << 10, 256 << 10, 1 << 20, 64 << 20],
            duplicate_inputs: vec![1, 2, 3, 10, 100, 2_000, 10_000, 24_290],
            flush_coins: vec![10_000, 100_000, 400_000],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use assay_lab::plan::PlanError;

    use super::*;

    const PLAN: &str = "format = 1\nkind = \"bench\"\nname = \"mine\"\ntitle = \"T\"\nsummary = \"S\"\nrounds = 9\n\
        [stack]\n[[build]]\nname = \"a\"\ncommand = [\"bin/assay\"]\n[[build]]\nname = \"b\"\ncommand = [\"assay\"]\n";

    #[test]
    fn impossible_values_are_refused() {
        assert!(Experiment::parse(PLAN, "plan.toml").is_ok());
        for (from, to, said) in [
            ("rounds = 9", "ronds = 9", "plan.toml, line 6, column 1: unknown field `ronds`"),
            ("[stack]", "[stack]\nsise = 1", "line 8, column 1: unknown field `sise`"),
            ("rounds = 9", "rounds = 0", "plan.toml: rounds = 0: use 1 to 10001"),
            ("format = 1", "format = 2", "format = 2: only format 1 is known"),
            ("kind = \"bench\"", "kind = \"chains\"", "unknown variant `chains`"),
            ("\"mine\"", "\"../up\"", "name = ../up"),
            ("[stack]", "", "name a section at least"),
            ("name = \"b\"", "name = \"a\"", "build.name = a: each build once"),
            ("[\"assay\"]", "[]", "name a program"),
            ("[stack]", "[core]\nbuild = []", "core.build = : it takes two"),
            ("[stack]", "[compilers]\nlevels = [4]", "compilers.levels = 4: use 1 to 3"),
            ("[stack]", "[compilers]\nkernels = [\"mul\"]", "compilers.kernels = mul: use add256"),
            (
                "[stack]",
                "[compilers]\ntimings = [\"mood\"]",
                "compilers.timings = mood: use latency",
            ),
            ("[stack]", "[compilers]\ncompilers = []", "compilers.compilers = []: name one"),
            (
                "[stack]",
                "[compilers]\ncompilers = [\"cc\", \"cc\"]",
                "compilers.compilers = cc: name each once",
            ),
            ("[stack]", "[compilers]\nchecks = 0", "compilers.checks = 0: use 1 to 100000"),
            (
                "[stack]",
                "[core]\nmin_time_ms = 0\nbuild = [{ name = \"a\", target = \"core@a\" }, { name = \"b\", target = \"core@b\" }]",
                "core.min_time_ms = 0: use 1",
            ),
        ] {
            assert!(PLAN.contains(from), "{from} is in the plan");
            let text = PLAN.replacen(from, to, 1);
            let error = Experiment::parse(&text, "plan.toml").expect_err(to).to_string();
            assert!(error.contains(said), "{error}");
        }
        let one = PLAN.split_at(PLAN.rfind("[[build]]").expect("two")).0;
        let error = Experiment::parse(one, "plan.toml").expect_err("one build").to_string();
        assert!(error.contains("it takes two"), "{error}");
    }

    #[test]
    fn programs_are_taken_from_the_folder_of_the_plan() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("plan.toml");
        fs::write(&path, PLAN).expect("writable");
        let load = |path: &Path| PlanText::find(path.to_str().expect("text"))?.plan(&[]);
        let Ok(Experiment::Bench(plan)) = load(&path) else { panic!("a plan of benchmarks") };
        assert_eq!(Path::new(&plan.builds[0].command[0]), folder.path().join("bin/assay"));
        assert_eq!(plan.builds[1].command[0], "assay");
        assert!(matches!(load(folder.path()), Err(PlanError::Read { .. })));
    }
}
