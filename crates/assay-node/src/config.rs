//! Node configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_electrum::index::{IndexConfig, Scope};

use crate::http::{Limits, RpcAuth, Subnet, Whitelist};
use crate::log::LogConfig;
use crate::p2p::P2pConfig;
use crate::zmq::Publication;

#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Chain, validation and mempool; the node sets the folders and the followers.
    pub engine: assay_engine::Config,
    /// Data directory. Chains other than mainnet use subfolders named as in Bitcoin Core.
    pub datadir: PathBuf,
    pub rpc: RpcConfig,
    /// Parent of the chain's folder of block files; `None` for the data directory.
    pub blocks_base: Option<PathBuf>,
    pub load_blocks: Vec<PathBuf>,
    pub stop_at_height: Option<u32>,
    pub notify: Notify,
    /// Script index; `None` for none.
    pub index: Option<IndexOptions>,
    /// Look up confirmed transactions by txid (Core's `-txindex`): in the script index if enabled, else in a separate index.
    pub tx_index: bool,
    /// Keep basic block filters (Core's `-blockfilterindex`).
    pub filter_index: bool,
    /// ZeroMQ publications (Core's `-zmqpub…`); empty for no sockets.
    pub zmq: Vec<Publication>,
    /// Address of the Prometheus endpoint, on loopback; `None` for none.
    pub metrics: Option<SocketAddr>,
    /// P2P network; `None` to run without peers.
    pub p2p: Option<P2pConfig>,
    /// Log settings; `None` leaves events to subscribers in this process.
    pub log: Option<LogConfig>,
    /// PID file, relative to the chain's folder.
    pub pid_file: PathBuf,
    pub handle_signals: bool,
}

#[derive(Debug, Clone, Default)]
pub struct IndexOptions {
    /// Memory for rows before they are written, bytes; `None` for the index's default.
    pub memory_bytes_max: Option<usize>,
    pub server: Option<assay_electrum::server::Config>,
}

/// Shell commands to run on events, `None` for none (Core's `-startupnotify` and related options).
#[derive(Debug, Clone, Default)]
pub struct Notify {
    pub startup: Option<String>,
    /// Run at shutdown; the node waits for them to exit.
    pub shutdown: Vec<String>,
    /// Run on a new tip, with its hash in place of `%s`; not during IBD.
    pub block: Option<String>,
    /// Run on a new warning, with the quoted warning in place of `%s`.
    pub alert: Option<String>,
}

#[derive(Debug, Clone)]
pub struct RpcConfig {
    /// Listening addresses; empty for no server. Addresses other than loopback require [`RpcConfig::allow`].
    pub bind: Vec<SocketAddr>,
    /// Subnets that may connect in addition to loopback.
    pub allow: Vec<Subnet>,
    /// User name and plaintext password. They disable the cookie, as in Bitcoin Core.
    pub password: Option<(String, String)>,
    pub auth: Vec<RpcAuth>,
    /// Unparsed `rpcauth` entries, checked when the server starts.
    pub auth_texts: Vec<String>,
    /// Cookie file, relative to the chain's folder; `None` for no cookie.
    pub cookie_file: Option<PathBuf>,
    pub cookie_mode: u32,
    pub whitelist: Whitelist,
    /// Result fields to return in an older form (Core's `-deprecatedrpc`).
    pub deprecated: Vec<String>,
    /// Answer REST requests on the same server, without credentials (Core's `-rest`).
    pub rest: bool,
    pub limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", assay_consensus::params::unknown_chain(name))]
pub struct UnknownChain {
    pub name: String,
}

impl NodeConfig {
    /// Default configuration for `chain`, with its data below `datadir`.
    ///
    /// # Errors
    /// Unknown chain.
    pub fn new(chain: &str, datadir: impl Into<PathBuf>) -> Result<Self, UnknownChain> {
        let params = ChainParams::by_name(chain);
        let params = params.ok_or_else(|| UnknownChain { name: chain.to_owned() })?;
        let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, params.rpc_port));
        Ok(Self {
            engine: assay_engine::Config::new(PathBuf::new(), Arc::new(params)),
            datadir: datadir.into(),
            rpc: RpcConfig {
                bind: vec![bind],
                allow: Vec::new(),
                password: None,
                auth: Vec::new(),
                auth_texts: Vec::new(),
                cookie_file: Some(PathBuf::from(COOKIE_FILE)),
                cookie_mode: 0o600,
                whitelist: Whitelist::default(),
                deprecated: Vec::new(),
                rest: false,
                limits: Limits::default(),
            },
            load_blocks: Vec::new(),
            stop_at_height: None,
            notify: Notify::default(),
            blocks_base: None,
            index: None,
            tx_index: false,
            filter_index: false,
            zmq: Vec::new(),
            metrics: None,
            p2p: None,
            log: Some(LogConfig::default()),
            pid_file: PathBuf::from(PID_FILE),
            handle_signals: true,
        })
    }

    /// Folder of the chain, with blocks, coins, log, cookie and lock.
    pub fn chain_dir(&self) -> PathBuf {
        self.datadir.join(self.engine.params.datadir_subfolder)
    }

    pub fn blocks_dir(&self) -> PathBuf {
        let base = self.blocks_base.as_ref().unwrap_or(&self.datadir);
        base.join(self.engine.params.datadir_subfolder).join("blocks")
    }

    /// User agent of the node; also reported when P2P is off.
    pub(crate) fn user_agent(&self) -> String {
        let of_nobody = || P2pConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        self.p2p.clone().unwrap_or_else(of_nobody).user_agent(&self.engine.params)
    }

    pub fn engine_config(&self) -> assay_engine::Config {
        assay_engine::Config {
            datadir: self.chain_dir(),
            blocks_dir: self.blocks_base.is_some().then(|| self.blocks_dir()),
            is_followed: self.index.is_some() || self.tx_index,
            block_followers: self.block_followers(),
            has_peers: self.p2p.is_some(),
            ..self.engine.clone()
        }
    }

    /// Number of indexes that follow blocks only.
    pub(crate) fn block_followers(&self) -> usize {
        usize::from(self.filter_index)
    }

    pub fn index_config(&self, options: &IndexOptions) -> IndexConfig {
        let dir = self.chain_dir().join(INDEX_DIR);
        let mut config = IndexConfig::new(dir, self.engine.params.genesis_hash);
        if let Some(bytes) = options.memory_bytes_max {
            config.memory_bytes_max = bytes;
        }
        config
    }

    pub(crate) fn tx_index_config(&self) -> IndexConfig {
        let dir = self.chain_dir().join(TX_INDEX_DIR);
        let mut config = IndexConfig::new(dir, self.engine.params.genesis_hash);
        config.memory_bytes_max = TX_INDEX_MEMORY_BYTES;
        config.scope = Scope::Txids;
        config
    }
}

/// Core's `BITCOIN_PID_FILENAME` (`init.cpp`).
const PID_FILE: &str = "bitcoind.pid";
/// Core's `COOKIEAUTH_FILE` (`rpc/request.cpp`).
const COOKIE_FILE: &str = ".cookie";
/// Folder of the script index, relative to the chain's folder.
pub(crate) const INDEX_DIR: &str = "indexes/electrum";
/// Folder of the transaction index, named as in Core.
const TX_INDEX_DIR: &str = "indexes/txindex";
/// Room for two million transactions between two writes.
const TX_INDEX_MEMORY_BYTES: usize = 64 << 20;
/// Folder of the script index in earlier versions.
pub(crate) const INDEX_DIR_BEFORE: &str = "electrum";
