//! `getrawtransaction`.

use assay_consensus::params::ChainParams;
use assay_wire::{BlockHash, Transaction, Txid};

use super::Node;
use super::blocks::{confirmations, parse, read_block, spent_by};
use super::index::{Lookup, look_up};
use super::method::Call;
use super::tx_json::{Spent, write_tx};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const GETRAWTRANSACTION: Call = |node, args, out| {
    let txid = args.txid(0, "parameter 1")?;
    // The genesis block's only transaction: its txid is the block's merkle root.
    if is_genesis_coinbase(&node.rpc.params, &txid) {
        return Err(RpcError::new(
            Code::InvalidAddressOrKey,
            "The genesis block coinbase is not considered an ordinary transaction and cannot be retrieved",
        ));
    }
    let verbosity = args.verbosity(1, 0)?;
    let block = args.optional_block_hash(2, "parameter 3")?;
    match block {
        Some(block) => confirmed(node, &txid, (&block, true), verbosity, out),
        None => find(node, &txid, verbosity, out),
    }
};

fn is_genesis_coinbase(params: &ChainParams, txid: &Txid) -> bool {
    let genesis = params.genesis_block();
    let root: Option<&[u8]> = genesis.get(36..68);
    root == Some(&txid.0)
}

/// Looks in the mempool first, as Core does.
fn find(node: &Node<'_>, txid: &Txid, verbosity: i32, out: &mut Vec<u8>) -> Result<(), RpcError> {
    if let Some(tx) = node.engine.mempool().tx(txid) {
        unconfirmed(node, &tx, verbosity, out);
        return Ok(());
    }
    let why = match look_up(node, txid)? {
        Lookup::Found(block) => return confirmed(node, txid, (&block, false), verbosity, out),
        Lookup::NoIndex => {
            "No such mempool transaction. Use -txindex or provide a block hash to enable \
             blockchain transaction queries. Use gettransaction for wallet transactions."
        }
        Lookup::Behind => {
            "No such mempool transaction. Blockchain transactions are still in the process of being indexed. Use \
             gettransaction for wallet transactions."
        }
        Lookup::Missing => {
            "No such mempool or blockchain transaction. Use gettransaction for wallet transactions."
        }
    };
    Err(RpcError::new(Code::InvalidAddressOrKey, why))
}

fn unconfirmed(node: &Node<'_>, tx: &Transaction, verbosity: i32, out: &mut Vec<u8>) {
    if verbosity <= 0 {
        Json::new(out).hex(tx.bytes());
        return;
    }
    let mut object = Json::new(out).object();
    if let Some(entry) = node.engine.mempool().entry(&tx.view().txid()) {
        object.key("vsize_adjusted").int(entry.vsize);
    }
    write_tx(&node.rpc.params, tx.view(), Spent::Unknown, &mut object);
}

fn confirmed(
    node: &Node<'_>,
    txid: &Txid,
    (hash, is_given): (&BlockHash, bool),
    verbosity: i32,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let missing = |text| move || RpcError::new(Code::InvalidAddressOrKey, text);
    let tip = node.engine.chain().tip();
    let entry = node.engine.chain().entry(hash).ok_or_else(missing("Block hash not found"))?;
    if !entry.has_data {
        return Err(RpcError::new(Code::Misc, "Block not available"));
    }
    let block = parse(&node.rpc.params, hash, read_block(node, hash)?)?;
    let found = block.txs().enumerate().find(|(_, tx)| tx.txid() == *txid);
    let (index, tx) = found.ok_or_else(missing(
        "No such transaction found in the provided block. Use gettransaction for wallet transactions.",
    ))?;
    if verbosity <= 0 {
        Json::new(out).hex(tx.raw());
        return Ok(());
    }
    let spent =
        if verbosity >= 2 && index > 0 { node.engine.blocks().read_spent(hash)? } else { None };
    let spent = spent_by(spent.as_deref(), index).map_or(Spent::Unknown, Spent::Show);
    let mut object = Json::new(out).object();
    if is_given {
        object.key("in_active_chain").bool(entry.in_active_chain);
    }
    write_tx(&node.rpc.params, tx, spent, &mut object);
    object.key("blockhash").text(hash);
    if entry.in_active_chain {
        object.key("confirmations").int(confirmations(&tip, &entry));
        object.key("time").int(entry.header.time);
        object.key("blocktime").int(entry.header.time);
    } else {
        object.key("confirmations").int(0);
    }
    Ok(())
}
