//! REST: chain and blocks.

use assay_engine::BlockEntry;
use assay_wire::{BlockHash, Coin, encode};
use hyper::StatusCode;

use super::super::blocks::{block as write_block, write_header};
use super::super::script::write_script_pubkey;
use super::super::{chain, deployments as soft_forks};
use super::{Answer, Content, Failure, Format, Request, bad, hash, integral, missing};
use crate::jsonrpc::Json;
use crate::rpc::Node;

/// `/rest/block/HASH`: with transactions and spent outputs.
pub(super) fn block(node: &Node<'_>, request: &Request<'_>) -> Answer {
    whole(node, request, 3)
}

/// `/rest/block/notxdetails/HASH`: with txids.
pub(super) fn without_details(node: &Node<'_>, request: &Request<'_>) -> Answer {
    whole(node, request, 1)
}

fn whole(node: &Node<'_>, request: &Request<'_>, verbosity: i32) -> Answer {
    let (hash, _) = stored(node, request.path)?;
    let unreadable = || unreadable(request.path);
    if request.format == Some(Format::Json) {
        return request
            .json(|out| write_block(node, &hash, verbosity, out).map_err(|_| unreadable()));
    }
    let raw = node.engine.blocks().read(&hash).ok().flatten().ok_or_else(unreadable)?;
    request.content(|| raw, |_| {})
}

/// `/rest/blockpart/HASH?offset=N&size=N`: bytes of a block.
pub(super) fn part(node: &Node<'_>, request: &Request<'_>) -> Answer {
    let number = |name| request.parameter(name).and_then(|text| integral::<u64>(&text)).ok_or(name);
    let failed = |name| bad(format!("Block part {name} missing or invalid"));
    let offset = number("offset").map_err(failed)?;
    let size = number("size").map_err(failed)?;
    let (hash, entry) = stored(node, request.path)?;
    let end = offset.checked_add(size).filter(|end| size > 0 && *end <= u64::from(entry.size));
    let range = end.and_then(|_| Some((u32::try_from(offset).ok()?, u32::try_from(size).ok()?)));
    let Some((offset, size)) = range else {
        let path = request.path;
        return Err(bad(format!("Bad block part offset/size {offset}/{size} for {path}")));
    };
    let part = node.engine.blocks().read_part(&hash, offset, size).ok().flatten();
    let part = part.ok_or_else(|| unreadable(request.path))?;
    if request.format == Some(Format::Json) {
        return Err(bad("JSON output is not supported for this request type"));
    }
    request.content(|| part, |_| {})
}

fn stored(node: &Node<'_>, text: &str) -> Result<(BlockHash, BlockEntry), Failure> {
    let hash: BlockHash = hash(text)?;
    let entry = node.engine.chain().entry(&hash);
    let mut entry = entry.ok_or_else(|| missing(format!("{text} not found")))?;
    if entry.height == 0 {
        // Not in the archive.
        let genesis = node.rpc.params.genesis_block();
        (entry.has_data, entry.size) = (true, u32::try_from(genesis.len()).unwrap_or(u32::MAX));
    }
    if !entry.has_data {
        return Err(missing(format!("{text} not available (not fully downloaded)")));
    }
    Ok((hash, entry))
}

fn unreadable(text: &str) -> Failure {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Failure { status, text: format!("I/O error reading {text}").into() }
}

/// `/rest/headers/HASH?count=N`: headers of the active chain from a block on.
pub(super) fn headers(node: &Node<'_>, request: &Request<'_>) -> Answer {
    let (text, count) = match request.path.split('/').collect::<Vec<_>>()[..] {
        // Older form of the path.
        [count, text] => (text, Some(count)),
        [text] => (text, None),
        _ => {
            let form = "/rest/headers/<hash>.<ext>?count=<count>";
            return Err(bad(format!("Invalid URI format. Expected {form}")));
        }
    };
    let count = request.count(count)?;
    let start: BlockHash = hash(text)?;
    let tip = node.engine.chain().tip();
    let headers = active_from(node, &start, count);
    request.content(
        || headers.iter().flat_map(|entry| entry.header.to_bytes()).collect(),
        |out| {
            Json::new(out).objects(&headers, |entry, object| write_header(&tip, entry, object));
        },
    )
}

