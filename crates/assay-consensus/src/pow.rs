//! Proof of work: compact targets, work, and the target that the next block must meet.

use assay_wire::BlockHash;

use crate::chain::Ancestors;
use crate::params::{ChainParams, PowParams};
use crate::uint256::U256;

/// A compact target as decoded, before any rule judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedTarget {
    /// The magnitude; what remains of it when it overflows.
    pub target: U256,
    /// The sign bit is set on a mantissa that is not zero.
    pub negative: bool,
    /// The number does not fit 256 bits.
    pub overflow: bool,
}

/// Decodes the compact form: one byte of length, a sign bit, 23 bits of mantissa.
///
/// The format is an ancient big-number serialisation (Core `arith_uint256.cpp`, `SetCompact`).
#[must_use]
pub fn decode_compact(bits: u32) -> DecodedTarget {
    let size = bits >> 24;
    let mantissa = bits & 0x007f_ffff;
    let (mantissa, target) = if size <= 3 {
        let shifted = mantissa >> (8 * (3 - size));
        (shifted, U256::from(u64::from(shifted)))
    } else {
        (mantissa, U256::from(u64::from(mantissa)) << (8 * (size - 3)))
    };
    let overflow = mantissa != 0
        && (size > 34 || (mantissa > 0xff && size > 33) || (mantissa > 0xffff && size > 32));
    DecodedTarget { target, negative: mantissa != 0 && bits & 0x0080_0000 != 0, overflow }
}

/// The shortest compact form of `target`; low-order bits that do not fit are dropped.
#[must_use]
pub fn encode_compact(target: U256) -> u32 {
    let mut size = target.bits().div_ceil(8);
    let mut mantissa = if size <= 3 {
        (target.low_u64() as u32) << (8 * (3 - size))
    } else {
        (target >> (8 * (size - 3))).low_u64() as u32
    };
    // The top bit of the mantissa is a sign: move it one byte down instead.
    if mantissa & 0x0080_0000 != 0 {
        mantissa >>= 8;
        size += 1;
    }
    mantissa | size << 24
}

/// The target that `bits` stands for, or `None` when no header of this chain may carry it:
/// negative, zero, too large for 256 bits, or easier than the chain's limit.
#[must_use]
pub fn target_from_bits(bits: u32, limit: U256) -> Option<U256> {
    let decoded = decode_compact(bits);
    let acceptable = !decoded.negative
        && !decoded.overflow
        && !decoded.target.is_zero()
        && decoded.target <= limit;
    acceptable.then_some(decoded.target)
}

/// Returns `true` if `hash`, read as a number, meets the target in `bits`.
#[must_use]
pub fn check_proof_of_work(hash: &BlockHash, bits: u32, params: &PowParams) -> bool {
    target_from_bits(bits, params.limit)
        .is_some_and(|target| U256::from_le_bytes(&hash.0) <= target)
}

/// The number of hashes that a block with these `bits` stands for on average: 2^256 / (target + 1).
///
/// Bits that are no valid target stand for no work (Core `chain.cpp`, `GetBlockProof`).
#[must_use]
pub fn block_work(bits: u32) -> U256 {
    let decoded = decode_compact(bits);
    if decoded.negative || decoded.overflow || decoded.target.is_zero() {
        return U256::ZERO;
    }
    // 2^256 does not fit, but (2^256 - target - 1) / (target + 1) + 1 is the same quotient.
    (!decoded.target)
        .checked_div(decoded.target.wrapping_add(U256::ONE))
        .map_or(U256::ZERO, |quotient| quotient.wrapping_add(U256::ONE))
}

/// The compact target that the block after the tip of `ancestors` must carry.
///
/// `time` is that block's own timestamp: on test networks a late block may be easy.
/// Follows Core `pow.cpp` for every network, with BIP94 for testnet4.
#[must_use]
pub fn next_work_required<A>(params: &ChainParams, ancestors: &A, time: u32) -> u32
where
    A: Ancestors + ?Sized,
{
    let pow = &params.pow;
    let tip_height = ancestors.tip_height();
    let tip = ancestors.header_at(tip_height);
    let interval = pow.retarget_interval();
    if !(tip_height + 1).is_multiple_of(interval) {
        if !pow.allow_min_difficulty {
            return tip.bits;
        }
        let limit_bits = encode_compact(pow.limit);
        if u64::from(time) > u64::from(tip.time) + 2 * u64::from(pow.target_spacing_s) {
            return limit_bits;
        }
        // The difficulty of the period is that of its last block not mined under the exception.
        let mut height = tip_height;
        let mut bits = tip.bits;
        while height > 0 && !height.is_multiple_of(interval) && bits == limit_bits {
            height -= 1;
            bits = ancestors.header_at(height).bits;
        }
        return bits;
    }
    if pow.no_retargeting {
        return tip.bits;
    }
    let first = ancestors.header_at(tip_height + 1 - interval);
    // BIP94: the first block of a period cannot use the exception, so it keeps the real difficulty.
    let base_bits = if pow.enforce_bip94 { first.bits } else { tip.bits };
    retarget(pow, base_bits, i64::from(tip.time) - i64::from(first.time))
}

/// Scales the target in `bits` by the time a period took, at most fourfold in either direction.
///
/// `elapsed_s` may be negative: timestamps need not increase.
#[must_use]
pub fn retarget(pow: &PowParams, bits: u32, elapsed_s: i64) -> u32 {
    let timespan = i64::from(pow.target_timespan_s);
    let elapsed = elapsed_s.clamp(timespan / 4, timespan * 4) as u32;
    let scaled = decode_compact(bits)
        .target
        .wrapping_mul_u32(elapsed)
        .checked_div(U256::from(u64::from(pow.target_timespan_s)))
        .unwrap_or(pow.limit);
    encode_compact(scaled.min(pow.limit))
}

/// Returns `true` if a header at `height` may change the target from `old_bits` to `new_bits`.
///
/// Judges one step without its timestamps, as header synchronisation needs it
/// (Core `pow.cpp`, `PermittedDifficultyTransition`).
#[must_use]
pub fn permitted_transition(pow: &PowParams, height: u32, old_bits: u32, new_bits: u32) -> bool {
    if pow.allow_min_difficulty {
        return true;
    }
    if !height.is_multiple_of(pow.retarget_interval()) {
        return old_bits == new_bits;
    }
    let timespan = i64::from(pow.target_timespan_s);
    let observed = decode_compact(new_bits).target;
    let easiest = decode_compact(retarget(pow, old_bits, timespan * 4)).target;
    let hardest = decode_compact(retarget(pow, old_bits, timespan / 4)).target;
    hardest <= observed && observed <= easiest
}

#[cfg(test)]
mod tests;
