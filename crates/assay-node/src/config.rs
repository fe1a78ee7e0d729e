//! How a node is set up.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_electrum::index::{IndexConfig, Scope};
use assay_engine::{ChainCheck, Clock, MiningConfig, Obfuscation, Policy, Pruning};

use crate::http::{Limits, RpcAuth, Subnet, Whitelist};
use crate::log::LogConfig;
use crate::p2p::P2pConfig;
use crate::zmq::Publication;

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "settings, each on its own")]
pub struct NodeConfig {
    pub params: Arc<ChainParams>,
    /// The data directory. All but the main chain live in folders of their own below it, named as Bitcoin
    /// Core names them.
    pub datadir: PathBuf,
    pub rpc: RpcConfig,
    pub clock: Clock,
    /// Age of the tip up to which the chain counts as caught up with, seconds; `None` for the engine's default.
    pub tip_age_max_s: Option<u64>,
    /// Length that block and undo files do not exceed, bytes; `None` for the engine's default.
    pub block_file_bytes_max: Option<u64>,
    /// The folder that holds the chain's folder of block files; `None` for the data directory.
    pub blocks_base: Option<PathBuf>,
    /// Whether block and undo files are obfuscated.
    pub obfuscation: Obfuscation,
    /// How the last blocks are checked at the start; `None` for not at all.
    pub check: Option<ChainCheck>,
    /// Whether old blocks are removed (Core's `-prune`); not with an index, which needs them all.
    pub prune: Option<Pruning>,
    /// Height up to which none are; `None` for the chain's.
    pub prune_after_height: Option<u32>,
    /// Whether to build the coins again from the archived blocks.
    pub rebuild_coins: bool,
    /// Whether to begin with the block files alone, and to build index and coins from them again.
    pub reindex: bool,
    /// Files of blocks that are taken in at the start.
    pub load_blocks: Vec<PathBuf>,
    /// The node stops when the tip has reached this height.
    pub stop_at_height: Option<u32>,
    pub notify: Notify,
    /// Memory for coins before they are written out, bytes; `None` for the engine's default.
    pub cache_bytes_max: Option<usize>,
    /// Threads that verify scripts; `None` for one per core.
    pub threads: Option<usize>,
    /// Memory for unconfirmed transactions, bytes; `None` for the engine's default.
    pub mempool_bytes_max: Option<u64>,
    /// Least fee rate for relay, satoshi per 1,000 virtual bytes; `None` for the engine's default.
    pub min_relay_fee_sat_per_kvb: Option<u64>,
    /// How block templates are made; `None` for the engine's default.
    pub mining: Option<MiningConfig>,
    /// What transactions must look like to be relayed; `None` for the engine's default.
    pub policy: Option<Policy>,
    /// Age at which unconfirmed transactions are forgotten, seconds; `None` for the engine's default.
    pub mempool_expiry_s: Option<u64>,
    /// Largest number of unconfirmed transactions that may be connected; `None` for the engine's default.
    pub cluster_count_max: Option<usize>,
    /// Largest sum of virtual sizes of connected unconfirmed transactions; `None` for the engine's default.
    pub cluster_vsize_max: Option<u64>,
    /// One of so many signatures that vectors find valid is verified again, 0 for none; `None` for the engine's default.
    pub sample_signatures: Option<u32>,
    /// Blocks from the best header down about which libsecp256k1 alone decides; `None` for the engine's default.
    pub exact_near_tip: Option<u32>,
    /// Whether the mempool is kept through a restart.
    pub persist_mempool: bool,
    /// The index of scripts; `None` for none.
    pub index: Option<IndexOptions>,
    /// Whether confirmed transactions are found by their ids alone (Core's `-txindex`): by the index of scripts where there is
    /// one, and by one of transactions otherwise.
    pub tx_index: bool,
    /// Whether basic block filters are kept (Core's `-blockfilterindex`).
    pub filter_index: bool,
    /// What is published over ZeroMQ (Core's `-zmqpub…`); none for no sockets.
    pub zmq: Vec<Publication>,
    /// Where Prometheus finds metrics over HTTP, on loopback; `None` for nowhere.
    pub metrics: Option<SocketAddr>,
    /// The server of blocks for peers; `None` for none.
    pub p2p: Option<P2pConfig>,
    /// Where the log goes; `None` leaves events to whoever listens in this process.
    pub log: Option<LogConfig>,
    /// The file with the process id, relative to the chain's folder.
    pub pid_file: PathBuf,
    /// Whether SIGTERM and SIGINT stop the node.
    pub handle_signals: bool,
}

