//! Transaction methods: get, merkle proof, broadcast.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use assay_wire::{BlockHash, Encoding, Header, Transaction, Tx, Txid};

use super::{Call, Pace};
use crate::chain::{RelayError, SnapshotId, TestVerdict, Tip};
use crate::index::TxPosition;
use crate::server::merkle::Tree;
use crate::server::protocol::{CallError, Out, RpcError};
use crate::server::snapshot::{Snapshot, confirmed_bytes, confirmed_transaction};

/// Maximum package size, as in Bitcoin Core (`policy/packages.h`).
const PACKAGE_MAX: usize = 25;
/// Maximum transaction size for a non-blocking call.
const BYTES_AT_ONCE_MAX: u32 = 64 << 10;
/// Timeout for indexing a broadcast transaction. It takes milliseconds, unless blocks are being indexed.
const INDEXED_WITHIN: Duration = Duration::from_secs(2);
/// Reject reasons of known transactions.
const KNOWN: [&str; 2] = ["txn-already-in-mempool", "txn-already-known"];

pub(super) fn get(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let txid = call.params.txid(0)?;
    let verbose = call.params.flag(1)?;
    let (snapshot, unconfirmed) =
        call.read(|snapshot, pool| (Arc::clone(snapshot), pool.transaction(&txid)))?;
    if let Some(tx) = unconfirmed {
        if verbose {
            describe(&tx, None, out);
        } else {
            out.hex(tx.bytes());
        }
        return Ok(());
    }
    let Some(position) = snapshot.view.position(&txid)? else {
        return Err(RpcError::daemon("no such mempool or blockchain transaction").into());
    };
    if !verbose {
        out.hex(&bytes(call, &position)?);
        return Ok(());
    }
    call.may_wait()?;
    let tx = confirmed_transaction(&*call.shared.chain, &position)?;
    let header = snapshot.view.header(position.height)?.unwrap_or([0; 80]);
    let place = Place {
        time: Header::parse(&header).time,
        confirmations: snapshot.tip.height.saturating_sub(position.height) + 1,
        position,
    };
    describe(&tx, Some(&place), out);
    Ok(())
}

fn bytes(call: &Call<'_>, position: &TxPosition) -> Result<Vec<u8>, CallError> {
    let chain = &*call.shared.chain;
    if call.pace == Pace::Any {
        return confirmed_bytes(chain, position);
    }
    if position.length > BYTES_AT_ONCE_MAX {
        return Err(CallError::NotAtOnce);
    }
    let bytes = chain.block_part_at_once(&position.block, position.offset, position.length);
    bytes.ok_or(CallError::NotAtOnce)
}

struct Place {
    position: TxPosition,
    time: u32,
    confirmations: u32,
}

/// Writes a transaction as `getrawtransaction`, without fields that need a disassembler: `asm`, `type` and `address`.
fn describe(tx: &Transaction, place: Option<&Place>, out: &mut Out) {
    let view = tx.view();
    out.raw("{\"txid\":").hash(&view.txid().0).raw(",\"hash\":").hash(&view.wtxid().0);
    out.raw(",\"version\":").int(view.version()).raw(",\"size\":").int(view.total_size() as u64);
    out.raw(",\"vsize\":").int(view.weight().div_ceil(4) as u64);
    out.raw(",\"weight\":").int(view.weight() as u64).raw(",\"locktime\":").int(view.lock_time());
    out.raw(",\"vin\":").array(0..view.input_count(), |out, at| write_input(&view, at, out));
    out.raw(",\"vout\":").array(view.outputs().enumerate(), |out, (n, output)| {
        out.raw("{\"value\":").coins(u64::try_from(output.value).unwrap_or(0));
        out.raw(",\"n\":").int(n as u64).raw(",\"scriptPubKey\":{\"hex\":");
        out.hex(output.script_pubkey).raw("}}");
    });
    out.raw(",\"hex\":").hex(tx.bytes());
    if let Some(place) = place {
        out.raw(",\"blockhash\":").hash(&place.position.block.0);
        out.raw(",\"confirmations\":").int(place.confirmations);
        out.raw(",\"time\":").int(place.time).raw(",\"blocktime\":").int(place.time);
    }
    out.raw("}");
}

