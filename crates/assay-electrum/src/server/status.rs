//! Status of scripts, a hash over the history, and of outputs, their funding and spending transactions.

use std::ops::ControlFlow;
use std::sync::Arc;

use assay_hash::Sha256;
use assay_json::push_int;
use assay_wire::{OutPoint, Txid};

use super::protocol::{CallError, Out};
use super::snapshot::{Published, confirmed_transaction};
use crate::chain::Chain;
use crate::index::{QueryError, ScriptHash, View};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// The hash of the script's history; `None` for an empty history.
    Script(Option<[u8; 32]>),
    Outpoint(OutpointStatus),
}

impl Status {
    /// A script status is hex in hash output order, or null.
    pub(super) fn write(&self, out: &mut Out) {
        match self {
            Self::Script(Some(hash)) => _ = out.hex(hash),
            Self::Script(None) => _ = out.raw("null"),
            Self::Outpoint(status) => status.write(out),
        }
    }
}

/// Incremental hash over the confirmed history of a script: no block is hashed twice.
#[derive(Clone, Debug)]
pub(super) struct StatusHasher {
    hasher: Sha256,
    empty: bool,
    /// Height of the next block to hash.
    next: u32,
    /// Number of reorgs when this was computed.
    reorganisations: u64,
}

impl Default for StatusHasher {
    fn default() -> Self {
        Self { hasher: Sha256::new(), empty: true, next: 0, reorganisations: 0 }
    }
}

impl StatusHasher {
    /// Current status: hashes the blocks added since the last call, and the mempool.
    pub(super) fn status(
        &mut self,
        published: &Published,
        script: &ScriptHash,
        entries_max: usize,
    ) -> Result<Option<[u8; 32]>, CallError> {
        let read = published
            .read(|snapshot, pool| (Arc::clone(snapshot), pool.history(script, entries_max)));
        let Some((snapshot, unconfirmed)) = read else { return Ok(None) };
        let unconfirmed = unconfirmed?.sorted();
        if self.reorganisations != snapshot.reorganisations {
            *self = Self { reorganisations: snapshot.reorganisations, ..Self::default() };
        }
        if self.next <= snapshot.tip.height {
            self.add_confirmed(&snapshot.view, script, entries_max)?;
            self.next = snapshot.tip.height + 1;
        }
        if self.empty && unconfirmed.is_empty() {
            return Ok(None);
        }
        let mut lines = Lines::new(self.hasher.clone());
        for entry in unconfirmed {
            lines.add(&entry.txid, i64::from(entry.height()));
        }
        Ok(Some(lines.finish().finalize()))
    }

    /// Hashes the blocks from `next` on; after an error none of them.
    fn add_confirmed(
        &mut self,
        view: &View,
        script: &ScriptHash,
        entries_max: usize,
    ) -> Result<(), QueryError> {
        let (mut lines, mut empty) = (Lines::new(self.hasher.clone()), self.empty);
        view.visit_history(script, self.next, entries_max, &mut |entry| {
            empty = false;
            lines.add(&entry.txid, i64::from(entry.height));
            ControlFlow::Continue(())
        })?;
        (self.hasher, self.empty) = (lines.finish(), empty);
        Ok(())
    }
}

/// Lines `txid:height:`, hashed in batches.
struct Lines {
    hasher: Sha256,
    text: Vec<u8>,
}

impl Lines {
    const FULL: usize = 4096;

    fn new(hasher: Sha256) -> Self {
        Self { hasher, text: Vec::new() }
    }

    fn add(&mut self, txid: &Txid, height: i64) {
        let mut reversed = txid.0;
        reversed.reverse();
        let text = &mut self.text;
        let start = text.len();
        text.resize(start + 64, 0);
        faster_hex::hex_encode(&reversed, &mut text[start..]).expect("64 digits");
        text.push(b':');
        push_int(text, height.into());
        text.push(b':');
        if text.len() >= Self::FULL {
            self.hasher.update(text);
            text.clear();
        }
    }

    fn finish(mut self) -> Sha256 {
        self.hasher.update(&self.text);
        self.hasher
    }
}

/// The transactions that fund and spend an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutpointStatus {
    /// Height of the funding transaction: 0 or -1 in the mempool.
    pub(super) funder: Option<i64>,
    /// The spending transaction and its height.
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

/// Looks up the status of an output, which need not exist.
pub(super) fn outpoint_status(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_the_specification() {
        // Protocol basics, "Status Example".
        let lines = [
            ("a6c9c361bd0bc536d6a22648efbf8f9b200e425ef6c3a7a9669dc444c532a347", 2472),
            ("9c42f84b2fcdaff676ba25d9d4941741cc0d1a01cce0c23fdc4c0b2afa38431c", 2473),
            ("770f2d4371b3fabb902dd9a103e2dd005fcd3971181078fca4a2a1d6ff127b30", 2473),
            ("80b19848aed792565ab7c5a79b7c2a00fbf985741579396ebe0ab6098e607311", 0),
            ("e02a1dadfa83b996b24175df807b271ea5d02937ef5b35c195fac1e1bdc3198f", 0),
            ("bb4c8ab438c13b89ca80d1d5bee25b0b6b7f55673f4d801998ba97db161d9e85", -1),
        ];
        let mut hashed = Lines::new(Sha256::new());
        for (txid, height) in &lines {
            hashed.add(&txid.parse().unwrap(), *height);
        }
        let status = faster_hex::hex_string(&hashed.finish().finalize());
        assert_eq!(status, "78e96c6562cafa71c115503b9411fdfdc595a45031e2ab76ff75162fe1b0590d");
    }
}
