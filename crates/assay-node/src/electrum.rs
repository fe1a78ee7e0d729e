//! Implements the interfaces of `assay-electrum` on the engine.

use std::sync::Arc;
use std::time::Duration;

use assay_consensus::params::ChainParams;
use assay_electrum::chain::{
    Chain, ChainError, Connected, ConnectedBlock, MempoolChange, MempoolChanges, MempoolTx, Relay,
    RelayError, SnapshotId, TestVerdict, Tip,
};
use assay_electrum::follow::{Follower, Listener};
use assay_electrum::index::Index;
use assay_electrum::server::{self, Addresses, Server};
use assay_engine::{
    Engine, EngineError, MempoolDelta, MempoolInfo, TxReject, UnconfirmedTx, rename_folder,
};
use assay_wire::{Block, BlockHash, Encoding, Txid};

use crate::config::{INDEX_DIR, INDEX_DIR_BEFORE, IndexOptions, NodeConfig};
use crate::error::NodeError;

pub(crate) struct IndexService {
    index: Arc<Index>,
    follower: Follower,
    server: Option<Server>,
}

impl IndexService {
    /// Opens the configured index, starts to follow the engine, and starts the Electrum server if configured.
    pub(crate) fn start(
        config: &NodeConfig,
        engine: &Arc<Engine>,
    ) -> Result<Option<Self>, NodeError> {
        rename_folder(&config.chain_dir(), INDEX_DIR_BEFORE, INDEX_DIR)?;
        let (set_up, options) = match &config.index {
            Some(options) => (config.index_config(options), options),
            None if config.tx_index => (config.tx_index_config(), &IndexOptions::default()),
            None => return Ok(None),
        };
        let index = Arc::new(Index::open(set_up, Arc::new(assay_electrum::RealIo))?);
        if let Some(tip) = index.tip() {
            tracing::info!("Index at height {} ({})", tip.height, tip.hash);
        } else {
            tracing::info!("The index is new: it is built from the archived blocks");
        }
        Self::follow(index, options, engine).map(Some)
    }

    fn follow(
        index: Arc<Index>,
        options: &IndexOptions,
        engine: &Arc<Engine>,
    ) -> Result<Self, NodeError> {
        let chain: Arc<dyn Chain> = Arc::new(EngineChain::new(Arc::clone(engine)));
        let serve = |config: &server::Config| Server::start(config.clone(), Arc::clone(&chain));
        let server = options.server.as_ref().map(serve).transpose()?;
        let listener: Arc<dyn Listener> = match &server {
            Some(server) => server.publisher(),
            None => Arc::new(()),
        };
        if let Some(server) = &server {
            announce(server.addresses());
        }
        let threads = engine.config().threads;
        let follower = Follower::start(Arc::clone(&index), chain, listener, threads)?;
        Ok(Self { index, follower, server })
    }

    pub(crate) fn addresses(&self) -> Addresses {
        self.server.as_ref().map_or_else(Addresses::default, |server| server.addresses().clone())
    }

    /// Flushes pending responses to Electrum clients and closes their connections.
    pub(crate) fn stop_serving(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }

    pub(crate) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Waits until the index has ended, which happens when the engine closes.
    pub(crate) fn join(self) {
        self.follower.join();
    }
}

fn announce(addresses: &Addresses) {
    for address in &addresses.tcp {
        tracing::info!("Serving Electrum clients on {address}");
    }
    for address in &addresses.tls {
        tracing::info!("Serving Electrum clients on {address} (TLS)");
    }
    if let Some(address) = addresses.metrics {
        tracing::info!("Serving metrics on http://{address}/metrics");
    }
}

/// [`Chain`] on an engine: its validated blocks. While a UTXO snapshot is loaded, they end below it.
pub struct EngineChain {
    engine: Arc<Engine>,
    /// Id of the follower of connected blocks.
    follower: usize,
}

impl EngineChain {
    /// For mempool changes the engine must be configured with `is_followed`.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self::of_follower(engine, 0)
    }

    /// Like [`EngineChain::new`], for one of several followers.
    pub(crate) fn of_follower(engine: Arc<Engine>, follower: usize) -> Self {
        Self { engine, follower }
    }

    fn params(&self) -> &ChainParams {
        self.engine.params()
    }

    fn relay_of(&self, info: &MempoolInfo) -> Relay {
        let policy = &self.engine.config().policy;
        Relay {
            min_relay_fee_sat_per_kvb: info.min_relay_fee_sat_per_kvb,
            mempool_min_fee_sat_per_kvb: info.min_fee_sat_per_kvb,
            incremental_relay_fee_sat_per_kvb: policy.incremental_fee_sat_per_kvb,
        }
    }
}

/// Connected block as delivered by the engine.
struct Handed(assay_engine::ConnectedBlock);

impl ConnectedBlock for Handed {
    fn block(&self) -> &Block {
        self.0.block()
    }

    fn txids(&self) -> &[Txid] {
        self.0.txids()
    }

    fn undo(&self) -> &[u8] {
        self.0.undo()
    }
}

impl Chain for EngineChain {
    fn encoding(&self) -> Encoding {
        self.params().encoding
    }

