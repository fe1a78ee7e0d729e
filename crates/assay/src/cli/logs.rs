//! Flags of `assay logs`.

use std::path::PathBuf;

use clap::Args;

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
