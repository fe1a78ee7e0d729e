//! The rules of block headers.

use std::borrow::Cow;

use assay_wire::{BlockHash, Header};

use crate::chain::Ancestors;
use crate::params::ChainParams;
use crate::pow::{check_proof_of_work, next_work_required};

/// Largest distance of a timestamp into the future, seconds.
pub const MAX_FUTURE_BLOCK_TIME_S: i64 = 2 * 60 * 60;

/// Largest time by which the first block of a period may precede its parent under BIP94, seconds.
pub const MAX_TIMEWARP_S: i64 = 600;

/// Largest time by which the first block of a period may precede its parent under BIP54, seconds.
pub const MAX_TIMEWARP_BIP54_S: i64 = 7200;

/// The reason a header is invalid: one variant per rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The hash does not meet the target, or the target is none.
    #[error("hash {hash} does not meet the target {bits:#010x}")]
    HighHash { hash: BlockHash, bits: u32 },
    #[error("target {found:#010x} where {expected:#010x} is required")]
    BadDiffBits { expected: u32, found: u32 },
    #[error("time {time} is not after the median time past {median_time_past}")]
    TimeTooOld { time: u32, median_time_past: u32 },
    /// The first block of a retarget period lies too far before its parent (BIP94, BIP54).
    #[error("time {time} is too far before the parent's {parent_time} at a retarget")]
    TimewarpAttack { time: u32, parent_time: u32 },
    /// The last block of a retarget period lies before the first one (BIP54).
    #[error("time {time} at the end of a retarget period, before its beginning {first_time}")]
    NegativeInterval { time: u32, first_time: u32 },
    /// Too far in the future; the only rule about the header itself whose verdict changes with time.
    #[error("time {time} is too far after the present {now_s}")]
    TimeTooNew {
        time: u32,
        /// The current time that the caller passed, seconds since 1970.
        now_s: i64,
    },
    /// The block it builds on is not known. The code that stores the headers finds this.
    #[error("the parent {parent} is not known")]
    ParentUnknown { parent: BlockHash },
    /// The block it builds on, or one below, is invalid. The code that stores the headers finds this.
    #[error("the parent {parent} is invalid")]
    ParentInvalid {
        /// The parent it names.
        parent: BlockHash,
    },
    /// A version that a soft fork has retired.
    #[error("version {version:#010x} is retired at height {height}")]
    BadVersion { version: i32, height: u32 },
}

impl HeaderError {
    /// Bitcoin Core's reject reason.
    pub fn reject_reason(&self) -> Cow<'static, str> {
        match self {
            Self::HighHash { .. } => "high-hash".into(),
            Self::BadDiffBits { .. } => "bad-diffbits".into(),
            Self::TimeTooOld { .. } => "time-too-old".into(),
            Self::TimewarpAttack { .. } => "time-timewarp-attack".into(),
            Self::NegativeInterval { .. } => "time-negative-interval".into(),
            Self::TimeTooNew { .. } => "time-too-new".into(),
            Self::ParentUnknown { .. } => "prev-blk-not-found".into(),
            Self::ParentInvalid { .. } => "bad-prevblk".into(),
            Self::BadVersion { version, .. } => format!("bad-version(0x{version:08x})").into(),
        }
    }

    /// The text that Bitcoin Core adds to the reject reason in its log.
    pub fn debug_message(&self) -> Cow<'static, str> {
        match self {
            Self::HighHash { .. } => "proof of work failed".into(),
            Self::BadDiffBits { .. } => "incorrect proof of work".into(),
            Self::TimeTooOld { .. } => "block's timestamp is too early".into(),
            Self::TimewarpAttack { .. } => {
                "block's timestamp is too early on diff adjustment block".into()
            }
            Self::NegativeInterval { .. } => {
                "block's timestamp is before the first of its adjustment period".into()
            }
            Self::TimeTooNew { .. } => "block timestamp too far in the future".into(),
            Self::ParentUnknown { .. } | Self::ParentInvalid { .. } => "".into(),
            Self::BadVersion { version, .. } => {
                format!("rejected nVersion=0x{version:08x} block").into()
            }
        }
    }
}

/// Checks the header alone: its proof of work.
///
/// # Errors
/// [`HeaderError::HighHash`].
pub fn check_header(
    params: &ChainParams,
    header: &Header,
    hash: &BlockHash,
) -> Result<(), HeaderError> {
    if check_proof_of_work(hash, header.bits, &params.pow) {
        Ok(())
    } else {
        Err(HeaderError::HighHash { hash: *hash, bits: header.bits })
    }
}

