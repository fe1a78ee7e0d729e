//! Loads a UTXO snapshot from a file, verifies it, and activates it (Core `validation.cpp`, `ActivateSnapshot`).

use std::io::{self, Read};
use std::sync::Arc;

use assay_consensus::params::AssumeUtxo;
use assay_store::{
    AssumedError, CoinError, CoinRef, CoinStore, LoadingCoins, Room, SnapshotError, SnapshotHeader,
    SnapshotReader,
};
use assay_wire::BlockHash;

use super::Chain;
use crate::apply::{ChainCoins, CoinbaseLog};
use crate::chainstate::{Historical, State};
use crate::error::EngineError;
use crate::flush::FlushPolicy;
use crate::snapshot_file::next_coin;
use crate::stats::serialized_hash_while;
use crate::tree::NodeId;
use crate::types::Tip;

/// A snapshot was not loaded; in Core's words.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A snapshot is loaded already, or being loaded.
    #[error("Can't activate a snapshot-based chainstate more than once")]
    Again,
    /// The base block is not a known snapshot base.
    #[error(
        "assumeutxo block hash in snapshot metadata not recognized (hash: {base}). The following snapshot heights are available: \
         {heights}"
    )]
    UnknownBase {
        base: BlockHash,
        /// Heights of the known bases.
        heights: String,
    },
    /// The header of the base block is unknown.
    #[error(
        "The base block header ({base}) must appear in the headers chain. Make sure all headers are syncing, and call \
         loadtxoutset again"
    )]
    NoHeader { base: BlockHash },
    /// The base block is invalid, or a descendant of an invalid one.
    #[error("The base block header ({base}) is part of an invalid chain")]
    InvalidBase { base: BlockHash },
    /// Another branch of headers has more work.
    #[error(
        "A forked headers-chain with more work than the chain with the snapshot base block header exists. Please proceed to sync \
         without AssumeUtxo."
    )]
    OtherBranch,
    /// Unconfirmed transactions exist, and were checked against other coins.
    #[error("Can't activate a snapshot when mempool not empty")]
    Mempool,
    /// The tip has at least as much work as the base.
    #[error("Population failed: Work does not exceed active chainstate")]
    LittleWork,
    #[error("Population failed: {0}")]
    File(SnapshotError),
    /// The coins do not match the known hash.
    #[error("Population failed: Bad snapshot content hash: expected {expected}, got {actual}")]
    Hash {
        expected: BlockHash,
        actual: BlockHash,
        /// File offset of the first txid out of order, if any.
        unsorted: Option<u64>,
    },
    #[error("Population failed: Aborting after an interrupt was requested")]
    Interrupted,
    #[error("Population failed: {0}")]
    Store(#[from] AssumedError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl LoadError {
    /// Place of the damage in the file, if known.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::UnknownBase { .. } => {
                Some(format!("byte offset {}", SnapshotHeader::BASE_OFFSET))
            }
            Self::File(error) => error.offset().map(|offset| format!("byte offset {offset}")),
            Self::Hash { unsorted: Some(offset), .. } => Some(format!(
                "byte offset {offset}: this txid does not follow on the one before, one of them is damaged"
            )),
            Self::Hash { unsorted: None, .. } => Some(format!(
                "after byte offset {}: all coins can be read, so their hash alone shows the damage, and not its place",
                SnapshotHeader::SIZE
            )),
            _ => None,
        }
    }
}

impl From<CoinError> for LoadError {
    fn from(error: CoinError) -> Self {
        Self::Store(error.into())
    }
}

