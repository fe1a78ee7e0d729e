//! Implementations of the commands, one file per command.

pub(crate) mod bench;
pub(crate) mod block;
pub(crate) mod builds;
pub(crate) mod chain;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod crash;
pub(crate) mod electrum;
pub(crate) mod emit;
pub(crate) mod history;
mod hostile;
pub(crate) mod index;
pub(crate) mod load;
pub(crate) mod logs;
pub(crate) mod machine;
pub(crate) mod node;
pub(crate) mod plan;
pub(crate) mod pr;
pub(crate) mod publish;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod shard;
pub(crate) mod top;
pub(crate) mod validate;
pub(crate) mod verify_data;

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Context, ensure};
use assay_engine::ChainParams;

use crate::signals::stop_flag;

/// Parameters of the named chain.
fn chain(name: &str) -> anyhow::Result<Arc<ChainParams>> {
    let params = ChainParams::by_name(name).with_context(|| assay_engine::unknown_chain(name))?;
    Ok(Arc::new(params))
}

/// Command line that starts this program with the given arguments.
fn own_command(words: &[&str]) -> anyhow::Result<Vec<OsString>> {
    let path = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(std::iter::once(path.into_os_string()).chain(words.iter().map(OsString::from)).collect())
}

/// Converts MiB to bytes.
fn mebibytes(flag: &str, count: usize) -> anyhow::Result<usize> {
    const MAX: usize = 1 << 20;
    ensure!((1..=MAX).contains(&count), "{flag} {count}: give 1 to {MAX} MiB");
    Ok(count << 20)
}
