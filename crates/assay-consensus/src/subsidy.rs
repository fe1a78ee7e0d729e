//! New money.

use crate::amount::COIN;
use crate::params::ChainParams;

/// The amount that a block at `height` may create beyond its fees, satoshi.
#[must_use]
pub fn block_subsidy(params: &ChainParams, height: u32) -> i64 {
    let halvings = height / params.subsidy_halving_interval;
    (50 * COIN).checked_shr(halvings).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::MAX_MONEY;

    #[test]
    fn the_sum_of_all_subsidies() {
        let params = ChainParams::by_name("main").expect("main is known");
        let mut total = 0i64;
        // One height stands for a thousand: the interval is a multiple of it.
        for height in (0..14_000_000).step_by(1000) {
            let subsidy = block_subsidy(&params, height);
            assert!((0..=50 * COIN).contains(&subsidy));
            total += subsidy * 1000;
            assert!(total <= MAX_MONEY);
        }
        assert_eq!(total, 2_099_999_997_690_000);
    }

    #[test]
    fn halvings_and_their_end() {
        let params = ChainParams::by_name("regtest").expect("regtest is known");
        for (height, expected) in [
            (0, 5_000_000_000),
            (149, 5_000_000_000),
            (150, 2_500_000_000),
            (299, 2_500_000_000),
            (300, 1_250_000_000),
            (150 * 32, 1),
            (150 * 33, 0),
            (150 * 63, 0),
            (150 * 64, 0),
            (u32::MAX, 0),
        ] {
            assert_eq!(block_subsidy(&params, height), expected, "{height}");
        }
    }
}
