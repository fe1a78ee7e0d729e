//! REST: compact block filters.

use assay_electrum::FilterIndex;
use assay_wire::BlockHash;
use assay_wire::p2p::{BlockFilter, FilterKind};

use super::super::filters::{BASIC, Missing, find, is_ready, look_up};
use super::blocks::active_from;
use super::{Answer, Failure, Request, bad, hash, missing};
use crate::jsonrpc::Json;
use crate::rpc::Node;

/// `/rest/blockfilter/TYPE/HASH`: filter of a block.
pub(super) fn filter(node: &Node<'_>, request: &Request<'_>) -> Answer {
    let [kind, text] = request.path.split('/').collect::<Vec<_>>()[..] else {
        let form = "/rest/blockfilter/<filtertype>/<blockhash>";
        return Err(bad(format!("Invalid URI format. Expected {form}")));
    };
    let block: BlockHash = hash(text)?;
    let index = named(node, kind)?;
    let found = look_up(node, index, &block).map_err(|why| match why {
        Missing::Block => missing(format!("{text} not found")),
        other => missing(other.text()),
    })?;
    let filter = index.filter(&found).map_err(|error| missing(error.to_string()))?;
    request.content(
        || {
            let mut bytes = Vec::with_capacity(filter.len() + 42);
            BlockFilter { kind: FilterKind::BASIC, block, filter: &filter }.encode(&mut bytes);
            bytes
        },
        |out| Json::new(out).object().key("filter").hex(&filter),
    )
}

/// `/rest/blockfilterheaders/TYPE/HASH?count=N`: filter headers of the active chain from a block on.
pub(super) fn headers(node: &Node<'_>, request: &Request<'_>) -> Answer {
    let (kind, text, count) = match request.path.split('/').collect::<Vec<_>>()[..] {
        // Older form of the path.
        [kind, count, text] => (kind, text, Some(count)),
        [kind, text] => (kind, text, None),
        _ => {
            let form = "/rest/blockfilterheaders/<filtertype>/<blockhash>.<ext>?count=<count>";
            return Err(bad(format!("Invalid URI format. Expected {form}")));
        }
    };
    let count = request.count(count)?;
    let start: BlockHash = hash(text)?;
    let index = named(node, kind)?;
    let blocks = active_from(node, &start, count);
    let is_ready = is_ready(node, index);
    let mut headers = Vec::with_capacity(blocks.len());
    for block in blocks {
        let found = find(node, index, &block.hash, is_ready);
        headers.push(found.map_err(|why| missing(why.text()))?.header);
    }
    request.content(
        || headers.concat(),
        |out| Json::new(out).list(&headers, |header, json| json.text(BlockHash(*header))),
    )
}

fn named<'a>(node: &Node<'a>, kind: &str) -> Result<&'a FilterIndex, Failure> {
    if kind != BASIC {
        return Err(bad(format!("Unknown filtertype {kind}")));
    }
    node.filter_index().ok_or_else(|| bad(format!("Index is not enabled for filtertype {kind}")))
}