impl Chain<'_> {
    /// Loads the coins of a snapshot and makes its base the tip; [`Chain::validate_historical`] then validates the blocks below
    /// it. Calls `goes_on` periodically; false stops.
    ///
    /// # Errors
    /// The snapshot cannot be loaded in the current state, or the engine is shut down: then nothing has changed. If the engine
    /// fails, the next start may have the snapshot.
    pub fn load_snapshot<R: Read>(
        self,
        reader: SnapshotReader<R>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Tip, LoadError> {
        let Some(_loading) = self.0.loading_snapshot.try_lock() else {
            return Err(LoadError::Again);
        };
        let base = reader.header().base;
        let known = {
            let mut state = self.0.lock();
            let known = self.may_load(&state, &base)?;
            // Evict the current coins to make room for the snapshot.
            self.0.chainstate.flush(&mut state)?;
            let total = self.0.chainstate.coin_cache_bytes;
            state.coins.store.set_cache_bytes_max(total / 20);
            // The disk has all evicted coins.
            let _ = state.coins.store.make_room();
            known
        };
        let loaded = self.read_snapshot(reader, &known, goes_on).and_then(|loading| {
            let mut state = self.0.lock();
            match self.may_load(&state, &base) {
                Ok(_) => self.go_on_from(&mut state, loading, &known),
                Err(error) => {
                    loading.give_up()?;
                    Err(error)
                }
            }
        });
        if loaded.is_err() {
            self.0.chainstate.divide_cache(&mut self.0.lock_tree());
        }
        loaded
    }

    fn may_load(self, state: &State, base: &BlockHash) -> Result<AssumeUtxo, LoadError> {
        state.check()?;
        if state.historical.is_some() || self.0.loaded_base.lock().is_some() {
            return Err(LoadError::Again);
        }
        let (tree, base) = (&state.tree, *base);
        let all = &self.0.params().assume_utxo;
        let Some(known) = all.iter().find(|known| known.block == base) else {
            let heights: Vec<String> = all.iter().map(|known| known.height.to_string()).collect();
            return Err(LoadError::UnknownBase { base, heights: heights.join(", ") });
        };
        let id = tree.find(&base).ok_or(LoadError::NoHeader { base })?;
        let node = tree.get(id);
        if node.is_failed() {
            return Err(LoadError::InvalidBase { base });
        }
        if tree.ancestor_at(tree.best_header(), node.height) != id {
            return Err(LoadError::OtherBranch);
        }
        if !state.mempool.is_empty() {
            return Err(LoadError::Mempool);
        }
        if node.chain_work <= tree.tip_node().chain_work {
            return Err(LoadError::LittleWork);
        }
        Ok(known.clone())
    }

    /// Reads all coins into a separate store and verifies their hash.
    fn read_snapshot<R: Read>(
        self,
        reader: SnapshotReader<R>,
        known: &AssumeUtxo,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<LoadingCoins, LoadError> {
        let bytes = self.0.chainstate.coin_cache_bytes;
        let mut loading = LoadingCoins::begin(
            &self.0.config().datadir,
            self.0.chainstate.tier_cache_bytes(true),
            bytes - bytes / 20,
        )?;
        let read = read_coins(reader, &mut loading.coins, known, goes_on)
            .and_then(|unsorted| check_coins(&loading.coins, known, unsorted, goes_on));
        match read {
            Ok(()) => Ok(loading),
            Err(error) => {
                loading.give_up()?;
                Err(error)
            }
        }
    }

    /// The coins are correct: make them those of the tip.
    fn go_on_from(
        self,
        state: &mut State,
        loading: LoadingCoins,
        known: &AssumeUtxo,
    ) -> Result<Tip, LoadError> {
        let base = state.tree.find(&known.block).expect("it was there");
        // Headers up to the base, and the current coins, must be on disk at the next start.
        self.0.chainstate.flush(state)?;
        let coins = loading.finish(&known.block)?;
        let coins = ChainCoins { store: coins, coinbases: CoinbaseLog::default() };
        let historical = std::mem::replace(&mut state.coins, coins);
        let tip = state.tree.tip();
        state.tree.assume(base, known.chain_txs);
        state.tree.set_active(base);
        let log = self.0.chainstate.coinbase_log(state, base);
        state.coins.coinbases = state.poison(log)?;
        self.begin_historical(state, historical, (tip, base));
        self.0.chainstate.notifier.announce(&state.tree);
        tracing::info!("[snapshot] successfully activated snapshot {}", known.block);
        self.0.historical.wake();
        // Blocks above it may be archived already. Under the same lock, so that a shutdown does not turn the load into an error.
        self.0.chainstate.activate(state, None)?;
        Ok(state.tree.facts(base))
    }

    /// Starts the validation of the blocks between `tip` and `base` with these coins.
    pub(super) fn begin_historical(
        self,
        state: &mut State,
        coins: ChainCoins,
        (tip, base): (NodeId, NodeId),
    ) {
        let config = self.0.config();
        let flushes = FlushPolicy::new(Some(config.flush_interval));
        let verifier = Arc::clone(&self.0.chainstate.historical_verifier);
        let historical = Historical::new(coins, flushes, verifier, (tip, base));
        state.historical = Some(Box::new(historical));
        self.0.chainstate.divide_cache(state);
        self.announce_historical(state);
    }
}

/// Returns the offset of the first txid out of order.
fn read_coins<R: Read>(
    mut reader: SnapshotReader<R>,
    coins: &mut CoinStore,
    known: &AssumeUtxo,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<u64>, LoadError> {
    let (base, count) = (known.block, reader.header().coins);
    tracing::info!("[snapshot] loading {count} coins from snapshot {base}");
    loop {
        let read = reader.coins_read();
        let next = next_coin(&mut reader, known.height).map_err(LoadError::File)?;
        let Some((outpoint, coin)) = next else { break };
        match coins.add(outpoint, CoinRef::from(&coin), false) {
            // The first one is kept, as in Core; the hash decides.
            Ok(()) | Err(CoinError::Exists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if (read + 1).is_multiple_of(COINS_AT_ONCE) {
            if !goes_on() {
                return Err(LoadError::Interrupted);
            }
            if coins.make_room() == Room::FlushDue {
                coins.flush(known.height, &base)?;
            }
        }
        if (read + 1).is_multiple_of(1_000_000) {
            let percent = (read + 1) as f64 * 100.0 / count as f64;
            tracing::info!("[snapshot] {} coins loaded ({percent:.2}%)", read + 1);
        }
    }
    tracing::info!("[snapshot] loaded {count} coins from snapshot {base}");
    coins.flush(known.height, &base)?;
    Ok(reader.first_unsorted())
}

fn check_coins(
    coins: &CoinStore,
    known: &AssumeUtxo,
    unsorted: Option<u64>,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), LoadError> {
    let hash = serialized_hash_while(&coins.snapshot()?, goes_on)?;
    let actual = BlockHash(hash.ok_or(LoadError::Interrupted)?);
    let expected = known.hash_serialized;
    if actual == expected { Ok(()) } else { Err(LoadError::Hash { expected, actual, unsorted }) }
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

/// Number of coins between two checks of the memory.
const COINS_AT_ONCE: u64 = 10_000;
