//! `assay completions` and `assay man`, both generated from the definition of the flags.

use anyhow::Context;
use assay_report::atomic_file;
use clap::CommandFactory;

use crate::Outcome;
use crate::cli::{Cli, CompletionsArguments, ManArguments};
use crate::output;

/// Prints the completion script for a shell.
pub(crate) fn completions(arguments: &CompletionsArguments) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "assay", &mut script);
    output::print(std::str::from_utf8(&script).context("the script is not UTF-8")?)?;
    Ok(Outcome::Good)
}

/// Writes a man page for the program and one for each command.
pub(crate) fn man(arguments: &ManArguments) -> anyhow::Result<Outcome> {
    atomic_file::create_folder(&arguments.out)?;
    clap_mangen::generate_to(Cli::command(), &arguments.out)
        .with_context(|| format!("cannot write man pages to {}", arguments.out.display()))?;
    Ok(Outcome::Good)
}
