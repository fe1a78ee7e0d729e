//! The data of each chain (Core `kernel/chainparams.cpp`, BCHN `chainparams.cpp`).

use assay_hash::Sha256;
use assay_wire::{BlockHash, Encoding, encode};

use super::{ActivationHeights, AddressParams, CashRules, ChainParams, PowParams, assume_utxo};
use crate::genesis::GenesisSpec;
use crate::hex;
use crate::script::Flags;
use crate::uint256::U256;
use crate::versionbits::Deployment;

pub(super) fn main() -> ChainParams {
    ChainParams {
        name: "main",
        rpc_name: "main",
        magic: MAIN_MAGIC,
        disk_magic: MAIN_MAGIC,
        p2p_port: 8333,
        rpc_port: 8332,
        datadir_subfolder: "",
        address: AddressParams {
            base58_pubkey_hash: 0,
            base58_script_hash: 5,
            human_readable: "bc",
        },
        encoding: Encoding::Segwit,
        genesis: classic_genesis(1_231_006_505, 2_083_236_893, 0x1d00_ffff),
        genesis_hash: hex::block_hash(
            "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
        ),
        subsidy_halving_interval: 210_000,
        pow: PUBLIC_POW,
        activation: ActivationHeights {
            bip34: 227_931,
            bip34_hash: Some(hex::block_hash(
                "000000000000024b89b42a942fe0d9fea3bb44ab7bd1b19115dd6a759c0808b8",
            )),
            bip65: 388_381,
            bip66: 363_725,
            csv: 419_328,
            segwit: 481_824,
            bip54: u32::MAX,
        },
        deployments: vec![TESTDUMMY],
        // The height at which taproot was active, plus one period.
        unknown_rules_from: Some(711_648),
        script_flag_exceptions: vec![
            // One block of 2012 spends a P2SH output against BIP16.
            (
                hex::block_hash("00000000000002dc756eebf4f49723ed8d30cc28a5f108eb94b1ba88ac4f9c22"),
                Flags::NONE,
            ),
            // One block from before taproot locked in spends a version 1 output against BIP341.
            (
                hex::block_hash("0000000000000000000f14c35b2d841e986ab5441de8c585d5ffe55ea1e395ad"),
                Flags::P2SH | Flags::WITNESS,
            ),
        ],
        signet_challenge: None,
        cash: None,
        minimum_chain_work: U256::from_hex(
            "0000000000000000000000000000000000000001128750f82f4c366153a3a030",
        ),
        assume_valid: hex::block_hash(
            "00000000000000000000ccebd6d74d9194d8dcdc1d177c478e094bfad51ba5ac",
        ),
        assume_utxo: assume_utxo::main(),
    }
}

pub(super) fn testnet3() -> ChainParams {
    ChainParams {
        name: "test",
        rpc_name: "test",
        magic: TESTNET3_MAGIC,
        disk_magic: TESTNET3_MAGIC,
        p2p_port: 18333,
        rpc_port: 18332,
        datadir_subfolder: "testnet3",
        address: TEST_ADDRESSES,
        genesis: classic_genesis(1_296_688_602, 414_098_458, 0x1d00_ffff),
        genesis_hash: hex::block_hash(
            "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943",
        ),
        pow: PowParams { allow_min_difficulty: true, ..PUBLIC_POW },
        activation: ActivationHeights {
            bip34: 21_111,
            bip34_hash: Some(hex::block_hash(
                "0000000023b3a96d3484e5abb3755c413e7d41500f8e2a5c3f0dd01299cd8ef8",
            )),
            bip65: 581_885,
            bip66: 330_776,
            csv: 770_112,
            segwit: 834_624,
            bip54: u32::MAX,
        },
        deployments: vec![Deployment { threshold: 1512, ..TESTDUMMY }],
        unknown_rules_from: Some(2_013_984),
        script_flag_exceptions: vec![(
            hex::block_hash("00000000dd30457c001f4095d208cc1296b0eed002427aa599874af7a432b105"),
            Flags::NONE,
        )],
        minimum_chain_work: U256::from_hex(
            "0000000000000000000000000000000000000000000017dde1c649f3708d14b6",
        ),
        assume_valid: hex::block_hash(
            "000000007a61e4230b28ac5cb6b5e5a0130de37ac1faf2f8987d2fa6505b67f4",
        ),
        assume_utxo: assume_utxo::testnet3(),
        ..main()
    }
}