/// Checks a header against the chain it extends; `now_s` is the present, seconds since 1970.
///
/// The caller has found the parent, which is the tip of `ancestors`, and has run
/// [`check_header`].
///
/// # Errors
/// The first rule broken, in Bitcoin Core's order.
pub fn contextual_check_header<A: Ancestors + ?Sized>(
    params: &ChainParams,
    ancestors: &A,
    header: &Header,
    now_s: i64,
) -> Result<(), HeaderError> {
    let parent_height = ancestors.tip_height();
    let height = parent_height + 1;
    let expected = next_work_required(params, ancestors, header.time);
    if header.bits != expected {
        return Err(HeaderError::BadDiffBits { expected, found: header.bits });
    }
    let median_time_past = ancestors.median_time_past_at(parent_height);
    if header.time <= median_time_past {
        return Err(HeaderError::TimeTooOld { time: header.time, median_time_past });
    }
    check_period_times(params, ancestors, header.time, height)?;
    if i64::from(header.time) > now_s.saturating_add(MAX_FUTURE_BLOCK_TIME_S) {
        return Err(HeaderError::TimeTooNew { time: header.time, now_s });
    }
    check_version(params, header.version, height)
}

/// Checks the times of the first and of the last block of a retarget period (BIP94, BIP54).
fn check_period_times<A: Ancestors + ?Sized>(
    params: &ChainParams,
    ancestors: &A,
    time: u32,
    height: u32,
) -> Result<(), HeaderError> {
    let interval = params.pow.retarget_interval();
    let bip54 = params.bip54_active(height);
    let grace_s = match (params.pow.enforce_bip94, bip54) {
        (true, _) => Some(MAX_TIMEWARP_S),
        (false, true) => Some(MAX_TIMEWARP_BIP54_S),
        (false, false) => None,
    };
    if let Some(grace_s) = grace_s.filter(|_| height.is_multiple_of(interval)) {
        let parent_time = ancestors.header_at(height - 1).time;
        if i64::from(time) < i64::from(parent_time) - grace_s {
            return Err(HeaderError::TimewarpAttack { time, parent_time });
        }
    }
    if bip54 && height % interval == interval - 1 {
        let first_time = ancestors.header_at(height + 1 - interval).time;
        if time < first_time {
            return Err(HeaderError::NegativeInterval { time, first_time });
        }
    }
    Ok(())
}

