//! What becomes of transactions that are judged together: plain data.

use assay_wire::{Txid, Wtxid};

use crate::types::TxReject;

/// What became of a package, or would become (Core `validation.h`, `PackageMempoolAcceptResult`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageOutcome {
    /// Why not all of them are in the mempool; `None` when they are.
    pub reject: Option<PackageReject>,
    /// One for each transaction, in their order.
    pub txs: Vec<PackageTx>,
    /// Work that it took besides scripts, in the unit of [`Engine::mempool_work`](crate::Engine::mempool_work).
    pub work: u64,
}

/// Why a package is rejected as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageReject {
    pub fault: PackageFault,
    /// Core's reject reason.
    pub reason: String,
    /// Evidence, possibly empty.
    pub debug: String,
}

impl PackageReject {
    pub(crate) fn new(fault: PackageFault, reason: &str, debug: impl Into<String>) -> Self {
        Self { fault, reason: reason.to_owned(), debug: debug.into() }
    }

    /// At least one transaction is rejected by itself.
    pub(crate) fn tx_failed() -> Self {
        Self::new(PackageFault::Tx, "transaction failed", "")
    }
}

/// Whose fault the rejection of a package is (Core `consensus/validation.h`, `PackageValidationResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageFault {
    /// That of the package as such.
    Policy,
    /// That of a transaction.
    Tx,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageTx {
    pub txid: Txid,
    pub wtxid: Wtxid,
    pub verdict: PackageVerdict,
}

/// What became of a transaction of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageVerdict {
    /// It has been admitted, or would be.
    Admitted(PackageFees),
    Known {
        /// Virtual size, with signature operations.
        vsize: u32,
        /// Fee in satoshi.
        fee_sat: i64,
    },
    /// The mempool holds the same with another witness, and keeps that one.
    OtherWitness(Wtxid),
    Rejected(TxReject),
    /// It has not been looked at to the end, since the package or another transaction of it was rejected before.
    NotValidated,
}

/// What an admitted transaction pays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageFees {
    /// Virtual size, with signature operations.
    pub vsize: u32,
    /// Fee in satoshi.
    pub fee_sat: i64,
    /// What counts by which it was admitted: satoshi, those of `prioritisetransaction` included, for virtual bytes.
    pub effective: (i64, u64),
    /// Whose fees and sizes those are.
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

/// The fee of so many virtual bytes at a fee rate in satoshi per 1,000: Core rounds up, Bitcoin Cash Node down
/// (`CFeeRate::GetFee`).
pub fn fee_at(sat_per_kvb: u64, vsize: u64, is_cash: bool) -> i64 {
    let millis = u128::from(sat_per_kvb) * u128::from(vsize);
    let fee = if is_cash { millis / 1000 } else { millis.div_ceil(1000) };
    i64::try_from(fee).unwrap_or(i64::MAX)
}
