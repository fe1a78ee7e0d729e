//! How an engine is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay_consensus::params::ChainParams;
use assay_store::Obfuscation;

use crate::budget::default_cache_bytes;
use crate::clock::Clock;
use crate::deferred::{
    EXACT_NEAR_TIP_DEFAULT, SAMPLE_SIGNATURES_DEFAULT, Schnorr, default_script_batch,
};
use crate::flush::ENGINE_INTERVAL;

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "settings, each on its own")]
pub struct Config {
    /// Folder that holds this chain's blocks, coins and index; made when missing.
    pub datadir: PathBuf,
    pub params: Arc<ChainParams>,
    pub clock: Clock,
    /// Age of the tip up to which the chain counts as caught up with, seconds (Core's `-maxtipage`).
    pub tip_age_max_s: u64,
    /// Memory for coins, bytes: the cache, what writing it out takes, and the block cache of the coins on disk. A single
    /// block's outputs may come on top until the next block. Below 64 MiB the tables on disk take more than their share.
    pub cache_bytes_max: usize,
    /// Longest time between two flushes while blocks come in: it bounds what a restart after a crash has to connect again.
    pub flush_interval: Duration,
    /// Whether old blocks are removed (Core's `-prune`).
    pub prune: Option<Pruning>,
    /// Blocks below the tip that are kept then: how far back a reorganisation can go (Core's `MIN_BLOCKS_TO_KEEP`).
    pub prune_keeps: u32,
    /// Height up to which none are (Core's `nPruneAfterHeight`).
    pub prune_after_height: u32,
    /// Length that a block or undo file does not exceed, unless a single record does; at most 2^32 - 1.
    pub block_file_bytes_max: u64,
    /// The folder of block and undo files; `None` for `blocks/` in the chain's folder.
    pub blocks_dir: Option<PathBuf>,
    /// Whether block and undo files are obfuscated.
    pub obfuscation: Obfuscation,
    /// How the last blocks are checked when the engine opens; `None` for not at all.
    pub check: Option<ChainCheck>,
    /// Threads that read coins from disk at once, of those a block spends; at least 1.
    pub read_threads: usize,
    /// Threads that verify scripts; at least 1.
    pub threads: usize,
    /// Signatures and the like that are verified together when a block is connected; `None` verifies each as it comes.
    pub script_batch: Option<usize>,
    /// One of so many signatures that vectors find valid is verified again with libsecp256k1, and the process ends where they
    /// differ; 0 for none. A setting of the whole process: the engine opened last decides.
    pub sample_signatures: u32,
    /// How BIP340 signatures are verified where vectors verify them; likewise a setting of the whole process.
    pub schnorr: Schnorr,
    /// Number of blocks below the best known header, that one included, for which libsecp256k1 alone decides about signatures,
    /// if they are less than a day old and of no more than 25,000 inputs; 0 for none. Lists of transactions likewise.
    pub exact_near_tip: u32,
    /// Whether to build the coins again from the archived blocks and verify all scripts again (Core's `-reindex-chainstate`).
    pub rebuild_coins: bool,
    /// Whether to begin with the block files alone (Core's `-reindex`): the engine opens without any block, and its owner calls
    /// [`Engine::reindex`](crate::Engine::reindex).
    pub reindex: bool,
    /// Memory for unconfirmed transactions, bytes.
    pub mempool_bytes_max: u64,
    /// Least fee rate for relay, satoshi per 1,000 virtual bytes.
    pub min_relay_fee_sat_per_kvb: u64,
    /// What transactions must look like to be relayed, beyond what blocks may hold.
    pub policy: Policy,
    /// Age at which unconfirmed transactions are forgotten, seconds (Core's `-mempoolexpiry`).
    pub mempool_expiry_s: u64,
    /// Largest number of unconfirmed transactions that may be connected; `None` for no limit.
    pub cluster_count_max: Option<usize>,
    pub mining: MiningConfig,
    /// Largest sum of virtual sizes of connected unconfirmed transactions; `None` for no limit.
    pub cluster_vsize_max: Option<u64>,
    /// Memory for transactions of disconnected blocks on their way back to the mempool, bytes; the latest are dropped first.
    pub disconnected_bytes_max: u64,
    /// Whether somebody follows the chain and the mempool: connected blocks then stay in memory until they are taken
    /// (128 MiB, or a single block), and changes of the mempool are kept (35 MB).
    pub is_followed: bool,
    /// How many others follow the chain alone: connected blocks stay in memory for each of them, too.
    pub block_followers: usize,
    /// Whether every change of chain and mempool is shown by [`Engine::take_events`](crate::Engine::take_events), up to
    /// 128 MiB of which wait.
    pub has_events: bool,
    /// Whether transactions that are handed in are kept for announcing:
    /// [`Engine::take_handed_in`](crate::Engine::take_handed_in) must be called now and then.
    pub has_peers: bool,
    /// Whether [`Engine::shutdown`](crate::Engine::shutdown) saves the mempool. Reading it again is up to the owner of the
    /// engine: [`Engine::load_mempool`](crate::Engine::load_mempool).
    pub persist_mempool: bool,
}

