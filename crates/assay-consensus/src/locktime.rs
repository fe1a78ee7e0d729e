//! Absolute and relative lock times.

use assay_wire::Tx;

/// Lock times below are block heights, from here on seconds since 1970.
pub const LOCKTIME_THRESHOLD: u32 = 500_000_000;

/// The sequence number that switches lock times off.
pub const SEQUENCE_FINAL: u32 = u32::MAX;

/// Set in a sequence number that is no relative lock time (BIP68).
pub const SEQUENCE_LOCKTIME_DISABLE_FLAG: u32 = 1 << 31;

/// Set in a relative lock time that counts time instead of blocks (BIP68).
pub const SEQUENCE_LOCKTIME_TYPE_FLAG: u32 = 1 << 22;

/// The part of a sequence number that holds the relative lock time (BIP68).
pub const SEQUENCE_LOCKTIME_MASK: u32 = 0xffff;

/// A relative lock time counts units of 2^9 seconds (BIP68).
pub const SEQUENCE_LOCKTIME_GRANULARITY: u32 = 9;

/// Returns `true` if the lock time of `tx` permits the transaction in a block at `height`.
///
/// A lock time in seconds is compared with `cutoff_s`: the median time past of the parent since BIP113,
/// before that the block's own time.
#[must_use]
pub fn is_final_tx(tx: Tx<'_>, height: u32, cutoff_s: i64) -> bool {
    let lock_time = tx.lock_time();
    if lock_time == 0 {
        return true;
    }
    let reached = if lock_time < LOCKTIME_THRESHOLD {
        lock_time < height
    } else {
        i64::from(lock_time) < cutoff_s
    };
    reached || tx.inputs().all(|input| input.sequence == SEQUENCE_FINAL)
}

/// Returns `true` if any input of `tx` carries a relative lock time.
#[must_use]
pub fn has_sequence_locks(tx: Tx<'_>) -> bool {
    // The version is unsigned here: half of the values are "negative" and count too.
    tx.version() as u32 >= 2
        && tx.inputs().any(|input| input.sequence & SEQUENCE_LOCKTIME_DISABLE_FLAG == 0)
}

/// The last moment at which the relative lock times of a transaction still hold it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceLocks {
    /// Last height of a block that may not hold the transaction; -1 for none.
    pub height: i64,
    /// Last median time past of a parent whose child may not hold it, seconds; -1 for none.
    pub time_s: i64,
}

impl SequenceLocks {
    pub const NONE: Self = Self { height: -1, time_s: -1 };

    /// Combines the relative lock times of all inputs of `tx` (BIP68).
    ///
    /// `coin_heights` gives, input by input, the height of the block that created the spent
    /// output; an output of the mempool counts as created in the next block.
    /// `median_time_past_at` answers for the chain that the transaction extends.
    pub fn of(
        tx: Tx<'_>,
        coin_heights: impl IntoIterator<Item = u32>,
        median_time_past_at: impl Fn(u32) -> u32,
    ) -> Self {
        let mut locks = Self::NONE;
        if tx.version() as u32 >= 2 {
            for (input, coin_height) in tx.inputs().zip(coin_heights) {
                locks.extend(input.sequence, coin_height, &median_time_past_at);
            }
        }
        locks
    }

    fn extend(
        &mut self,
        sequence: u32,
        coin_height: u32,
        median_time_past_at: &impl Fn(u32) -> u32,
    ) {
        if sequence & SEQUENCE_LOCKTIME_DISABLE_FLAG != 0 {
            return;
        }
        let count = i64::from(sequence & SEQUENCE_LOCKTIME_MASK);
        if sequence & SEQUENCE_LOCKTIME_TYPE_FLAG != 0 {
            // Counted from the earliest time the creating block could have had.
            let since = i64::from(median_time_past_at(coin_height.saturating_sub(1)));
            let last = since + (count << SEQUENCE_LOCKTIME_GRANULARITY) - 1;
            self.time_s = self.time_s.max(last);
        } else {
            self.height = self.height.max(i64::from(coin_height) + count - 1);
        }
    }

