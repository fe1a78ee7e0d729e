//! The differences between chains, as plain data.
//!
//! Every difference between the chains of the family is a field here; no rule asks for a chain's
//! name. Fields are public so that a test network can be altered before use.

mod assume_utxo;
mod networks;

use assay_wire::{BlockHash, Encoding};

use crate::genesis::GenesisSpec;
use crate::script::Flags;
use crate::uint256::U256;
use crate::versionbits::Deployment;
pub use assume_utxo::AssumeUtxo;

#[derive(Clone, Debug)]
pub struct ChainParams {
    /// The name [`ChainParams::by_name`] knows it by.
    pub name: &'static str,
    /// The value that `getblockchaininfo` prints as `chain`.
    pub rpc_name: &'static str,
    /// First four bytes of every P2P message.
    pub magic: [u8; 4],
    /// First four bytes of every record in a block file; differs from `magic` on Bitcoin Cash.
    pub disk_magic: [u8; 4],
    /// Default P2P port.
    pub p2p_port: u16,
    /// Default RPC port.
    pub rpc_port: u16,
    /// Folder below the data directory, empty for the main network.
    pub datadir_subfolder: &'static str,
    pub address: AddressParams,
    pub encoding: Encoding,
    pub genesis: GenesisSpec,
    pub genesis_hash: BlockHash,
    /// Blocks between two halvings of the subsidy.
    pub subsidy_halving_interval: u32,
    pub pow: PowParams,
    pub activation: ActivationHeights,
    /// Deployments that miners signal by bits of the version (BIP9).
    pub deployments: Vec<Deployment>,
    /// Height from which on signals of deployments that are not known are counted; `None` for never.
    pub unknown_rules_from: Option<u32>,
    /// Blocks that break the script rules of their height, with the flags they were valid under.
    pub script_flag_exceptions: Vec<(BlockHash, Flags)>,
    /// The script that must be satisfied by every block (BIP325); signet only.
    pub signet_challenge: Option<Vec<u8>>,
    /// The rules of Bitcoin Cash; `None` on Bitcoin.
    pub cash: Option<CashRules>,
    /// Work below which a chain is not taken for the real one.
    pub minimum_chain_work: U256,
    /// A block whose ancestors Core takes to have valid scripts; zero when there is none.
    pub assume_valid: BlockHash,
    /// The UTXO sets that may be loaded from a file, lowest first (Core's `m_assumeutxo_data`).
    pub assume_utxo: Vec<AssumeUtxo>,
}

/// Prefixes of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressParams {
    /// Version byte of a P2PKH address in base 58.
    pub base58_pubkey_hash: u8,
    /// Version byte of a P2SH address in base 58.
    pub base58_script_hash: u8,
    /// Human-readable part: of bech32 addresses (BIP173) on Bitcoin, of cash addresses on Bitcoin Cash.
    pub human_readable: &'static str,
}

/// Proof-of-work parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowParams {
    /// The easiest target.
    pub limit: U256,
    /// Intended time between blocks, seconds.
    pub target_spacing_s: u32,
    /// Intended length of a retarget period, seconds.
    pub target_timespan_s: u32,
    /// A block more than two spacings after its parent may have the easiest target.
    pub allow_min_difficulty: bool,
    pub no_retargeting: bool,
    /// Testnet4's rules against time warps and block storms (BIP94).
    pub enforce_bip94: bool,
}

impl PowParams {
    /// Blocks in a retarget period.
    pub const fn retarget_interval(&self) -> u32 {
        self.target_timespan_s / self.target_spacing_s
    }
}

/// First heights at which buried soft forks apply (BIP90); `u32::MAX` for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivationHeights {
    /// Coinbases begin with their height (BIP34).
    pub bip34: u32,
    /// The block at that height on the real chain, where BIP34 makes the BIP30 search needless.
    pub bip34_hash: Option<BlockHash>,
    /// `OP_CHECKLOCKTIMEVERIFY` (BIP65).
    pub bip65: u32,
    /// Strict DER signatures (BIP66).
    pub bip66: u32,
    /// Relative lock times and median time past (BIP68, BIP112, BIP113).
    pub csv: u32,
    /// Witness commitments and null dummies (BIP141, BIP147).
    pub segwit: u32,
    /// The proposed consensus cleanup (BIP54), in force on no network.
    pub bip54: u32,
}

