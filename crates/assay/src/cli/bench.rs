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
