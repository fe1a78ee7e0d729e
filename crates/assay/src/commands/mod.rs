//! One file for each command.

pub(crate) mod bench;
pub(crate) mod block;
pub(crate) mod chain;
pub(crate) mod crash;
pub(crate) mod node;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod run;

use std::sync::Arc;

use anyhow::Context;
use assay_engine::ChainParams;

/// The chain of this name.
fn chain(name: &str) -> anyhow::Result<Arc<ChainParams>> {
    let params = ChainParams::by_name(name).with_context(|| {
        format!("unknown chain {name:?}; there are {}", ChainParams::NAMES.join(", "))
    })?;
    Ok(Arc::new(params))
}
