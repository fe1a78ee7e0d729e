//! Opens the parts of a store and commits them, in a safe order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_wire::BlockHash;

use crate::assumed::{self, ASSUMED_DIR, AssumedError, Settled};
use crate::blocks::{BlockFileError, BlockPos, BlockStore, TailRule};
use crate::coins::{CoinError, CoinStore, CoinTier, FjallTier, FlushStats, TierError};
use crate::index::{BlockIndex, BlockRecord, IndexError, Loaded};
use crate::io::{Io, RealIo, sync_name};
use crate::layout::{self, BLOCKS_DIR, COINS_DIR, INDEX_DIR, LayoutError, Obfuscation};

#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The directory; `blocks/`, `blocks/index/` and `chainstate/` are created in it.
    pub dir: PathBuf,
    /// Message start of the network, used in the framing of blocks.
    pub magic: [u8; 4],
    /// Limit of records, table and flush of the coin cache, bytes; [`CoinStore::make_room`] enforces it.
    pub cache_bytes_max: usize,
    /// Bytes for the block cache of the coin tier.
    pub tier_cache_bytes: usize,
    /// Length limit of a block or undo file, except for a single longer record; at most 2^32 - 1.
    pub block_file_bytes_max: u64,
    /// The folder of block and undo files; `None` for `blocks/` in [`StoreConfig::dir`], where the index always is.
    pub blocks_dir: Option<PathBuf>,
    pub obfuscation: Obfuscation,
    /// True: remove existing coins first.
    pub discard_coins: bool,
    /// True: keep only the block files, and remove index, coins and undo data.
    pub reindex: bool,
    /// True: a reindex also removes block files after a gap in their numbers. A pruned node lacks old blocks, so later ones
    /// cannot be connected before the download (Core `node/blockstorage.cpp`, `CleanupBlockRevFiles`).
    pub reindex_removes_gapped: bool,
    /// Blocks that are valid bases of snapshots.
    pub known_bases: Vec<BlockHash>,
}

impl StoreConfig {
    pub fn blocks_dir(&self) -> PathBuf {
        self.blocks_dir.clone().unwrap_or_else(|| self.dir.join(BLOCKS_DIR))
    }

    /// The defaults: 450 MiB of coins, 64 MiB for the tier, block files of 128 MiB.
    pub fn new(dir: impl Into<PathBuf>, magic: [u8; 4]) -> Self {
        Self {
            dir: dir.into(),
            magic,
            cache_bytes_max: 450 << 20,
            tier_cache_bytes: 64 << 20,
            block_file_bytes_max: 128 << 20,
            blocks_dir: None,
            obfuscation: Obfuscation::AsFound,
            discard_coins: false,
            reindex: false,
            reindex_removes_gapped: false,
            known_bases: Vec::new(),
        }
    }

