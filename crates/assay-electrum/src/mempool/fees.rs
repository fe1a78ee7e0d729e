//! Fee rates of unconfirmed transactions.

use std::collections::BTreeMap;

/// Minimum virtual size of the first bin of a compact histogram; each further bin is a tenth larger. `ElectrumX`'s values.
const BIN_VSIZE: f64 = 100_000.0;
const BIN_GROWTH: f64 = 1.1;

/// Virtual size by fee rate, in steps of a tenth of a satoshi per virtual byte, updated incrementally.
#[derive(Clone, Debug, Default)]
pub struct FeeHistogram {
    /// Fee rate in tenths of a satoshi per virtual byte, rounded down, to virtual bytes.
    rates: BTreeMap<u64, u64>,
    vsize: u64,
}

impl FeeHistogram {
    pub(super) fn add(&mut self, fee_sat: i64, vsize: u32) {
        *self.rates.entry(tenths(fee_sat, vsize)).or_default() += u64::from(vsize);
        self.vsize += u64::from(vsize);
    }

    pub(super) fn remove(&mut self, fee_sat: i64, vsize: u32) {
        let rate = tenths(fee_sat, vsize);
        if let Some(sum) = self.rates.get_mut(&rate) {
            *sum = sum.saturating_sub(u64::from(vsize));
            if *sum == 0 {
                self.rates.remove(&rate);
            }
        }
        self.vsize = self.vsize.saturating_sub(u64::from(vsize));
    }

    pub fn vsize(&self) -> u64 {
        self.vsize
    }

    /// Pairs of fee rate (tenths of a satoshi per virtual byte) and the virtual size up to the previous rate, highest rate first.
    ///
    /// `ElectrumX`'s bins: each holds at least 100,000 virtual bytes, a tenth more than the previous; a large amount at a single
    /// rate ends the bin above it; the rest below the last full bin is omitted.
    pub fn compact(&self) -> Vec<(u64, u64)> {
        let mut bins = Vec::new();
        let mut least = BIN_VSIZE;
        let mut collected = 0u64;
        let mut above = None;
        for (&rate, &vsize) in self.rates.iter().rev() {
            if let Some(above) = above
                && vsize as f64 > 2.0 * least
                && collected > 0
            {
                bins.push((above, collected));
                collected = 0;
                least *= BIN_GROWTH;
            }
            collected += vsize;
            if collected as f64 > least {
                bins.push((rate, collected));
                collected = 0;
                least *= BIN_GROWTH;
            }
            above = Some(rate);
        }
        bins
    }

    /// The fee rate, in satoshi per 1,000 virtual bytes, needed to be among the first `blocks` blocks of `block_vsize` virtual
    /// bytes, assuming no new transactions: that of the last transaction that fits, or `floor` if all fit. `None` for an empty
    /// mempool.
    pub fn estimate(&self, blocks: u64, block_vsize: u64, floor: u64) -> Option<u64> {
        if self.rates.is_empty() {
            return None;
        }
        let room = blocks.max(1).saturating_mul(block_vsize);
        let mut taken = 0u64;
        for (&rate, &vsize) in self.rates.iter().rev() {
            taken = taken.saturating_add(vsize);
            if taken > room {
                // The bin's rate was rounded down by up to a tenth: exceed the whole bin.
                return Some(rate.saturating_add(1).saturating_mul(100).max(floor));
            }
        }
        Some(floor)
    }
}

fn tenths(fee_sat: i64, vsize: u32) -> u64 {
    let fee = u64::try_from(fee_sat).unwrap_or(0);
    fee.saturating_mul(10) / u64::from(vsize.max(1))
}