pub(super) fn testnet4() -> ChainParams {
    ChainParams {
        name: "testnet4",
        rpc_name: "testnet4",
        magic: TESTNET4_MAGIC,
        disk_magic: TESTNET4_MAGIC,
        p2p_port: 48333,
        rpc_port: 48332,
        datadir_subfolder: "testnet4",
        address: TEST_ADDRESSES,
        genesis: GenesisSpec {
            message: TESTNET4_MESSAGE,
            pubkey: &[0; 33],
            time: 1_714_777_860,
            nonce: 393_743_547,
            bits: 0x1d00_ffff,
        },
        genesis_hash: hex::block_hash(
            "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043",
        ),
        pow: PowParams { allow_min_difficulty: true, enforce_bip94: true, ..PUBLIC_POW },
        activation: ALL_FROM_BLOCK_1,
        deployments: vec![Deployment { threshold: 1512, ..TESTDUMMY }],
        unknown_rules_from: Some(0),
        script_flag_exceptions: Vec::new(),
        minimum_chain_work: U256::from_hex(
            "0000000000000000000000000000000000000000000009a0fe15d0177d086304",
        ),
        assume_valid: hex::block_hash(
            "0000000002368b1e4ee27e2e85676ae6f9f9e69579b29093e9a82c170bf7cf8a",
        ),
        assume_utxo: assume_utxo::testnet4(),
        ..main()
    }
}

pub(super) fn signet() -> ChainParams {
    ChainParams {
        minimum_chain_work: U256::from_hex(
            "00000000000000000000000000000000000000000000000000000b463ea0a4b8",
        ),
        assume_valid: hex::block_hash(
            "00000008414aab61092ef93f1aacc54cf9e9f16af29ddad493b908a01ff5c329",
        ),
        assume_utxo: assume_utxo::signet(),
        ..custom_signet(SIGNET_CHALLENGE.to_vec())
    }
}

pub(super) fn custom_signet(challenge: Vec<u8>) -> ChainParams {
    let magic = signet_magic(&challenge);
    ChainParams {
        name: "signet",
        rpc_name: "signet",
        magic,
        disk_magic: magic,
        p2p_port: 38333,
        rpc_port: 38332,
        datadir_subfolder: "signet",
        address: TEST_ADDRESSES,
        genesis: classic_genesis(1_598_918_400, 52_613_770, 0x1e03_77ae),
        genesis_hash: hex::block_hash(
            "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6",
        ),
        pow: PowParams { limit: SIGNET_LIMIT, ..PUBLIC_POW },
        activation: ALL_FROM_BLOCK_1,
        unknown_rules_from: Some(0),
        script_flag_exceptions: Vec::new(),
        signet_challenge: Some(challenge),
        minimum_chain_work: U256::ZERO,
        assume_valid: BlockHash::ZERO,
        assume_utxo: Vec::new(),
        ..main()
    }
}

pub(super) fn regtest() -> ChainParams {
    ChainParams {
        name: "regtest",
        rpc_name: "regtest",
        magic: REGTEST_MAGIC,
        disk_magic: REGTEST_MAGIC,
        p2p_port: 18444,
        rpc_port: 18443,
        datadir_subfolder: "regtest",
        address: AddressParams { human_readable: "bcrt", ..TEST_ADDRESSES },
        genesis: classic_genesis(1_296_688_602, 2, 0x207f_ffff),
        genesis_hash: hex::block_hash(
            "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
        ),
        subsidy_halving_interval: 150,
        pow: PowParams {
            limit: REGTEST_LIMIT,
            target_timespan_s: 24 * 60 * 60,
            allow_min_difficulty: true,
            no_retargeting: true,
            ..PUBLIC_POW
        },
        activation: ActivationHeights { segwit: 0, ..ALL_FROM_BLOCK_1 },
        deployments: vec![Deployment {
            start_time: Some(0),
            threshold: 108,
            period: 144,
            ..TESTDUMMY
        }],
        unknown_rules_from: Some(0),
        script_flag_exceptions: Vec::new(),
        minimum_chain_work: U256::ZERO,
        assume_valid: BlockHash::ZERO,
        assume_utxo: assume_utxo::regtest(),
        ..main()
    }
}