    fn tip(&self) -> Tip {
        tip(&self.engine.chain().validated_tip())
    }

    fn wait(&self, seen: &SnapshotId, timeout: Duration) -> SnapshotId {
        if self.engine.chain().historical().is_some() {
            let now = self.engine.chain().wait_for_validated(&seen.tip.hash, timeout);
            return SnapshotId { tip: tip(&now), mempool: seen.mempool };
        }
        let (now, mempool) = self.engine.wait_for_news((seen.tip.hash, seen.mempool), timeout);
        SnapshotId { tip: tip(&now), mempool }
    }

    fn wait_for_tip(&self, seen: &Tip, timeout: Duration) {
        if self.engine.chain().historical().is_some() {
            self.engine.chain().wait_for_validated(&seen.hash, timeout);
            return;
        }
        self.engine.chain().wait_for(Some(timeout), |tip| tip.hash != seen.hash);
    }

    fn is_stopping(&self) -> bool {
        self.engine.is_shutting_down()
    }

    fn hash_at(&self, height: u32) -> Option<BlockHash> {
        self.engine.chain().validated_hash_at(height)
    }

    fn take_connected(&self, parent: &BlockHash) -> Option<Connected> {
        // Blocks on top of a snapshot are not followed before the snapshot has been validated.
        if self.engine.chain().historical().is_some() {
            return None;
        }
        let block = self.engine.blocks().take_connected(self.follower, parent)?;
        Some(Box::new(Handed(block)))
    }

    fn block(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError> {
        self.engine.blocks().read(hash).map_err(failed("read a block"))
    }

    fn block_part(
        &self,
        hash: &BlockHash,
        offset: u32,
        length: u32,
    ) -> Result<Option<Vec<u8>>, ChainError> {
        self.engine.blocks().read_part(hash, offset, length).map_err(failed("read part of a block"))
    }

    fn block_part_at_once(&self, hash: &BlockHash, offset: u32, length: u32) -> Option<Vec<u8>> {
        self.engine.blocks().cached_part(hash, offset, length)
    }

    fn undo(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError> {
        self.engine.blocks().read_undo(hash).map_err(failed("read undo data"))
    }

    fn mempool_since(&self, since: Option<u64>) -> Result<MempoolChanges, ChainError> {
        if let Some(chain) = self.engine.chain().historical() {
            // Unconfirmed transactions belong to the tip, which is not followed yet: the validated chain has none.
            let moment = SnapshotId { tip: tip(&chain.tip), mempool: since.unwrap_or_default() };
            let from_scratch = since.is_none();
            return Ok(MempoolChanges { moment, from_scratch, changes: Vec::new() });
        }
        let delta = self.engine.mempool().changes_since(since);
        Ok(changes(delta.map_err(failed("read the mempool"))?))
    }

    fn broadcast(&self, raw: &[u8]) -> Result<Txid, RelayError> {
        self.engine
            .mempool()
            .submit(raw.to_vec(), Some(BROADCAST_FEE_SAT_PER_KVB_MAX))
            .map_err(refusal)
    }

    fn test(&self, raws: &[Vec<u8>]) -> Vec<TestVerdict> {
        let verdicts =
            self.engine.mempool().test_accept(raws.to_vec(), Some(BROADCAST_FEE_SAT_PER_KVB_MAX));
        verdicts
            .into_iter()
            .map(|verdict| TestVerdict {
                txid: verdict.txid,
                wtxid: verdict.wtxid,
                vsize: verdict.vsize,
                fee_sat: verdict.fee_sat,
                refusal: verdict.reject.map(refusal),
            })
            .collect()
    }

    fn relay(&self) -> Relay {
        self.relay_of(&self.engine.mempool().info())
    }

    fn relay_at_once(&self) -> Option<Relay> {
        Some(self.relay_of(&self.engine.mempool().info_at_once()?))
    }
}

fn tip(tip: &assay_engine::Tip) -> Tip {
    Tip { height: tip.height, hash: tip.hash }
}

fn changes(delta: MempoolDelta) -> MempoolChanges {
    let removed = delta.removed.into_iter().map(MempoolChange::Removed);
    let added = delta.added.into_iter().map(|tx| {
        let UnconfirmedTx { txid, tx, spent, fee_sat, vsize } = tx;
        MempoolChange::Added(MempoolTx { txid, tx, spent, fee_sat, vsize })
    });
    MempoolChanges {
        moment: SnapshotId { tip: tip(&delta.tip), mempool: delta.sequence },
        from_scratch: delta.from_scratch,
        changes: removed.chain(added).collect(),
    }
}

fn refusal(reject: TxReject) -> RelayError {
    RelayError { reason: reject.reason, debug: reject.debug }
}

fn failed(operation: &'static str) -> impl FnOnce(EngineError) -> ChainError {
    move |error| ChainError { operation, source: Box::new(error) }
}

/// 0.10 BTC/kvB, the default of `sendrawtransaction` (Core `node/transaction.h`, `DEFAULT_MAX_RAW_TX_FEE_RATE`).
const BROADCAST_FEE_SAT_PER_KVB_MAX: u64 = 10_000_000;
