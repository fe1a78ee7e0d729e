//! Statistics of the whole UTXO set, computed on all cores while the engine continues (Core `kernel/coinstats.cpp`).

use assay_hash::{MuHash3072, Sha256};
use assay_store::{CoinError, CoinRef, CoinSnapshot};
use assay_wire::{BlockHash, OutPoint, Txid, encode};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::types::UtxoStats;

/// Shards per thread: enough that uneven ones leave no core idle.
const SHARDS_PER_THREAD: u32 = 8;

struct Partial {
    txouts: u64,
    transactions: u64,
    total_amount_sat: u64,
    bogosize: u64,
    muhash: Option<MuHash3072>,
}

/// Statistics of a snapshot, which belongs to the block at `height`, with the hash on request.
pub(crate) fn snapshot_stats(
    snapshot: &CoinSnapshot,
    pool: &ThreadPool,
    height: u32,
    hash: BlockHash,
    with_muhash: bool,
) -> Result<UtxoStats, CoinError> {
    let shards = pool.current_num_threads() as u32 * SHARDS_PER_THREAD;
    let partials: Result<Vec<Partial>, CoinError> = pool.install(|| {
        (0..shards)
            .into_par_iter()
            .map(|shard| add_up(snapshot, shard, shards, with_muhash))
            .collect()
    });
    let mut stats = UtxoStats {
        height,
        hash,
        txouts: 0,
        transactions: 0,
        total_amount_sat: 0,
        bogosize: 0,
        muhash: None,
        hash_serialized: None,
        disk_size: snapshot.disk_bytes(),
    };
    let mut muhash = MuHash3072::new();
    for partial in partials? {
        stats.txouts += partial.txouts;
        stats.transactions += partial.transactions;
        stats.total_amount_sat += partial.total_amount_sat;
        stats.bogosize += partial.bogosize;
        if let Some(part) = &partial.muhash {
            muhash.combine(part);
        }
    }
    stats.muhash = with_muhash.then(|| muhash.finalize());
    Ok(stats)
}

/// Hash over all coins of a snapshot in order (Core's `hash_serialized_3`), on one thread.
pub(crate) fn serialized_hash(snapshot: &CoinSnapshot) -> Result<[u8; 32], CoinError> {
    let hash = serialized_hash_while(snapshot, &|| true)?;
    Ok(hash.expect("nobody asked it to end"))
}

/// [`serialized_hash`] while `goes_on` returns true; `None` once it returns false.
pub(crate) fn serialized_hash_while(
    snapshot: &CoinSnapshot,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<[u8; 32]>, CoinError> {
    const PARTS: u32 = 1024;
    let mut hasher = Sha256::new();
    let mut bytes = Vec::new();
    for part in 0..PARTS {
        if !goes_on() {
            return Ok(None);
        }
        snapshot.for_each_in_shard(part, PARTS, |outpoint, coin| {
            bytes.clear();
            serialise(outpoint, coin, &mut bytes);
            hasher.update(&bytes);
        })?;
    }
    Ok(Some(hasher.finalize_double()))
}

/// A shard is a range of txids, so it has whole transactions.
fn add_up(
    snapshot: &CoinSnapshot,
    shard: u32,
    shards: u32,
    with_muhash: bool,
) -> Result<Partial, CoinError> {
    let mut partial = Partial {
        txouts: 0,
        transactions: 0,
        total_amount_sat: 0,
        bogosize: 0,
        muhash: with_muhash.then(MuHash3072::new),
    };
    let mut last: Option<Txid> = None;
    let mut waiting = Waiting::default();
    snapshot.for_each_in_shard(shard, shards, |outpoint, coin| {
        partial.txouts += 1;
        if last != Some(outpoint.txid) {
            last = Some(outpoint.txid);
            partial.transactions += 1;
        }
        partial.total_amount_sat += coin.value as u64;
        partial.bogosize += 50 + coin.script_pubkey.len() as u64;
        if let Some(muhash) = &mut partial.muhash {
            waiting.push(outpoint, coin);
            if waiting.ends.len() == HASHED_AT_ONCE {
                waiting.insert_into(muhash);
            }
        }
    })?;
    if let Some(muhash) = &mut partial.muhash {
        waiting.insert_into(muhash);
    }
    Ok(partial)
}

/// Coins hashed per call: a multiple of the vector width, and small enough for the cache.
const HASHED_AT_ONCE: usize = 1024;

/// Serialised coins to be hashed, concatenated.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Waiting {
    fn push(&mut self, outpoint: &OutPoint, coin: CoinRef<'_>) {
        serialise(outpoint, coin, &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn insert_into(&mut self, muhash: &mut MuHash3072) {
        let mut start = 0;
        let element = |&end: &usize| &self.bytes[std::mem::replace(&mut start, end)..end];
        let elements: Vec<&[u8]> = self.ends.iter().map(element).collect();
        muhash.insert_many(&elements);
        self.bytes.clear();
        self.ends.clear();
    }
}

/// The serialisation of a coin in the set's hash (Core `kernel/coinstats.cpp`, `TxOutSer`).
pub(crate) fn serialise(outpoint: &OutPoint, coin: CoinRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&outpoint.to_bytes());
    out.extend_from_slice(&(coin.height << 1 | u32::from(coin.coinbase)).to_le_bytes());
    out.extend_from_slice(&coin.value.to_le_bytes());
    encode::var_bytes(out, coin.script_pubkey);
}
