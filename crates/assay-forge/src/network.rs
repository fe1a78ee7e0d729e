//! The chains that the forge writes for: both are regression-test networks, where proof of work is trivial.

use serde::{Deserialize, Serialize};

/// A chain of the family, by the rules that a forged block has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Bitcoin Core's regtest: segregated witness and taproot active, blocks up to 4,000,000 weight units.
    #[serde(rename = "regtest")]
    Regtest,
    /// BCHN's regtest: FORKID signature hashes, canonical transaction order, large blocks.
    #[serde(rename = "bch-regtest")]
    BchRegtest,
}

impl Network {
    /// The name as recipes and ledgers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regtest => "regtest",
            Self::BchRegtest => "bch-regtest",
        }
    }

    /// The four bytes in front of every block of a block file (`diskMagic` in BCHN).
    pub fn magic(self) -> [u8; 4] {
        [0xfa, 0xbf, 0xb5, 0xda]
    }

    /// Hash of the genesis block in internal byte order; BCHN kept Bitcoin Core's.
    pub fn genesis_hash(self) -> [u8; 32] {
        [
            0x06, 0x22, 0x6e, 0x46, 0x11, 0x1a, 0x0b, 0x59, 0xca, 0xaf, 0x12, 0x60, 0x43, 0xeb,
            0x5b, 0xbf, 0x28, 0xc3, 0x4f, 0x3a, 0x5e, 0x33, 0x2a, 0x1f, 0xc7, 0xb2, 0xb7, 0x3c,
            0xf1, 0x88, 0x91, 0x0f,
        ]
    }

    /// Time of the genesis block, in seconds since 1970.
    pub fn genesis_time(self) -> u32 {
        1_296_688_602
    }

    /// Compact target of every block: no retargeting on regtest.
    pub fn bits(self) -> u32 {
        0x207f_ffff
    }

    /// Block subsidy in satoshi: 50 coins, halved every 150 blocks.
    pub fn subsidy(self, height: u32) -> u64 {
        5_000_000_000u64.checked_shr(height / HALVING_INTERVAL).unwrap_or(0)
    }

    /// True where transactions carry witnesses and blocks commit to them.
    pub(crate) fn segwit(self) -> bool {
        self == Self::Regtest
    }
}

/// Blocks between halvings of the subsidy on regtest.
pub(crate) const HALVING_INTERVAL: u32 = 150;
/// Confirmations before a coinbase may be spent (`COINBASE_MATURITY`).
pub(crate) const COINBASE_MATURITY: u32 = 100;
/// Bitcoin's limit on the weight of a block (BIP141).
pub(crate) const BLOCK_WEIGHT_MAX: u64 = 4_000_000;
/// Bitcoin's limit on the signature-operation cost of a block (BIP141).
pub(crate) const BLOCK_SIGOPS_COST_MAX: u64 = 80_000;
/// Below this an output of any standard script may be dust (3 sat per byte on P2PKH, the dearest).
pub(crate) const DUST: u64 = 546;
