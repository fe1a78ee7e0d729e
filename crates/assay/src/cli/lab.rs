//! Flags of `assay compare`, `assay history`, `assay machine` and `assay logs`.

use std::path::PathBuf;

use clap::Args;

/// Compare runs: is one faster, and how certain is that?
///
/// With one RESULTS, its targets are compared with its first; they were interleaved, so runs of one
/// round are pairs. With several, targets of the first are compared with those of the same name in
/// the others, round by round. A ratio is the time of the first over that of the second: above 1
/// the second is faster. Verdicts are faster, slower, equivalent within DELTA, or no difference
/// shown; docs/METHODOLOGY.md defines them. Results of other work or other settings are rejected.
/// With --machines, whole pairs of one plan that several machines made are put together: ratios
/// within each machine first, then over machines. Exit status 1 when anything became slower.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Folders of `assay run`, or their results.json.
    #[arg(required_unless_present = "machines", value_name = "RESULTS")]
    pub(crate) results: Vec<PathBuf>,
    /// Instead of RESULTS: a folder that holds a folder for each machine, and that the folders of
    /// its pairs (`assay run --pair`), as `assay-cluster run` leaves them. What differs between
    /// machines is in both sides of every pair; targets, their versions, plan and work must be the
    /// same.
    #[arg(long, value_name = "DIR", conflicts_with = "results")]
    pub(crate) machines: Option<PathBuf>,
    /// Target that the others are compared with, in one RESULTS [default: the first].
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Noise floor: smallest difference of medians that counts, percent, instead of that of --aa.
    #[arg(long, value_name = "PERCENT", value_parser = super::bench::percent)]
    pub(crate) floor: Option<f64>,
    /// Noise floor of this machine: results with a target given twice, or a file written by
    /// --save-floor [default: such targets in RESULTS; else 1 %, or 2 % for runs that were not
    /// interleaved].
    #[arg(long, value_name = "RESULTS")]
    pub(crate) aa: Option<PathBuf>,
    /// Write the noise floor found in RESULTS to this file, for --aa.
    #[arg(long, value_name = "FILE")]
    pub(crate) save_floor: Option<PathBuf>,
    /// Equivalence margin, percent.
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = super::bench::percent)]
    pub(crate) delta: f64,
    /// Discard runs during which the control load moved by more than this, percent.
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = super::bench::percent)]
    pub(crate) control_limit: f64,
    /// Setting that differs on purpose, by its name in the error message or a prefix of it, such as
    /// plan.target. May be given several times.
    #[arg(long, value_name = "SETTING")]
    pub(crate) vary: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a line of comma-separated values for each figure.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print Markdown.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) markdown: bool,
}

/// All results under a folder in order of time, and where they changed.
///
/// A series holds the same work by the same kind of target on the same machine. Exit status 1 when
/// the last change of any series is to a higher level.
#[expect(clippy::struct_excessive_bools, reason = "flags, each on its own")]
#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Folder with results of `assay run`, at any depth.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Phases as well as totals.
    #[arg(long)]
    pub(crate) phases: bool,
    /// Largest probability of a change by chance.
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    pub(crate) p_max: f64,
    /// Smallest change that matters, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = super::bench::percent)]
    pub(crate) size_min: f64,
    /// Write a page with charts to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a line of comma-separated values for each figure.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print Markdown tables.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) markdown: bool,
}

/// Keep results in a folder for readers, and write its page.
///
/// Stores the results of each DIR (compressed), its report and the report's charts as SVG under
/// INTO/MACHINE/PLAN, in place of earlier ones, and writes INTO/README.md: for each published
/// report a table with question, published figure, figure measured, verdict and caveat. Without DIR
/// reports and page are written again from the stored results.
#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    /// Folders of `assay run`.
    #[arg(value_name = "DIR", conflicts_with = "check")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Folder of published results.
    #[arg(long, value_name = "FOLDER", default_value = "reports")]
    pub(crate) into: PathBuf,
    /// Name of the machine's folder [default: its processor and cores].
    #[arg(long, value_name = "NAME", requires = "dirs")]
    pub(crate) machine: Option<String>,
    /// Write nothing; exit status 1 when the page differs from the results.
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the rows of all tables as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Describe this machine and measure its noise.
///
/// Prints processor, memory and disk, the noise of a fixed piece of work, and a table of the
/// signature backends with their speed on all cores (`ASSAY_BACKEND` overrides the choice). Takes
/// about 15 seconds and writes a file of up to 256 MiB to the folder, which it removes. Probes that
/// took fewer samples than with --thorough are listed.
#[derive(Debug, Args)]
pub(crate) struct MachineArguments {
    /// Folder whose disk is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// A file of 32 MiB and few repeats: a look.
    #[arg(long)]
    pub(crate) quick: bool,
    /// All samples, however long they take: up to a minute, more on a slow disk.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) thorough: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Read block progress out of logs of nodes and indexes.
///
/// Knows by itself the logs of Bitcoin Core 0.7 to today, Knots, BCHN, btcd, bcoin, libbitcoin,
/// Fulcrum, electrs and `ElectrumX`, plain or compressed (gzip), with whatever journals, syslog
/// daemons, supervisors and container runtimes put before them. Prints what one line means,
/// sessions from start to start, heights over time, cumulative transactions, cache size, and the
/// step times of `-debug=bench`. Lines that are not understood are counted by reason, with one
/// example of each, on standard error. Exit status 1 when no log holds block progress, 2 when not
/// one line was recognised.
#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// Logs; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print a row for each line as CSV: height, time since the start, transactions, cache, step
    /// times.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print rows and summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw heights over time into an SVG file, or a page with all curves and tables into an HTML
    /// file.
    #[arg(long, value_name = "FILE.svg|FILE.html")]
    pub(crate) plot: Option<PathBuf>,
}