/// Checks that no soft fork has retired the version of the header at `height` (BIP34, BIP66, BIP65).
///
/// # Errors
/// [`HeaderError::BadVersion`].
pub fn check_version(params: &ChainParams, version: i32, height: u32) -> Result<(), HeaderError> {
    let heights = &params.activation;
    let retired = (version < 2 && height >= heights.bip34)
        || (version < 3 && height >= heights.bip66)
        || (version < 4 && height >= heights.bip65);
    if retired {
        return Err(HeaderError::BadVersion { version, height });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::HeaderFacts;

    const NOW: i64 = 1_700_000_000;

    fn regtest() -> ChainParams {
        ChainParams::by_name("regtest").expect("regtest is known")
    }

    fn chain(length: u32, start: u32, bits: u32) -> Vec<HeaderFacts> {
        (0..length)
            .map(|index| HeaderFacts { hash: BlockHash::ZERO, time: start + index * 600, bits })
            .collect()
    }

    fn header(version: i32, time: u32, bits: u32) -> Header {
        Header { version, prev_block: BlockHash::ZERO, merkle_root: [0; 32], time, bits, nonce: 0 }
    }

    fn reason(params: &ChainParams, chain: &[HeaderFacts], header: &Header) -> String {
        match contextual_check_header(params, chain, header, NOW) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.reject_reason().into_owned(),
        }
    }

    #[test]
    fn each_rule_has_its_reason() {
        let params = regtest();
        let start = NOW as u32 - 20 * 600;
        let chain = chain(20, start, 0x207f_ffff);
        let time = NOW as u32;
        let check = |header: Header| reason(&params, &chain, &header);
        assert_eq!(check(header(4, time, 0x207f_ffff)), "ok");
        assert_eq!(check(header(4, time, 0x1d00_ffff)), "bad-diffbits");
        assert_eq!(check(header(4, start + 14 * 600, 0x207f_ffff)), "time-too-old");
        assert_eq!(check(header(4, start + 14 * 600 + 1, 0x207f_ffff)), "ok");
        assert_eq!(check(header(4, time + 7200, 0x207f_ffff)), "ok");
        assert_eq!(check(header(4, time + 7201, 0x207f_ffff)), "time-too-new");
        assert_eq!(check(header(3, time, 0x207f_ffff)), "bad-version(0x00000003)");
        assert_eq!(check(header(-1, time, 0x207f_ffff)), "bad-version(0xffffffff)");
    }

    #[test]
    fn reject_reasons_of_bad_parents() {
        let hash = BlockHash([7; 32]);
        for (error, reason) in [
            (HeaderError::ParentUnknown { parent: hash }, "prev-blk-not-found"),
            (HeaderError::ParentInvalid { parent: hash }, "bad-prevblk"),
        ] {
            assert_eq!(error.reject_reason(), reason);
        }
    }

    /// BIP90: the first height of each soft fork is the first at which older versions are rejected.
    #[test]
    fn versions_are_retired_at_the_buried_heights() {
        for (name, heights) in [
            ("main", [227_931, 363_725, 388_381]),
            ("test", [21_111, 330_776, 581_885]),
            ("testnet4", [1, 1, 1]),
            ("signet", [1, 1, 1]),
            ("regtest", [1, 1, 1]),
            ("bch-regtest", [100_000_000, 1251, 1351]),
        ] {
            let params = ChainParams::by_name(name).expect("the chain is known");
            for version in 1..=3 {
                let verdict = |height: u32| check_version(&params, version, height).is_ok();
                // Each fork rejects its own version and the earlier ones.
                let first = heights[version as usize - 1..].iter().min().expect("a height");
                assert!(!verdict(*first), "{name}: version {version} at {first}");
                assert!(verdict(first - 1), "{name}: version {version} before {first}");
            }
            assert!(check_version(&params, 4, u32::MAX).is_ok());
        }
    }

    #[test]
    fn cash_regtest_takes_old_versions() {
        let params = ChainParams::by_name("bch-regtest").expect("bch-regtest is known");
        let chain = chain(20, NOW as u32 - 20 * 600, 0x207f_ffff);
        assert_eq!(reason(&params, &chain, &header(1, NOW as u32, 0x207f_ffff)), "ok");
    }

    #[test]
    fn timewarp_is_judged_only_at_a_retarget() {
        let params = ChainParams::by_name("testnet4").expect("testnet4 is known");
        let bits = 0x1c00_ffff;
        let start = NOW as u32 - 2016 * 600;
        let full = chain(2016, start, bits);
        let parent_time = start + 2015 * 600;
        let expected = next_work_required(&params, full.as_slice(), parent_time - 601);
        let early = header(4, parent_time - 601, expected);
        assert_eq!(reason(&params, &full, &early), "time-timewarp-attack");
        assert_eq!(reason(&params, &full, &header(4, parent_time - 600, expected)), "ok");
        let shorter = &full[..2015];
        assert_eq!(reason(&params, shorter, &header(4, parent_time - 1300, bits)), "ok");
    }

    /// The two rules of BIP54, a second apart, and only from its height on; BIP94 is the stricter one.
    #[test]
    fn the_ends_of_a_period_are_in_order_under_bip54() {
        let bits = 0x1c00_ffff;
        let start = NOW as u32 - 2016 * 600;
        for (network, bip94) in [("main", false), ("testnet4", true)] {
            let mut params = ChainParams::by_name(network).expect("the network is known");
            params.activation.bip54 = 2015;
            let mut chain = chain(2016, start, bits);
            // Not below the median of eleven, which grows by 600 s a block.
            chain[2015].time += 8000;
            let parent_time = chain[2015].time;
            let grace = if bip94 { 600 } else { 7200 };
            for (time, expected) in
                [(parent_time - grace, "ok"), (parent_time - grace - 1, "time-timewarp-attack")]
            {
                let bits = next_work_required(&params, chain.as_slice(), time);
                assert_eq!(reason(&params, &chain, &header(4, time, bits)), expected, "{network}");
            }
            params.activation.bip54 = 2017;
            let time = parent_time - 7201;
            let bits = next_work_required(&params, chain.as_slice(), time);
            let expected = if bip94 { "time-timewarp-attack" } else { "ok" };
            assert_eq!(reason(&params, &chain, &header(4, time, bits)), expected, "{network}");
        }
        // The last block of a period, the first one of which has a time far ahead.
        let start = NOW as u32 - 2200 * 600;
        let mut params = ChainParams::by_name("main").expect("main is known");
        let mut chain = chain(2015, start, bits);
        let late = start + 2100 * 600;
        chain[0].time = late;
        for (from, time, expected) in
            [(2015, late, "ok"), (2015, late - 1, "time-negative-interval"), (2016, late - 1, "ok")]
        {
            params.activation.bip54 = from;
            assert_eq!(reason(&params, &chain, &header(4, time, bits)), expected, "{from}");
        }
        // Any other block of the period.
        params.activation.bip54 = 0;
        let middle = &chain[..2014];
        assert_eq!(reason(&params, middle, &header(4, late - 1, bits)), "ok");
    }

    #[test]
    fn work_is_judged_first() {
        let params = regtest();
        let header = header(4, 0, 0x207f_ffff);
        let hash = BlockHash([0xff; 32]);
        let error = check_header(&params, &header, &hash).expect_err("the hash is too high");
        assert_eq!(error.reject_reason(), "high-hash");
        assert_eq!(check_header(&params, &header, &BlockHash([0x7e; 32])), Ok(()));
    }
}