    /// Divides `total` bytes among all users of memory for coins.
    ///
    /// An eighth, but no more than 256 MiB, is for the block cache of the tier, which must hold the filters and indexes of its
    /// tables (about two bytes per coin on disk); a coin itself takes less memory in the cache of this crate. Another 28 MiB are
    /// for the buffers that write and merge tables, and for allocator overhead of blocks read by many threads (a quarter of the
    /// block cache). Measured in `tests/memory.rs`.
    #[must_use]
    pub fn with_coin_memory(self, total: usize) -> Self {
        let tier_cache_bytes = (total / 8).min(256 << 20);
        let buffers = (total / 16 * 7).min(28 << 20) + tier_cache_bytes / 4;
        Self { cache_bytes_max: total - tier_cache_bytes - buffers, tier_cache_bytes, ..self }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Tier(#[from] TierError),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The coins of a snapshot cannot be removed.
    #[error(transparent)]
    Assumed(#[from] AssumedError),
    /// The snapshot's base block is not one of [`StoreConfig::known_bases`].
    #[error("no UTXO set is known of block {hash}, whose coins were loaded from a snapshot")]
    UnknownBase { hash: BlockHash },
    #[error(transparent)]
    Coins(#[from] CoinError),
    #[error(transparent)]
    Blocks(#[from] BlockFileError),
    #[error(transparent)]
    Index(#[from] IndexError),
}

#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error(transparent)]
    Blocks(#[from] BlockFileError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Coins(#[from] CoinError),
}

/// Findings after an unclean shutdown; all empty after a clean one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes of torn groups dropped from the block index.
    pub index_bytes_dropped: u64,
    /// Bytes of torn blocks dropped from the block files.
    pub block_bytes_dropped: u64,
    /// Whole frames missing from the index, whose tail was lost. Only framing is checked: submit them as new blocks, or ignore.
    pub unindexed: Vec<BlockPos>,
    /// Blocks in the index whose data were lost in a power cut; their records no longer have a position.
    pub blocks_lost: Vec<BlockHash>,
    /// Blocks whose undo data were lost in a power cut; their records no longer have a position.
    pub undo_lost: Vec<BlockHash>,
    /// The block files must be scanned for blocks that the index lacks; call [`end_reindex`] afterwards.
    pub is_reindexing: bool,
    /// Validated snapshot coins replaced the ordinary ones.
    pub is_snapshot_promoted: bool,
    /// Incompletely loaded snapshot coins were removed.
    pub is_snapshot_removed: bool,
}

/// An open store; the parts may be moved out and used from different threads.
pub struct Store {
    /// The unspent coins; those of a snapshot if there is a `base`.
    pub coins: CoinStore,
    /// The coins for the validation of the blocks up to the base.
    pub historical: Option<CoinStore>,
    /// Base of the snapshot that is not validated yet.
    pub base: Option<BlockHash>,
    pub blocks: BlockStore,
    pub index: BlockIndex,
    pub records: Vec<BlockRecord>,
    pub recovery: Recovery,
}

impl Store {
    /// Opens or creates the store in `config.dir`.
    ///
    /// # Errors
    /// I/O errors, a directory in use, another network's files, or files of another version.
    pub fn open(config: &StoreConfig) -> Result<Self, OpenError> {
        let io: Arc<dyn Io> = Arc::new(RealIo);
        let coins_dir = config.dir.join(COINS_DIR);
        io.create_dir_all(&config.dir)
            .map_err(|source| BlockFileError::Io { path: config.dir.clone(), source })?;
        layout::prepare(&config.dir)?;
        let mut settled = assumed::settle(&config.dir)?;
        if config.discard_coins || config.reindex {
            // Data built on a snapshot are rebuilt without it, as in Core.
            assumed::discard(&config.dir)?;
            settled.base = None;
        }
        if let Some(hash) = settled.base.filter(|base| !config.known_bases.contains(base)) {
            return Err(OpenError::UnknownBase { hash });
        }
        layout::discard_coins(&config.dir, config.discard_coins)?;
        let is_reindexing = layout::begin_reindex(
            (&config.dir, &config.blocks_dir()),
            config.reindex,
            config.reindex_removes_gapped,
        )?;
        // Open the tier first: its directory lock also protects the other files from a second process.
        let shares = if settled.base.is_some() { 2 } else { 1 };
        let tier_bytes = config.tier_cache_bytes / shares;
        let ordinary = FjallTier::open(&coins_dir, tier_bytes)?;
        let open_assumed = |_| FjallTier::open(&config.dir.join(ASSUMED_DIR), tier_bytes);
        let assumed = settled.base.map(open_assumed).transpose()?;
        let (tier, historical) = match assumed {
            Some(assumed) => (assumed, Some(ordinary)),
            None => (ordinary, None),
        };
        let historical =
            historical.map(|tier| CoinStore::open(Box::new(tier), config.cache_bytes_max));
        let historical = historical.transpose()?;
        let store = Self::open_parts(config, &io, Box::new(tier), is_reindexing)?;
        Ok(store.with_snapshot(historical, settled))
    }

    fn with_snapshot(mut self, historical: Option<CoinStore>, settled: Settled) -> Self {
        self.historical = historical;
        self.base = settled.base;
        self.recovery.is_snapshot_promoted = settled.is_promoted;
        self.recovery.is_snapshot_removed = settled.is_removed;
        self
    }

    /// [`Store::open`] on another file system and coin tier.
    pub fn open_with(
        config: &StoreConfig,
        io: &Arc<dyn Io>,
        tier: Box<dyn CoinTier>,
    ) -> Result<Self, OpenError> {
        Self::open_parts(config, io, tier, false)
    }

    fn open_parts(
        config: &StoreConfig,
        io: &Arc<dyn Io>,
        tier: Box<dyn CoinTier>,
        is_reindexing: bool,
    ) -> Result<Self, OpenError> {
        let blocks_dir = config.blocks_dir();
        let key = layout::claim_blocks(&**io, &blocks_dir, config.obfuscation)?;
        let coins = CoinStore::open(tier, config.cache_bytes_max)?;
        let (index, mut loaded) =
            BlockIndex::open(&**io, &config.dir.join(INDEX_DIR), config.magic)?;
        // The index is synced before the coins, so the block of the coins cannot be in a torn tail.
        if let Some(marker) = coins.tip()
            && loaded.bytes_dropped > 0
            && marker.height > 0
            && !loaded.records.iter().any(|record| record.header.hash() == marker.hash)
        {
            return Err(index.damaged(loaded.end).into());
        }
        let (blocks, tails) = BlockStore::open(
            Arc::clone(io),
            &blocks_dir,
            (config.magic, key),
            config.block_file_bytes_max,
            &loaded.known_ends(),
            if is_reindexing { TailRule::Keep } else { TailRule::Cut },
            loaded.records.iter().any(|record| record.was_pruned),
        )?;
        // The folders may be new.
        for path in [&config.dir.join(INDEX_DIR), &blocks_dir, &config.dir] {
            sync_name(&**io, path)
                .map_err(|source| BlockFileError::Io { path: path.clone(), source })?;
        }
        let mut recovery = Recovery {
            index_bytes_dropped: loaded.bytes_dropped,
            block_bytes_dropped: tails.bytes_dropped,
            unindexed: tails.unindexed,
            is_reindexing,
            ..Recovery::default()
        };
        settle(&index, &blocks, &mut loaded, &mut recovery)?;
        if loaded.is_mostly_stale() {
            index.rewrite(&**io, config.magic, &loaded.records)?;
        }
        let records = loaded.records;
        Ok(Self { coins, historical: None, base: None, blocks, index, records, recovery })
    }
}

/// Removes the marker of a reindex ([`Recovery::is_reindexing`]) after the scan of the block files. Commit first.
pub fn end_reindex(dir: &Path) -> Result<(), LayoutError> {
    layout::end_reindex(dir)
}

/// Checks the data of the records written after the last checkpoint: a power cut may have kept the record and lost the data. Then
/// syncs the rest, so that it is not checked again.
fn settle(
    index: &BlockIndex,
    blocks: &BlockStore,
    loaded: &mut Loaded,
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    let mut changed = Vec::new();
    for (record, _) in loaded.records.iter_mut().zip(&loaded.unsure).filter(|(_, unsure)| **unsure)
    {
        let hash = record.header.hash();
        let block = record.block;
        let undo = record.undo;
        if let Some(pos) = block
            && is_lost(blocks.read_block(pos))?
        {
            record.block = None;
            recovery.blocks_lost.push(hash);
        }
        if let Some(pos) = undo
            && is_lost(blocks.read_undo(pos, &hash))?
        {
            record.undo = None;
            recovery.undo_lost.push(hash);
        }
        if (record.block, record.undo) != (block, undo) {
            changed.push(record.clone());
        }
    }
    if loaded.unsure.contains(&true) {
        blocks.sync_all()?;
        index.put(&changed)?;
        index.sync()?;
    }
    Ok(())
}

fn is_lost(read: Result<Vec<u8>, BlockFileError>) -> Result<bool, BlockFileError> {
    match read {
        Ok(_) => Ok(false),
        Err(error) if error.is_damage() => Ok(true),
        Err(error) => Err(error),
    }
}

/// Makes everything up to block `(height, hash)` survive a power cut, in the only safe order: blocks and undo data, then the
/// index with their positions, then the coins with their marker. After a crash in between the marker is older, and the blocks
/// after it are archived and can be connected again.
///
/// # Errors
/// After a failed sync the kernel may have dropped the data, so do not retry: stop, and let the next start recover.
pub fn commit(
    coins: &mut CoinStore,
    blocks: &BlockStore,
    index: &BlockIndex,
    height: u32,
    hash: &BlockHash,
) -> Result<FlushStats, CommitError> {
    blocks.sync()?;
    index.sync()?;
    Ok(coins.flush(height, hash)?)
}
