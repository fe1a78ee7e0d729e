//! Handles received transactions and the orphans that depend on them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_engine::{PackageVerdict, RelayId, TxFault, TxReject};
use assay_wire::{Transaction, Txid, Wtxid};

use super::{Table, TxRelay, parents_of};
use crate::p2p::ended::Ended;
use crate::p2p::faults::log_malformed;
use crate::p2p::peers::Peer;
use crate::p2p::permissions::Permissions;

/// A low-fee transaction and a child that may pay for it.
struct Package {
    parent: Arc<Transaction>,
    child: Arc<Transaction>,
    sender: u64,
}

impl TxRelay {
    /// Handles `tx`. An error ends the connection.
    pub(in crate::p2p) fn handle_tx(&self, peer: &Peer, raw: &[u8]) -> Result<(), Ended> {
        if self.peers.rejects_txs_of(peer) {
            return Err(Ended::UnwantedTx);
        }
        // Validation is impossible in IBD.
        if self.engine.chain().is_initial_block_download() {
            return Ok(());
        }
        let tx = match Transaction::parse(raw, self.peers.encoding) {
            Ok(tx) => Arc::new(tx),
            Err(error) => {
                log_malformed("tx", raw.len(), &error, peer);
                return Ok(());
            }
        };
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        peer.with_relay(|relay| {
            let hash = if relay.names_wtxids { wtxid.0 } else { txid.0 };
            relay.known.insert(&hash);
        });
        self.follow_chain();
        let package = {
            let mut table = self.lock();
            table.requests.answered(peer.id, &txid.0);
            table.requests.answered(peer.id, &wtxid.0);
            if !table.have(&RelayId::Wtxid(wtxid), true, &self.engine) {
                None
            } else if table.have(&RelayId::Wtxid(wtxid), false, &self.engine) {
                Some(None)
            } else {
                tracing::debug!(
                    target: "txpackages",
                    "found tx {txid} (wtxid={wtxid}) in reconsiderable rejects, looking for child in orphanage"
                );
                Some(table.package_with(&tx, peer.id))
            }
        };
        let package = match package {
            None => self.process(peer, &tx),
            Some(package) => {
                self.force_relay(peer, &txid, &wtxid);
                package
            }
        };
        if let Some(package) = package {
            self.process_package(&package);
        }
        Ok(())
    }

    /// Submits an unknown transaction; returns a package that may be admitted.
    fn process(&self, peer: &Peer, tx: &Arc<Transaction>) -> Option<Package> {
        match self.engine.mempool().take_transaction(Arc::clone(tx)) {
            Ok(_) => {
                self.tx_admitted(peer.id, tx);
                peer.traffic.tx_at_s.store(self.engine.clock().now_s(), Ordering::Relaxed);
                None
            }
            // Another peer has delivered it in the meantime.
            Err(reject) if reject.fault == TxFault::Conflict && self.is_here(tx) => None,
            Err(reject) => self.tx_rejected(peer.id, tx, &reject, true),
        }
    }

    fn is_here(&self, tx: &Transaction) -> bool {
        self.engine.mempool().contains(&RelayId::Wtxid(tx.view().wtxid()))
    }

    /// Relays known transactions of a peer with the permission `forcerelay` (Core `NetPermissionFlags::ForceRelay`).
    fn force_relay(&self, peer: &Peer, txid: &Txid, wtxid: &Wtxid) {
        if !peer.permissions.has(Permissions::FORCE_RELAY) {
            return;
        }
        if self.engine.mempool().contains(&RelayId::Txid(*txid)) {
            tracing::info!("Force relaying tx {txid} (wtxid={wtxid}) from peer={}", peer.id);
            self.broadcast(*wtxid);
        } else {
            tracing::info!(
                "Not relaying non-mempool transaction {txid} (wtxid={wtxid}) from forcerelay peer={}",
                peer.id
            );
        }
    }