/// The rules that Bitcoin Cash adds or replaces. The upgrades up to May 2022 are in force from the first
/// block, as on BCHN's regtest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CashRules {
    /// Largest serialised block, bytes. A plain limit: BCHN's adjustable algorithm starts from it
    /// and never goes below it.
    pub block_bytes_max: u64,
    /// Smallest serialised transaction, bytes (November 2018).
    pub tx_bytes_min: usize,
    /// Executed signature checks allowed in one transaction.
    pub tx_sigchecks_max: u32,
}

impl CashRules {
    /// Executed signature checks allowed in one block (BCHN `consensus/consensus.h`).
    pub const fn block_sigchecks_max(&self) -> u64 {
        self.block_bytes_max / 141
    }
}

impl ChainParams {
    /// The chains [`ChainParams::by_name`] knows.
    pub const NAMES: [&'static str; 6] =
        ["main", "test", "testnet4", "signet", "regtest", "bch-regtest"];

    /// The parameters of the chain called `name`: one of [`ChainParams::NAMES`], which are those of
    /// Bitcoin Core, or `mainnet` or `testnet3`, by which everybody else knows two of them.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "main" | "mainnet" => networks::main(),
            "test" | "testnet3" => networks::testnet3(),
            "testnet4" => networks::testnet4(),
            "signet" => networks::signet(),
            "regtest" => networks::regtest(),
            "bch-regtest" => networks::bch_regtest(),
            _ => return None,
        })
    }

    /// A signet with its own challenge, and the magic that follows from it (BIP325).
    pub fn custom_signet(challenge: Vec<u8>) -> Self {
        networks::custom_signet(challenge)
    }

    /// The same chain with another block size limit. No effect where weight is what counts.
    #[must_use]
    pub fn with_block_bytes_max(mut self, bytes: u64) -> Self {
        if let Some(cash) = &mut self.cash {
            cash.block_bytes_max = bytes;
        }
        self
    }

    /// The same chain with a soft fork at another height, as Core's `-testactivationheight` has it
    /// on its regression-test chain; `None` when `deployment` is none of `bip34`, `cltv`, `csv`,
    /// `dersig`, `segwit` and, which Core does not know, `bip54`.
    #[must_use]
    pub fn with_activation_height(mut self, deployment: &str, height: u32) -> Option<Self> {
        let heights = &mut self.activation;
        *match deployment {
            "bip34" => &mut heights.bip34,
            "cltv" => &mut heights.bip65,
            "csv" => &mut heights.csv,
            "dersig" => &mut heights.bip66,
            "segwit" => &mut heights.segwit,
            "bip54" => &mut heights.bip54,
            _ => return None,
        } = height;
        Some(self)
    }

    /// The serialised first block.
    pub fn genesis_block(&self) -> Vec<u8> {
        self.genesis.block()
    }

    /// Returns `true` if blocks commit to witnesses at `height`.
    pub fn segwit_active(&self, height: u32) -> bool {
        height >= self.activation.segwit
    }

    /// Returns `true` if relative lock times and median time past apply at `height`.
    pub fn csv_active(&self, height: u32) -> bool {
        height >= self.activation.csv
    }

    /// Returns `true` if the consensus cleanup applies at `height` (BIP54).
    pub fn bip54_active(&self, height: u32) -> bool {
        height >= self.activation.bip54
    }

    /// The largest serialised block that can be valid. A reader may reject larger ones unread.
    pub fn block_bytes_max(&self) -> u64 {
        self.cash.map_or(MAX_BLOCK_WEIGHT, |cash| cash.block_bytes_max)
    }

    /// Virtual bytes of transactions that a block can hold; plain bytes where there are no witnesses.
    pub fn block_vsize_max(&self) -> u64 {
        self.cash.map_or(MAX_BLOCK_WEIGHT / WITNESS_SCALE_FACTOR, |cash| cash.block_bytes_max)
    }

    /// The script flags of the block with `hash` at `height`
    /// (Core `validation.cpp` and BCHN `validation.cpp`, functions of nearly this name).
    pub fn block_script_flags(&self, height: u32, hash: &BlockHash) -> Flags {
        let exception = self.script_flag_exceptions.iter().find(|(block, _)| block == hash);
        let mut flags = match (exception, &self.cash) {
            (Some((_, flags)), _) => *flags,
            (None, None) => Flags::P2SH | Flags::WITNESS | Flags::TAPROOT,
            (None, Some(_)) => CASH_FLAGS,
        };
        let heights = &self.activation;
        for (from, flag) in [
            (heights.bip66, Flags::DERSIG),
            (heights.bip65, Flags::CHECKLOCKTIMEVERIFY),
            (heights.csv, Flags::CHECKSEQUENCEVERIFY),
            (heights.segwit, Flags::NULLDUMMY),
        ] {
            if height >= from {
                flags |= flag;
            }
        }
        flags
    }
}

