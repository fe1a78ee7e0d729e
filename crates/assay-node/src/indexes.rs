//! Indexes with one record per block next to a running engine: block filters.
//!
//! Each has its own follower, like the script index (`electrum.rs`). Pruning (`-prune`) keeps blocks that they have
//! not processed yet.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use assay_electrum::chain::{Chain, Tip};
use assay_electrum::follow::{Follower, Follows};
use assay_electrum::{FilterIndex, RealIo, RecordsError};
use assay_engine::{BlockHash, BlockKeeper, Engine};

use crate::config::NodeConfig;
use crate::electrum::EngineChain;
use crate::error::NodeError;

#[derive(Clone, Default)]
pub(crate) struct BlockIndexes {
    pub(crate) filters: Option<Arc<FilterIndex>>,
}

pub(crate) struct IndexFollowers(Vec<Follower>);

impl BlockIndexes {
    /// Opens the configured indexes. A reindex of the chain starts them from scratch, as in Core.
    pub(crate) fn open(config: &NodeConfig) -> Result<Self, NodeError> {
        let dir = config.chain_dir();
        let genesis = config.engine.params.genesis_hash;
        let open_filters = || {
            let dir = dir.join(FILTERS_DIR);
            begin_anew(&dir, config.engine.reindex)?;
            FilterIndex::open(&dir, genesis, Arc::new(RealIo)).map(Arc::new)
        };
        let filters = config.filter_index.then(open_filters).transpose()?;
        Ok(Self { filters })
    }

    /// Starts a follower for each index, after a check that the archive has all missing blocks.
    pub(crate) fn follow(
        &self,
        config: &NodeConfig,
        engine: &Arc<Engine>,
    ) -> Result<IndexFollowers, NodeError> {
        let mut followers = Vec::new();
        let first = usize::from(engine.config().is_followed);
        if let Some(filters) = &self.filters {
            followers.push(follow(filters, engine, first + followers.len())?);
        }
        debug_assert_eq!(followers.len(), config.block_followers());
        Ok(IndexFollowers(followers))
    }
}

impl IndexFollowers {
    /// Waits until all followers have ended, which happens when the engine closes.
    pub(crate) fn join(self) {
        self.0.into_iter().for_each(Follower::join);
    }
}

/// Index that reports its progress to the engine.
trait Index: Follows + 'static {
    fn committed(&self) -> Option<Tip>;
}

impl Index for FilterIndex {
    fn committed(&self) -> Option<Tip> {
        FilterIndex::committed(self)
    }
}

fn follow<I: Index>(
    index: &Arc<I>,
    engine: &Arc<Engine>,
    number: usize,
) -> Result<Follower, NodeError> {
    let chain = EngineChain::of_follower(Arc::clone(engine), number);
    check_archive(&**index, &chain, engine)?;
    engine.chain().add_prune_lock(Arc::new(Keeper(Arc::clone(index))));
    let threads = engine.config().threads;
    Ok(Follower::start_blocks(Arc::clone(index), Arc::new(chain), threads)?)
}

/// Checks that all blocks from fork point to tip are archived with undo data (Core `init.cpp`, `StartIndexBackgroundSync`).
fn check_archive<I: Index>(
    index: &I,
    chain: &EngineChain,
    engine: &Engine,
) -> Result<(), NodeError> {
    let Some(removed) = engine.chain().validated_prune_height() else { return Ok(()) };
    let mut shared = None;
    if let Some(tip) = index.tip() {
        for height in (0..=tip.height).rev() {
            let hash = index.hash_at(height)?;
            if hash.is_some() && hash == chain.hash_at(height) {
                shared = Some((height, hash));
                break;
            }
        }
    }
    let is_synced =
        shared.is_some_and(|(_, hash)| hash == Some(engine.chain().validated_tip().hash));
    let height = shared.map_or(0, |(height, _)| height);
    if !is_synced && removed >= height {
        return Err(NodeError::IndexBeyondPruned { name: index.name().to_owned() });
    }
    Ok(())
}

struct Keeper<I>(Arc<I>);

impl<I: Index> BlockKeeper for Keeper<I> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn height(&self) -> u32 {
        self.0.tip().map_or(0, |tip| tip.height)
    }

    fn settle(&self) -> Option<BlockHash> {
        if let Err(error) = self.0.commit() {
            tracing::error!("could not write {} out: {error}", self.0.name());
        }
        self.0.committed().map(|tip| tip.hash)
    }
}

fn begin_anew(dir: &Path, is_wanted: bool) -> Result<(), RecordsError> {
    if !is_wanted {
        return Ok(());
    }
    match fs::remove_dir_all(dir) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(RecordsError::Io { path: dir.to_path_buf(), source })
        }
        _ => Ok(()),
    }
}

/// Core's folder (`index/blockfilterindex.cpp`).
const FILTERS_DIR: &str = "indexes/blockfilter/basic";
