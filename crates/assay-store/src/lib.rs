//! Crash-safe storage of coins, blocks, headers and undo data.
//!
//! Four parts, opened together by [`Store`] and committed together by [`commit`]:
//!
//! - [`BlockStore`]: raw blocks and undo data in append-only files;
//! - [`BlockIndex`]: the records of all headers, as a log;
//! - [`CoinStore`]: the unspent coins, a cache in memory over a persistent tier ([`CoinTier`]);
//! - [`UndoWriter`] and [`UndoReader`]: the coins that a block spent, as bytes.
//!
//! [`BlockFiles`] reads the block files of another program and never changes them.
//!
//! A block may be acknowledged when [`BlockStore::append_block`] and [`BlockIndex::put`] have returned: it survives the death of
//! the process then, and after [`commit`] a power cut too. After a crash, take [`CoinStore::tip`] and connect the archived blocks
//! above it again. Byte layouts and the complete contract: `docs/formats.md`.
//!
//! ```
//! use assay_store::{CoinRef, Store, StoreConfig, commit};
//! use assay_wire::{BlockHash, OutPoint, Txid};
//!
//! let dir = tempfile::tempdir()?;
//! let config = StoreConfig::new(dir.path(), [0xfa, 0xbf, 0xb5, 0xda]);
//! let outpoint = OutPoint { txid: Txid([7; 32]), vout: 0 };
//! {
//!     let mut store = Store::open(&config)?;
//!     let coin = CoinRef { value: 50, height: 1, coinbase: true, script_pubkey: &[0x51] };
//!     store.coins.add(outpoint, coin, false)?;
//!     commit(&mut store.coins, &store.blocks, &store.index, 1, &BlockHash([1; 32]))?;
//! }
//! let mut store = Store::open(&config)?;
//! assert_eq!(store.coins.tip().map(|marker| marker.height), Some(1));
//! assert_eq!(store.coins.spend(&outpoint)?.map(|coin| coin.value), Some(50));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Deliberately absent: consensus rules (valid spends, choice of the best chain), and threads of its own except those of the coin
//! tier and one that populates memory of the cache.
#![expect(
    clippy::missing_errors_doc,
    reason = "the error types list the causes; a section says what is left behind"
)]

mod assumed;
mod block_files;
mod blocks;
mod codec;
mod coins;
mod core_undo;
pub mod defect;
mod hints_file;
mod index;
pub mod io;
mod layout;
mod replace;
mod spent_files;
mod store;
mod undo;
mod utxo_snapshot;
mod xor;

pub use assumed::{AssumedError, LoadingCoins, mark_invalid, mark_validated};
pub use block_files::{
    BlockFile, BlockFiles, BlockFilesError, BlockPlace, Finding, RecordRules, Search, StrayBytes,
    StrayKind,
};
pub use blocks::{BlockFileError, BlockPos, BlockStore, FileLengths, UndoPos};
pub use codec::{CodecError, CoinRef};
pub use coins::{
    Cached, CoinError, CoinKey, CoinSnapshot, CoinStore, CoinTier, CoinUsage, Expected, FjallTier,
    FlushStats, KEY_BYTES, Located, MARKER_KEY, Marker, MemTier, Room, SCRIPT_BYTES_MAX, SimTier,
    TierBatch, TierError, TierSnapshot, Visit, prefetch_bytes,
};
pub use core_undo::CoreUndoFiles;
pub use hints_file::{BlockHints, HintsError, HintsReader, HintsWriter};
pub use index::{BlockIndex, BlockRecord, IndexError};
pub use layout::{LayoutError, Obfuscation, rename_folder};
pub use replace::{ReplaceError, read_file, replace_file};
pub use spent_files::{SpentEntry, SpentFiles, SpentFilesError, SpentPlace, SpentWriter};
pub use store::{CommitError, OpenError, Recovery, Store, StoreConfig, commit, end_reindex};
pub use undo::{UndoError, UndoReader, UndoWriter, decode_undo};
pub use utxo_snapshot::{
    CoinPlaces, KeyForms, SnapshotError, SnapshotHeader, SnapshotReader, SnapshotWriter,
};
pub use xor::XorKey;