/// Up to `count` blocks of the active chain, from this one on.
pub(super) fn active_from(node: &Node<'_>, start: &BlockHash, count: usize) -> Vec<BlockEntry> {
    let find = |hash| node.engine.chain().entry(&hash).filter(|entry| entry.in_active_chain);
    std::iter::successors(find(*start), |last| last.next.and_then(find)).take(count).collect()
}

/// `/rest/blockhashbyheight/HEIGHT`.
pub(super) fn hash_by_height(node: &Node<'_>, request: &Request<'_>) -> Answer {
    let height = integral::<i32>(request.path).and_then(|height| u32::try_from(height).ok());
    let Some(height) = height else {
        let is_safe =
            |c: &char| c.is_ascii_alphanumeric() || "!*'();:@&=+$,/?#[]-_.~%".contains(*c);
        let shown: String = request.path.chars().filter(is_safe).collect();
        return Err(bad(format!("Invalid height: {shown}")));
    };
    let hash = node.engine.chain().hash_at(height);
    let hash = hash.ok_or_else(|| missing("Block height out of range"))?;
    if request.format == Some(Format::Hex) {
        // Display order, last byte first.
        return Ok(Content::Text(format!("{hash}\n").into_bytes()));
    }
    request.content(|| hash.0.to_vec(), |out| Json::new(out).object().key("blockhash").text(hash))
}

/// `/rest/spenttxouts/HASH`: outputs spent by a block, per transaction.
pub(super) fn spent(node: &Node<'_>, request: &Request<'_>) -> Answer {
    let text = request.path;
    if text.contains('/') {
        return Err(bad("Invalid URI format. Expected /rest/spenttxouts/<hash>.<ext>"));
    }
    let hash: BlockHash = hash(text)?;
    let entry = node.engine.chain().entry(&hash);
    let entry = entry.ok_or_else(|| missing(format!("{text} not found")))?;
    let spent = match entry.height {
        0 => Some(Vec::new()),
        _ => node.engine.blocks().read_spent(&hash).ok().flatten(),
    };
    let spent = spent.ok_or_else(|| missing(format!("{text} undo not available")))?;
    request.content(|| spent_bytes(&spent), |out| spent_json(node, &spent, out))
}

fn spent_bytes(spent: &[Vec<Coin>]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::compact_size(&mut out, spent.len() as u64 + 1);
    // Coinbase.
    encode::compact_size(&mut out, 0);
    for coins in spent {
        encode::compact_size(&mut out, coins.len() as u64);
        for coin in coins {
            out.extend(coin.value.to_le_bytes());
            encode::compact_size(&mut out, coin.script_pubkey.len() as u64);
            out.extend(coin.script_pubkey.iter());
        }
    }
    out
}

fn spent_json(node: &Node<'_>, spent: &[Vec<Coin>], out: &mut Vec<u8>) {
    let mut list = Json::new(out).array();
    list.item().array().end();
    for coins in spent {
        list.item().objects(coins, |coin, object| {
            object.key("value").amount(coin.value);
            let mut script = object.key("scriptPubKey").object();
            write_script_pubkey(&node.rpc.params, &coin.script_pubkey, &mut script);
        });
    }
}

/// `/rest/chaininfo`: as `getblockchaininfo`.
pub(super) fn chain_info(node: &Node<'_>, request: &Request<'_>) -> Answer {
    request.json(|out| Ok(chain::blockchain_info(node, out)?))
}

/// `/rest/deploymentinfo` and `/rest/deploymentinfo/HASH`: as `getdeploymentinfo`.
pub(super) fn deployments(node: &Node<'_>, request: &Request<'_>) -> Answer {
    request.json(|out| {
        let at: BlockHash = match request.path {
            "" => node.engine.chain().tip().hash,
            text => hash(text)?,
        };
        node.engine.chain().entry(&at).ok_or_else(|| bad("Block not found"))?;
        Ok(soft_forks::info(node, &at, out)?)
    })
}