/// BCHN's regtest. Its old soft forks activate where its own tests expect them.
pub(super) fn bch_regtest() -> ChainParams {
    ChainParams {
        name: "bch-regtest",
        assume_utxo: Vec::new(),
        magic: [0xda, 0xb5, 0xbf, 0xfa],
        address: AddressParams { human_readable: "bchreg", ..TEST_ADDRESSES },
        encoding: Encoding::Legacy,
        pow: PowParams {
            limit: REGTEST_LIMIT,
            allow_min_difficulty: true,
            no_retargeting: true,
            ..PUBLIC_POW
        },
        activation: ActivationHeights {
            bip34: 100_000_000,
            bip34_hash: None,
            bip65: 1351,
            bip66: 1251,
            csv: 576,
            segwit: u32::MAX,
            bip54: u32::MAX,
        },
        deployments: Vec::new(),
        unknown_rules_from: None,
        cash: Some(CashRules {
            block_bytes_max: 256_000_000,
            tx_bytes_min: 100,
            tx_sigchecks_max: 3000,
        }),
        ..regtest()
    }
}

fn classic_genesis(time: u32, nonce: u32, bits: u32) -> GenesisSpec {
    GenesisSpec { message: CLASSIC_MESSAGE, pubkey: &CLASSIC_PUBKEY, time, nonce, bits }
}

/// The start of the hash of the serialised challenge (BIP325).
fn signet_magic(challenge: &[u8]) -> [u8; 4] {
    let mut length = Vec::new();
    encode::compact_size(&mut length, challenge.len() as u64);
    let mut hasher = Sha256::new();
    hasher.update(&length);
    hasher.update(challenge);
    let hash = hasher.finalize_double();
    [hash[0], hash[1], hash[2], hash[3]]
}

const MAIN_MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];
const TESTNET3_MAGIC: [u8; 4] = [0x0b, 0x11, 0x09, 0x07];
const TESTNET4_MAGIC: [u8; 4] = [0x1c, 0x16, 0x3f, 0x28];
const REGTEST_MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

const PUBLIC_POW: PowParams = PowParams {
    limit: U256::from_hex("00000000ffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
    target_spacing_s: 10 * 60,
    target_timespan_s: 14 * 24 * 60 * 60,
    allow_min_difficulty: false,
    no_retargeting: false,
    enforce_bip94: false,
};

const SIGNET_LIMIT: U256 =
    U256::from_hex("00000377ae000000000000000000000000000000000000000000000000000000");
const REGTEST_LIMIT: U256 =
    U256::from_hex("7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff");

const ALL_FROM_BLOCK_1: ActivationHeights = ActivationHeights {
    bip34: 1,
    bip34_hash: None,
    bip65: 1,
    bip66: 1,
    csv: 1,
    segwit: 1,
    bip54: u32::MAX,
};

/// The deployment that tests signal for; nothing depends on it, and on public chains it never starts.
const TESTDUMMY: Deployment = Deployment {
    name: "testdummy",
    bit: 28,
    start_time: None,
    timeout: None,
    min_activation_height: 0,
    period: 2016,
    threshold: 1815,
    is_optional: true,
};

const TEST_ADDRESSES: AddressParams =
    AddressParams { base58_pubkey_hash: 111, base58_script_hash: 196, human_readable: "tb" };

const CLASSIC_MESSAGE: &str =
    "The Times 03/Jan/2009 Chancellor on brink of second bailout for banks";
const CLASSIC_PUBKEY: [u8; 65] = hex::bytes(
    "04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb6\
     49f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5f",
);
const TESTNET4_MESSAGE: &str =
    "03/May/2024 000000000000000000001ebd58c244970b3aa9d783bb001011fbe8ea8e98e00e";

/// 1 of 2 keys.
const SIGNET_CHALLENGE: [u8; 71] = hex::bytes(
    "512103ad5e0edad18cb1f0fc0d28a3d4f1f3e445640337489abb10404f2d1e086be43\
     0210359ef5021964fe22d6f8e05b2463c9540ce96883fe3b278760f048f5189f2e6c452ae",
);
