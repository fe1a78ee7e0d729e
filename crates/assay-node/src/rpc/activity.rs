//! `getdescriptoractivity`: spends and receives of descriptors in given blocks and in the mempool.

use std::collections::{BTreeMap, HashSet};

use assay_wire::{BlockHash, OutPoint, Tx, TxOut};

use super::args;
use super::blocks::{block_and_spent, spent_by};
use super::method::Call;
use super::scan::scripts_of;
use super::script::write_script_pubkey;
use super::sign_raw::find;
use super::{Node, bad, block_not_found};
use crate::jsonrpc::{Array, Json, Object, RpcError, Value};

pub(super) const GETDESCRIPTORACTIVITY: Call = |node, args, out| {
    let mut hashes: Vec<BlockHash> = Vec::new();
    for value in args.value(0).and_then(Value::elements).unwrap_or_default() {
        hashes.push(args::hash_of(&args::string_of(value)?, "blockhash")?);
    }
    let objects = args.value(1).map(|objects| scripts_of(node.rpc, objects));
    let with_mempool = args.bool_or(2, true)?;
    let mut blocks = BTreeMap::new();
    for hash in &hashes {
        let entry = node.engine.chain().entry(hash).ok_or_else(block_not_found)?;
        if !entry.in_active_chain {
            return Err(bad("Block is not in main chain"));
        }
        blocks.insert(entry.height, *hash);
    }
    let watched = objects.transpose()?.unwrap_or_default();
    let mut object = Json::new(out).object();
    let mut list = object.key("activity").array();
    for (height, hash) in blocks {
        write_block(node, &watched, height, &hash, &mut list)?;
    }
    if with_mempool {
        write_unconfirmed(node, &watched, &mut list)?;
    }
    Ok(())
};

type Scripts = HashSet<Box<[u8]>>;

fn write_block(
    node: &Node<'_>,
    watched: &Scripts,
    height: u32,
    hash: &BlockHash,
    list: &mut Array<'_>,
) -> Result<(), RpcError> {
    let (block, spent) = block_and_spent(node, hash)?;
    for (index, tx) in block.txs().enumerate() {
        let coins = spent_by(Some(&spent), index).unwrap_or_default();
        let coins = coins.iter().map(|coin| (coin.value, &coin.script_pubkey[..]));
        write_tx(node, watched, tx, coins, Some((hash, height)), list);
    }
    Ok(())
}

fn write_unconfirmed(
    node: &Node<'_>,
    watched: &Scripts,
    list: &mut Array<'_>,
) -> Result<(), RpcError> {
    for txid in node.engine.mempool().txids() {
        // It may have been confirmed in the meantime.
        let Some(tx) = node.engine.mempool().tx(&txid) else { continue };
        let spent = find(node, &tx)?;
        let known: Option<Vec<_>> =
            tx.view().inputs().map(|input| spent.get(&input.prevout)).collect();
        let Some(known) = known else { continue };
        let coins = known.into_iter().map(|one| (one.value, &one.script[..]));
        write_tx(node, watched, tx.view(), coins, None, list);
    }
    Ok(())
}

fn write_tx<'c>(
    node: &Node<'_>,
    watched: &Scripts,
    tx: Tx<'_>,
    spent: impl Iterator<Item = (i64, &'c [u8])>,
    block: Option<(&BlockHash, u32)>,
    list: &mut Array<'_>,
) {
    let begin = |kind: &str, value: i64, object: &mut Object<'_>| {
        object.key("type").string(kind);
        object.key("amount").amount(value);
        if let Some((hash, height)) = block {
            object.key("blockhash").text(hash);
            object.key("height").int(height);
        }
    };
    let end = |name: &str, script: &[u8], mut object: Object<'_>| {
        let mut inner = object.key(name).object();
        write_script_pubkey(&node.rpc.params, script, &mut inner);
    };
    for (index, ((value, script), input)) in spent.zip(tx.inputs()).enumerate() {
        if watched.contains(script) {
            let OutPoint { txid, vout } = input.prevout;
            let mut object = list.item().object();
            begin("spend", value, &mut object);
            object.key("spend_txid").text(tx.txid());
            object.key("spend_vin").count(index);
            object.key("prevout_txid").text(txid);
            object.key("prevout_vout").int(vout);
            end("prevout_spk", script, object);
        }
    }
    for (index, TxOut { value, script_pubkey }) in tx.outputs().enumerate() {
        if watched.contains(script_pubkey) {
            let mut object = list.item().object();
            begin("receive", value, &mut object);
            object.key("txid").text(tx.txid());
            object.key("vout").count(index);
            end("output_spk", script_pubkey, object);
        }
    }
}