#[derive(Debug, Clone, Default)]
pub struct IndexOptions {
    /// Memory for rows before they are written out, bytes; `None` for the index's default.
    pub memory_bytes_max: Option<usize>,
    /// The Electrum server in front of it; `None` for none.
    pub server: Option<assay_electrum::server::Config>,
}

/// Commands that are run by the shell on events, `None` for none (Core's `-startupnotify` and its like).
#[derive(Debug, Clone, Default)]
pub struct Notify {
    /// When the node has started.
    pub startup: Option<String>,
    /// When it begins to stop; the node waits for their ends.
    pub shutdown: Vec<String>,
    /// When the tip has changed, with its hash in place of `%s`; not while the chain is caught up with.
    pub block: Option<String>,
    /// When there is something to warn of, with the quoted warning in place of `%s`.
    pub alert: Option<String>,
}

#[derive(Debug, Clone)]
pub struct RpcConfig {
    /// Addresses to listen on; none for no server. Others than loopback need [`RpcConfig::allow`].
    pub bind: Vec<SocketAddr>,
    /// From where clients may connect besides this machine.
    pub allow: Vec<Subnet>,
    /// A user name with a password in clear text. With it no cookie is written, as with Bitcoin Core.
    pub password: Option<(String, String)>,
    /// Users with hashed passwords.
    pub auth: Vec<RpcAuth>,
    /// The same as texts, which are checked when the server starts.
    pub auth_texts: Vec<String>,
    /// The file with the cookie, relative to the chain's folder; `None` for no cookie.
    pub cookie_file: Option<PathBuf>,
    /// Its permissions.
    pub cookie_mode: u32,
    /// Which methods users may call.
    pub whitelist: Whitelist,
    /// Fields of results that are shown in an older form (Core's `-deprecatedrpc`).
    pub deprecated: Vec<String>,
    /// Whether the same server answers REST requests, which need no credentials (Core's `-rest`).
    pub rest: bool,
    pub limits: Limits,
}

/// A chain that this node does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", assay_consensus::params::unknown_chain(name))]
pub struct UnknownChain {
    pub name: String,
}

