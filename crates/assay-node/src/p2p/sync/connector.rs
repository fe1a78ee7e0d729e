//! Thread that connects archived blocks of peers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assay_engine::Engine;
use assay_wire::BlockHash;

use super::BlockSync;

#[derive(Default)]
pub(crate) struct Connector {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    kept: u64,
    /// Number of archived blocks that have been processed.
    processed: u64,
}

impl Connector {
    /// Counts an archived block; returns the new count.
    pub(super) fn kept(&self) -> u64 {
        let mut progress = self.lock();
        progress.kept += 1;
        let kept = progress.kept;
        drop(progress);
        self.changed.notify_all();
        kept
    }

    /// Waits until `until` archived blocks are processed or the engine closes; times out, since others may keep adding blocks.
    pub(super) fn wait(&self, engine: &Engine, until: u64) {
        let mut progress = self.lock();
        let deadline = Instant::now() + PATIENCE;
        while progress.processed < until && !engine.is_shutting_down() && Instant::now() < deadline
        {
            let waited = self.changed.wait_timeout(progress, NAP);
            (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits with a timeout for more than `than` archived blocks; returns their number.
    fn wait_for_more(&self, than: u64, patience: Duration) -> u64 {
        let progress = self.lock();
        let is_same = |progress: &mut Progress| progress.kept <= than;
        let waited = self.changed.wait_timeout_while(progress, patience, is_same);
        waited.unwrap_or_else(PoisonError::into_inner).0.kept
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockSync {
    /// Connects archived blocks until the engine closes; calls `after` once the results of some are known.
    pub(in crate::p2p) fn connect_blocks(&self, after: impl Fn()) {
        let connector = &self.connector;
        let mut done = 0;
        while !self.engine.is_shutting_down() {
            let kept = connector.wait_for_more(done, NAP);
            if kept == done {
                continue;
            }
            // Later blocks are processed in the next iteration.
            done = kept;
            let seen = std::cell::Cell::new(kept);
            let wait = || {
                // After IBD, the reader of the peer that delivers a block waits for its result.
                if !self.engine.chain().is_initial_block_download() || self.lock().expects_none() {
                    return false;
                }
                let before = seen.get();
                seen.set(connector.wait_for_more(before, GATHER));
                seen.get() > before
            };
            let before = self.engine.chain().tip();
            match self.engine.blocks().connect(wait) {
                Ok(report) => {
                    self.connected(self.engine.chain().tip().height.saturating_sub(before.height));
                    for fault in report.faults {
                        let source = self.lock().sources.of(&fault.hash);
                        let Some(source) = source else { continue };
                        if let Some(peer) = self.peers.find(source.peer) {
                            self.peers.punish(&peer, &fault, "", source.is_compact);
                        }
                    }
                    let tip = self.engine.chain().tip();
                    if tip.hash != before.hash {
                        self.reward_source(&tip.hash);
                    }
                    // Waiting threads then see all consequences of the results.
                    if report.is_done {
                        connector.lock().processed = kept;
                    } else {
                        done = 0;
                    }
                }
                Err(error) => {
                    tracing::error!("Blocks cannot be connected: {error}");
                    connector.lock().processed = u64::MAX;
                    connector.changed.notify_all();
                    return;
                }
            }
            connector.changed.notify_all();
            after();
        }
    }

    /// Waits for the validation of a potential new tip. It is announced before, and requests for it must not fail
    /// (Core `net_processing.cpp`, `ProcessGetBlockData`, connects it first).
    pub(in crate::p2p) fn wait_for_validation(&self, block: &BlockHash) {
        let connector = &self.connector;
        let deadline = Instant::now() + VERDICT_PATIENCE;
        while self.is_being_validated(block)
            && !self.engine.is_shutting_down()
            && Instant::now() < deadline
        {
            let waited = connector.changed.wait_timeout(connector.lock(), LOOK_AGAIN);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn is_being_validated(&self, block: &BlockHash) -> bool {
        self.engine.chain().header_place(block).is_some_and(|place| {
            place.has_data
                && !place.is_valid
                && !place.is_failed
                && place.chain_work > self.engine.chain().tip().chain_work
        })
    }
}

/// Detection latency of a closing engine.
const NAP: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_mins(1);
/// Limit for blocks that lack an ancestor and so are not validated.
const VERDICT_PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// During IBD, wait for scripts after this time without a new block.
const GATHER: Duration = Duration::from_millis(5);
