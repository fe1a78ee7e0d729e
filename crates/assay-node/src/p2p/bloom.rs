//! Bloom filters of light clients (BIP37; Core `common/bloom.cpp`).
//!
//! A peer's filter selects the transactions to announce. A match may add its outpoint to the filter, so that
//! transactions that spend the outputs match as well.

use assay_consensus::script::OutputKind;
use assay_consensus::script::opcode::Instructions;
use assay_hash::murmur3;
use assay_wire::p2p::FilterLoad;
use assay_wire::{OutPoint, Tx, Txid};

/// Filter of one peer, at most 36,000 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BloomFilter {
    bits: Vec<u8>,
    functions: u32,
    tweak: u32,
    flags: u8,
}

impl BloomFilter {
    /// Accepts a peer's filter; `None` above the protocol limits.
    pub(crate) fn new(sent: &FilterLoad<'_>) -> Option<Self> {
        let FilterLoad { bits, functions, tweak, flags } = *sent;
        let is_allowed = bits.len() <= BYTES_MAX && functions <= FUNCTIONS_MAX;
        is_allowed.then(|| Self { bits: bits.to_vec(), functions, tweak, flags })
    }

    fn places(&self, data: &[u8]) -> impl Iterator<Item = usize> {
        let count = 8 * self.bits.len() as u32;
        let seeds = (0..self.functions).map(|index| index.wrapping_mul(SEED_STEP));
        let seeds = seeds.map(|seed| seed.wrapping_add(self.tweak));
        // A filter without bits has no positions (CVE-2013-5700).
        seeds.filter(move |_| count > 0).map(move |seed| (murmur3(seed, data) % count) as usize)
    }

    pub(crate) fn insert(&mut self, data: &[u8]) {
        let places: Vec<usize> = self.places(data).collect();
        for place in places {
            self.bits[place / 8] |= 1 << (place % 8);
        }
    }

    /// True if `data` was inserted or is a false positive. A filter without bits matches everything.
    pub(crate) fn contains(&self, data: &[u8]) -> bool {
        self.places(data).all(|place| self.bits[place / 8] >> (place % 8) & 1 != 0)
    }

    /// True if a transaction matches. Adds matching outputs according to the filter's flags (Core, `IsRelevantAndUpdate`).
    pub(crate) fn matches_and_updates(&mut self, tx: Tx<'_>, txid: &Txid, is_cash: bool) -> bool {
        if self.bits.is_empty() {
            return true;
        }
        let mut is_found = self.contains(&txid.0);
        for (vout, output) in (0..).zip(tx.outputs()) {
            if !self.matches_push(output.script_pubkey) {
                continue;
            }
            is_found = true;
            let is_added = match self.flags & UPDATE_MASK {
                UPDATE_ALL => true,
                UPDATE_KEYS_ONLY => matches!(
                    OutputKind::of(output.script_pubkey, is_cash),
                    OutputKind::PubKey(_) | OutputKind::Multisig { .. }
                ),
                _ => false,
            };
            if is_added {
                self.insert(&OutPoint { txid: *txid, vout }.to_bytes());
            }
        }
        is_found
            || tx.inputs().any(|input| {
                self.contains(&input.prevout.to_bytes()) || self.matches_push(input.script_sig)
            })
    }

