//! The rules of difficulty as written down, computed slowly.

use std::cmp::Ordering;

use assay_consensus::chain::HeaderFacts;

/// A number of any size: base-256 digits, least significant first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Number(Vec<u8>);

impl Number {
    pub(crate) fn from_le_bytes(bytes: &[u8]) -> Self {
        let mut digits = bytes.to_vec();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Self(digits)
    }

    pub(crate) fn power_of_256(exponent: usize) -> Self {
        let mut digits = vec![0; exponent];
        digits.push(1);
        Self(digits)
    }

    /// Number of bytes it takes; none for zero.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn to_le_bytes(&self, length: usize) -> Vec<u8> {
        let mut digits = self.0.clone();
        digits.resize(length, 0);
        digits
    }

    pub(crate) fn plus_one(&self) -> Self {
        let mut digits = self.0.clone();
        for digit in &mut digits {
            *digit = digit.wrapping_add(1);
            if *digit != 0 {
                return Self(digits);
            }
        }
        digits.push(1);
        Self(digits)
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let mut digits = vec![0u64; self.0.len() + other.0.len() + 1];
        for (i, &a) in self.0.iter().enumerate() {
            for (j, &b) in other.0.iter().enumerate() {
                digits[i + j] += u64::from(a) * u64::from(b);
            }
        }
        let mut carry = 0;
        let bytes: Vec<u8> = digits
            .into_iter()
            .map(|digit| {
                carry += digit;
                let byte = carry as u8;
                carry >>= 8;
                byte
            })
            .collect();
        Self::from_le_bytes(&bytes)
    }

    fn times_small(&self, factor: u64) -> Self {
        self.times(&Self::from_le_bytes(&factor.to_le_bytes()))
    }

    fn divided_by_small(&self, divisor: u64) -> Self {
        let mut rest = 0;
        let mut digits = self.0.clone();
        for digit in digits.iter_mut().rev() {
            rest = rest << 8 | u64::from(*digit);
            *digit = (rest / divisor) as u8;
            rest %= divisor;
        }
        Self::from_le_bytes(&digits)
    }

    /// The number of bytes, then the three most significant ones; a leading zero byte keeps the
    /// first from looking like a sign.
    pub(crate) fn write_compact(&self) -> u32 {
        let mut digits = self.0.clone();
        if digits.last().is_some_and(|top| top & 0x80 != 0) {
            digits.push(0);
        }
        let mantissa =
            digits.iter().rev().chain([&0, &0, &0]).take(3).fold(0, |m, &b| m << 8 | u32::from(b));
        (digits.len() as u32) << 24 | mantissa
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// The magnitude that compact bits stand for, and whether they say it is negative.
pub(crate) fn read_compact(bits: u32) -> (Number, bool) {
    let size = (bits >> 24) as usize;
    let [a, b, c, _] = (bits & 0x7f_ffff).to_le_bytes();
    // Three bytes that end `size` bytes up; what would be below the point is cut off.
    let mut digits = vec![0; size.saturating_sub(3)];
    digits.extend([a, b, c].into_iter().skip(3usize.saturating_sub(size)));
    // A number is negative by its mantissa as written, unless nothing of that is left.
    let number = Number::from_le_bytes(&digits);
    let negative = bits & 0x80_0000 != 0 && number.bytes() > 0;
    (number, negative)
}

/// The differences between the networks.
pub(crate) struct Network {
    limit_bits: u32,
    interval: usize,
    two_weeks: i64,
    easy_after_20_minutes: bool,
    retargets: bool,
    bip94: bool,
}

impl Network {
    pub(crate) const MAIN: Self = Self {
        limit_bits: 0x1d00_ffff,
        interval: 2016,
        two_weeks: 14 * 24 * 3600,
        easy_after_20_minutes: false,
        retargets: true,
        bip94: false,
    };
    pub(crate) const TESTNET3: Self = Self { easy_after_20_minutes: true, ..Self::MAIN };
    pub(crate) const TESTNET4: Self = Self { bip94: true, ..Self::TESTNET3 };
    pub(crate) const SIGNET: Self = Self { limit_bits: 0x1e03_77ae, ..Self::MAIN };
    pub(crate) const REGTEST: Self = Self {
        limit_bits: 0x207f_ffff,
        interval: 144,
        two_weeks: 24 * 3600,
        easy_after_20_minutes: true,
        retargets: false,
        bip94: false,
    };

    /// The target of the block at `time` on top of `chain`.
    pub(crate) fn next_bits(&self, chain: &[HeaderFacts], time: u32) -> u32 {
        let height = chain.len();
        let last = chain[height - 1];
        if height.is_multiple_of(self.interval) {
            let first = chain[height - self.interval];
            return if self.retargets { self.retarget(first, last) } else { last.bits };
        }
        if !self.easy_after_20_minutes {
            return last.bits;
        }
        if i64::from(time) - i64::from(last.time) > 20 * 60 {
            return self.limit_bits;
        }
        // The last block of the period that was not mined under the exception, or its first block.
        let begin = height - height % self.interval;
        let period = &chain[begin..];
        let regular = period.iter().rev().find(|header| header.bits != self.limit_bits);
        regular.unwrap_or(&period[0]).bits
    }

    fn retarget(&self, first: HeaderFacts, last: HeaderFacts) -> u32 {
        let took = i64::from(last.time) - i64::from(first.time);
        let took = took.max(self.two_weeks / 4).min(self.two_weeks * 4);
        let base = if self.bip94 { first.bits } else { last.bits };
        let scaled =
            read_compact(base).0.times_small(took as u64).divided_by_small(self.two_weeks as u64);
        // The limit itself has more digits set than its compact form can say.
        if scaled > self.limit() { self.limit_bits } else { scaled.write_compact() }
    }

    fn limit(&self) -> Number {
        if self.limit_bits == 0x1d00_ffff {
            // 224 bits, all set.
            Number::from_le_bytes(&[0xff; 28])
        } else {
            read_compact(self.limit_bits).0
        }
    }

    /// BIP-0094: the first block of a period more than ten minutes before its parent.
    pub(crate) fn is_time_warp(&self, chain: &[HeaderFacts], time: u32) -> bool {
        let parent_time = chain[chain.len() - 1].time;
        self.bip94
            && chain.len().is_multiple_of(self.interval)
            && i64::from(parent_time) - i64::from(time) > 600
    }
}

/// BIP-0113: the middle one of the last eleven times, in order of size.
pub(crate) fn median_time(times: impl DoubleEndedIterator<Item = u32>) -> u32 {
    let mut last: Vec<u32> = times.rev().take(11).collect();
    last.sort_unstable();
    last[last.len() / 2]
}
