//! Bitcoin Core's command line for our node: `assay bitcoind …`, or a link named `bitcoind` to the program.
//!
//! Scripts, configuration files and Core's own functional tests start it unchanged. The grammar is Core's
//! ([`grammar`], [`mod@file`], [`settings`], [`config`]), and so is the list of known options ([`options`]); [`node`]
//! converts it to the configuration of `assay node`. Errors, with Core's text where Core has the same one, are printed on
//! standard error as `Error: …`, as are the warnings that Core prints there, and nothing else. The exit status is 0 or 1.

mod chain;
mod client;
mod config;
mod file;
mod grammar;
mod help;
mod logging;
mod mining;
mod node;
mod notes;
mod numbers;
mod options;
mod p2p;
mod settings;
mod stored;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use assay_engine::OpenError;
use assay_node::{LogError, NodeError};

pub(crate) use self::chain::with_activation_heights;
pub(crate) use self::client::ClientSettings;
use self::config::Loaded;
use self::grammar::{CommandLine, Value};
use self::notes::Notes;
use crate::output;

/// Name of the program in Core's texts.
const CLIENT_NAME: &str = "Assay";

/// A failure to open the chain that a rebuild repairs (Core `init.cpp`).
#[derive(Debug)]
struct Question(String);

impl std::error::Error for Question {}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.\nPlease restart with -reindex or -reindex-chainstate to recover.", self.0)
    }
}

/// Option of Core's tests that confirms a rebuild.
const REINDEX_AFTER_FAILURE: &str = "reindex_after_failure_noninteractive_yes";

/// True if the program runs under the name `bitcoind`.
pub(crate) fn is_called(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some("bitcoind".as_ref())
}

/// Runs a node with the arguments after the program name.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Core prints this question without the prefix.
            let prefix = if error.is::<Question>() { "" } else { "Error: " };
            output::complain(&format!("{prefix}{}", output::explain(&error)));
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<()> {
    let mut notes = Notes::default();
    let failed = |error| anyhow!("Error parsing command line arguments: {error}");
    let arguments = texts(arguments).map_err(failed)?;
    let line = CommandLine::parse(&arguments, &mut notes).map_err(failed)?;
    let is_given = |name: &str| line.values.contains_key(name);
    if line.values.get("version").and_then(|values| values.last()).is_some_and(Value::flag) {
        return output::print(&help::version());
    }
    if ["?", "h", "help", "help-debug"].into_iter().any(is_given) {
        return output::print(&help::text());
    }
    let mut loaded = Loaded::new(line, &mut notes)?;
    let mut config = node::config(&mut loaded, &mut notes)?;
    for line in node::log_first(&mut config, notes) {
        output::complain(&line);
    }
    let retries = loaded.settings.list("test").iter().any(|option| option == REINDEX_AFTER_FAILURE);
    match assay_node::run(&config) {
        // Core asks the user; its tests confirm in advance by an option.
        Err(NodeError::Open { source: OpenError::UnknownCoinTip { .. }, .. }) if retries => {
            config.engine.reindex = true;
            // The log is already open.
            config.log = None;
            assay_node::run(&config)
        }
        other => other,
    }
    .map_err(in_words_of_core)
}

fn texts(arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<Vec<String>> {
    let text = |argument: OsString| {
        argument.into_string().map_err(|argument| anyhow!("{} is not UTF-8", argument.display()))
    };
    arguments.into_iter().map(text).collect()
}

/// Converts errors that scripts match to Core's text.
fn in_words_of_core(error: NodeError) -> anyhow::Error {
    match error {
        NodeError::AlreadyRunning { path } => anyhow!(
            "Cannot obtain a lock on directory {}. {CLIENT_NAME} is probably already running.",
            path.display()
        ),
        // The cause is already in the log.
        NodeError::Auth(_) | NodeError::Bind(_) => {
            anyhow!("Unable to start HTTP server. See debug log for details.")
        }
        error @ NodeError::P2pBind { .. } => {
            anyhow!("{error}\nError: Failed to listen on any port. Use -listen=0 if you want this.")
        }
        NodeError::Log(LogError::File { path, source }) => {
            anyhow!("Could not open debug log file {}: {source}", path.display())
        }
        NodeError::Open { source: OpenError::UnknownCoinTip { .. }, .. } => {
            Question("Error initializing block database".to_owned()).into()
        }
        NodeError::Open {
            source:
                error @ (OpenError::WitnessUnchecked { .. }
                | OpenError::FromTheFuture
                | OpenError::Corrupted
                | OpenError::Pruned),
            ..
        } => Question(error.to_string()).into(),
        NodeError::Open {
            source: error @ (OpenError::ShallowCheck | OpenError::UnknownBase { .. }),
            ..
        } => error.into(),
        other => other.into(),
    }
}