/// How the last blocks of the chain are checked (Core's `-checklevel` and `-checkblocks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainCheck {
    /// How thoroughly: blocks can be read (0), are well formed (1), have undo data (2), can be disconnected (3) and connected
    /// again (4).
    pub level: u32,
    /// How many blocks; 0 for all.
    pub blocks: u32,
    /// Whether the engine does not open where the memory for coins does not do for levels 3 and 4.
    pub must_be_whole: bool,
}

impl Default for ChainCheck {
    /// Core's `DEFAULT_CHECKLEVEL` and `DEFAULT_CHECKBLOCKS` (`validation.h`).
    fn default() -> Self {
        Self { level: 3, blocks: 6, must_be_whole: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruning {
    /// When [`Engine::prune_to`](crate::Engine::prune_to) asks for it.
    Manual,
    /// Also when block and undo files take more than so much.
    Automatic { bytes_max: u64 },
}

/// What transactions must look like to be relayed (Core `kernel/mempool_options.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether forms that are not known are rejected (Core's `-acceptnonstdtxn=0`); without it the rest does not apply.
    pub require_standard: bool,
    /// Bytes of scripts that carry data, in one transaction (Core's `-datacarriersize`); 0 for none (`-datacarrier=0`).
    pub data_carrier_bytes_max: usize,
    /// Whether bare multi-signature outputs are relayed (Core's `-permitbaremultisig`).
    pub permit_bare_multisig: bool,
    /// Fee rate by which outputs are dust, satoshi per 1,000 virtual bytes (Core's `-dustrelayfee`).
    pub dust_fee_sat_per_kvb: u64,
    /// What a signature operation weighs at least, virtual bytes (Core's `-bytespersigop`).
    pub bytes_per_sigop: u64,
    /// What a replacement pays beyond what it replaces, and by how much the least fee rate rises when something is evicted,
    /// satoshi per 1,000 virtual bytes (Core's `-incrementalrelayfee`); the latter not on Bitcoin Cash.
    pub incremental_fee_sat_per_kvb: u64,
}

/// Core's `MAX_OP_RETURN_RELAY` (`policy/policy.h`).
const CORE_DATA_CARRIER_BYTES: usize = 100_000;
/// The same of Bitcoin Cash Node (`policy/policy.h`).
const CASH_DATA_CARRIER_BYTES: usize = 223;
/// Core's `DUST_RELAY_TX_FEE` (`policy/policy.h`); three times BCHN's, which multiplies by three instead.
const DUST_FEE_SAT_PER_KVB: u64 = 3000;
/// Core's `DEFAULT_BYTES_PER_SIGOP` (`policy/policy.h`).
const BYTES_PER_SIGOP: u64 = 20;
/// Core's `DEFAULT_INCREMENTAL_RELAY_FEE` (`policy/policy.h`).
const INCREMENTAL_FEE_SAT_PER_KVB: u64 = 100;

impl Policy {
    /// The reference nodes' defaults.
    pub(crate) const fn new(is_cash: bool) -> Self {
        Self {
            require_standard: true,
            data_carrier_bytes_max: if is_cash {
                CASH_DATA_CARRIER_BYTES
            } else {
                CORE_DATA_CARRIER_BYTES
            },
            permit_bare_multisig: true,
            dust_fee_sat_per_kvb: DUST_FEE_SAT_PER_KVB,
            bytes_per_sigop: BYTES_PER_SIGOP,
            incremental_fee_sat_per_kvb: INCREMENTAL_FEE_SAT_PER_KVB,
        }
    }
}

/// Core's `MAX_DISCONNECTED_TX_POOL_BYTES` (`kernel/disconnected_transactions.h`).
const CORE_DISCONNECTED_BYTES: u64 = 20_000_000;
/// The same of Bitcoin Cash Node: twenty blocks of 32 MB (`txmempool.h`).
const CASH_DISCONNECTED_BYTES: u64 = 640_000_000;
/// Core's `-limitclustercount` (`policy/policy.h`, `DEFAULT_CLUSTER_LIMIT`).
const CORE_CLUSTER_COUNT: usize = 64;
/// Core's `-limitclustersize` (`policy/policy.h`, `DEFAULT_CLUSTER_SIZE_LIMIT_KVB`).
const CORE_CLUSTER_VSIZE: u64 = 101_000;

/// Core's `-mempoolexpiry`, two weeks (`kernel/mempool_options.h`, `DEFAULT_MEMPOOL_EXPIRY_HOURS`).
const MEMPOOL_EXPIRY_S: u64 = 336 * 3600;

/// Core's `-maxtipage` (`kernel/chainstatemanager_opts.h`, `DEFAULT_MAX_TIP_AGE`).
const TIP_AGE_MAX_S: u64 = 24 * 3600;

/// Core's `-prevoutfetchthreads`: reads wait for the disk rather than for a core.
pub(crate) const READ_THREADS: usize = 8;

impl Config {
    /// Largest sum of weights of connected unconfirmed transactions.
    pub(crate) fn cluster_weight_max(&self) -> u64 {
        self.cluster_vsize_max.map_or(u64::MAX, |vsize| vsize.saturating_mul(4))
    }

    /// The reference nodes' defaults for a chain in a folder.
    pub fn new(datadir: impl Into<PathBuf>, params: Arc<ChainParams>) -> Self {
        let is_cash = params.cash.is_some();
        Self {
            datadir: datadir.into(),
            clock: Clock::default(),
            tip_age_max_s: TIP_AGE_MAX_S,
            cache_bytes_max: default_cache_bytes(),
            flush_interval: ENGINE_INTERVAL,
            prune: None,
            prune_keeps: 288,
            prune_after_height: if params.name == "main" { 100_000 } else { 1000 },
            block_file_bytes_max: 128 << 20,
            blocks_dir: None,
            obfuscation: Obfuscation::AsFound,
            check: None,
            read_threads: READ_THREADS,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            script_batch: default_script_batch(),
            sample_signatures: SAMPLE_SIGNATURES_DEFAULT,
            schnorr: Schnorr::default(),
            exact_near_tip: EXACT_NEAR_TIP_DEFAULT,
            rebuild_coins: false,
            reindex: false,
            mempool_bytes_max: if is_cash { 4096 << 20 } else { 300_000_000 },
            min_relay_fee_sat_per_kvb: if is_cash { 1000 } else { 100 },
            policy: Policy::new(is_cash),
            mempool_expiry_s: MEMPOOL_EXPIRY_S,
            // Bitcoin Cash nodes dropped their chain limits in May 2021.
            cluster_count_max: (!is_cash).then_some(CORE_CLUSTER_COUNT),
            cluster_vsize_max: (!is_cash).then_some(CORE_CLUSTER_VSIZE),
            disconnected_bytes_max: if is_cash {
                CASH_DISCONNECTED_BYTES
            } else {
                CORE_DISCONNECTED_BYTES
            },
            mining: MiningConfig::new(4 * params.block_vsize_max()),
            is_followed: false,
            block_followers: 0,
            has_events: false,
            has_peers: false,
            persist_mempool: true,
            params,
        }
    }
}

/// How templates are made, as the node's owner wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiningConfig {
    /// Least fee rate of a chunk that goes into a template, satoshi per 1,000 virtual bytes (Core's `-blockmintxfee`).
    pub min_fee_sat_per_kvb: u64,
    /// Weight of a template, at most (`-blockmaxweight`).
    pub weight_max: u64,
    /// Weight kept free for header, count and coinbase (`-blockreservedweight`).
    pub reserved_weight: u64,
    /// The version of blocks in place of the one that signals ask for (`-blockversion`).
    pub version: Option<i32>,
    /// Whether the fee rate of each transaction that goes into a template is logged (`-printpriority`).
    pub print_fee_rates: bool,
}

impl MiningConfig {
    /// Core's defaults for a chain whose blocks weigh at most this.
    pub const fn new(weight_max: u64) -> Self {
        Self {
            min_fee_sat_per_kvb: 1,
            weight_max,
            reserved_weight: RESERVED_WEIGHT,
            version: None,
            print_fee_rates: false,
        }
    }
}

/// Core's `DEFAULT_BLOCK_RESERVED_WEIGHT` (`policy/policy.h`).
const RESERVED_WEIGHT: u64 = 8000;
