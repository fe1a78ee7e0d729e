//! Results of package submission: plain data.

use assay_wire::{Txid, Wtxid};

use crate::types::TxReject;

/// Result of a package, or of its trial (Core `validation.h`, `PackageMempoolAcceptResult`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageOutcome {
    /// Rejection of the package; `None` if all its transactions are in the mempool.
    pub reject: Option<PackageReject>,
    /// One per transaction, in order.
    pub txs: Vec<PackageTx>,
    /// Work except scripts, in visited transactions.
    pub work: u64,
}

/// Rejection of a whole package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageReject {
    pub fault: PackageFault,
    /// Core's reject reason.
    pub reason: String,
    /// Details, possibly empty.
    pub debug: String,
}

impl PackageReject {
    pub(crate) fn new(fault: PackageFault, reason: &str, debug: impl Into<String>) -> Self {
        Self { fault, reason: reason.to_owned(), debug: debug.into() }
    }

    /// At least one transaction is rejected individually.
    pub(crate) fn tx_failed() -> Self {
        Self::new(PackageFault::Tx, "transaction failed", "")
    }
}

/// Kind of a package rejection (Core `consensus/validation.h`, `PackageValidationResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageFault {
    /// The package itself.
    Policy,
    /// One of its transactions.
    Tx,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageTx {
    pub txid: Txid,
    pub wtxid: Wtxid,
    pub verdict: PackageVerdict,
}

/// Result of a transaction of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageVerdict {
    /// Admitted, or would be.
    Admitted(PackageFees),
    Known {
        /// Virtual size, adjusted for signature operations.
        vsize: u32,
        fee_sat: i64,
    },
    /// The mempool has the same transaction with another witness, and keeps that one.
    OtherWitness(Wtxid),
    Rejected(TxReject),
    /// Not fully checked, since the package or another transaction was rejected before.
    NotValidated,
}

/// Fees of an admitted transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageFees {
    /// Virtual size, adjusted for signature operations.
    pub vsize: u32,
    pub fee_sat: i64,
    /// Fee and size of the decisive fee rate: satoshi, with `prioritisetransaction`, and virtual bytes.
    pub effective: (i64, u64),
    /// Wtxids of the transactions counted in `effective`.
    pub effective_of: Vec<Wtxid>,
    pub replaced: Vec<Txid>,
}

impl PackageFees {
    /// The effective fee rate in satoshi per 1,000 virtual bytes, rounded down (Core `CFeeRate::GetFeePerK`).
    pub fn effective_sat_per_kvb(&self) -> i64 {
        sat_per_kvb(self.effective.0, self.effective.1)
    }
}

/// A fee rate in satoshi per 1,000 virtual bytes, rounded down.
pub(crate) fn sat_per_kvb(fee_sat: i64, vsize: u64) -> i64 {
    let rate = (i128::from(fee_sat) * 1000).div_euclid(i128::from(vsize.max(1)));
    i64::try_from(rate).unwrap_or(if fee_sat < 0 { i64::MIN } else { i64::MAX })
}

/// The fee of `vsize` virtual bytes at a fee rate in satoshi per 1,000: Core rounds up, Bitcoin Cash Node down
/// (`CFeeRate::GetFee`).
pub fn fee_at(sat_per_kvb: u64, vsize: u64, is_cash: bool) -> i64 {
    let millis = u128::from(sat_per_kvb) * u128::from(vsize);
    let fee = if is_cash { millis / 1000 } else { millis.div_ceil(1000) };
    i64::try_from(fee).unwrap_or(i64::MAX)
}
