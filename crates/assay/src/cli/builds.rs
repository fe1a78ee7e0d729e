//! Flags of `assay builds` and `assay pr`.

use std::path::PathBuf;

use assay_lab::builds::DEFAULT;
use clap::{Args, Subcommand};

/// Build revisions of Bitcoin Core, or of another program in git, and keep the programs as targets.
///
/// A finished build is a target of every plan: `core@v28.0`, `core@88debb3e`, and, where there are
/// several of a revision, `core@v28.0+clang`. Builds lie in `ASSAY_BUILDS`, else in
/// `assay/builds` in `XDG_CACHE_HOME` or ~/.cache.
#[derive(Debug, Args)]
pub(crate) struct BuildsArguments {
    #[command(subcommand)]
    pub(crate) command: BuildsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BuildsCommand {
    Make(BuildsMakeArguments),
    List(BuildsListArguments),
    Clean(BuildsCleanArguments),
    /// Names of the built-in presets.
    Presets {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The text of a built-in preset, as a starting point for your own.
    Preset {
        /// Name of the preset.
        name: String,
    },
}

/// Build revisions of a clone that you have, with `CMake` or autotools as each needs.
///
/// Each revision is checked out into a work tree of its own in the folder of builds; the clone is
/// only read. What was built before with the same preset, compiler and flags is not built again, and
/// a build that was interrupted continues. ccache and ninja are used where they are installed. A
/// revision that does not build is reported with the end of its log, the others are built
/// nevertheless, and the exit status is 1.
#[derive(Debug, Args)]
pub(crate) struct BuildsMakeArguments {
    /// The clone, or a bare repository.
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) repo: PathBuf,
    /// Revisions to build: tags, branches, hashes. May be given several times.
    #[arg(long = "rev", value_name = "REV", required = true, num_args = 1..)]
    pub(crate) revisions: Vec<String>,
    #[command(flatten)]
    pub(crate) how: HowArguments,
    /// Name of a built-in preset (`assay builds presets`) or path of a TOML file. Those that end with
    /// -bench build `bench_bitcoin` as well.
    #[arg(long, value_name = "PRESET", default_value = DEFAULT)]
    pub(crate) preset: String,
    /// Print the builds as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// With what, and with how much of the machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct HowArguments {
    /// Compiler: gcc, clang, one with a version such as clang-19, or a path [default: gcc, else
    /// clang].
    #[arg(long, value_name = "NAME")]
    pub(crate) compiler: Option<String>,
    /// Flags for the compiler, behind those of the build: "-O3 -march=native".
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pub(crate) flags: Option<String>,
    /// Compilers that run at a time [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

/// List builds, finished or not, with their size.
#[derive(Debug, Args)]
pub(crate) struct BuildsListArguments {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove builds; those that another process is building stay.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true)))]
pub(crate) struct BuildsCleanArguments {
    /// Keys as `assay builds list` prints them, or the beginning of commits.
    #[arg(value_name = "KEY", group = "which")]
    pub(crate) keys: Vec<String>,
    /// Builds that failed or were interrupted.
    #[arg(long, group = "which")]
    pub(crate) unfinished: bool,
    /// All.
    #[arg(long, group = "which")]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Is a change of Bitcoin Core faster or slower? Build both revisions, measure, and say so.
///
/// Both are built with `bench_bitcoin`. Then follow, with everything decided beforehand:
/// `bench_bitcoin`, each benchmark interleaved over the two builds and the base once more, and
/// syncs of one forged chain from our node in rounds (base, base again, head, then backwards). What
/// the base shows against itself is the noise floor that a difference has to exceed. The verdicts
/// stand on one page, OUT/report.html. Exit status 1 when HEAD is slower in the total of the syncs or
/// in a benchmark, or when a revision does not build.
#[derive(Debug, Args)]
pub(crate) struct PrArguments {
    /// The revision before the change and the one with it; one alone is compared with its merge base
    /// with --onto.
    #[arg(value_names = ["BASE", "HEAD"], required = true, num_args = 1..=2)]
    pub(crate) revisions: Vec<String>,
    /// The clone, or a bare repository.
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) repo: PathBuf,
    /// Branch that a revision alone is compared with.
    #[arg(long, value_name = "BRANCH", default_value = "master")]
    pub(crate) onto: String,
    #[command(flatten)]
    pub(crate) how: HowArguments,
    /// Preset of the builds, as of `assay builds make`.
    #[arg(long, value_name = "PRESET", default_value = "bitcoin-core-bench")]
    pub(crate) preset: String,
    /// Part to measure [default: both].
    #[arg(long, value_enum, value_name = "PART")]
    pub(crate) part: Option<PartArgument>,
    /// Benchmarks of `bench_bitcoin` to make, by parts of names or patterns. May be given several
    /// times [default: all that both revisions have].
    #[arg(long, value_name = "NAME")]
    pub(crate) filter: Vec<String>,
    /// Rounds of each benchmark that count.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = super::bench::rounds)]
    pub(crate) rounds: usize,
    /// Time that a benchmark takes in a round on each build, at least.
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = super::duration)]
    pub(crate) min_time: std::time::Duration,
    /// Plan of the syncs: a built-in one or a TOML file.
    #[arg(long, value_name = "PLAN", default_value = "ibd-tracking-macro")]
    pub(crate) plan: String,
    /// Pairs of syncs; fewer than six show no difference.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) pairs: u32,
    /// Size of the chain, instead of the plan's.
    #[arg(long, value_name = "F", value_parser = super::scale)]
    pub(crate) scale: Option<f64>,
    #[command(flatten)]
    pub(crate) own_chain: super::OwnChainArguments,
    /// Folder for results, created if missing.
    #[arg(long, value_name = "DIR", default_value = "results/pr")]
    pub(crate) out: PathBuf,
    /// Keep what an earlier execution with the same settings has measured.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Print the verdicts as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of `assay pr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PartArgument {
    /// `bench_bitcoin`.
    Micro,
    /// Syncs.
    Macro,
}