    fn tx_admitted(&self, sender: u64, tx: &Arc<Transaction>) {
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        {
            let mut table = self.lock();
            table.forget(&txid, &wtxid);
            table.orphans.parent_arrived(txid, tx.view().output_count());
            table.orphans.remove(&wtxid);
        }
        tracing::debug!(
            target: "mempool", "AcceptToMemoryPool: peer={sender}: accepted {txid} (wtxid={wtxid})"
        );
        self.broadcast(wtxid);
    }

    fn tx_rejected(
        &self,
        sender: u64,
        tx: &Arc<Transaction>,
        reject: &TxReject,
        is_first_time: bool,
    ) -> Option<Package> {
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        let (reason, evidence) = (&reject.reason, &reject.debug);
        let comma = if evidence.is_empty() { "" } else { ", " };
        tracing::debug!(
            target: "mempoolrej",
            "{txid} (wtxid={wtxid}) from peer={sender} was not accepted: {reason}{comma}{evidence}"
        );
        let mut table = self.lock();
        let is_witness_stripped = reject.fault == TxFault::WitnessStripped;
        if is_first_time && !is_witness_stripped && !table.orphans.have(&wtxid) {
            // A miner may have included it anyway.
            self.compact.keep_extra(tx);
        }
        let mut package = None;
        match reject.fault {
            TxFault::MissingInputs => {
                if is_first_time && !table.rejected.contains(&wtxid.0) {
                    self.keep_orphan(&mut table, sender, tx, (txid, wtxid));
                }
                return None;
            }
            // It may be valid with its witness, under another wtxid.
            TxFault::WitnessStripped => {}
            fault => {
                if fault == TxFault::Reconsiderable {
                    table.reconsiderable.insert(&wtxid.0);
                    if is_first_time {
                        tracing::debug!(
                            target: "txpackages",
                            "tx {txid} (wtxid={wtxid}) failed but reconsiderable, looking for child in orphanage"
                        );
                        package = table.package_with(tx, sender);
                    }
                } else {
                    table.rejected.insert(&wtxid.0);
                }
                table.requests.forget(&wtxid.0);
                if fault == TxFault::InputsNotStandard && tx.view().has_witness() {
                    // Invalid with any witness.
                    table.rejected.insert(&txid.0);
                    table.requests.forget(&txid.0);
                }
            }
        }
        if table.orphans.remove(&wtxid) {
            tracing::debug!(target: "txpackages", "   removed orphan tx {txid} (wtxid={wtxid})");
        }
        package
    }

    /// Keeps an orphan; requests its parents from all announcers.
    fn keep_orphan(
        &self,
        table: &mut Table,
        sender: u64,
        tx: &Arc<Transaction>,
        (txid, wtxid): (Txid, Wtxid),
    ) {
        let mut parents = parents_of(tx);
        // One low-fee parent may come with this child, two may not.
        let is_cheap = |parent: &&Txid| {
            table.reconsiderable.contains(&parent.0)
                && !self.engine.mempool().contains(&RelayId::Txid(**parent))
        };
        let is_hopeless = parents.iter().any(|parent| table.rejected.contains(&parent.0))
            || parents.iter().filter(is_cheap).count() > 1;
        if is_hopeless {
            tracing::debug!(
                target: "mempool", "not keeping orphan with rejected parents {txid} (wtxid={wtxid})"
            );
            table.rejected.insert(&txid.0);
            table.rejected.insert(&wtxid.0);
            return table.forget(&txid, &wtxid);
        }
        parents.retain(|parent| !table.have(&RelayId::Txid(*parent), false, &self.engine));
        let mut peers = vec![sender];
        peers.extend(table.requests.candidates(&txid.0));
        if txid.0 != wtxid.0 {
            peers.extend(table.requests.candidates(&wtxid.0));
        }
        let now_us = self.engine.clock().now_us();
        for peer in peers {
            if table.ask_for_parents(&parents, &wtxid, peer, now_us)
                && table.orphans.add(tx, wtxid, peer)
            {
                let weight = tx.view().weight();
                tracing::debug!(
                    target: "txpackages", "stored orphan tx {txid} (wtxid={wtxid}), weight: {weight}"
                );
            }
        }
        // Validation runs in parallel: a parent may have arrived since the lookup and found no child.
        for txid in parents_of(tx) {
            let parent = self.engine.mempool().transaction_before(&RelayId::Txid(txid), u64::MAX);
            if let Some(parent) = parent {
                table.orphans.parent_arrived(txid, parent.view().output_count());
            }
        }
        table.forget(&txid, &wtxid);
        // Parents requested from the sender need not be announced to it.
        if let Some(peer) = self.peers.find(sender) {
            peer.with_relay(|relay| parents.iter().for_each(|txid| relay.known.insert(&txid.0)));
        }
    }

