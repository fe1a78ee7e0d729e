//! RPC of index state, and transaction lookup.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use assay_electrum::Index;
use assay_electrum::chain::Tip;
use assay_electrum::filters;
use assay_electrum::follow::Follows as _;
use assay_electrum::index::{QueryError, Scope};
use assay_wire::{BlockHash, Txid};

use super::Node;
use super::method::Call;
use crate::jsonrpc::{Code, Json, RpcError};

/// Index of the node, with its configured names.
pub(crate) struct ServedIndex {
    pub(crate) index: Arc<Index>,
    /// True if enabled by `-txindex`.
    pub(crate) is_tx_index: bool,
}

impl ServedIndex {
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let electrum = (self.index.scope() == Scope::All).then_some(ELECTRUM);
        self.is_tx_index.then_some(TXINDEX).into_iter().chain(electrum)
    }
}

pub(super) enum Lookup {
    NoIndex,
    /// Not found, and the index is far behind the tip.
    Behind,
    /// Not in any block of the active chain.
    Missing,
    Found(BlockHash),
}

/// Looks up a transaction. Waits for an index just behind the tip, so that transactions confirmed before the call
/// are found (Core `index/base.cpp`, `BlockUntilSyncedToCurrentChain`).
pub(super) fn look_up(node: &Node<'_>, txid: &Txid) -> Result<Lookup, RpcError> {
    let Some(served) = node.rpc.index.get() else { return Ok(Lookup::NoIndex) };
    let is_ready = wait_for_index(node, &|| served.index.tip());
    let failed = |error: QueryError| {
        tracing::error!("RPC call failed: {error}");
        RpcError::new(Code::InternalError, error.to_string())
    };
    loop {
        return match served.index.view().position(txid) {
            Ok(Some(position)) => Ok(Lookup::Found(position.block)),
            Ok(None) if is_ready => Ok(Lookup::Missing),
            Ok(None) => Ok(Lookup::Behind),
            Err(QueryError::Reorganised) => continue,
            Err(error) => Err(failed(error)),
        };
    }
}

/// Waits for an index that is a few blocks behind, with a timeout; true if it is at the tip.
pub(super) fn wait_for_index(node: &Node<'_>, reached: &dyn Fn() -> Option<Tip>) -> bool {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let tip = node.engine.chain().tip();
        let ours = reached();
        if ours.is_some_and(|ours| ours.hash == tip.hash) {
            return true;
        }
        let is_far = ours.is_none_or(|ours| ours.height.abs_diff(tip.height) > NEAR_BLOCKS);
        let is_over = Instant::now() > deadline || node.context.interrupted();
        if is_far || is_over {
            return false;
        }
        thread::sleep(POLL);
    }
}

pub(super) const GETINDEXINFO: Call = |node, args, out| {
    let name = args.optional_string(0)?.map(std::borrow::Cow::into_owned);
    let mut object = Json::new(out).object();
    let served = node.rpc.index.get();
    let names = served.into_iter().flat_map(ServedIndex::names);
    let mut rows: Vec<_> =
        names.map(|name| (name, served.and_then(|served| served.index.tip()))).collect();
    if let Some(index) = node.filter_index() {
        rows.push((filters::NAME, index.tip()));
    }
    rows.retain(|(one, _)| name.as_deref().is_none_or(|name| name == *one));
    for (one, tip) in rows {
        let mut entry = object.key(one).object();
        let is_synced = tip.is_some_and(|tip| tip.hash == node.engine.chain().tip().hash);
        entry.key("synced").bool(is_synced);
        entry.key("best_block_height").int(tip.map_or(0, |tip| tip.height));
    }
    Ok(())
};

const ELECTRUM: &str = "electrum";
/// Core's `TxIndex` (`index/txindex.cpp`).
const TXINDEX: &str = "txindex";
/// Maximum lag to wait for; beyond it the index is in its initial build.
const NEAR_BLOCKS: u32 = 100;
const WAIT_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);
