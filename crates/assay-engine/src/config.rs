//! Configuration of an engine.

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
    /// Folder of this chain's blocks, coins and index; created if missing.
    pub datadir: PathBuf,
    pub params: Arc<ChainParams>,
    pub clock: Clock,
    /// Maximum tip age before the node leaves IBD, seconds (Core's `-maxtipage`).
    pub tip_age_max_s: u64,
    /// Memory for coins, bytes: the cache, the additional memory of a flush, and the block cache of the coins on disk. A single
    /// block's outputs may exceed it until the next block. Below 64 MiB the tables on disk take more than their share.
    pub cache_bytes_max: usize,
    /// Longest time between two flushes while blocks arrive: it limits the blocks that a restart after a crash must connect
    /// again.
    pub flush_interval: Duration,
    /// Pruning of old blocks (Core's `-prune`).
    pub prune: Option<Pruning>,
    /// Blocks below the tip that pruning keeps: the maximum depth of a reorg (Core's `MIN_BLOCKS_TO_KEEP`).
    pub prune_keeps: u32,
    /// Minimum height for pruning (Core's `nPruneAfterHeight`).
    pub prune_after_height: u32,
    /// Length limit of a block or undo file, except for a single longer record; at most 2^32 - 1.
    pub block_file_bytes_max: u64,
    /// The folder of block and undo files; `None` for `blocks/` in the chain's folder.
    pub blocks_dir: Option<PathBuf>,
    pub obfuscation: Obfuscation,
    /// Check of the last blocks when the engine opens; `None` for no check.
    pub check: Option<ChainCheck>,
    /// Threads that read a block's spent coins from disk; at least 1.
    pub read_threads: usize,
    /// Threads that verify scripts; at least 1.
    pub threads: usize,
    /// Signatures and other checks per batch when a block is connected; `None` verifies each at once.
    pub script_batch: Option<usize>,
    /// Interval of spot checks: one of N signatures that vector code accepts is verified again with libsecp256k1, and a
    /// difference ends the process; 0 for none. Process-wide: the last opened engine decides.
    pub sample_signatures: u32,
    /// Verification of BIP340 signatures in vector code; process-wide as well.
    pub schnorr: Schnorr,
    /// Number of blocks below the best known header, inclusive, whose signatures only libsecp256k1 verifies, if they are less
    /// than a day old and have no more than 25,000 inputs; 0 for none. Also applies to lists of transactions.
    pub exact_near_tip: u32,
    /// Rebuild the coins from the archived blocks and verify all scripts again (Core's `-reindex-chainstate`).
    pub rebuild_coins: bool,
    /// Start from the block files alone (Core's `-reindex`): the engine opens without any block, and the caller runs
    /// [`Blocks::reindex`](crate::Blocks::reindex).
    pub reindex: bool,
    /// Memory for unconfirmed transactions, bytes.
    pub mempool_bytes_max: u64,
    /// Least fee rate for relay, satoshi per 1,000 virtual bytes.
    pub min_relay_fee_sat_per_kvb: u64,
    pub policy: Policy,
    /// Age at which unconfirmed transactions expire, seconds (Core's `-mempoolexpiry`).
    pub mempool_expiry_s: u64,
    /// Maximum number of transactions in a cluster; `None` for no limit.
    pub cluster_count_max: Option<usize>,
    pub mining: MiningConfig,
    /// Maximum sum of virtual sizes in a cluster; `None` for no limit.
    pub cluster_vsize_max: Option<u64>,
    /// Memory for transactions of disconnected blocks on their way to the mempool, bytes; the latest are dropped first.
    pub disconnected_bytes_max: u64,
    /// True if a follower processes chain and mempool: connected blocks then stay in memory until taken (128 MiB, or a single
    /// block), and changes of the mempool are kept (35 MB).
    pub is_followed: bool,
    /// Number of followers of the chain alone: connected blocks stay in memory for each of them, too.
    pub block_followers: usize,
    /// True if [`Engine::take_events`](crate::Engine::take_events) reports every change of chain and mempool, with a queue of up
    /// to 128 MiB.
    pub has_events: bool,
    /// True if submitted transactions are queued for announcement: call [`Mempool::take_handed_in`](crate::Mempool::take_handed_in)
    /// regularly.
    pub has_peers: bool,
    /// True if [`Engine::shutdown`](crate::Engine::shutdown) saves the mempool. The caller loads it with
    /// [`Mempool::load`](crate::Mempool::load).
    pub persist_mempool: bool,
}

