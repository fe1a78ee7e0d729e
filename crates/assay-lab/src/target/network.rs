//! Names of chains on the programs' command lines and in their data folders.

/// Names of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    /// Name in plans and ledgers.
    name: &'static str,
    /// Option of the Bitcoin Core family; `None` for mainnet.
    pub(super) core_option: Option<&'static str>,
    /// Folder in the data folder of the Bitcoin Core family and of Assay's node; empty for mainnet.
    pub(super) folder: &'static str,
    /// Option of btcd, and its log folder; `None` for unsupported chains.
    pub(super) btcd: Option<(Option<&'static str>, &'static str)>,
}

impl Network {
    /// The chain of this name. Unknown names map to regtest, the base of forged chains.
    pub(super) fn of(chain: &str) -> &'static Self {
        ALL.iter().find(|network| network.name == chain).unwrap_or(&ALL[0])
    }
}

/// Bitcoin Core `chainparamsbase.cpp`, btcd `params.go`; regtest first.
const ALL: [Network; 5] = [
    Network {
        name: "regtest",
        core_option: Some("-regtest"),
        folder: "regtest",
        btcd: Some((Some("--regtest"), "regtest")),
    },
    Network { name: "main", core_option: None, folder: "", btcd: Some((None, "mainnet")) },
    Network {
        name: "test",
        core_option: Some("-testnet"),
        folder: "testnet3",
        btcd: Some((Some("--testnet"), "testnet")),
    },
    Network { name: "testnet4", core_option: Some("-testnet4"), folder: "testnet4", btcd: None },
    Network {
        name: "signet",
        core_option: Some("-signet"),
        folder: "signet",
        btcd: Some((Some("--signet"), "signet")),
    },
];

/// Folder of a chain in a node's data folder.
pub(crate) fn folder_of(chain: &str) -> &'static str {
    Network::of(chain).folder
}

pub(super) fn is_bitcoin(chain: &str) -> bool {
    ALL.iter().any(|network| network.name == chain)
}
