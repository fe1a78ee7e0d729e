//! Sums over coins created and coins spent.

use assay_hash::{KeyedHash, MuHash3072, Sum256};
use assay_store::CoinRef;
use assay_wire::{OutPoint, Txid};

use super::Salt;
use super::plan::Unspent;
use crate::stats::serialise;

/// The hash of coins. Its input, the bytes that MuHash takes, is prefix-free, since a script has its length before it.
pub(crate) enum Hashing {
    /// Under a secret key, into sums.
    Keyed(KeyedHash),
    /// Into a MuHash, which needs no secret.
    MuHash,
}

/// Coins created and spent, with their sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) created: Side,
    pub(crate) spent: Side,
}

/// Created or spent coins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) coins: u64,
    /// Satoshi; wraps, as a claim may say anything.
    pub(crate) amount_sat: u64,
    pub(crate) digest: Digest,
}

/// A sum of hashes.
#[derive(Clone, Debug)]
pub(crate) enum Digest {
    Sum(Sum256),
    MuHash(Box<MuHash3072>),
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sum(a), Self::Sum(b)) => a == b,
            (Self::MuHash(a), Self::MuHash(b)) => a.to_bytes() == b.to_bytes(),
            _ => false,
        }
    }
}

impl Eq for Digest {}

impl Hashing {
    pub(crate) fn new(unspent: &Unspent, salt: &Salt) -> Self {
        match unspent {
            Unspent::Coins { .. } | Unspent::Hints { .. } => Self::Keyed(KeyedHash::new(salt)),
            Unspent::MuHash(_) => Self::MuHash,
        }
    }

    /// A tally without coins.
    pub(crate) fn tally(&self) -> Tally {
        let side = || Side {
            coins: 0,
            amount_sat: 0,
            digest: match self {
                Self::Keyed(_) => Digest::Sum(Sum256::default()),
                Self::MuHash => Digest::MuHash(Box::default()),
            },
        };
        Tally { created: side(), spent: side() }
    }
}

impl Side {
    /// Adds coins; `records` holds them one after the other and is emptied.
    pub(crate) fn add(&mut self, hashing: &Hashing, records: &mut Records) {
        self.coins += records.ends.len() as u64;
        self.amount_sat = self.amount_sat.wrapping_add(records.amount_sat);
        match (&mut self.digest, hashing) {
            (Digest::Sum(sum), Hashing::Keyed(hash)) => {
                records.iter().for_each(|record| sum.add(&hash.hash(record)));
            }
            (Digest::MuHash(muhash), _) => {
                muhash.insert_many(&records.iter().collect::<Vec<_>>());
            }
            (Digest::Sum(_), Hashing::MuHash) => unreachable!("a tally is of its own hashing"),
        }
        records.clear();
    }

    /// Adds the figures of another one.
    pub(crate) fn combine(&mut self, other: &Self) {
        // Results are read from files: any number may be there.
        self.coins = self.coins.saturating_add(other.coins);
        self.amount_sat = self.amount_sat.wrapping_add(other.amount_sat);
        match (&mut self.digest, &other.digest) {
            (Digest::Sum(sum), Digest::Sum(other)) => sum.add_sum(other),
            (Digest::MuHash(muhash), Digest::MuHash(other)) => muhash.combine(other),
            _ => unreachable!("tallies of one plan are hashed alike"),
        }
    }
}

impl Tally {
    pub(crate) fn combine(&mut self, other: &Self) {
        self.created.combine(&other.created);
        self.spent.combine(&other.spent);
    }
}

/// Serialised coins to be hashed, one after the other.
#[derive(Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    amount_sat: u64,
}

impl Records {
    pub(crate) fn push(&mut self, outpoint: &OutPoint, coin: CoinRef<'_>) {
        serialise(outpoint, coin, &mut self.bytes);
        self.ends.push(self.bytes.len());
        self.amount_sat = self.amount_sat.wrapping_add(coin.value.cast_unsigned());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.amount_sat = 0;
    }
}

/// The figures of a part of the UTXO set.
#[derive(Clone, Debug)]
pub(crate) struct CoinFigures {
    pub(crate) coins: u64,
    /// Satoshi; wraps, as a file may say anything.
    pub(crate) amount_sat: u64,
    pub(crate) transactions: u64,
    pub(crate) bogosize: u64,
    pub(crate) muhash: MuHash3072,
    last: Option<Txid>,
}

impl CoinFigures {
    pub(crate) fn new() -> Self {
        Self::of([0; 4], MuHash3072::new())
    }

    /// Figures from a file: coins, their amount, transactions, bogosize.
    pub(crate) fn of(figures: [u64; 4], muhash: MuHash3072) -> Self {
        let [coins, amount_sat, transactions, bogosize] = figures;
        Self { coins, amount_sat, transactions, bogosize, muhash, last: None }
    }

    /// Counts a coin; those of one transaction come one after the other.
    pub(crate) fn count(&mut self, outpoint: &OutPoint, coin: CoinRef<'_>) {
        self.coins += 1;
        self.amount_sat = self.amount_sat.wrapping_add(coin.value.cast_unsigned());
        if self.last != Some(outpoint.txid) {
            self.last = Some(outpoint.txid);
            self.transactions += 1;
        }
        self.bogosize += 50 + coin.script_pubkey.len() as u64;
    }

    /// Adds coins to the hash of the set.
    pub(crate) fn hash(&mut self, records: &Records) {
        self.muhash.insert_many(&records.iter().collect::<Vec<_>>());
    }

    pub(crate) fn combine(&mut self, other: &Self) {
        self.coins = self.coins.saturating_add(other.coins);
        self.amount_sat = self.amount_sat.wrapping_add(other.amount_sat);
        self.transactions = self.transactions.saturating_add(other.transactions);
        self.bogosize = self.bogosize.saturating_add(other.bogosize);
        self.muhash.combine(&other.muhash);
    }
}

/// Records that are hashed at a time: a multiple of the vector width, and small enough for the cache.
pub(crate) const RECORDS_AT_ONCE: usize = 1024;
