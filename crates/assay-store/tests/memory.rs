//! The memory of the coins stays within its limit, with a set of coins several times as large. It has a process of its own,
//! because it measures the memory of the process.

use std::fs;
use std::time::Instant;

use assay_store::{CoinRef, CoinStore, FjallTier, Room, StoreConfig};
use assay_wire::{BlockHash, OutPoint, Txid};

/// Limit of all memory for coins.
const TOTAL_BYTES: usize = 64 << 20;

const BLOCKS: u32 = 180;
const COINS_PER_BLOCK: u32 = 16_000;

fn outpoint(block: u32, n: u32) -> OutPoint {
    // Eight outputs per transaction.
    let seed = u64::from(block) << 32 | u64::from(n / 8);
    OutPoint { txid: Txid(assay_hash::sha256(&seed.to_le_bytes())), vout: n % 8 }
}

fn resident_bytes() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kib| kib << 10)
}

#[test]
fn a_set_of_coins_larger_than_the_cache_stays_within_the_limit() {
    let Some(before) = resident_bytes() else {
        println!("skipped: this system does not tell how much memory a process takes");
        return;
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = StoreConfig::new(dir.path(), [0; 4]).with_coin_memory(TOTAL_BYTES);
    let tier = FjallTier::open(dir.path(), config.tier_cache_bytes).expect("the tier opens");
    let coin_bytes = config.cache_bytes_max;
    let mut coins = CoinStore::open(Box::new(tier), coin_bytes).expect("the store opens");
    let (mut most_resident, mut most_cached, mut flushes, mut loaded) = (0, 0, 0, 0);
    let mut longest_flush_ns = 0;
    let start = Instant::now();
    for block in 0..BLOCKS {
        // Spend a tenth of an old block's outputs, and a tenth of a recent one's.
        for age in [90, 3] {
            let Some(old) = block.checked_sub(age) else { continue };
            let spent = (0..COINS_PER_BLOCK / 10).map(|n| outpoint(old, n * 10 + age % 10));
            loaded += coins.load(spent.clone(), 4).expect("the disk works");
            for outpoint in spent {
                assert!(coins.spend(&outpoint).expect("the disk works").is_some());
            }
        }
        let script = [0x51; 25];
        for n in 0..COINS_PER_BLOCK {
            let coin = CoinRef { value: 1, height: block, coinbase: false, script_pubkey: &script };
            coins.add(outpoint(block, n), coin, false).expect("it is new");
        }
        let usage = coins.usage();
        most_cached = most_cached.max(usage.bytes + usage.flush_bytes);
        if coins.make_room() == Room::FlushDue {
            let stats = coins.flush(block, &BlockHash([1; 32])).expect("the disk works");
            longest_flush_ns = longest_flush_ns.max(stats.elapsed_ns);
            flushes += 1;
        }
        most_resident = most_resident.max(resident_bytes().unwrap_or(0).saturating_sub(before));
    }
    let set_bytes = coins.usage().coins_on_disk as usize * 90;
    println!(
        "limit {} MiB, resident at most {} MiB, cache at most {} of {} MiB, set about {} MiB in memory; {flushes} flushes, \
         the longest {} ms; {loaded} coins loaded; {} ms",
        TOTAL_BYTES >> 20,
        most_resident >> 20,
        most_cached >> 20,
        coin_bytes >> 20,
        set_bytes >> 20,
        longest_flush_ns / 1_000_000,
        start.elapsed().as_millis(),
    );
    assert!(most_cached <= coin_bytes, "the cache took {most_cached} of {coin_bytes} bytes");
    assert!(most_resident <= TOTAL_BYTES, "{most_resident} of {TOTAL_BYTES} bytes");
    assert!(set_bytes > 3 * TOTAL_BYTES && loaded > 100_000 && flushes > 5);
}
