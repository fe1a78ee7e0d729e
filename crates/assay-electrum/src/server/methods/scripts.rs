//! Script and outpoint methods.

use std::ops::ControlFlow;
use std::sync::Arc;

use assay_wire::OutPoint;

use super::Call;
use crate::index::{HistoryEntry, ScriptHash};
use crate::mempool::{ScriptMempool, Unconfirmed};
use crate::server::protocol::{CallError, Out, RpcError, Version};
use crate::server::status::outpoint_status;
use crate::server::watched::Item;

/// The script of a call: by hash or, in protocol 1.7, as hex.
fn script(call: &Call<'_>) -> Result<ScriptHash, RpcError> {
    if by_script(call) { call.params.script(0) } else { call.params.script_hash(0) }
}

fn by_script(call: &Call<'_>) -> bool {
    call.version >= Version(1, 7, 0)
}

/// Writes a list: bare, or as the member `name` of an object in protocol 1.7.
fn wrapped(
    call: &Call<'_>,
    name: &str,
    out: &mut Out,
    write: impl FnOnce(&mut Out) -> Result<(), CallError>,
) -> Result<(), CallError> {
    if by_script(call) {
        out.raw("{\"").raw(name).raw("\":");
        write(out)?;
        out.raw("}");
        Ok(())
    } else {
        write(out)
    }
}

pub(super) fn balance(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let script = script(call)?;
    let (snapshot, delta) =
        call.read(|snapshot, pool| (Arc::clone(snapshot), pool.balance_delta(&script)))?;
    out.raw("{\"confirmed\":").int(snapshot.view.balance(&script)?);
    out.raw(",\"unconfirmed\":").int(delta).raw("}");
    Ok(())
}

pub(super) fn history(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let script = script(call)?;
    let entries_max = call.entries_max();
    let (snapshot, unconfirmed) =
        call.read(|snapshot, pool| (Arc::clone(snapshot), pool.history(&script, entries_max)))?;
    let unconfirmed = unconfirmed?.sorted();
    let confirmed_max = entries_max - unconfirmed.len();
    // The caller detects the excess and writes an error instead.
    let end = out.len() + call.shared.config.limits.response_bytes_max;
    wrapped(call, "history", out, |out| {
        let mut list = List::begin(out);
        snapshot.view.visit_history(&script, 0, confirmed_max, &mut |entry| {
            write_entry(list.next(), Entry::Confirmed(&entry));
            if list.out.len() > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        for entry in &unconfirmed {
            write_entry(list.next(), Entry::Unconfirmed(entry));
        }
        list.end();
        Ok(())
    })
}

/// A list written while it is read.
struct List<'a> {
    out: &'a mut Out,
    is_empty: bool,
}

impl<'a> List<'a> {
    fn begin(out: &'a mut Out) -> Self {
        out.raw("[");
        Self { out, is_empty: true }
    }

    /// Output position of the next entry.
    fn next(&mut self) -> &mut Out {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.raw(",");
        }
        self.out
    }

    fn end(self) {
        self.out.raw("]");
    }
}

pub(super) fn mempool(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let script = script(call)?;
    let entries_max = call.entries_max();
    let unconfirmed = call.read(|_, pool| pool.history(&script, entries_max))??.sorted();
    wrapped(call, "history", out, |out| {
        out.array(unconfirmed.iter().map(Entry::Unconfirmed), write_entry);
        Ok(())
    })
}

#[derive(Clone, Copy)]
enum Entry<'a> {
    Confirmed(&'a HistoryEntry),
    Unconfirmed(&'a Unconfirmed),
}

fn write_entry(out: &mut Out, entry: Entry<'_>) {
    match entry {
        Entry::Confirmed(entry) => {
            out.raw("{\"height\":").int(entry.height).raw(",\"tx_hash\":").hash(&entry.txid.0);
        }
        Entry::Unconfirmed(entry) => {
            out.raw("{\"fee\":").int(entry.fee_sat).raw(",\"height\":").int(entry.height());
            out.raw(",\"tx_hash\":").hash(&entry.txid.0);
        }
    }
    out.raw("}");
}

pub(super) fn unspent(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let script = script(call)?;
    let entries_max = call.entries_max();
    let (snapshot, touching) =
        call.read(|snapshot, pool| (Arc::clone(snapshot), pool.touching(&script, entries_max)))?;
    let unconfirmed = ScriptMempool::new(&script, &touching?);
    let confirmed = snapshot.view.unspent(&script, entries_max)?;
    let kept = confirmed.iter().map(|output| {
        let outpoint = OutPoint { txid: output.txid, vout: output.vout };
        (outpoint, output.height, i128::from(output.value))
    });
    let kept = kept.filter(|(outpoint, ..)| !unconfirmed.spent.contains(outpoint));
    let created =
        unconfirmed.created.iter().map(|output| (output.outpoint, 0, i128::from(output.value)));
    wrapped(call, "utxos", out, |out| {
        out.array(kept.chain(created), |out, (outpoint, height, value)| {
            out.raw("{\"height\":").int(height).raw(",\"tx_hash\":").hash(&outpoint.txid.0);
            out.raw(",\"tx_pos\":").int(outpoint.vout).raw(",\"value\":").int(value).raw("}");
        });
        Ok(())
    })
}

/// Subscribes to an item. Fails before the first publication: there is no status then.
fn subscribe_to(call: &Call<'_>, item: &Item, out: &mut Out) -> Result<(), CallError> {
    call.snapshot()?;
    call.session.subscribe(call.shared, item, by_script(call))?.write(out);
    Ok(())
}

pub(super) fn subscribe(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    subscribe_to(call, &Item::Script(script(call)?), out)
}

pub(super) fn unsubscribe(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let item = Item::Script(script(call)?);
    out.bool(call.session.unsubscribe(call.shared, &item));
    Ok(())
}

fn outpoint(call: &Call<'_>) -> Result<OutPoint, RpcError> {
    let outpoint = OutPoint { txid: call.params.txid(0)?, vout: call.params.number(1)? };
    // The script hint is checked for validity; the lookup does not use it.
    if call.params.raw(2).is_some() {
        call.params.hex(2)?;
    }
    Ok(outpoint)
}

pub(super) fn outpoint_subscribe(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    subscribe_to(call, &Item::Outpoint(outpoint(call)?), out)
}

pub(super) fn get_outpoint_status(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let outpoint = outpoint(call)?;
    call.snapshot()?;
    outpoint_status(&call.shared.published, &*call.shared.chain, &outpoint)?.write(out);
    Ok(())
}

pub(super) fn outpoint_unsubscribe(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let item = Item::Outpoint(outpoint(call)?);
    out.bool(call.session.unsubscribe(call.shared, &item));
    Ok(())
}
