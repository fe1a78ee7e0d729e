//! The command line. Exit status 0 without disagreement, 1 with one, 2 on failure.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use assay_peer_kernel::{bench, coins, compare, flips, kernel, scripts, signet, validate};
use clap::{Parser, Subcommand};
use serde::Serialize;

/// Bitcoin Core's own validation against Assay's, on the same bytes.
#[derive(Parser)]
#[command(name = "assay-peer-kernel", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON, lines of it while validating
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Validate a folder of block files with the kernel alone
    Validate(validate::Options),
    /// Count and hash the coins of a finished validation
    Coins {
        /// Data folder of a closed kernel
        #[arg(long, value_name = "DIR")]
        datadir: PathBuf,
    },
    /// Execute and time pieces of work on orders, lines of JSON on standard input; for `assay bench blocks`
    Bench,
    /// Submit generated and mutated blocks to both, and compare verdict, reason and tip
    Compare(compare::Options),
    /// Flip single bits of real blocks, and compare the verdicts on the affected inputs
    Flips {
        /// Folder that holds blocks/*.blk with *.prevouts
        #[arg(long, env = "ASSAY_TEST_DATA", value_name = "DIR")]
        data: PathBuf,
        /// Bits to flip
        #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
        flips: u64,
        /// Seed of all choices
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Compare the verdicts on random scripts, transactions and rules
    Scripts {
        /// Inputs to verify
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
        inputs: u64,
        /// Seed of all choices
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Threads
        #[arg(long, default_value_t = 2, value_name = "N")]
        jobs: usize,
    },
    /// Compare the verdicts on blocks of custom signets, signed well and badly
    Signet {
        /// Blocks to mine and submit; each costs some million hashes
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
        blocks: u64,
        /// Seed of all choices
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> ExitCode {
    let Cli { command, json } = Cli::parse();
    let result = match command {
        Command::Validate(options) => run_validate(&options, json),
        Command::Coins { datadir } => run_coins(&datadir, json),
        Command::Bench => bench::serve(std::io::stdin().lock(), std::io::stdout()).map(|()| true),
        Command::Compare(options) => run_compare(&options, json),
        Command::Flips { data, flips, seed } => run_flips(&data, flips, seed, json),
        Command::Scripts { inputs, seed, jobs } => run_scripts(seed, inputs, jobs, json),
        Command::Signet { blocks, seed } => run_signet(seed, blocks, json),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "assay-peer-kernel: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn print(text: &str) {
    // A closed standard output is no failure.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn print_json(value: &impl Serialize) -> Result<()> {
    print(&serde_json::to_string(value).context("writing JSON")?);
    Ok(())
}

/// Prints a summary as JSON, or as text with its disagreements; `true` if there are none.
fn print_summary(
    is_json: bool,
    summary: &impl Serialize,
    text: &str,
    disagreements: &[String],
) -> Result<bool> {
    if is_json {
        print_json(summary)?;
    } else {
        print(text);
        disagreements.iter().for_each(|text| print(text));
    }
    Ok(disagreements.is_empty())
}

fn run_validate(options: &validate::Options, is_json: bool) -> Result<bool> {
    let settings = |explicit: &validate::Explicit| {
        if is_json {
            let _ = print_json(explicit);
        } else {
            print(&format!(
                "{} blocks of {}; {} worker threads, {} MiB cache{}",
                explicit.blocks,
                explicit.chain,
                explicit.worker_threads,
                explicit.db_cache_mib,
                if explicit.in_memory { ", in memory" } else { "" }
            ));
        }
    };
    let progress = |line: &validate::Progress| {
        if is_json {
            let _ = print_json(line);
        }
    };
    let end = validate::run(options, &settings, &progress)?;
    if !is_json {
        print(&format!(
            "tip {} at height {}; {} blocks in {:.2} s, {:.1} blocks/s, CPU time {:.2} s",
            end.hash,
            end.height,
            end.blocks,
            end.elapsed_s,
            end.blocks as f64 / end.elapsed_s.max(1e-9),
            end.cpu_s
        ));
    }
    Ok(true)
}

fn run_coins(datadir: &Path, is_json: bool) -> Result<bool> {
    let set = coins::read(datadir)?;
    let text = format!(
        "{} coins after block {}, {} satoshi, MuHash {}",
        set.coins, set.best_block, set.amount_sat, set.muhash
    );
    print_summary(is_json, &set, &text, &[])
}

fn run_compare(options: &compare::Options, is_json: bool) -> Result<bool> {
    let _tap = kernel::listen()?;
    let is_terminal = std::io::stderr().is_terminal();
    let progress = |blocks: u64| {
        if is_terminal {
            let _ = write!(std::io::stderr(), "\r{blocks} blocks");
        }
    };
    let summary = compare::run(options, &progress)?;
    if is_terminal {
        let _ = writeln!(std::io::stderr());
    }
    let files = summary.files.iter().map(|path| format!("disagreement: {}", path.display()));
    print_summary(is_json, &summary, &summary.table(), &files.collect::<Vec<_>>())?;
    Ok(summary.disagreements() == 0)
}

fn run_flips(data: &Path, flips: u64, seed: u64, is_json: bool) -> Result<bool> {
    let summary = flips::run(data, flips, seed)?;
    let mut text = format!(
        "{} blocks, {} unchanged inputs passed by both; {} flips: {} rejected, {} ignored by consensus, {} disagreements",
        summary.blocks.len(),
        summary.unchanged,
        summary.flips,
        summary.rejected,
        summary.ignored,
        summary.disagreements.len()
    );
    for (target, (rejected, ignored)) in &summary.targets {
        write!(text, "\n  {target:<14}{rejected:>8} rejected{ignored:>8} ignored")?;
    }
    print_summary(is_json, &summary, &text, &summary.disagreements)
}

fn run_signet(seed: u64, blocks: u64, is_json: bool) -> Result<bool> {
    let _tap = kernel::listen()?;
    let summary = signet::run(seed, blocks)?;
    let mut text = String::new();
    for (case, verdicts) in &summary.cases {
        for (verdict, count) in verdicts {
            writeln!(text, "{count:>6}  {case}: {verdict}")?;
        }
    }
    write!(
        text,
        "seed {}, {} blocks in {:.0} s, {} disagreements",
        summary.seed,
        summary.blocks,
        summary.elapsed_s,
        summary.disagreements.len()
    )?;
    print_summary(is_json, &summary, &text, &summary.disagreements)
}

fn run_scripts(seed: u64, inputs: u64, jobs: usize, is_json: bool) -> Result<bool> {
    let summary = scripts::run(seed, inputs, jobs);
    let mut text = String::new();
    for (error, count) in &summary.errors {
        writeln!(text, "{count:>10}  {error}")?;
    }
    write!(
        text,
        "{:>10}  passed\nseed {}, {} inputs in {:.0} s ({:.0}/s), {} undecodable transactions, {} disagreements",
        summary.passed,
        summary.seed,
        summary.inputs,
        summary.elapsed_s,
        summary.inputs as f64 / summary.elapsed_s.max(1e-9),
        summary.undecodable,
        summary.disagreements.len()
    )?;
    print_summary(is_json, &summary, &text, &summary.disagreements)
}