    /// Reconsiders orphans whose parents have arrived: first the peer's, then with `with_others` those of others.
    pub(in crate::p2p) fn reconsider_some(&self, peer: u64, with_others: bool) {
        self.reconsider(peer);
        if with_others {
            self.reconsider_all();
        }
    }

    fn reconsider(&self, peer: u64) {
        for _ in 0..RECONSIDERED_AT_ONCE {
            let Some(tx) = self.lock().orphans.take_due(peer) else { return };
            let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
            match self.engine.mempool().take_transaction(Arc::clone(&tx)) {
                Ok(_) => {
                    tracing::debug!(
                        target: "txpackages", "   accepted orphan tx {txid} (wtxid={wtxid})"
                    );
                    self.tx_admitted(peer, &tx);
                }
                Err(reject) if reject.fault == TxFault::MissingInputs => {}
                Err(reject) => {
                    tracing::debug!(
                        target: "txpackages",
                        "   invalid orphan tx {txid} (wtxid={wtxid}) from peer={peer}. {}",
                        reject.reason
                    );
                    self.tx_rejected(peer, &tx, &reject, false);
                }
            }
        }
    }

    pub(in crate::p2p) fn reconsider_all(&self) {
        let peers = self.lock().orphans.peers_with_due();
        for peer in peers {
            self.reconsider(peer);
        }
    }

    fn process_package(&self, package: &Package) {
        let Package { parent, child, sender } = package;
        let raws = [parent, child].map(|tx| tx.bytes().to_vec());
        let Ok(outcome) = self.engine.mempool().take_package(raws.into()) else { return };
        let verdict = if outcome.reject.is_none() { "accepted" } else { "rejected" };
        tracing::debug!(
            target: "txpackages",
            "package evaluation for parent {} (wtxid={}, sender={sender}) + child {} (wtxid={}, sender={sender}): \
             package {verdict}",
            parent.view().txid(), parent.view().wtxid(), child.view().txid(), child.view().wtxid(),
        );
        if outcome.reject.is_some() {
            self.lock().reconsiderable.insert(&package_name(parent, child));
        }
        // The child first: once the parent is processed, it is no longer an orphan.
        for (tx, found) in [parent, child].into_iter().zip(&outcome.txs).rev() {
            match &found.verdict {
                PackageVerdict::Admitted(_) => self.tx_admitted(*sender, tx),
                PackageVerdict::Rejected(reject) => {
                    self.tx_rejected(*sender, tx, reject, false);
                }
                _ => {}
            }
        }
    }
}

impl Table {
    /// Latest child of a transaction from the same peer that has not been tried with it.
    fn package_with(&self, parent: &Arc<Transaction>, sender: u64) -> Option<Package> {
        let children = self.orphans.children_from(&parent.view().txid(), sender);
        let child = children.into_iter().find(|child| {
            !self.reconsiderable.contains(&package_name(parent, child))
                && !self.rejected.contains(&child.view().txid().0)
        })?;
        Some(Package { parent: Arc::clone(parent), child, sender })
    }
}

/// Limit per peer and call, for fairness.
const RECONSIDERED_AT_ONCE: usize = 100;

fn package_name(parent: &Transaction, child: &Transaction) -> [u8; 32] {
    let mut both = [0; 32];
    let (one, other) = (parent.view().wtxid().0, child.view().wtxid().0);
    both.iter_mut().zip(one.iter().zip(other)).for_each(|(out, (a, b))| *out = a ^ b);
    both
}