fn write_input(view: &Tx<'_>, at: usize, out: &mut Out) {
    let input = view.input(at);
    if view.is_coinbase() {
        out.raw("{\"coinbase\":").hex(input.script_sig);
    } else {
        out.raw("{\"txid\":").hash(&input.prevout.txid.0);
        out.raw(",\"vout\":").int(input.prevout.vout);
        out.raw(",\"scriptSig\":{\"hex\":").hex(input.script_sig).raw("}");
    }
    let witness = view.witness(at);
    if !witness.is_empty() {
        out.raw(",\"txinwitness\":").array(witness.iter(), |out, item| {
            out.hex(item);
        });
    }
    out.raw(",\"sequence\":").int(input.sequence).raw("}");
}

pub(super) fn merkle(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let txid = call.params.txid(0)?;
    let height = call.params.number(1)?;
    let snapshot = call.snapshot()?;
    let position = snapshot.view.position(&txid)?.filter(|position| position.height == height);
    let position = position
        .ok_or_else(|| RpcError::bad(format!("tx {txid} not in block at height {height}")))?;
    let tree = tree(call, &snapshot, height)?;
    out.raw("{\"block_height\":").int(height);
    out.raw(",\"merkle\":").hashes(&tree.branch(position.index as usize));
    out.raw(",\"pos\":").int(position.index).raw("}");
    Ok(())
}

fn tree(call: &Call<'_>, snapshot: &Snapshot, height: u32) -> Result<Arc<Tree>, CallError> {
    let trees = &call.shared.block_trees;
    match call.pace {
        Pace::Any => trees.get(&snapshot.view, height)?.ok_or(CallError::Again),
        Pace::AtOnce => trees.known(&snapshot.view, height)?.ok_or(CallError::NotAtOnce),
    }
}

pub(super) fn id_from_pos(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let height = call.params.number(0)?;
    let index = call.params.number(1)?;
    let merkle = call.params.flag(2)?;
    let snapshot = call.snapshot()?;
    let txid = snapshot.view.txid_at(height, index)?;
    let txid = txid.ok_or_else(|| {
        RpcError::bad(format!("no tx at position {index} in block at height {height}"))
    })?;
    if !merkle {
        out.hash(&txid.0);
        return Ok(());
    }
    let tree = tree(call, &snapshot, height)?;
    out.raw("{\"tx_hash\":").hash(&txid.0);
    out.raw(",\"merkle\":").hashes(&tree.branch(index as usize)).raw("}");
    Ok(())
}

pub(super) fn broadcast(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let raw = call.params.hex(0)?;
    match call.shared.chain.broadcast(&raw) {
        Ok(txid) => {
            wait_until_seen(call);
            out.hash(&txid.0);
            Ok(())
        }
        Err(refusal) => {
            let reason = reason(&refusal);
            let message = format!("the transaction was rejected by network rules.\n\n{reason}");
            Err(RpcError::bad(message).into())
        }
    }
}

/// Waits until the current mempool is published: wallets look up a transaction right after broadcasting it.
fn wait_until_seen(call: &Call<'_>) {
    let chain = &call.shared.chain;
    let unseen = SnapshotId { tip: Tip { height: 0, hash: BlockHash::ZERO }, mempool: 0 };
    let now = chain.wait(&unseen, Duration::ZERO);
    call.shared.published.wait_for_mempool(now.mempool, INDEXED_WITHIN);
}

fn reason(refusal: &RelayError) -> String {
    if refusal.debug.is_empty() {
        refusal.reason.clone()
    } else {
        format!("{}, {}", refusal.reason, refusal.debug)
    }
}