    /// True if a data push of the script matches.
    fn matches_push(&self, script: &[u8]) -> bool {
        Instructions::new(script)
            .map_while(|instruction| instruction)
            .any(|instruction| !instruction.data.is_empty() && self.contains(instruction.data))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilterChange {
    Set(BloomFilter),
    Add(Vec<u8>),
    Clear,
}

/// Maximum size of one element: the largest script item (Core's `MAX_SCRIPT_ELEMENT_SIZE`).
pub(super) const DATA_BYTES_MAX: usize = 520;
/// Core's `MAX_BLOOM_FILTER_SIZE`.
const BYTES_MAX: usize = 36_000;
/// Core's `MAX_HASH_FUNCS`.
const FUNCTIONS_MAX: u32 = 50;
/// Step between the seeds of two hash functions.
const SEED_STEP: u32 = 0xfba4_c795;
/// Core's `BLOOM_UPDATE_MASK`, `BLOOM_UPDATE_ALL`, `BLOOM_UPDATE_P2PUBKEY_ONLY`.
const UPDATE_MASK: u8 = 3;
const UPDATE_ALL: u8 = 1;
const UPDATE_KEYS_ONLY: u8 = 2;

#[cfg(test)]
mod tests {
    use assay_wire::{Encoding, Transaction};

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let mut bytes = vec![0; text.len() / 2];
        faster_hex::hex_decode(text.as_bytes(), &mut bytes).unwrap();
        bytes
    }

    fn filter(bytes: usize, functions: u32, tweak: u32, flags: u8) -> BloomFilter {
        BloomFilter { bits: vec![0; bytes], functions, tweak, flags }
    }

    #[test]
    fn bits_match_core() {
        // `test/bloom_tests.cpp`, `bloom_create_insert_serialize` and with a tweak.
        for (tweak, bits) in [(0, "614e9b"), (2_147_483_649, "ce4299")] {
            let mut filter = filter(3, 5, tweak, UPDATE_ALL);
            let wanted = [
                hex("99108ad8ed9bb6274d3980bab5a85c048f0950c8"),
                hex("b5a2c786d9ef4658287ced5914b37a1b4aa32eee"),
                hex("b9300670b4c5366e95b2699e8b18bc75e5f729c5"),
            ];
            for (count, data) in wanted.iter().enumerate() {
                assert_eq!(filter.contains(data), count > 2, "not yet");
                filter.insert(data);
                assert!(filter.contains(data));
            }
            assert!(!filter.contains(&hex("19108ad8ed9bb6274d3980bab5a85c048f0950c8")));
            assert_eq!(filter.bits, hex(bits));
        }
    }

    /// The transaction of Core's `bloom_match`.
    const TX: &str = "01000000010b26e9b7735eb6aabdf358bab62f9816a21ba9ebdb719d5299e88607d722c190000000008b4830450220070aca44506c5cef3a16ed519d7c3c39f8aab192c4e1c90d065f37b8a4af6141022100a8e160b856c2d43d27d8fba71e5aef6405b8643ac4cb7cb3c462aced7f14711a0141046d11fee51b0e60666d5049a9101a72741df480b96ee26488a4d3466b95c9a40ac5eeef87e10a5cd336c19a84565f80fa6c547957b7700ff4dfbdefe76036c339ffffffff021bff3d11000000001976a91404943fdd508053c75000106d3bc6e2754dbcff1988ac2f15de00000000001976a914a266436d2965547608b9e15d9032a7b9d64fa43188ac00000000";

    #[test]
    fn matches_by_txid_pushes_and_inputs() {
        let tx = Transaction::parse(hex(TX), Encoding::Segwit).unwrap();
        let txid = tx.view().txid();
        let spent = tx.view().input(0).prevout.to_bytes();
        let other = OutPoint { vout: 1, ..tx.view().input(0).prevout }.to_bytes();
        let signature = "30450220070aca44506c5cef3a16ed519d7c3c39f8aab192c4e1c90d065f37b8a4af6141022100a8e160b856c2d43d27d8fba71e5aef6405b8643ac4cb7cb3c462aced7f14711a01";
        for (data, expected) in [
            (txid.0.to_vec(), true),
            (hex(signature), true),
            (hex("04943fdd508053c75000106d3bc6e2754dbcff19"), true),
            (hex("a266436d2965547608b9e15d9032a7b9d64fa431"), true),
            (spent.to_vec(), true),
            (other.to_vec(), false),
            (hex("0000006d2965547608b9e15d9032a7b9d64fa431"), false),
        ] {
            let mut filter = filter(18, 10, 0, UPDATE_ALL);
            filter.insert(&data);
            assert_eq!(filter.matches_and_updates(tx.view(), &txid, false), expected, "{data:x?}");
        }
    }

    #[test]
    fn flags_control_added_outputs() {
        let tx = Transaction::parse(hex(TX), Encoding::Segwit).unwrap();
        let txid = tx.view().txid();
        let output = OutPoint { txid, vout: 0 }.to_bytes();
        for (flags, is_added) in [(0, false), (UPDATE_ALL, true), (UPDATE_KEYS_ONLY, false)] {
            let mut filter = filter(18, 10, 0, flags);
            filter.insert(&hex("04943fdd508053c75000106d3bc6e2754dbcff19"));
            assert!(filter.matches_and_updates(tx.view(), &txid, false));
            assert_eq!(filter.contains(&output), is_added, "{flags}");
        }
    }

    #[test]
    fn limits_and_a_filter_without_bits() {
        let sent = |bits, functions| FilterLoad { bits, functions, tweak: 0, flags: 0 };
        let largest = vec![0xbb; BYTES_MAX + 1];
        assert!(BloomFilter::new(&sent(&largest, 1)).is_none());
        assert!(BloomFilter::new(&sent(&largest[1..], 50)).is_some());
        assert!(BloomFilter::new(&sent(&[0xaa], 51)).is_none());
        let mut empty = BloomFilter::new(&sent(&[], 1)).unwrap();
        empty.insert(b"anything");
        assert!(empty.contains(b"anything else"));
        let tx = Transaction::parse(hex(TX), Encoding::Segwit).unwrap();
        assert!(empty.matches_and_updates(tx.view(), &tx.view().txid(), false));
    }
}