/// Networks of Bitcoin Cash. Their blocks obey upgrades from May 2023 on, which are not here.
const CASH_NETWORKS: [&str; 12] = [
    "bch",
    "bch-main",
    "bch-mainnet",
    "bch-test",
    "bch-testnet",
    "bch-testnet3",
    "bch-testnet4",
    "bch-scalenet",
    "bch-chipnet",
    "scalenet",
    "chipnet",
    "bitcoincash",
];

/// The error text for a chain name that is not known: a sentence without a full stop.
pub fn unknown_chain(name: &str) -> String {
    let known = ChainParams::NAMES.join(", ");
    if CASH_NETWORKS.contains(&name) {
        return format!(
            "chain {name:?} needs Bitcoin Cash's upgrades from May 2023 on, which are not implemented; known are {known}"
        );
    }
    format!("unknown chain {name:?}; known are {known}")
}

/// The flags that Bitcoin Cash has in force since May 2022, less the soft forks that came with a height.
const CASH_FLAGS: Flags = Flags::BCH_MAY_2022
    .without(Flags::DERSIG)
    .without(Flags::CHECKLOCKTIMEVERIFY)
    .without(Flags::CHECKSEQUENCEVERIFY);

/// Largest weight of a block (BIP141).
pub const MAX_BLOCK_WEIGHT: u64 = 4_000_000;

/// Largest signature-operation cost of a block (BIP141).
pub const MAX_BLOCK_SIGOPS_COST: u64 = 80_000;

/// The weight of one byte outside the witness.
pub const WITNESS_SCALE_FACTOR: u64 = 4;

/// Largest transaction without witnesses, bytes: a quarter of [`MAX_BLOCK_WEIGHT`], and by
/// coincidence of history also the limit of Bitcoin Cash.
pub const MAX_TX_BYTES: usize = 1_000_000;