/// `blockchain.transaction.broadcast_package`
///
/// Each transaction must meet the mempool's fee rate by itself: the engine has no child-pays-for-parent package rule.
pub(super) fn broadcast_package(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let raws = call.params.hexes(0, PACKAGE_MAX)?;
    let verbose = call.params.flag(1)?;
    let package = read_package(&raws, call.shared.chain.encoding()).map_err(|reason| {
        RpcError::bad(format!("the tx package was rejected by network rules.\n\n{reason}."))
    })?;
    let verdicts = call.shared.chain.test(&raws);
    let mut errors: Vec<(Txid, String)> = Vec::new();
    for (raw, tx) in raws.iter().zip(&package) {
        if let Err(refusal) = call.shared.chain.broadcast(raw)
            && !KNOWN.contains(&refusal.reason.as_str())
        {
            errors.push((tx.view().txid(), reason(&refusal)));
        }
    }
    wait_until_seen(call);
    if verbose {
        write_package(&package, &verdicts, &errors, out);
        return Ok(());
    }
    out.raw("{\"success\":").bool(errors.is_empty());
    if !errors.is_empty() {
        out.raw(",\"errors\":").array(&errors, |out, (txid, error)| {
            out.raw("{\"txid\":").hash(&txid.0).raw(",\"error\":").string(error).raw("}");
        });
    }
    out.raw("}");
    Ok(())
}

/// Parses a child with its parents: sorted, no parent spends another, the child spends all (Core's `IsChildWithParents`).
fn read_package(raws: &[Vec<u8>], encoding: Encoding) -> Result<Vec<Transaction>, &'static str> {
    let parsed: Result<Vec<_>, _> =
        raws.iter().map(|raw| Transaction::parse(raw.as_slice(), encoding)).collect();
    let package = parsed.map_err(|_| "TX decode failed")?;
    let ids: Vec<Txid> = package.iter().map(|tx| tx.view().txid()).collect();
    let unique: HashSet<&Txid> = ids.iter().collect();
    if unique.len() < ids.len() {
        return Err("package contains duplicates");
    }
    let Some((child, parents)) = package.split_last() else { return Err("package is empty") };
    let spends =
        |tx: &Transaction, txid: &Txid| tx.view().inputs().any(|input| input.prevout.txid == *txid);
    let not_a_family = "package topology disallowed. not child-with-parents or parents depend on \
                        each other";
    for (index, _) in parents.iter().enumerate() {
        let depends = package.iter().enumerate().any(|(other, tx)| {
            other != index && other + 1 < package.len() && spends(tx, &ids[index])
        });
        if depends || !spends(child, &ids[index]) {
            return Err(not_a_family);
        }
    }
    Ok(package)
}

/// Writes the result in the format of Bitcoin Core's `submitpackage`.
fn write_package(
    package: &[Transaction],
    verdicts: &[TestVerdict],
    errors: &[(Txid, String)],
    out: &mut Out,
) {
    let all = if errors.is_empty() { "success" } else { "transaction failed" };
    out.raw("{\"package_msg\":").string(all).raw(",\"tx-results\":{");
    for (index, tx) in package.iter().enumerate() {
        let view = tx.view();
        let txid = view.txid();
        out.raw(if index > 0 { "," } else { "" }).hash(&view.wtxid().0);
        out.raw(":{\"txid\":").hash(&txid.0);
        if let Some((_, error)) = errors.iter().find(|(failed, _)| *failed == txid) {
            out.raw(",\"error\":").string(error);
        } else if let Some(verdict) =
            verdicts.get(index).filter(|verdict| verdict.refusal.is_none())
        {
            out.raw(",\"vsize\":").int(verdict.vsize).raw(",\"fees\":{\"base\":");
            out.coins(u64::try_from(verdict.fee_sat).unwrap_or(0)).raw("}");
        }
        out.raw("}");
    }
    out.raw("},\"replaced-transactions\":[]}");
}

pub(super) fn test(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let raws = call.params.hexes(0, PACKAGE_MAX)?;
    let verdicts = call.shared.chain.test(&raws);
    if verdicts.iter().any(|verdict| verdict.txid.is_none()) {
        return Err(RpcError::daemon("TX decode failed").into());
    }
    out.array(&verdicts, |out, verdict| {
        out.raw("{\"txid\":").hash(&verdict.txid.unwrap_or_default().0);
        out.raw(",\"wtxid\":").hash(&verdict.wtxid.unwrap_or_default().0);
        out.raw(",\"allowed\":").bool(verdict.refusal.is_none());
        if let Some(refusal) = &verdict.refusal {
            out.raw(",\"reason\":").string(&reason(refusal));
        }
        out.raw("}");
    });
    Ok(())
}