/// Check of the last blocks of the chain (Core's `-checklevel` and `-checkblocks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainCheck {
    /// Level: blocks can be read (0), are well formed (1), have undo data (2), can be disconnected (3) and connected again (4).
    pub level: u32,
    /// Number of blocks; 0 for all.
    pub blocks: u32,
    /// True: fail to open if the memory for coins is too small for levels 3 and 4.
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
    /// Only by [`Chain::prune_to`](crate::Chain::prune_to).
    Manual,
    /// Also when block and undo files exceed `bytes_max`.
    Automatic { bytes_max: u64 },
}

/// Standardness rules for relayed transactions (Core `kernel/mempool_options.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Reject nonstandard transactions (Core's `-acceptnonstdtxn=0`); without it the other rules do not apply.
    pub require_standard: bool,
    /// Maximum bytes of data carrier scripts in one transaction (Core's `-datacarriersize`); 0 for none (`-datacarrier=0`).
    pub data_carrier_bytes_max: usize,
    /// Relay bare multisig outputs (Core's `-permitbaremultisig`).
    pub permit_bare_multisig: bool,
    /// Fee rate that defines dust, satoshi per 1,000 virtual bytes (Core's `-dustrelayfee`).
    pub dust_fee_sat_per_kvb: u64,
    /// Minimum weight of a signature operation, virtual bytes (Core's `-bytespersigop`).
    pub bytes_per_sigop: u64,
    /// Additional fee rate of a replacement, and the step of the minimum fee rate after an eviction, satoshi per 1,000 virtual
    /// bytes (Core's `-incrementalrelayfee`); the latter not on Bitcoin Cash.
    pub incremental_fee_sat_per_kvb: u64,
}

/// Core's `MAX_OP_RETURN_RELAY` (`policy/policy.h`).
const CORE_DATA_CARRIER_BYTES: usize = 100_000;
/// As above, of Bitcoin Cash Node (`policy/policy.h`).
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
/// As above, of Bitcoin Cash Node: twenty blocks of 32 MB (`txmempool.h`).
const CASH_DISCONNECTED_BYTES: u64 = 640_000_000;
/// Core's `-limitclustercount` (`policy/policy.h`, `DEFAULT_CLUSTER_LIMIT`).
const CORE_CLUSTER_COUNT: usize = 64;
/// Core's `-limitclustersize` (`policy/policy.h`, `DEFAULT_CLUSTER_SIZE_LIMIT_KVB`).
const CORE_CLUSTER_VSIZE: u64 = 101_000;

/// Core's `-mempoolexpiry`, two weeks (`kernel/mempool_options.h`, `DEFAULT_MEMPOOL_EXPIRY_HOURS`).
const MEMPOOL_EXPIRY_S: u64 = 336 * 3600;

/// Core's `-maxtipage` (`kernel/chainstatemanager_opts.h`, `DEFAULT_MAX_TIP_AGE`).
const TIP_AGE_MAX_S: u64 = 24 * 3600;

/// Core's `-prevoutfetchthreads`: readers wait for the disk, not for a core.
pub(crate) const READ_THREADS: usize = 8;

impl Config {
    /// Maximum sum of weights in a cluster.
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

/// Operator settings of block templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiningConfig {
    /// Minimum fee rate of a chunk in a template, satoshi per 1,000 virtual bytes (Core's `-blockmintxfee`).
    pub min_fee_sat_per_kvb: u64,
    /// Maximum weight of a template (`-blockmaxweight`).
    pub weight_max: u64,
    /// Weight reserved for header, count and coinbase (`-blockreservedweight`).
    pub reserved_weight: u64,
    /// Block version; `None` for the one with the signals of the deployments (`-blockversion`).
    pub version: Option<i32>,
    /// Log the fee rate of each selected transaction (`-printpriority`).
    pub print_fee_rates: bool,
}

impl MiningConfig {
    /// Core's defaults for a chain with this maximum block weight.
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