/// Blocks on top of a coinbase before it can be spent.
pub const COINBASE_MATURITY: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::check_header;

    #[test]
    fn every_genesis_block_has_its_hash_and_work() {
        for name in ChainParams::NAMES {
            let params = ChainParams::by_name(name).expect("a listed name is known");
            assert_eq!(params.name, name);
            let block = assay_wire::Block::parse(params.genesis_block(), params.encoding)
                .expect("a genesis block parses");
            assert_eq!(block.hash(), params.genesis_hash, "{name}");
            assert_eq!(block.header().merkle_root, block.tx(0).txid().0, "{name}");
            assert_eq!(check_header(&params, block.header(), &params.genesis_hash), Ok(()));
        }
        for (usual, name) in [("mainnet", "main"), ("testnet3", "test")] {
            assert_eq!(ChainParams::by_name(usual).expect("a usual name").name, name);
        }
        assert!(ChainParams::by_name("testnet").is_none(), "there are two");
    }

    #[test]
    fn networks_with_later_rules_are_named_as_such() {
        for name in CASH_NETWORKS {
            assert!(ChainParams::by_name(name).is_none());
            assert!(unknown_chain(name).contains("from May 2023 on, which are not implemented"));
        }
        assert!(unknown_chain("dogecoin").starts_with("unknown chain \"dogecoin\""));
    }

    #[test]
    fn the_classic_genesis_coinbase() {
        let block = ChainParams::by_name("main").expect("main is known").genesis_block();
        assert_eq!(block.len(), 285);
        let params = ChainParams::by_name("testnet4").expect("testnet4 is known");
        let root = crate::hex::reversed_32(
            "7aa0a7ae1e223414cb807e40cd57e667b718e42aaf9306db9102fe28912b7b4e",
        );
        let block = assay_wire::Block::parse(params.genesis_block(), params.encoding)
            .expect("a genesis block parses");
        assert_eq!(block.header().merkle_root, root);
    }

    #[test]
    fn signet_magic_follows_from_the_challenge() {
        let params = ChainParams::by_name("signet").expect("signet is known");
        assert_eq!(params.magic, [0x0a, 0x03, 0xcf, 0x40]);
        let trivial = ChainParams::custom_signet(vec![0x51]);
        assert_ne!(trivial.magic, params.magic);
        assert_eq!(trivial.genesis_hash, params.genesis_hash);
    }

    #[test]
    fn flags_follow_heights_and_exceptions() {
        let main = ChainParams::by_name("main").expect("main is known");
        let other = BlockHash([1; 32]);
        let early = Flags::P2SH | Flags::WITNESS | Flags::TAPROOT;
        assert_eq!(main.block_script_flags(1, &other), early);
        assert_eq!(main.block_script_flags(363_724, &other), early);
        assert_eq!(main.block_script_flags(363_725, &other), early | Flags::DERSIG);
        let all = early
            | Flags::DERSIG
            | Flags::CHECKLOCKTIMEVERIFY
            | Flags::CHECKSEQUENCEVERIFY
            | Flags::NULLDUMMY;
        assert_eq!(main.block_script_flags(900_000, &other), all);
        let bip16 = main.script_flag_exceptions[0].0;
        assert_eq!(main.block_script_flags(170_060, &bip16), Flags::NONE);
        let taproot = main.script_flag_exceptions[1].0;
        assert!(!main.block_script_flags(692_261, &taproot).contains(Flags::TAPROOT));
        assert!(main.block_script_flags(692_261, &taproot).contains(Flags::NULLDUMMY));
    }

    #[test]
    fn soft_forks_can_be_moved() {
        let regtest = || ChainParams::by_name("regtest").expect("regtest is known");
        let moved = |name: &str| regtest().with_activation_height(name, 432).map(|p| p.activation);
        let before = regtest().activation;
        assert_eq!(moved("bip34"), Some(ActivationHeights { bip34: 432, ..before }));
        assert_eq!(moved("dersig"), Some(ActivationHeights { bip66: 432, ..before }));
        assert_eq!(moved("cltv"), Some(ActivationHeights { bip65: 432, ..before }));
        assert_eq!(moved("csv"), Some(ActivationHeights { csv: 432, ..before }));
        assert_eq!(moved("segwit"), Some(ActivationHeights { segwit: 432, ..before }));
        assert_eq!(moved("bip54"), Some(ActivationHeights { bip54: 432, ..before }));
        assert_eq!(moved("taproot"), None, "not buried in this way");
        let late = regtest().with_activation_height("csv", 432).expect("csv can be moved");
        assert!(!late.csv_active(431) && late.csv_active(432));
        let flags = |height| late.block_script_flags(height, &BlockHash::ZERO);
        assert!(!flags(431).contains(Flags::CHECKSEQUENCEVERIFY));
        assert!(flags(432).contains(Flags::CHECKSEQUENCEVERIFY));
    }

    #[test]
    fn cash_regtest_limits() {
        let cash = ChainParams::by_name("bch-regtest").expect("bch-regtest is known");
        let rules = cash.cash.expect("bch-regtest has cash rules");
        assert_eq!(rules.block_bytes_max, 256_000_000);
        assert_eq!(rules.block_sigchecks_max(), 1_815_602);
        assert_eq!(cash.block_bytes_max(), 256_000_000);
        let flags = cash.block_script_flags(1, &BlockHash::ZERO);
        assert!(flags.contains(Flags::SIGHASH_FORKID) && flags.contains(Flags::ENFORCE_SIGCHECKS));
        assert!(!flags.contains(Flags::WITNESS) && !flags.contains(Flags::NULLDUMMY));
        assert!(!flags.contains(Flags::CHECKSEQUENCEVERIFY));
        assert_eq!(cash.block_script_flags(1351, &BlockHash::ZERO), Flags::BCH_MAY_2022);
        assert_eq!(cash.with_block_bytes_max(141).block_bytes_max(), 141);
    }
}
