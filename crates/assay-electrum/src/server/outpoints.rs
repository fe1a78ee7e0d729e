//! Outputs that clients subscribed to, with the state of each.

use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid};
use parking_lot::Mutex;

use super::protocol::error::{CallError, RpcError};
use super::protocol::json::Out;
use super::publish::Published;
use super::watch::Subscriber;
use crate::chain::Chain;
use crate::index::ScriptHash;

/// What has become of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutpointStatus {
    /// Height of the transaction that makes it: 0 or -1 in the mempool.
    pub(super) funder: Option<i64>,
    /// The transaction that spends it, with its height.
    pub(super) spender: Option<(Txid, i64)>,
}

impl OutpointStatus {
    pub(super) fn write(&self, out: &mut Out) {
        out.raw("{");
        if let Some(height) = self.funder {
            out.raw("\"funder_height\":").int(height);
            if let Some((txid, height)) = &self.spender {
                out.raw(",\"spender_txhash\":").hash(&txid.0);
                out.raw(",\"spender_height\":").int(*height);
            }
        }
        out.raw("}");
    }
}

/// An output that somebody subscribed to.
#[derive(Debug)]
pub(super) struct OutpointRecord {
    pub(super) outpoint: OutPoint,
    pub(super) state: Mutex<OutpointState>,
}

#[derive(Debug, Default)]
pub(super) struct OutpointState {
    /// What subscribers were told last.
    pub(super) status: Option<OutpointStatus>,
    pub(super) subscribers: Vec<Subscriber>,
    /// The script whose record names this one; `None` while it is not known.
    pub(super) script: Option<ScriptHash>,
    pub(super) dead: bool,
}

/// An output that exists, confirmed or not.
pub(super) struct Found {
    pub(super) status: OutpointStatus,
    /// Its script, where it exists.
    pub(super) script: Option<ScriptHash>,
}

/// Looks an output up.
pub(super) fn find(
    published: &Published,
    chain: &dyn Chain,
    outpoint: &OutPoint,
) -> Result<Found, CallError> {
    let read = published.read(|moment, pool| {
        let funding = pool.transaction(&outpoint.txid);
        let funder = funding.and_then(|tx| Some((tx, pool.unconfirmed(&outpoint.txid)?.height())));
        let spender = pool.spender(outpoint).map(|spender| (spender.txid, spender.height()));
        (Arc::clone(moment), funder, spender)
    });
    let Some((moment, funder, spender)) = read else {
        return Ok(Found { status: OutpointStatus::default(), script: None });
    };
    let nothing = Found { status: OutpointStatus::default(), script: None };
    let (height, script) = if let Some((tx, height)) = funder {
        match script_of(&tx, outpoint.vout) {
            Some(script) => (i64::from(height), script),
            None => return Ok(nothing),
        }
    } else {
        let Some(position) = moment.view.position(&outpoint.txid)? else { return Ok(nothing) };
        let tx = confirmed_transaction(chain, &position)?;
        match script_of(&tx, outpoint.vout) {
            Some(script) => (i64::from(position.height), script),
            None => return Ok(nothing),
        }
    };
    let spender = match spender {
        Some((txid, height)) => Some((txid, i64::from(height))),
        None if height <= 0 => None,
        None => {
            let confirmed = moment.view.spender(outpoint)?;
            confirmed.map(|spender| (spender.txid, i64::from(spender.height)))
        }
    };
    Ok(Found { status: OutpointStatus { funder: Some(height), spender }, script: Some(script) })
}

fn script_of(tx: &Transaction, vout: u32) -> Option<ScriptHash> {
    let view = tx.view();
    let vout = usize::try_from(vout).ok().filter(|&vout| vout < view.output_count())?;
    Some(ScriptHash::of(view.output(vout).script_pubkey))
}

/// Bytes of a confirmed transaction.
pub(super) fn confirmed_bytes(
    chain: &dyn Chain,
    position: &crate::index::TxPosition,
) -> Result<Vec<u8>, CallError> {
    let bytes = chain.block_part(&position.block, position.offset, position.length)?;
    bytes.ok_or_else(|| RpcError::daemon("the block of this transaction is not stored").into())
}

fn confirmed_transaction(
    chain: &dyn Chain,
    position: &crate::index::TxPosition,
) -> Result<Transaction, CallError> {
    let bytes = confirmed_bytes(chain, position)?;
    Transaction::parse(bytes, chain.encoding()).map_err(|error| {
        tracing::error!("A stored transaction cannot be read: {error}");
        RpcError::daemon("a stored transaction cannot be read").into()
    })
}
