//! Networks of forged chains, regression-test networks with trivial proof of work, and the amounts and sizes common to all.

use std::sync::LazyLock;

use assay_consensus::{params::ChainParams, subsidy::block_subsidy};
use serde::{Deserialize, Serialize};

/// Below this an output of any standard script may be dust (3 sat per byte on P2PKH, the most expensive).
pub(crate) const DUST: u64 = 546;
/// Fee per output of the published split.
pub(crate) const SPLIT_FEE: u64 = 250;
/// Amount left in the last change of a short chain: enough for a later phase to split a few times.
pub(crate) const CHAIN_REST: u64 = 20_000;
/// Upper bound of the weight of header, transaction count and coinbase.
pub(crate) const BLOCK_OVERHEAD_WEIGHT: u64 = 4 * (80 + 9 + 200);

/// Network whose rules a forged chain follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Bitcoin Core's regtest: segwit and taproot active, blocks up to 4,000,000 weight units.
    #[serde(rename = "regtest")]
    Regtest,
    /// BCHN's regtest: FORKID signature hashes, canonical transaction order, large blocks.
    #[serde(rename = "bch-regtest")]
    BchRegtest,
}

impl Network {
    pub fn name(self) -> &'static str {
        match self {
            Self::Regtest => "regtest",
            Self::BchRegtest => "bch-regtest",
        }
    }

    pub(crate) fn params(self) -> &'static ChainParams {
        static PARAMS: LazyLock<[ChainParams; 2]> = LazyLock::new(|| {
            [Network::Regtest, Network::BchRegtest].map(|network| {
                ChainParams::by_name(network.name()).expect("both chains have parameters")
            })
        });
        &PARAMS[self as usize]
    }

    /// In satoshi.
    pub(crate) fn subsidy(self, height: u32) -> u64 {
        block_subsidy(self.params(), height) as u64
    }

    /// True if transactions have witnesses and blocks commit to them.
    pub(crate) fn segwit(self) -> bool {
        self == Self::Regtest
    }
}
