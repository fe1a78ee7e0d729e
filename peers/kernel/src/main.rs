//! The command line. Exit status 0 without disagreement, 1 with one, 2 on failure.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use assay_peer_kernel::{bench, coins, compare, flips, kernel, scripts, signet, validate};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;

/// Bitcoin Core's own validation against Assay's, on the same bytes.
#[derive(Parser)]
#[command(name = "assay-peer-kernel", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Validate a folder of block files with the kernel alone
    Validate(ValidateArgs),
    /// Count and hash the coins of a finished validation
    Coins(CoinsArgs),
    /// Execute and time pieces of work on orders, lines of JSON on standard input; for `assay bench blocks`
    Bench,
    /// Submit generated and mutated blocks to both, and compare verdict, reason and tip
    Compare(CompareArgs),
    /// Flip single bits of real blocks, and compare the verdicts on the affected inputs
    Flips(FlipsArgs),
    /// Compare the verdicts on random scripts, transactions and rules
    Scripts(ScriptsArgs),
    /// Compare the verdicts on blocks of custom signets, signed well and badly
    Signet(SignetArgs),
}

#[derive(Args)]
struct ValidateArgs {
    /// Folder with blk*.dat in it or in its `blocks`, obfuscated (xor.dat) or plain, blocks in any order; or one file
    #[arg(long, value_name = "DIR")]
    blocks: PathBuf,
    /// main, test, testnet4, signet or regtest
    #[arg(long, value_name = "NAME")]
    chain: String,
    /// Folder for the kernel's chain
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// Submit no blocks above this height
    #[arg(long, value_name = "N")]
    stop_height: Option<u32>,
    /// Script check threads in addition to the submitting one [default: number of cores less one]
    #[arg(long, value_name = "N")]
    worker_threads: Option<i32>,
    /// Keep index and coins in memory only
    #[arg(long)]
    in_memory: bool,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CoinsArgs {
    /// Data folder of a closed kernel
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CompareArgs {
    /// Seed of all choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Blocks to submit in addition to the base chains
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    blocks: u64,
    /// Only blocks of this class; an unknown name lists them
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Number of the first round
    #[arg(long, default_value_t = 0, value_name = "N")]
    first_round: u64,
    /// Blocks in a round
    #[arg(long, default_value_t = compare::ROUND_BLOCKS, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_blocks: u64,
    /// Parallel rounds
    #[arg(long, default_value_t = 2, value_name = "N")]
    jobs: usize,
    /// Folder for disagreements
    #[arg(long, default_value = "disagreements", value_name = "DIR")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct FlipsArgs {
    /// Folder that holds blocks/*.blk with *.prevouts
    #[arg(long, env = "ASSAY_TEST_DATA", value_name = "DIR")]
    data: PathBuf,
    /// Bits to flip
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    flips: u64,
    /// Seed of all choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ScriptsArgs {
    /// Inputs to verify
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    inputs: u64,
    /// Seed of all choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads
    #[arg(long, default_value_t = 2, value_name = "N")]
    jobs: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct SignetArgs {
    /// Blocks to mine and submit; each costs some million hashes
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    blocks: u64,
    /// Seed of all choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Validate(args) => run_validate(args),
        Command::Coins(args) => run_coins(&args),
        Command::Bench => bench::serve(std::io::stdin().lock(), std::io::stdout()).map(|()| true),
        Command::Compare(args) => run_compare(args),
        Command::Flips(args) => run_flips(&args),
        Command::Scripts(args) => run_scripts(&args),
        Command::Signet(args) => run_signet(&args),
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

fn run_validate(args: ValidateArgs) -> Result<bool> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let options = validate::Options {
        blocks: args.blocks,
        chain: args.chain,
        datadir: args.datadir,
        stop_height: args.stop_height,
        workers: args.worker_threads.unwrap_or(cores as i32 - 1),
        in_memory: args.in_memory,
    };
    let is_json = args.json;
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
    let end = validate::run(&options, &settings, &progress)?;
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

fn run_coins(args: &CoinsArgs) -> Result<bool> {
    let set = coins::read(&args.datadir)?;
    if args.json {
        print_json(&set)?;
    } else {
        print(&format!(
            "{} coins after block {}, {} satoshi, MuHash {}",
            set.coins, set.best_block, set.amount_sat, set.muhash
        ));
    }
    Ok(true)
}

fn run_compare(args: CompareArgs) -> Result<bool> {
    let _tap = kernel::listen()?;
    let options = compare::Options {
        seed: args.seed,
        blocks: args.blocks,
        round_blocks: args.round_blocks,
        first_round: args.first_round,
        class: args.class,
        jobs: args.jobs,
        out: args.out,
    };
    let is_terminal = std::io::stderr().is_terminal();
    let progress = |blocks: u64| {
        if is_terminal {
            let _ = write!(std::io::stderr(), "\r{blocks} blocks");
        }
    };
    let summary = compare::run(&options, &progress)?;
    if is_terminal {
        let _ = writeln!(std::io::stderr());
    }
    if args.json {
        print_json(&summary)?;
    } else {
        print(&summary.table());
        for path in &summary.files {
            print(&format!("disagreement: {}", path.display()));
        }
    }
    Ok(summary.disagreements() == 0)
}

fn run_flips(args: &FlipsArgs) -> Result<bool> {
    let summary = flips::run(&args.data, args.flips, args.seed)?;
    if args.json {
        print_json(&summary)?;
    } else {
        print(&format!(
            "{} blocks, {} unchanged inputs passed by both; {} flips: {} rejected, {} ignored by consensus, {} disagreements",
            summary.blocks.len(),
            summary.unchanged,
            summary.flips,
            summary.rejected,
            summary.ignored,
            summary.disagreements.len()
        ));
        for (target, (rejected, ignored)) in &summary.targets {
            print(&format!("  {target:<14}{rejected:>8} rejected{ignored:>8} ignored"));
        }
        summary.disagreements.iter().for_each(|text| print(text));
    }
    Ok(summary.disagreements.is_empty())
}

fn run_signet(args: &SignetArgs) -> Result<bool> {
    let _tap = kernel::listen()?;
    let summary = signet::run(args.seed, args.blocks)?;
    if args.json {
        print_json(&summary)?;
    } else {
        for (case, verdicts) in &summary.cases {
            for (verdict, count) in verdicts {
                print(&format!("{count:>6}  {case}: {verdict}"));
            }
        }
        print(&format!(
            "seed {}, {} blocks in {:.0} s, {} disagreements",
            summary.seed,
            summary.blocks,
            summary.elapsed_s,
            summary.disagreements.len()
        ));
        summary.disagreements.iter().for_each(|text| print(text));
    }
    Ok(summary.disagreements.is_empty())
}

fn run_scripts(args: &ScriptsArgs) -> Result<bool> {
    let summary = scripts::run(args.seed, args.inputs, args.jobs);
    if args.json {
        print_json(&summary)?;
    } else {
        for (error, count) in &summary.errors {
            print(&format!("{count:>10}  {error}"));
        }
        print(&format!(
            "{:>10}  passed\nseed {}, {} inputs in {:.0} s ({:.0}/s), {} undecodable transactions, {} disagreements",
            summary.passed,
            summary.seed,
            summary.inputs,
            summary.elapsed_s,
            summary.inputs as f64 / summary.elapsed_s.max(1e-9),
            summary.undecodable,
            summary.disagreements.len()
        ));
        summary.disagreements.iter().for_each(|text| print(text));
    }
    Ok(summary.disagreements.is_empty())
}
