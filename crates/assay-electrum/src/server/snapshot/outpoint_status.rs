//! Status of an output: its funding and spending transactions.

use std::sync::Arc;

use assay_wire::{OutPoint, Txid};

use super::confirmed::confirmed_transaction;
use super::published::Published;
use crate::chain::Chain;
use crate::server::protocol::Out;
use crate::server::protocol::error::CallError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::server) struct OutpointStatus {
    /// Height of the funding transaction: 0 or -1 in the mempool.
    pub(in crate::server) funder: Option<i64>,
    /// The spending transaction and its height.
    pub(in crate::server) spender: Option<(Txid, i64)>,
}

impl OutpointStatus {
    pub(in crate::server) fn write(&self, out: &mut Out) {
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

/// Looks up an output, which need not exist.
pub(in crate::server) fn find(
    published: &Published,
    chain: &dyn Chain,
    outpoint: &OutPoint,
) -> Result<OutpointStatus, CallError> {
    let read = published.read(|snapshot, pool| {
        let funding = pool.transaction(&outpoint.txid);
        let funder = funding.and_then(|tx| Some((tx, pool.unconfirmed(&outpoint.txid)?.height())));
        let spender = pool.spender(outpoint).map(|spender| (spender.txid, spender.height()));
        (Arc::clone(snapshot), funder, spender)
    });
    let Some((snapshot, funder, spender)) = read else {
        return Ok(OutpointStatus::default());
    };
    let nothing = OutpointStatus::default();
    let (height, tx) = if let Some((tx, height)) = funder {
        (i64::from(height), tx)
    } else {
        let Some(position) = snapshot.view.position(&outpoint.txid)? else { return Ok(nothing) };
        (i64::from(position.height), Arc::new(confirmed_transaction(chain, &position)?))
    };
    if outpoint.vout as usize >= tx.view().output_count() {
        return Ok(nothing);
    }
    let spender = match spender {
        Some((txid, height)) => Some((txid, i64::from(height))),
        None if height <= 0 => None,
        None => {
            let confirmed = snapshot.view.spender(outpoint)?;
            confirmed.map(|spender| (spender.txid, i64::from(spender.height)))
        }
    };
    Ok(OutpointStatus { funder: Some(height), spender })
}
