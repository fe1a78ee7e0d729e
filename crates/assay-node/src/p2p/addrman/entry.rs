//! Address entry and its bucket positions (Core `addrman.cpp`, `AddrInfo`).

use assay_hash::sha256d;
use assay_wire::encode::var_bytes;
use assay_wire::p2p::{Host, PeerAddress};

/// Secret key of the bucket positions, so that attackers cannot choose them.
pub(crate) type Key = [u8; 32];

/// Times are seconds since 1970, 0 for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) address: PeerAddress,
    /// First source.
    pub(crate) source: Host,
    pub(super) success_s: i64,
    pub(super) try_s: i64,
    /// Last attempt that was counted.
    pub(super) counted_try_s: i64,
    /// Failed attempts since the last success.
    pub(super) attempts: i32,
    /// Number of buckets of new addresses that hold it.
    pub(super) references: usize,
    pub(super) is_tried: bool,
    /// Index in the list of all ids.
    pub(super) position: usize,
}

impl Entry {
    pub(super) fn new(address: PeerAddress, source: Host) -> Self {
        Self {
            address,
            source,
            success_s: 0,
            try_s: 0,
            counted_try_s: 0,
            attempts: 0,
            references: 0,
            is_tried: false,
            position: 0,
        }
    }

    pub(super) fn host(&self) -> Host {
        self.address.endpoint.host
    }

    /// Bucket among the tried ones: one of eight per address group.
    pub(super) fn tried_bucket(&self, key: &Key) -> usize {
        let mut hash = Hash::new(key);
        hash.bytes(&self.address.endpoint.key());
        let one = hash.finish() % TRIED_PER_GROUP;
        let mut hash = Hash::new(key);
        hash.bytes(&self.host().group());
        hash.0.extend_from_slice(&one.to_le_bytes());
        (hash.finish() % TRIED_BUCKETS as u64) as usize
    }

    /// Bucket among the new ones for `source`: one of 64 per source group.
    pub(super) fn new_bucket(&self, key: &Key, source: &Host) -> usize {
        let source_group = source.group();
        let mut hash = Hash::new(key);
        hash.bytes(&self.host().group());
        hash.bytes(&source_group);
        let one = hash.finish() % NEW_PER_SOURCE_GROUP;
        let mut hash = Hash::new(key);
        hash.bytes(&source_group);
        hash.0.extend_from_slice(&one.to_le_bytes());
        (hash.finish() % NEW_BUCKETS as u64) as usize
    }

    pub(super) fn place(&self, key: &Key, is_new: bool, bucket: usize) -> usize {
        let mut hash = Hash::new(key);
        hash.0.push(if is_new { b'N' } else { b'K' });
        hash.0.extend_from_slice(&(bucket as u32).to_le_bytes());
        hash.bytes(&self.address.endpoint.key());
        (hash.finish() % BUCKET_SIZE as u64) as usize
    }

    /// True if another address may replace it.
    pub(super) fn is_terrible(&self, now_s: i64) -> bool {
        let seen_s = i64::from(self.address.time);
        if now_s - self.try_s <= MINUTE_S {
            return false;
        }
        seen_s > now_s + 10 * MINUTE_S
            || now_s - seen_s > HORIZON_S
            || (self.success_s == 0 && self.attempts >= RETRIES)
            || (now_s - self.success_s > FAIL_S && self.attempts >= FAILURES_MAX)
    }

    /// Relative probability of selection.
    pub(super) fn chance(&self, now_s: i64) -> f64 {
        let recent = if now_s - self.try_s < 10 * MINUTE_S { 0.01 } else { 1.0 };
        recent * 0.66f64.powi(self.attempts.clamp(0, 8))
    }
}

/// Hash input as in Core: the key, then serialized fields.
struct Hash(Vec<u8>);

impl Hash {
    fn new(key: &Key) -> Self {
        Self(key.to_vec())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        var_bytes(&mut self.0, bytes);
    }

    /// Core's `GetCheapHash`.
    fn finish(&self) -> u64 {
        let hash = sha256d(&self.0);
        hash.first_chunk().map_or(0, |start| u64::from_le_bytes(*start))
    }
}

/// Core `addrman_impl.h` and `addrman.cpp`.
pub(super) const TRIED_BUCKETS: usize = 256;
pub(super) const NEW_BUCKETS: usize = 1024;
pub(super) const BUCKET_SIZE: usize = 64;
pub(super) const NEW_PER_ADDRESS: usize = 8;
const TRIED_PER_GROUP: u64 = 8;
const NEW_PER_SOURCE_GROUP: u64 = 64;
const MINUTE_S: i64 = 60;
const HORIZON_S: i64 = 30 * 24 * 3600;
const RETRIES: i32 = 3;
const FAILURES_MAX: i32 = 10;
const FAIL_S: i64 = 7 * 24 * 3600;
