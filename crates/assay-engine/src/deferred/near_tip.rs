//! Blocks near the tip, whose signatures only libsecp256k1 verifies.
//!
//! Vector code matters during IBD and for blocks larger than Bitcoin's. A block of Bitcoin's size at the tip takes as long to
//! verify as in Bitcoin Core, which is much less than the block interval. A second implementation would add risk there without
//! benefit.

/// Default number of blocks, from the best known header down, that only the library verifies.
pub const EXACT_NEAR_TIP_DEFAULT: u32 = 6;

/// Maximum inputs of such a block or list of transactions; above it speed matters. A block of Bitcoin has at most 24,390
/// (4,000,000 weight units, 164 for the smallest input); with one signature each that is 0.6 s on one core.
const INPUTS_MAX: usize = 25_000;

/// Maximum age of a header near the tip (Core's `-maxtipage`).
const AGE_MAX_S: u64 = 24 * 3600;

/// Position of a block, or of a transaction that could be in the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) height: u32,
    /// Height of the best known header.
    pub(crate) best_height: u32,
    /// Time in the header of the block, or of the tip for a transaction, seconds since 1970.
    pub(crate) time_s: u32,
    pub(crate) now_s: u64,
}

/// True if only libsecp256k1 verifies. `blocks` is [`Config::exact_near_tip`](crate::Config::exact_near_tip). `inputs` is called
/// only if the other conditions hold.
pub(crate) fn is_exact(blocks: u32, place: &Place, inputs: impl FnOnce() -> usize) -> bool {
    blocks > 0
        && place.height.saturating_add(blocks) > place.best_height
        && u64::from(place.time_s) + AGE_MAX_S >= place.now_s
        && inputs() <= INPUTS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_recent_and_of_ordinary_size() {
        let now_s = 1_800_000_000;
        let place = |height, age_s: u64| Place {
            height,
            best_height: 1000,
            time_s: (now_s - age_s) as u32,
            now_s,
        };
        for (blocks, place, inputs, expected) in [
            (6, place(1000, 0), 0, true),
            (6, place(1001, 600), 25_000, true),
            (6, place(995, 3600), 10, true),
            (6, place(994, 3600), 10, false),
            (1, place(1000, 60), 10, true),
            (1, place(999, 60), 10, false),
            (0, place(1000, 60), 10, false),
            (u32::MAX, place(0, 60), 10, true),
            (6, place(1000, 24 * 3600), 10, true),
            (6, place(1000, 24 * 3600 + 1), 10, false),
            (6, place(1000, 60), 25_001, false),
        ] {
            assert_eq!(
                is_exact(blocks, &place, || inputs),
                expected,
                "{blocks} {place:?} {inputs}"
            );
        }
        // During IBD inputs are not counted.
        assert!(!is_exact(6, &place(10, 0), || unreachable!()));
    }
}
