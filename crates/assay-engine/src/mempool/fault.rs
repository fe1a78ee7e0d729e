//! Kinds of rejections, for the relay code.

use crate::types::TxFault;

impl TxFault {
    /// The kind of a reject reason: Core assigns one kind to each reason (`validation.cpp`, `MemPoolAccept`;
    /// `consensus/tx_verify.cpp`). A missing witness has the reason of its script and is detected elsewhere.
    pub(super) fn of_reason(reason: &str) -> Self {
        match reason {
            "mempool min fee not met"
            | "min relay fee not met"
            | "insufficient fee"
            | "insufficient fee (including sibling eviction)"
            | "replacement-failed"
            | "mempool full" => Self::Reconsiderable,
            "bad-txns-inputs-missingorspent" => Self::MissingInputs,
            "non-final"
            | "bad-txns-nonfinal"
            | "non-BIP68-final"
            | "bad-txns-premature-spend-of-coinbase" => Self::PrematureSpend,
            "txn-already-in-mempool"
            | "txn-same-nonwitness-data-in-mempool"
            | "txn-already-known"
            | "txn-mempool-conflict" => Self::Conflict,
            "bip125-replacement-disallowed"
            | "TRUC-violation"
            | "missing-ephemeral-spends"
            | "too many potential replacements"
            | "too many potential replacements (including sibling eviction)"
            | "too-large-cluster"
            | "max feerate exceeded"
            | "max-fee-exceeded" => Self::MempoolPolicy,
            "bad-witness-nonstandard" => Self::WitnessMutated,
            "bad-txns-nonstandard-inputs" => Self::InputsNotStandard,
            "version"
            | "tx-size"
            | "tx-size-small"
            | "scriptsig-size"
            | "scriptpubkey"
            | "scriptsig-not-pushonly"
            | "bare-multisig"
            | "datacarrier"
            | "oversize-op-return"
            | "multi-op-return"
            | "dust"
            | "bad-txns-too-many-sigops" => Self::NotStandard,
            _ if reason.starts_with("mempool-script-verify-flag-failed")
                || reason.starts_with("non-mandatory-script-verify-flag") =>
            {
                Self::NotStandard
            }
            "internal error" => Self::Unknown,
            _ => Self::Consensus,
        }
    }
}
