//! RPC of blocks and headers by hash.

use assay_consensus::params::ChainParams;
use assay_engine::{BlockEntry, Tip};
use assay_wire::{Block, BlockHash, Coin, Tx};

use super::chain::{difficulty, target};
use super::method::Call;
use super::tx_json::{Spent, write_tx};
use super::{Node, block_not_found};
use crate::jsonrpc::{Code, Json, Object, RpcError};

pub(super) const GETBLOCKHEADER: Call = |node, args, out| {
    let hash = args.block_hash(0, "hash")?;
    let verbose = args.bool_or(1, true)?;
    let tip = node.engine.chain().tip();
    let entry = node.engine.chain().entry(&hash).ok_or_else(block_not_found)?;
    if !verbose {
        Json::new(out).hex(&entry.header.to_bytes());
        return Ok(());
    }
    let mut object = Json::new(out).object();
    write_header(&tip, &entry, &mut object);
    Ok(())
};

pub(super) const GETBLOCK: Call = |node, args, out| {
    let hash = args.block_hash(0, "blockhash")?;
    let verbosity = args.verbosity(1, 1)?;
    block(node, &hash, verbosity, out)
};

pub(super) fn block(
    node: &Node<'_>,
    hash: &BlockHash,
    verbosity: i32,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let tip = node.engine.chain().tip();
    let entry = node.engine.chain().entry(hash).ok_or_else(block_not_found)?;
    let raw = read_block(node, hash)?;
    if verbosity <= 0 {
        Json::new(out).hex(&raw);
        return Ok(());
    }
    let params = &node.rpc.params;
    let block = parse(params, hash, raw)?;
    let spent = if verbosity >= 2 {
        node.engine.blocks().read_spent(hash).map_err(|error| {
            tracing::error!("undo data of block {hash}: {error}");
            RpcError::new(Code::InternalError, UNDO_UNREADABLE)
        })?
    } else {
        None
    };
    let mut object = Json::new(out).object();
    write_header(&tip, &entry, &mut object);
    object.key("strippedsize").count(block.stripped_size());
    object.key("size").count(block.bytes().len());
    object.key("weight").count(block.weight());
    let mut coinbase = object.key("coinbase_tx").object();
    write_coinbase(block.tx(0), &mut coinbase);
    coinbase.end();
    let mut txs = object.key("tx").array();
    for (index, tx) in block.txs().enumerate() {
        if verbosity == 1 {
            txs.item().text(tx.txid());
            continue;
        }
        let coins = spent_by(spent.as_deref(), index);
        let spent = match coins {
            None => Spent::Unknown,
            Some(coins) if verbosity == 2 => Spent::Fee(coins),
            Some(coins) => Spent::Show(coins),
        };
        let mut object = txs.item().object();
        write_tx(params, tx, spent, &mut object);
    }
    Ok(())
}

/// Coins spent by the transaction at `index`; none for the coinbase, which comes first.
pub(super) fn spent_by(spent: Option<&[Vec<Coin>]>, index: usize) -> Option<&[Coin]> {
    spent?.get(index.checked_sub(1)?).map(Vec::as_slice)
}

/// Raw block, or the error for its absence.
pub(super) fn read_block(node: &Node<'_>, hash: &BlockHash) -> Result<Vec<u8>, RpcError> {
    let raw = node.engine.blocks().read(hash).map_err(|error| {
        tracing::error!("block {hash}: {error}");
        RpcError::new(Code::Misc, "Block not found on disk")
    })?;
    raw.ok_or_else(|| {
        let text = if is_pruned(node, hash) {
            "Block not available (pruned data)"
        } else {
            "Block not available (not fully downloaded)"
        };
        RpcError::new(Code::Misc, text)
    })
}

/// A block and the coins that it spends, or the error for their absence.
pub(super) fn block_and_spent(
    node: &Node<'_>,
    hash: &BlockHash,
) -> Result<(Block, Vec<Vec<Coin>>), RpcError> {
    let block = parse(&node.rpc.params, hash, read_block(node, hash)?)?;
    if *hash == node.rpc.params.genesis_hash {
        return Ok((block, Vec::new()));
    }
    let spent = node.engine.blocks().read_spent(hash).map_err(|error| {
        tracing::error!("undo data of block {hash}: {error}");
        RpcError::new(Code::Misc, "Can't read undo data from disk")
    })?;
    let spent = spent.ok_or_else(|| {
        let pruned = if is_pruned(node, hash) { " (pruned data)" } else { "" };
        RpcError::new(Code::Misc, format!("Undo data not available{pruned}"))
    })?;
    Ok((block, spent))
}

/// Core's wording (`rpc/blockchain.cpp`).
const UNDO_UNREADABLE: &str = "Undo data expected but can't be read. This could be due to disk corruption or a conflict with a pruning event.";

pub(super) fn is_pruned(node: &Node<'_>, hash: &BlockHash) -> bool {
    node.engine.chain().entry(hash).is_some_and(|entry| entry.is_pruned)
}

pub(super) fn parse(
    params: &ChainParams,
    hash: &BlockHash,
    raw: Vec<u8>,
) -> Result<Block, RpcError> {
    Block::parse(raw, params.encoding).map_err(|error| {
        tracing::error!("Stored block {hash} does not parse: {error}");
        RpcError::new(Code::InternalError, format!("Stored block {hash} does not parse: {error}"))
    })
}

/// Number of blocks from `entry` to the tip, inclusive.
pub(super) fn confirmations(tip: &Tip, entry: &BlockEntry) -> i64 {
    // The tip may have moved between the two lookups; a block above it counts as just connected.
    if entry.in_active_chain {
        (i64::from(tip.height) - i64::from(entry.height)).max(0) + 1
    } else {
        -1
    }
}

pub(super) fn write_header(tip: &Tip, entry: &BlockEntry, object: &mut Object<'_>) {
    let header = &entry.header;
    object.key("hash").text(entry.hash);
    object.key("confirmations").int(confirmations(tip, entry));
    object.key("height").int(entry.height);
    object.key("version").int(header.version);
    object.key("versionHex").text(format_args!("{:08x}", header.version));
    object.key("merkleroot").text(BlockHash(header.merkle_root));
    object.key("time").int(header.time);
    object.key("mediantime").int(entry.median_time);
    object.key("nonce").int(header.nonce);
    object.key("bits").text(format_args!("{:08x}", header.bits));
    object.key("target").text(target(header.bits));
    object.key("difficulty").real(difficulty(header.bits));
    object.key("chainwork").hex(&entry.chain_work);
    object.key("nTx").int(entry.tx_count);
    if entry.height > 0 {
        object.key("previousblockhash").text(header.prev_block);
    }
    if let Some(next) = entry.next {
        object.key("nextblockhash").text(next);
    }
}

fn write_coinbase(coinbase: Tx<'_>, object: &mut Object<'_>) {
    let input = coinbase.input(0);
    object.key("version").int(coinbase.version().cast_unsigned());
    object.key("locktime").int(coinbase.lock_time());
    object.key("sequence").int(input.sequence);
    object.key("coinbase").hex(input.script_sig);
    if let Some(item) = coinbase.witness(0).iter().next() {
        object.key("witness").hex(item);
    }
}
