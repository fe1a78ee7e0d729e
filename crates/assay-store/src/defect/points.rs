//! Points where tests make the program panic or wait.

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// A point in the program where a test can inject a defect. Without the feature `panic-points` it compiles to nothing.
        /// With it, `ASSAY_PANIC_AT=NAME:STEP` makes pass number STEP of that point panic, counted from 0, and [`set_delays`]
        /// makes threads wait there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point {
            $($(#[$doc])* $name,)+
        }

        impl Point {
            pub const ALL: [Self; [$(Point::$name),+].len()] = [$(Point::$name),+];
        }
    };
}

points! {
    /// Read of a coin from disk.
    CoinRead,
    /// Before a coin is written into a batch.
    CoinWrite,
    /// Before a batch of coins is committed.
    CoinCommit,
    /// A batch of coins is committed; memory is not updated yet.
    CoinCommitted,
    CoinEvict,
    /// Before a block is archived.
    BlockAppend,
    /// A block is in its file; its position is not recorded yet.
    BlockAppended,
    /// Before undo data are archived.
    UndoAppend,
    /// Read of an archived block or its undo data.
    ArchiveRead,
    /// Before records of the block index are written.
    RecordWrite,
    /// Records of the block index are written; their end is not recorded yet.
    RecordWritten,
    /// Transactions are hashed on a pool thread.
    HashTask,
    /// Scripts are verified on a pool thread.
    ScriptTask,
    /// Collected signatures are verified.
    ScriptBatch,
    /// One transaction of a block has moved its coins, others have not.
    MoveCoins,
    /// A block's coins have moved; the tip has not.
    Connect,
    /// The tip has moved; the mempool is not updated yet.
    Connected,
    /// Coins of a disconnected block are restored; the tip is not.
    Disconnect,
    /// A block is marked as invalid in memory only.
    MarkInvalid,
    /// A transaction passed all checks but its scripts.
    MempoolScripts,
    /// Before a transaction enters the mempool.
    MempoolAdd,
    /// Transactions have left the mempool; its clusters are not updated yet.
    MempoolRemove,
    /// Transactions of disconnected blocks return to the mempool.
    MempoolReadmit,
    MempoolSave,
    IndexFollow,
    /// Rows of a block are created.
    IndexRows,
    /// Before rows are written to disk.
    IndexWrite,
    /// Rows are on disk; the index's list of files does not include them yet.
    IndexWritten,
    IndexMerge,
    /// A new snapshot of index and mempool is published.
    IndexPublish,
    ElectrumCall,
    ElectrumNotify,
    RpcCall,
    PeerMessage,
}

/// True if this build has panic points.
pub const HAS_POINTS: bool = cfg!(feature = "panic-points");

#[cfg(not(feature = "panic-points"))]
#[inline(always)]
pub fn point(_: Point) {}

/// Writes the number of passes per point, if requested by the environment.
#[cfg(not(feature = "panic-points"))]
pub fn write_passes() {}

/// Makes threads wait at random points.
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

    /// Passes a point.
    ///
    /// # Panics
    /// This is the pass named by `ASSAY_PANIC_AT`.
    pub fn point(point: Point) {
        let pass = PASSES[point as usize].fetch_add(1, Ordering::Relaxed);
        if let Some((target, step)) = *TARGET {
            assert!(target != point || pass != step, "injected defect {point:?}:{step}");
        }
        delay(point, pass);
    }

    /// Seed of the delays; 0 without delays.
    static DELAY_SEED: AtomicU64 = AtomicU64::new(0);

    static DELAYS_LEFT: AtomicU32 = AtomicU32::new(0);

    /// Makes threads wait at passes chosen by `seed`, up to [`DELAY_MAX`] each, `count` times in all; seed 0 ends the delays.
    /// Only a few points are chosen, since waits everywhere would not change the order.
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

    /// Writes the number of passes per point to the file named by `ASSAY_PANIC_PASSES`, a line `NAME COUNT` each.
    pub fn write_passes() {
        let Some(path) = std::env::var_os("ASSAY_PANIC_PASSES") else { return };
        let passes = |point| PASSES[point as usize].load(Ordering::Relaxed);
        let lines: String =
            Point::ALL.map(|point| format!("{point:?} {}\n", passes(point))).concat();
        // Tests that request the file check that it exists.
        let _ = std::fs::write(path, lines);
    }
}
