//! Bitcoin Cash's difficulty since November 2020: targets scheduled absolutely and exponentially.
//!
//! `aserti3-2d` of the specification "2020-11-15-asert", in its integers: each half-life that the
//! chain is behind its schedule doubles the target, each that it is ahead halves it. The schedule
//! begins at an anchor block, so the target depends on the anchor and the parent alone.

use crate::params::{Asert, ChainParams, PowParams};
use crate::pow::{decode_compact, encode_compact, target_from_bits};
use crate::uint256::U256;

impl Asert {
    /// The target after a parent of this height and time, compact. The parent is not below the anchor.
    pub(super) fn next_bits(&self, pow: &PowParams, height: u32, time: u32) -> u32 {
        let anchor = decode_compact(self.anchor_bits).target;
        let time_diff_s = i64::from(time) - i64::from(self.anchor_parent_time);
        let height_diff = height - self.anchor_height;
        encode_compact(asert_target(pow, self.half_life_s, anchor, time_diff_s, height_diff))
    }
}

/// The same chain with targets by a schedule from its anchor on; `None` where that is impossible: on
/// a chain without retargeting, as regression-test chains are, with targets of more than 224 bits, or
/// with an anchor that has no valid target.
#[must_use]
pub fn with_asert(mut params: ChainParams, asert: Asert) -> Option<ChainParams> {
    let pow = &mut params.pow;
    let is_possible = !pow.no_retargeting
        && has_room(pow.limit)
        && asert.half_life_s > 0
        && target_from_bits(asert.anchor_bits, pow.limit).is_some();
    pow.asert = Some(asert);
    is_possible.then_some(params)
}

/// The target of the block after one that is `height_diff` blocks above the anchor and `time_diff_s`
/// seconds later than the anchor's parent.
///
/// Never zero and never easier than the limit, which must have 32 leading zero bits, as the anchor's
/// target has then: a product with the 17 bits of the factor cannot overflow.
///
/// # Panics
/// When the limit is larger, or the half-life is zero.
#[must_use]
pub fn asert_target(
    pow: &PowParams,
    half_life_s: u32,
    anchor: U256,
    time_diff_s: i64,
    height_diff: u32,
) -> U256 {
    assert!(has_room(pow.limit), "a limit below 2^224");
    let scheduled_s = i64::from(pow.target_spacing_s) * (i64::from(height_diff) + 1);
    // A division that truncates, then a shift that rounds down: the specification has one of each.
    let exponent =
        (i128::from(time_diff_s) - i128::from(scheduled_s)) * 65_536 / i128::from(half_life_s);
    let (shifts, fraction) = (exponent >> 16, (exponent & 0xffff) as u64);
    let product = anchor.wrapping_mul_u32(power_of_two(fraction));
    // The rest of the product is in units of 2^-16.
    let shifts = shifts - 16;
    let target = if shifts <= 0 {
        product >> u32::try_from(-shifts).unwrap_or(u32::MAX).min(256)
    } else if shifts + i128::from(product.bits()) > 256 {
        pow.limit
    } else {
        product << shifts as u32
    };
    target.clamp(U256::ONE, pow.limit)
}

/// 65,536 times 2 to the power of `fraction` / 65,536, by a cubic polynomial that is off by less
/// than 0.013 %. The largest sum below is less than 2^64.
fn power_of_two(fraction: u64) -> u32 {
    let cubic = 195_766_423_245_049 * fraction
        + 971_821_376 * fraction * fraction
        + 5127 * fraction * fraction * fraction
        + (1 << 47);
    65_536 + (cubic >> 48) as u32
}

/// Returns `true` if targets up to `limit` leave room for the multiplication.
fn has_room(limit: U256) -> bool {
    limit.bits() <= 224
}

#[cfg(test)]
mod tests {
    use super::*;

    fn main_pow() -> PowParams {
        ChainParams::by_name("main").expect("main is known").pow
    }

    /// The arguments of BCHN's `calculate_asert_test` (`pow_tests.cpp`), with its results.
    #[test]
    fn published_targets() {
        let pow = main_pow();
        let (limit, one) = (pow.limit, U256::ONE);
        let number = U256::from;
        let single =
            U256::from_hex("00000000ffb1ffffffffffffffffffffffffffffffffffffffffffffffffffff");
        let funny =
            U256::from_hex("000000008000000000000000000fffffffffffffffffffffffffffffffffffff");
        let limit_bits = 0x1d00_ffff;
        for (anchor, time_diff, height_diff, expected, bits) in [
            (limit, 0, 2 * 144, limit >> 1, 0x1c7f_ffff),
            (limit, 0, 4 * 144, limit >> 2, 0x1c3f_ffff),
            (limit >> 1, 0, 2 * 144, limit >> 2, 0x1c3f_ffff),
            (limit >> 2, 0, 2 * 144, limit >> 3, 0x1c1f_ffff),
            (limit >> 3, 0, 2 * 144, limit >> 4, 0x1c0f_ffff),
            (limit, 0, 2 * (256 - 34) * 144, number(3), 0x0103_0000),
            (limit, 0, 2 * (256 - 34) * 144 + 119, number(3), 0x0103_0000),
            (limit, 0, 2 * (256 - 34) * 144 + 120, number(2), 0x0102_0000),
            (limit, 0, 2 * (256 - 33) * 144 - 1, number(2), 0x0102_0000),
            (limit, 0, 2 * (256 - 33) * 144, one, 0x0101_0000),
            (limit, 0, 2 * (256 - 32) * 144, one, 0x0101_0000),
            (one, 0, 2 * (256 - 32) * 144, one, 0x0101_0000),
            (limit, 2 * (512 - 32) * 144, 0, limit, limit_bits),
            (one, (512 - 64) * 144 * 600, 0, limit, limit_bits),
            (limit, 300, 1, single, 0x1d00_ffb1),
            (funny, 600 * 2 * 33 * 144, 0, limit, limit_bits),
            (one, 600 * 2 * 256 * 144, 0, limit, limit_bits),
            (one, 600 * 2 * 224 * 144 - 1, 0, number(0xf_fff8) << 204, limit_bits),
        ] {
            let target =
                asert_target(&pow, Asert::HALF_LIFE_S, anchor, 600 + time_diff, height_diff);
            assert_eq!(target, expected, "{anchor} {time_diff} {height_diff}");
            assert_eq!(encode_compact(target), bits, "{anchor} {time_diff} {height_diff}");
        }
    }

    #[test]
    fn the_polynomial_is_as_close_as_specified() {
        assert_eq!(power_of_two(0), 65_536);
        for fraction in 0..65_536u32 {
            let exact = f64::from(fraction).mul_add(1.0 / 65_536.0, 16.0).exp2();
            let given = f64::from(power_of_two(u64::from(fraction)));
            assert!((given / exact - 1.0).abs() < 0.000_13, "{fraction}");
        }
    }

    /// Nothing overflows at the ends of what headers can say.
    #[test]
    fn extremes() {
        let pow = main_pow();
        let target = |time_diff_s, height_diff| {
            asert_target(&pow, Asert::HALF_LIFE_S, pow.limit, time_diff_s, height_diff)
        };
        assert_eq!(target(i64::MAX, 0), pow.limit);
        assert_eq!(target(i64::MIN, u32::MAX), U256::ONE);
        assert_eq!(target(i64::from(u32::MAX), u32::MAX), U256::ONE);
    }
}
