//! Places where tests make the program panic, or wait.

/// A place in the program where a defect can be injected. Without the feature `panic-points` nothing of it is in the
/// program; with it, `ASSAY_PANIC_AT=NAME:STEP` makes the STEP-th pass of that place panic, counted from 0, and
/// [`set_delays`] makes threads wait there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A coin is read from disk.
    CoinRead,
    /// A coin is about to be written into a batch.
    CoinWrite,
    /// A batch of coins is about to count.
    CoinCommit,
    /// A batch of coins counts, and memory does not know yet.
    CoinCommitted,
    CoinEvict,
    /// A block is about to be archived.
    BlockAppend,
    /// A block lies in its file, and its place is not noted yet.
    BlockAppended,
    /// Undo data are about to be archived.
    UndoAppend,
    /// An archived block or its undo data are read.
    ArchiveRead,
    /// Records of the block index are about to be written.
    RecordWrite,
    /// Records of the block index are written, and their end is not noted yet.
    RecordWritten,
    /// Transactions are hashed on a thread of the pool.
    HashTask,
    /// Scripts are verified on a thread of the pool.
    ScriptTask,
    /// Collected signatures are verified.
    ScriptBatch,
    /// A block's transaction has taken its coins, and others of the block have not.
    MoveCoins,
    /// A block's coins have moved, and the tip has not.
    Connect,
    /// The tip has moved, and the mempool has not heard of it.
    Connected,
    /// Coins of a disconnected block are back, and the tip is not.
    Disconnect,
    /// A block is marked as invalid in memory only.
    MarkInvalid,
    /// A transaction passed all checks but its scripts.
    MempoolScripts,
    /// A transaction is about to enter the mempool.
    MempoolAdd,
    /// Transactions have left the mempool, and its clusters have not heard of it.
    MempoolRemove,
    /// Transactions of disconnected blocks come back.
    MempoolReadmit,
    /// The mempool is written to its file.
    MempoolSave,
    /// The index takes the next block.
    IndexFollow,
    /// Rows of a block are made.
    IndexRows,
    /// Rows are about to be written to disk.
    IndexWrite,
    /// Rows are on disk, and the index's list of files does not name them yet.
    IndexWritten,
    /// Files of the index are merged.
    IndexMerge,
    /// A new snapshot of index and mempool is published.
    IndexPublish,
    /// An Electrum request is answered.
    ElectrumCall,
    /// An Electrum notification is sent.
    ElectrumNotify,
    /// An RPC call is answered.
    RpcCall,
    /// A message of a peer is handled.
    PeerMessage,
}

impl Point {
    pub const ALL: [Self; 34] = [
        Self::CoinRead,
        Self::CoinWrite,
        Self::CoinCommit,
        Self::CoinCommitted,
        Self::CoinEvict,
        Self::BlockAppend,
        Self::BlockAppended,
        Self::UndoAppend,
        Self::ArchiveRead,
        Self::RecordWrite,
        Self::RecordWritten,
        Self::HashTask,
        Self::ScriptTask,
        Self::ScriptBatch,
        Self::MoveCoins,
        Self::Connect,
        Self::Connected,
        Self::Disconnect,
        Self::MarkInvalid,
        Self::MempoolScripts,
        Self::MempoolAdd,
        Self::MempoolRemove,
        Self::MempoolReadmit,
        Self::MempoolSave,
        Self::IndexFollow,
        Self::IndexRows,
        Self::IndexWrite,
        Self::IndexWritten,
        Self::IndexMerge,
        Self::IndexPublish,
        Self::ElectrumCall,
        Self::ElectrumNotify,
        Self::RpcCall,
        Self::PeerMessage,
    ];
}

/// Whether this build can be made to panic.
pub const HAS_POINTS: bool = cfg!(feature = "panic-points");

#[cfg(not(feature = "panic-points"))]
#[inline(always)]
pub fn point(_: Point) {}

/// Writes how often each place was passed, where tests ask for it.
#[cfg(not(feature = "panic-points"))]
pub fn write_passes() {}

/// Makes threads wait at random places, where tests ask for it.
#[cfg(not(feature = "panic-points"))]
pub fn set_delays(_: u64, _: u32) {}

#[cfg(feature = "panic-points")]
pub use injected::{point, set_delays, write_passes};

#[cfg(feature = "panic-points")]
mod injected {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use std::time::Duration;

    use super::Point;

    static PASSES: [AtomicU64; Point::ALL.len()] = [const { AtomicU64::new(0) }; Point::ALL.len()];

    static TARGET: LazyLock<Option<(Point, u64)>> = LazyLock::new(|| {
        let text = std::env::var("ASSAY_PANIC_AT").ok()?;
        let target = text.split_once(':').and_then(|(name, step)| {
            let point = Point::ALL.into_iter().find(|point| format!("{point:?}") == name)?;
            Some((point, step.parse().ok()?))
        });
        assert!(target.is_some(), "ASSAY_PANIC_AT={text}: give NAME:STEP, a name of Point");
        target
    });

    /// Passes a place where a defect can be injected.
    ///
    /// # Panics
    /// When this pass is the one that `ASSAY_PANIC_AT` names.
    pub fn point(point: Point) {
        let pass = PASSES[point as usize].fetch_add(1, Ordering::Relaxed);
        if let Some((target, step)) = *TARGET {
            assert!(target != point || pass != step, "injected defect {point:?}:{step}");
        }
        delay(point, pass);
    }

    /// What decides where threads wait; 0 while they do not.
    static DELAY_SEED: AtomicU64 = AtomicU64::new(0);

    static DELAYS_LEFT: AtomicU32 = AtomicU32::new(0);

    /// Makes threads wait at passes that `seed` chooses, up to [`DELAY_MAX`] each, `count` times in all; seed 0 ends it. A few
    /// places are chosen, since waiting everywhere changes no order.
    pub fn set_delays(seed: u64, count: u32) {
        DELAYS_LEFT.store(count, Ordering::Relaxed);
        DELAY_SEED.store(seed, Ordering::Relaxed);
    }

    const DELAY_MAX: Duration = Duration::from_millis(2);

    fn delay(point: Point, pass: u64) {
        let seed = DELAY_SEED.load(Ordering::Relaxed);
        if seed == 0 {
            return;
        }
        let place = mix(seed ^ (point as u64 + 1) << 48);
        let chance = mix(place ^ pass);
        if !place.is_multiple_of(4) || !chance.is_multiple_of(2 + place / 4 % 8) {
            return;
        }
        let take = |left: u32| left.checked_sub(1);
        if DELAYS_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            std::thread::sleep(DELAY_MAX.mul_f64((chance >> 40) as f64 / (1 << 24) as f64));
        }
    }

    /// `SplitMix64`, one step.
    fn mix(value: u64) -> u64 {
        let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Writes how often each place was passed to the file that `ASSAY_PANIC_PASSES` names, a line `NAME COUNT` for each.
    pub fn write_passes() {
        let Some(path) = std::env::var_os("ASSAY_PANIC_PASSES") else { return };
        let passes = |point| PASSES[point as usize].load(Ordering::Relaxed);
        let lines: String =
            Point::ALL.map(|point| format!("{point:?} {}\n", passes(point))).concat();
        // Only tests ask for it, and they look whether it is there.
        let _ = std::fs::write(path, lines);
    }
}