impl NodeConfig {
    /// The defaults for the chain called `chain` with its data below `datadir`.
    ///
    /// # Errors
    /// There is no such chain.
    pub fn new(chain: &str, datadir: impl Into<PathBuf>) -> Result<Self, UnknownChain> {
        let params = ChainParams::by_name(chain);
        let params = params.ok_or_else(|| UnknownChain { name: chain.to_owned() })?;
        let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, params.rpc_port));
        Ok(Self {
            params: Arc::new(params),
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
            clock: Clock::default(),
            rebuild_coins: false,
            reindex: false,
            load_blocks: Vec::new(),
            stop_at_height: None,
            notify: Notify::default(),
            tip_age_max_s: None,
            block_file_bytes_max: None,
            blocks_base: None,
            obfuscation: Obfuscation::AsFound,
            check: None,
            prune: None,
            prune_after_height: None,
            cache_bytes_max: None,
            threads: None,
            mempool_bytes_max: None,
            min_relay_fee_sat_per_kvb: None,
            mining: None,
            policy: None,
            mempool_expiry_s: None,
            cluster_count_max: None,
            cluster_vsize_max: None,
            sample_signatures: None,
            exact_near_tip: None,
            persist_mempool: true,
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

    /// The folder of the chain: blocks, coins, log, cookie and lock are in it.
    pub fn chain_dir(&self) -> PathBuf {
        self.datadir.join(self.params.datadir_subfolder)
    }

    pub fn blocks_dir(&self) -> PathBuf {
        let base = self.blocks_base.as_ref().unwrap_or(&self.datadir);
        base.join(self.params.datadir_subfolder).join("blocks")
    }

    /// How the node introduces itself, also where it serves no peers.
    pub(crate) fn user_agent(&self) -> String {
        let of_nobody = || P2pConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        self.p2p.clone().unwrap_or_else(of_nobody).user_agent(&self.params)
    }

    /// How the engine of this chain is set up.
    pub fn engine_config(&self) -> assay_engine::Config {
        let mut config = assay_engine::Config::new(self.chain_dir(), Arc::clone(&self.params));
        config.clock = self.clock.clone();
        config.rebuild_coins = self.rebuild_coins;
        config.reindex = self.reindex;
        if let Some(age_s) = self.tip_age_max_s {
            config.tip_age_max_s = age_s;
        }
        if let Some(bytes) = self.block_file_bytes_max {
            config.block_file_bytes_max = bytes;
        }
        config.blocks_dir = self.blocks_base.is_some().then(|| self.blocks_dir());
        config.obfuscation = self.obfuscation;
        config.check = self.check;
        config.prune = self.prune;
        config.prune_after_height = self.prune_after_height.unwrap_or(config.prune_after_height);
        if let Some(bytes) = self.cache_bytes_max {
            config.cache_bytes_max = bytes;
        }
        if let Some(threads) = self.threads {
            config.threads = threads;
        }
        if let Some(bytes) = self.mempool_bytes_max {
            config.mempool_bytes_max = bytes;
        }
        if let Some(rate) = self.min_relay_fee_sat_per_kvb {
            config.min_relay_fee_sat_per_kvb = rate;
        }
        config.mining = self.mining.unwrap_or(config.mining);
        config.policy = self.policy.unwrap_or(config.policy);
        if let Some(age_s) = self.mempool_expiry_s {
            config.mempool_expiry_s = age_s;
        }
        config.cluster_count_max = self.cluster_count_max.or(config.cluster_count_max);
        config.cluster_vsize_max = self.cluster_vsize_max.or(config.cluster_vsize_max);
        if let Some(one_of) = self.sample_signatures {
            config.sample_signatures = one_of;
        }
        if let Some(blocks) = self.exact_near_tip {
            config.exact_near_tip = blocks;
        }
        config.persist_mempool = self.persist_mempool;
        config.is_followed = self.index.is_some() || self.tx_index;
        config.block_followers = self.block_followers();
        config.has_peers = self.p2p.is_some();
        config
    }

    /// How many indexes follow blocks alone.
    pub(crate) fn block_followers(&self) -> usize {
        usize::from(self.filter_index)
    }

    /// How the index of this chain is set up.
    pub fn index_config(&self, options: &IndexOptions) -> IndexConfig {
        let dir = self.chain_dir().join(INDEX_DIR);
        let mut config = IndexConfig::new(dir, self.params.genesis_hash);
        if let Some(bytes) = options.memory_bytes_max {
            config.memory_bytes_max = bytes;
        }
        config
    }

    /// How an index of transactions alone is set up.
    pub(crate) fn tx_index_config(&self) -> IndexConfig {
        let dir = self.chain_dir().join(TX_INDEX_DIR);
        let mut config = IndexConfig::new(dir, self.params.genesis_hash);
        config.memory_bytes_max = TX_INDEX_MEMORY_BYTES;
        config.scope = Scope::Txids;
        config
    }
}

/// Core's `BITCOIN_PID_FILENAME` (`init.cpp`).
const PID_FILE: &str = "bitcoind.pid";
/// Core's `COOKIEAUTH_FILE` (`rpc/request.cpp`).
const COOKIE_FILE: &str = ".cookie";
/// Folder of the index, in that of the chain.
pub(crate) const INDEX_DIR: &str = "indexes/electrum";
/// Folder of an index of transactions alone, as Core calls it.
const TX_INDEX_DIR: &str = "indexes/txindex";
/// Two million transactions between two runs.
const TX_INDEX_MEMORY_BYTES: usize = 64 << 20;
/// Its name in earlier versions.
pub(crate) const INDEX_DIR_BEFORE: &str = "electrum";