    /// Returns `true` if a block at `height` whose parent has this median time past may hold the transaction.
    #[must_use]
    pub fn permit(&self, height: u32, parent_median_time_past: u32) -> bool {
        self.height < i64::from(height) && self.time_s < i64::from(parent_median_time_past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_testkit::chain::TxBuilder;

    #[test]
    fn absolute_lock_times() {
        let check = |lock_time: u32, sequence: u32, height: u32, cutoff_s: i64| {
            let tx = TxBuilder::new(1).input(1, 0, &[], sequence).output(0, &[]);
            let tx = tx.lock_time(lock_time).build();
            is_final_tx(tx.view(), height, cutoff_s)
        };
        assert!(check(0, 0, 0, 0));
        assert!(!check(100, 0, 100, 0), "the lock time is the last height that is too low");
        assert!(check(100, 0, 101, 0));
        assert!(check(100, SEQUENCE_FINAL, 1, 0), "final inputs switch the lock time off");
        let time = LOCKTIME_THRESHOLD;
        assert!(!check(time, 0, u32::MAX, i64::from(time)));
        assert!(check(time, 0, 0, i64::from(time) + 1));
        assert!(!check(LOCKTIME_THRESHOLD - 1, 0, LOCKTIME_THRESHOLD - 1, i64::MAX));
    }

    #[test]
    fn one_input_that_is_not_final_suffices() {
        let tx = TxBuilder::new(1)
            .input(1, 0, &[], SEQUENCE_FINAL)
            .input(1, 1, &[], SEQUENCE_FINAL - 1)
            .output(0, &[])
            .lock_time(10)
            .build();
        assert!(!is_final_tx(tx.view(), 10, 0));
    }

    fn locks(version: i32, sequences: &[(u32, u32)]) -> SequenceLocks {
        let mut builder = TxBuilder::new(version).output(0, &[]);
        for (index, (sequence, _)) in sequences.iter().enumerate() {
            builder = builder.input(1, index as u32, &[], *sequence);
        }
        let tx = builder.build();
        let heights = sequences.iter().map(|(_, height)| *height);
        SequenceLocks::of(tx.view(), heights, |height| 1_000_000 + height * 600)
    }

    #[test]
    fn relative_lock_times_by_height() {
        assert_eq!(locks(2, &[(10, 100)]).height, 109);
        assert!(!locks(2, &[(10, 100)]).permit(109, 0));
        assert!(locks(2, &[(10, 100)]).permit(110, 0));
        assert_eq!(locks(2, &[(10, 100), (3, 200), (1, 201)]).height, 202);
        assert_eq!(locks(2, &[(0xffff, 7)]).height, 7 + 0xffff - 1);
        assert_eq!(locks(2, &[(0, 7)]).height, 6, "zero asks for the block of the coin itself");
    }

    #[test]
    fn relative_lock_times_by_time() {
        let flagged = SEQUENCE_LOCKTIME_TYPE_FLAG | 2;
        let time_s = 1_000_000 + 99 * 600 + 1024 - 1;
        let result = locks(2, &[(flagged, 100)]);
        assert_eq!(result, SequenceLocks { height: -1, time_s });
        assert!(!result.permit(u32::MAX, time_s as u32));
        assert!(result.permit(0, time_s as u32 + 1));
        assert_eq!(locks(2, &[(flagged, 0)]).time_s, 1_000_000 + 1023, "height 0 has no parent");
        let both = locks(2, &[(flagged, 100), (5, 100)]);
        assert_eq!(both, SequenceLocks { height: 104, time_s });
    }

    #[test]
    fn relative_lock_times_can_be_off() {
        assert_eq!(locks(1, &[(10, 100)]), SequenceLocks::NONE);
        assert_eq!(locks(2, &[(SEQUENCE_LOCKTIME_DISABLE_FLAG | 0x0a, 100)]), SequenceLocks::NONE);
        assert_eq!(locks(-1, &[(10, 100)]).height, 109, "the version is unsigned");
        assert!(SequenceLocks::NONE.permit(0, 0));
        let tx = TxBuilder::new(2).input(1, 0, &[], SEQUENCE_FINAL).output(0, &[]).build();
        assert!(!has_sequence_locks(tx.view()));
        let tx = TxBuilder::new(2).input(1, 0, &[], 0).output(0, &[]).build();
        assert!(has_sequence_locks(tx.view()));
    }
}
