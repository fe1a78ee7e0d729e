//! Rows of the index tables.
//!
//! Three tables share one row type. A row has a hashed key, a transaction number, and few other fields:
//!
//! | table | key | `n` | `value` | `tag` |
//! |---|---|---|---|---|
//! | scripts | script hash | index of the output or input | satoshi, and a flag for spent | the outpoint, hashed |
//! | spenders | outpoint | index of the spending input | 0 | 0 |
//! | txids | txid | 0 | 0 | 0 |
//!
//! Transactions of the active chain are numbered from genesis on, so rows sort by key, then in chain order, and a reorg drops all
//! rows from a number on.

use assay_hash::SipHash13;
use assay_wire::{OutPoint, Txid};

use super::types::ScriptHash;

/// Position of a transaction in the active chain; genesis' coinbase is 0.
pub(crate) type TxNumber = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    /// Key, transaction number and index, most significant first: the sort key.
    pub(crate) order: u128,
    /// Satoshi times two, plus one if the row spends.
    pub(crate) value: u64,
    /// Low bits of the outpoint's hash: matches an input to the output of the same script that it spends.
    pub(crate) tag: u32,
}

/// Upper bits of [`Row::order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    /// Lowest row of this key from transaction `tx` on.
    pub(crate) fn at(self, tx: TxNumber) -> u128 {
        self.0 << KEY_SHIFT | u128::from(tx) << TX_SHIFT
    }

    #[inline]
    fn new(hash: u64, public: &[u8; 32]) -> Self {
        let check = u128::from(u16::from_le_bytes([public[0], public[1]])) & CHECK_MASK;
        Self(u128::from(hash) << CHECK_BITS | check)
    }
}

impl Row {
    #[inline]
    pub(crate) fn new(key: Key, tx: TxNumber, n: u32, value: u64, tag: u32) -> Self {
        debug_assert!(tx < TX_NUMBER_MAX && n < N_MAX);
        Self { order: key.at(tx) | u128::from(n), value, tag }
    }

    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key(self.order >> KEY_SHIFT)
    }

    /// The key as a number below 2^77.
    #[inline]
    pub(crate) fn key_bits(&self) -> u128 {
        self.order >> KEY_SHIFT
    }

    /// `None` if a field is out of range.
    #[inline]
    pub(crate) fn from_parts(
        key: u128,
        tx: TxNumber,
        n: u64,
        value: u64,
        tag: u32,
    ) -> Option<Self> {
        if key >> KEY_BITS != 0 || tx >= TX_NUMBER_MAX || n >= u64::from(N_MAX) {
            return None;
        }
        let order = key << KEY_SHIFT | u128::from(tx) << TX_SHIFT | u128::from(n);
        Some(Self { order, value, tag })
    }

    #[inline]
    pub(crate) fn tx(&self) -> TxNumber {
        (self.order >> TX_SHIFT) as u64 & (TX_NUMBER_MAX - 1)
    }

    #[inline]
    pub(crate) fn n(&self) -> u32 {
        self.order as u32 & (N_MAX - 1)
    }

    /// The same row with its transaction number increased by `by`.
    #[inline]
    pub(crate) fn shifted(self, by: TxNumber) -> Self {
        Self { order: self.order + (u128::from(by) << TX_SHIFT), ..self }
    }

    #[inline]
    pub(crate) fn is_spend(&self) -> bool {
        self.value & 1 == 1
    }

    #[inline]
    pub(crate) fn satoshi(&self) -> u64 {
        self.value >> 1
    }
}

/// Hashes keys. The secret prevents others from choosing scripts or outpoints that collide.
///
/// A key has 77 bits, 64 of them secret: with a billion scripts the chance that any two collide is one in 300,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    hash: SipHash13,
}

impl Keys {
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self { hash: SipHash13::new(secret[0], secret[1]) }
    }

    #[inline]
    pub(crate) fn script(&self, script: &ScriptHash) -> Key {
        Key::new(self.hash.hash(&script.0), &script.0)
    }

    #[inline]
    pub(crate) fn txid(&self, txid: &Txid) -> Key {
        Key::new(self.hash.hash(&txid.0), &txid.0)
    }

    #[inline]
    pub(crate) fn outpoint(&self, outpoint: &OutPoint) -> (Key, u32) {
        let hash = self.hash.hash_outpoint(&outpoint.txid.0, outpoint.vout);
        (Key::new(hash, &outpoint.txid.0), hash as u32)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Scripts,
    Spenders,
    Txids,
}

impl Table {
    pub(crate) const ALL: [Self; 3] = [Self::Scripts, Self::Spenders, Self::Txids];

    /// True if rows have a value and a tag.
    pub(crate) fn has_value(self) -> bool {
        self == Self::Scripts
    }

    pub(crate) fn has_n(self) -> bool {
        self != Self::Txids
    }
}

pub(crate) type Tables = [Vec<Row>; 3];

/// 17 billion transactions.
pub(crate) const TX_NUMBER_MAX: u64 = 1 << 34;
/// Bound of inputs or outputs per transaction: an output has at least 9 bytes, a transaction without witnesses at most a million.
pub(crate) const N_MAX: u32 = 1 << TX_SHIFT;

const TX_SHIFT: u32 = 17;
const KEY_SHIFT: u32 = TX_SHIFT + 34;
const KEY_BITS: u32 = 128 - KEY_SHIFT;
const CHECK_BITS: u32 = KEY_BITS - 64;
const CHECK_MASK: u128 = (1 << CHECK_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_apart_and_rows_sort_by_key_then_transaction() {
        let keys = Keys::new([1, 2]);
        let (key, _) = keys.outpoint(&OutPoint { txid: Txid([0xff; 32]), vout: 7 });
        for tx in [0, 1, TX_NUMBER_MAX - 2] {
            for n in [0, 1, N_MAX - 1] {
                let row = Row::new(key, tx, n, 9, 3);
                assert_eq!((row.key(), row.tx(), row.n()), (key, tx, n));
                assert!(row.order >= key.at(tx) && row.order < key.at(tx + 1));
                assert_eq!(Row::new(key, 0, n, 9, 3).shifted(tx), row);
            }
        }
    }

    #[test]
    fn the_secret_decides_the_order() {
        let script = ScriptHash([5; 32]);
        assert_ne!(Keys::new([1, 2]).script(&script), Keys::new([1, 3]).script(&script));
        assert_ne!(
            Keys::new([1, 2]).script(&script),
            Keys::new([1, 2]).script(&ScriptHash([6; 32]))
        );
    }
}
