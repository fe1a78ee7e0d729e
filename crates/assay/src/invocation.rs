//! The command line of this process: flags that were given, and a line that repeats it.

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory};

use crate::cli::Cli;

/// Flags without influence on what is measured.
const OUTPUT_FLAGS: [&str; 8] =
    ["out", "work", "json", "csv", "markdown", "resume", "keep_datadirs", "repo"];

/// The subcommand that runs, with its names and its arguments.
struct Invocation {
    names: Vec<String>,
    command: clap::Command,
    matches: ArgMatches,
}

impl Invocation {
    /// Parses the arguments again, which the command line has accepted before.
    fn parse() -> Result<Self, clap::Error> {
        let mut command = Cli::command();
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        let mut names = vec!["assay".to_owned()];
        while let Some((name, inner)) = matches.remove_subcommand() {
            let found = command.find_subcommand(&name).cloned();
            (command, matches) = (found.unwrap_or(command), inner);
            names.push(name);
        }
        Ok(Self { names, command, matches })
    }

    fn is_given(&self, id: &str) -> bool {
        matches!(self.matches.value_source(id), Some(ValueSource::CommandLine))
    }

    /// Words of an argument with its values, given or by default.
    fn words(&self, argument: &clap::Arg) -> Vec<String> {
        let id = argument.get_id().as_str();
        let flag = argument.get_long().map(|name| format!("--{name}"));
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            let is_set = self.matches.get_flag(id);
            return flag.into_iter().filter(|_| is_set).collect();
        }
        let values = self.matches.get_raw(id).into_iter().flatten();
        let values = values.map(|value| quoted(&value.to_string_lossy()));
        values.flat_map(|value| flag.clone().into_iter().chain([value])).collect()
    }
}

/// Command line that repeats the measurement: with the values of all flags, without folders of results.
pub(crate) fn rerun() -> String {
    let Ok(invocation) = Invocation::parse() else { return "assay".to_owned() };
    // The folder of a forged chain holds results, too; a name of a chain selects block files.
    let has_chain_folder = invocation.command.get_arguments().any(|one| {
        let is_folder = |name: &clap::builder::Str| name.contains("DIR");
        one.get_id() == "chain"
            && invocation.command.get_arg_conflicts_with(one).is_empty()
            && one.get_value_names().is_some_and(|names| names.iter().any(is_folder))
    });
    let has_blocks = invocation.command.get_arguments().any(|one| one.get_id() == "blocks")
        && invocation.is_given("blocks");
    let is_output =
        |id: &str| OUTPUT_FLAGS.contains(&id) || (id == "chain" && has_chain_folder && !has_blocks);
    let arguments = invocation.command.get_arguments();
    let conflict = |one: &clap::Arg, other: &clap::Arg| {
        let mut conflicts = invocation.command.get_arg_conflicts_with(one).into_iter();
        conflicts.any(|conflict| conflict.get_id() == other.get_id())
    };
    // Defaults that a given argument excludes are not part of the run.
    let is_excluded = |one: &clap::Arg| {
        !invocation.is_given(one.get_id().as_str())
            && invocation.command.get_arguments().any(|other| {
                invocation.is_given(other.get_id().as_str())
                    && (conflict(one, other) || conflict(other, one))
            })
    };
    let words = arguments.filter(|one| !is_output(one.get_id().as_str()) && !is_excluded(one));
    let words = words.flat_map(|one| invocation.words(one));
    invocation.names.iter().cloned().chain(words).collect::<Vec<_>>().join(" ")
}

/// Flags on the command line that have a heading of their own in `--help`, with it.
pub(crate) fn given_with_heading() -> Vec<(String, String)> {
    let Ok(invocation) = Invocation::parse() else { return Vec::new() };
    let given = invocation.command.get_arguments().filter_map(|one| {
        let (heading, name) = (one.get_help_heading()?, one.get_long()?);
        let is_given = invocation.is_given(one.get_id().as_str());
        is_given.then(|| (format!("--{name}"), heading.to_owned()))
    });
    given.collect()
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+@,%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
