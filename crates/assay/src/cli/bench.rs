//! Flags of `assay bench`.

use std::path::PathBuf;

use assay_bench::suite::Extent;
use clap::{Args, Subcommand, ValueEnum};

use super::{BenchBlocksArguments, BenchSignaturesArguments, BenchSyncArguments};

/// Measure single operations.
///
/// Without a subcommand, every benchmark whose name a filter matches is measured with default settings: its alternatives take
/// turns, answers are checked, and each ratio comes with its interval. Plans (`assay run`) set sizes and write reports.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
    #[command(flatten)]
    pub(crate) measure: MeasureArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Names of the benchmarks.
    List(BenchListArguments),
    /// Two files of results beside each other: what became faster, what slower.
    Compare(BenchCompareArguments),
    /// Do one alternative so often, untimed: what valgrind counts.
    #[command(hide = true)]
    One(BenchOneArguments),
    /// Time benchmarks on order: what a comparison of builds talks to.
    #[command(hide = true)]
    Serve(BenchServeArguments),
    /// Signature checks in batches against plain calls of libsecp256k1, interleaved, on one thread.
    Signatures(BenchSignaturesArguments),
    /// Blocks stage by stage and connected as a whole, and Bitcoin Core's kernel at the same work.
    Blocks(BenchBlocksArguments),
    /// Full validation of one forged chain, ours and Bitcoin Core's kernel in turns, process against process.
    Sync(BenchSyncArguments),
    /// Rates of libsecp256k1 on one thread: what the forge's and the node's rates are compared with.
    Libsecp {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Which benchmarks, and how.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each on its own")]
pub(crate) struct MeasureArguments {
    /// Parts of names, or patterns of whole names where there is a `*` (anything) or `?` (one character) in them; a name of a
    /// subcommand is written as a pattern: `*blocks*`. Without one, all.
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// How much.
    #[arg(long, value_enum, value_name = "EXTENT", default_value = "full")]
    pub(crate) extent: ExtentArgument,
    /// Rounds that count; in each every alternative runs once [default: 21, quick 15, smoke 1].
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub(crate) rounds: Option<usize>,
    /// Where the processor's counters are unavailable, count instructions with valgrind in child processes: on the paths that
    /// valgrind's processor has, which lacks AVX-512 and SHA instructions.
    #[arg(long)]
    pub(crate) instructions: bool,
    /// Print JSON with every sample.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a line of comma-separated values for each alternative.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print a Markdown table.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) markdown: bool,
    /// Also write the results as JSON to this file, for `assay bench compare`.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Names of the benchmarks.
#[derive(Debug, Args)]
pub(crate) struct BenchListArguments {
    /// As for `assay bench`.
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// Those of this extent.
    #[arg(long, value_enum, value_name = "EXTENT", default_value = "full")]
    pub(crate) extent: ExtentArgument,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Two files of results beside each other.
///
/// A ratio is the time in the first file over the time in the second: above 1 the second is faster. Its interval is that of two
/// medians which nothing pairs. Exit status 1 when anything became slower.
#[derive(Debug, Args)]
pub(crate) struct BenchCompareArguments {
    /// Results of before: a file of `assay bench --out`, or a folder of `assay run`.
    #[arg(value_name = "A.json")]
    pub(crate) before: PathBuf,
    /// Results of after.
    #[arg(value_name = "B.json")]
    pub(crate) after: PathBuf,
    /// Percent by which medians have to differ at least [default: the larger floor of both runs, and at least 2].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) floor: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Do one alternative so often.
#[derive(Debug, Args)]
pub(crate) struct BenchOneArguments {
    #[command(flatten)]
    pub(crate) of: BenchServeArguments,
    /// The benchmark, by its whole name.
    #[arg(long, value_name = "NAME")]
    pub(crate) benchmark: String,
    /// The alternative.
    #[arg(long, value_name = "NAME")]
    pub(crate) alternative: String,
    /// Operations, at least.
    #[arg(long, value_name = "N")]
    pub(crate) operations: u64,
}

/// Which benchmarks another process orders.
#[derive(Debug, Args)]
pub(crate) struct BenchServeArguments {
    /// Those of this plan of benchmarks, a name or a path; without it all with default settings.
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<String>,
    /// Those of this extent.
    #[arg(long, value_enum, value_name = "EXTENT", default_value = "full")]
    pub(crate) extent: ExtentArgument,
}

/// A share given in percent.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("give a number from 0 to 1000".to_owned()),
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExtentArgument {
    /// As little as checks every answer; the times mean nothing.
    Smoke,
    /// Fewer sizes and rounds.
    Quick,
    /// Everything.
    Full,
}

impl From<ExtentArgument> for Extent {
    fn from(extent: ExtentArgument) -> Self {
        match extent {
            ExtentArgument::Smoke => Self::Smoke,
            ExtentArgument::Quick => Self::Quick,
            ExtentArgument::Full => Self::Full,
        }
    }
}

/// A number of rounds that is possible.
pub(super) fn rounds(text: &str) -> Result<usize, String> {
    let most = assay_bench::plan::ROUNDS_MAX;
    match text.parse() {
        Ok(rounds) if (1..=most).contains(&rounds) => Ok(rounds),
        _ => Err(format!("give a number from 1 to {most}")),
    }
}
