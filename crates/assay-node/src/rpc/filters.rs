//! RPC of compact block filters (BIP157, BIP158).

use std::borrow::Cow;

use assay_electrum::filters::FilterEntry;
use assay_electrum::follow::Follows as _;
use assay_electrum::{FilterIndex, RecordsError};
use assay_wire::BlockHash;

use super::index::wait_for_index;
use super::method::Call;
use super::{Node, bad_key, block_not_found};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const GETBLOCKFILTER: Call = |node, args, out| {
    let hash = args.block_hash(0, "blockhash")?;
    let kind = args.optional_string(1)?.map_or(BASIC.into(), Cow::into_owned);
    let index = named(node, &kind)?;
    let found = look_up(node, index, &hash).map_err(|why| why.to_rpc())?;
    let filter = index.filter(&found).map_err(|error| failed(&error))?;
    let mut object = Json::new(out).object();
    object.key("filter").hex(&filter);
    object.key("header").text(BlockHash(found.header));
    Ok(())
};

impl<'a> Node<'a> {
    pub(super) fn filter_index(&self) -> Option<&'a FilterIndex> {
        self.rpc.block_indexes.get()?.filters.as_deref()
    }
}

pub(super) fn named<'a>(node: &Node<'a>, kind: &str) -> Result<&'a FilterIndex, RpcError> {
    if kind != BASIC {
        return Err(bad_key("Unknown filtertype"));
    }
    node.filter_index().ok_or_else(|| {
        RpcError::new(Code::Misc, format!("Index is not enabled for filtertype {kind}"))
    })
}

pub(super) enum Missing {
    Block,
    /// Never part of the active chain.
    NotConnected,
    Behind,
    /// The index should have it.
    Unexpected,
    Failed(RecordsError),
}

impl Missing {
    /// Core's wording (`rpc/blockchain.cpp`, `rest.cpp`).
    pub(super) fn text(&self) -> Cow<'static, str> {
        match self {
            Self::Block => "Block not found".into(),
            Self::NotConnected => {
                "Filter not found. Block was not connected to active chain.".into()
            }
            Self::Behind => {
                "Filter not found. Block filters are still in the process of being indexed.".into()
            }
            Self::Unexpected => {
                "Filter not found. This error is unexpected and indicates index corruption.".into()
            }
            Self::Failed(error) => error.to_string().into(),
        }
    }

    fn to_rpc(&self) -> RpcError {
        match self {
            Self::Block => block_not_found(),
            Self::NotConnected => bad_key(self.text()),
            Self::Behind => RpcError::new(Code::Misc, self.text()),
            Self::Unexpected | Self::Failed(_) => RpcError::new(Code::InternalError, self.text()),
        }
    }
}

/// Index entry of a block; waits for an index just behind the tip.
pub(super) fn look_up(
    node: &Node<'_>,
    index: &FilterIndex,
    hash: &BlockHash,
) -> Result<FilterEntry, Missing> {
    if node.engine.chain().header_place(hash).is_none() {
        return Err(Missing::Block);
    }
    let is_ready = is_ready(node, index);
    find(node, index, hash, is_ready)
}

/// True if the index is at the tip; waits for one just behind.
pub(super) fn is_ready(node: &Node<'_>, index: &FilterIndex) -> bool {
    wait_for_index(node, &|| index.tip())
}

/// Index entry of a block, without a wait.
pub(super) fn find(
    node: &Node<'_>,
    index: &FilterIndex,
    hash: &BlockHash,
    is_ready: bool,
) -> Result<FilterEntry, Missing> {
    let place = node.engine.chain().header_place(hash).ok_or(Missing::Block)?;
    match index.entry(hash, place.height).map_err(Missing::Failed)? {
        Some(entry) => Ok(entry),
        None if place.height > 0 && !place.is_valid => Err(Missing::NotConnected),
        None if !is_ready => Err(Missing::Behind),
        None => Err(Missing::Unexpected),
    }
}

pub(super) fn failed(error: &RecordsError) -> RpcError {
    tracing::error!("RPC call failed: {error}");
    RpcError::new(Code::InternalError, error.to_string())
}

pub(super) const BASIC: &str = "basic";
