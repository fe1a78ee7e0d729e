//! The command line: parsing, setup and output.

mod bar;
mod bitcoind;
mod cli;
mod commands;
mod invocation;
mod output;
mod signals;

use std::process::ExitCode;

use assay_engine::defect;
use assay_lab::progress::Interrupted;
use clap::Parser;

use crate::cli::{Cli, Command};

/// Result of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Success, status 0.
    Good,
    /// The command finished with a negative result, status 1.
    Negative,
    /// A signal stopped the command before it had a result.
    Interrupted,
}

fn main() -> ExitCode {
    defect::stop_on_panic();
    let mut arguments = std::env::args_os();
    if arguments.next().is_some_and(|program| bitcoind::is_called(&program)) {
        return bitcoind::run(arguments);
    }
    let cli = Cli::parse();
    if let Err(unknown) = assay_engine::cpu::hidden() {
        output::complain(&format!("assay: {unknown}"));
        return ExitCode::from(2);
    }
    if let Command::Bitcoind(arguments) = cli.command {
        return bitcoind::run(arguments.arguments);
    }
    let scratch = match &cli.command {
        Command::Node(_) => Ok(None),
        Command::Validate(arguments) => signals::watch(arguments.datadir.is_none()),
        Command::Run(_) | Command::Bench(_) | Command::Pr(_) => signals::watch(true),
        _ => signals::watch(false),
    };
    let outcome = scratch.and_then(|scratch| {
        let outcome = execute(cli.command);
        drop(scratch);
        outcome
    });
    let (status, error) = match outcome {
        Ok(Outcome::Good) => (0, None),
        Ok(Outcome::Negative) => (1, None),
        Ok(Outcome::Interrupted) => (130, None),
        Err(error) if error.is::<Interrupted>() => (130, None),
        Err(error) if output::is_broken_pipe(&error) => (0, None),
        Err(error) => (2, Some(error)),
    };
    if let Some(error) = error {
        output::complain(&format!("assay: {}", output::explain(&error)));
    }
    ExitCode::from(signals::status().unwrap_or(status))
}

fn execute(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Crash(arguments) => commands::crash::run(&arguments),
        Command::Plan(arguments) => commands::run::plans(arguments),
        Command::Chain(arguments) => commands::chain::run(arguments),
        Command::Electrum(arguments) => commands::electrum::run(&arguments),
        Command::Node(arguments) => commands::node::run(*arguments),
        Command::Bitcoind(_) => unreachable!("it has run"),
        Command::Top(arguments) => commands::top::run(&arguments),
        Command::Index(arguments) => commands::index::run(&arguments),
        Command::Validate(arguments) => commands::validate::run(&arguments),
        Command::VerifyData(arguments) => commands::verify_data::run(&arguments),
        Command::Shard(arguments) => commands::shard::run(&arguments),
        Command::Block(arguments) => commands::block::run(&arguments),
        Command::Report(arguments) => commands::results::report(&arguments),
        Command::Publish(arguments) => commands::publish::run(&arguments),
        Command::Compare(arguments) => commands::results::compare(&arguments),
        Command::History(arguments) => commands::results::history(&arguments),
        Command::Machine(arguments) => commands::machine::run(&arguments),
        Command::Load(arguments) => commands::load::run(&arguments),
        Command::Emit(arguments) => commands::emit::run(&arguments),
        Command::Logs(arguments) => commands::logs::run(&arguments),
        Command::Bench(arguments) => commands::bench::run(&arguments),
        Command::Builds(arguments) => commands::builds::run(&arguments),
        Command::Pr(arguments) => commands::pr::run(&arguments),
        Command::Completions(arguments) => commands::completions(&arguments),
        Command::Man(arguments) => commands::man(&arguments),
    }
}
