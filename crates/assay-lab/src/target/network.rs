//! How programs name the chains, on their command lines and in their data folders.

/// A chain as programs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    /// As plans and ledgers name it.
    name: &'static str,
    /// Option of the Bitcoin Core family; none for the main chain.
    pub(super) core_option: Option<&'static str>,
    /// Folder inside the data folder of the Bitcoin Core family and of our node; empty for the main chain.
    pub(super) folder: &'static str,
    /// Option of btcd, and the folder of its logs; `None` where it does not know the chain.
    pub(super) btcd: Option<(Option<&'static str>, &'static str)>,
}

impl Network {
    /// The chain of this name. One that is unknown is taken for regtest, which forged chains are.
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

/// Folder of a chain inside the data folder of a node.
pub(crate) fn folder_of(chain: &str) -> &'static str {
    Network::of(chain).folder
}

pub(super) fn is_bitcoin(chain: &str) -> bool {
    ALL.iter().any(|network| network.name == chain)
}
