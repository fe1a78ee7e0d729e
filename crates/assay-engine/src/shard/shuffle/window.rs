//! Outputs of recent blocks that are not spent yet, in memory of fixed size.

use super::records::{
    OUTPOINT_BYTES, OUTPUT_BYTES_MAX, OUTPUT_HEAD_BYTES, Placing, word, write_output,
};

/// Outputs one after the other, as records, and a table that finds them by their outpoints.
pub(super) struct Window {
    placing: Placing,
    /// The height of a record has its highest bit set once the coin is spent.
    records: Vec<u8>,
    bytes_max: usize,
    count: usize,
    count_max: usize,
    live_bytes: usize,
    /// Upper half of the hash, and where the record begins plus one; zero where there is none.
    slots: Vec<(u32, u32)>,
}

impl Window {
    pub(super) fn new(placing: Placing, bytes_max: usize, count_max: usize) -> Self {
        let count_max = count_max.max(1);
        Self {
            placing,
            // Untouched memory takes none.
            records: Vec::with_capacity(bytes_max),
            bytes_max,
            count: 0,
            count_max,
            live_bytes: 0,
            slots: vec![(0, 0); count_max + count_max / 3 + 1],
        }
    }

    /// Whether another output of any length fits; makes room of spent ones where they are the half.
    pub(super) fn has_room(&mut self) -> bool {
        let is_full = |window: &Self| {
            window.count == window.count_max
                || window.records.len() + OUTPUT_BYTES_MAX > window.bytes_max
        };
        if is_full(self) && self.live_bytes <= self.records.len() / 2 {
            self.compact();
        }
        !is_full(self)
    }

    /// Adds an output. It overwrites an unspent one of the same outpoint, as in the UTXO set.
    pub(super) fn push(&mut self, outpoint: &[u8; OUTPOINT_BYTES], height: u32, coin: &[u8]) {
        self.take(outpoint);
        let start = self.records.len();
        write_output(&mut self.records, outpoint, height, coin);
        self.live_bytes += self.records.len() - start;
        self.count += 1;
        self.point_to(start);
    }

    /// Takes an output out: its coin.
    pub(super) fn take(&mut self, outpoint: &[u8; OUTPOINT_BYTES]) -> Option<&[u8]> {
        let slot = self.find(outpoint, self.placing.hash(outpoint))?;
        let start = self.slots[slot].1 as usize - 1;
        if self.is_spent(start) {
            return None;
        }
        self.records[start + OUTPOINT_BYTES + 3] |= SPENT;
        let end = self.end_of(start);
        self.live_bytes -= end - start;
        Some(&self.records[start + OUTPUT_HEAD_BYTES..end])
    }

    /// Where the records begin that are unspent.
    pub(super) fn unspent(&self) -> impl Iterator<Item = u32> {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < self.records.len() {
                let start = at;
                at = self.end_of(start);
                if !self.is_spent(start) {
                    return Some(start as u32);
                }
            }
            None
        })
    }

    /// The record that begins at a place.
    pub(super) fn record(&self, start: u32) -> &[u8] {
        &self.records[start as usize..self.end_of(start as usize)]
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.slots.fill((0, 0));
        (self.count, self.live_bytes) = (0, 0);
    }

    fn find(&self, outpoint: &[u8], hash: u64) -> Option<usize> {
        let tag = (hash >> 32) as u32;
        let mut slot = self.first_slot(hash);
        while self.slots[slot].1 != 0 {
            let (found, start) = (self.slots[slot].0, self.slots[slot].1 as usize - 1);
            if found == tag && self.records[start..start + OUTPOINT_BYTES] == *outpoint {
                return Some(slot);
            }
            slot = (slot + 1) % self.slots.len();
        }
        None
    }

    /// Has the table find the record that begins at a place, and no older one of its outpoint.
    fn point_to(&mut self, start: usize) {
        let outpoint = &self.records[start..start + OUTPOINT_BYTES];
        let hash = self.placing.hash(outpoint);
        let slot = self.find(outpoint, hash).unwrap_or_else(|| {
            let mut slot = self.first_slot(hash);
            while self.slots[slot].1 != 0 {
                slot = (slot + 1) % self.slots.len();
            }
            slot
        });
        self.slots[slot] = ((hash >> 32) as u32, start as u32 + 1);
    }

    fn first_slot(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    fn is_spent(&self, start: usize) -> bool {
        self.records[start + OUTPOINT_BYTES + 3] & SPENT != 0
    }

    fn end_of(&self, start: usize) -> usize {
        let length = word(&self.records, start + OUTPUT_HEAD_BYTES - 4) >> 16;
        start + OUTPUT_HEAD_BYTES + length as usize
    }

    /// Drops what is spent.
    fn compact(&mut self) {
        let (mut at, mut end) = (0, 0);
        self.slots.fill((0, 0));
        self.count = 0;
        while at < self.records.len() {
            let next = self.end_of(at);
            if !self.is_spent(at) {
                self.records.copy_within(at..next, end);
                self.point_to(end);
                self.count += 1;
                end += next - at;
            }
            at = next;
        }
        self.records.truncate(end);
        self.live_bytes = end;
    }
}

/// In the last byte of the height: heights are below 2^31.
const SPENT: u8 = 0x80;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assay_testkit::random::Random;
    use assay_wire::Txid;

    use super::super::records::outpoint_bytes;
    use super::*;

    /// Against a map, in memory so small that spent outputs are dropped and all are forgotten again and again.
    #[test]
    fn finds_what_a_map_finds() {
        let mut random = Random(5);
        let mut window = Window::new(Placing::new(&[1; 16]), OUTPUT_BYTES_MAX + 5000, 90);
        let mut map: BTreeMap<[u8; OUTPOINT_BYTES], Vec<u8>> = BTreeMap::new();
        let (mut cleared, mut found) = (0, 0);
        for height in 0..80_000 {
            let txid = Txid([random.below(40) as u8; 32]);
            let outpoint = outpoint_bytes(&txid, random.below(4) as u32);
            if random.below(2) == 0 {
                if !window.has_room() {
                    let left = window.unspent().map(|start| window.record(start).to_vec());
                    let mut left: Vec<Vec<u8>> = left.collect();
                    left.sort();
                    let mut expected: Vec<Vec<u8>> = map.into_values().collect();
                    expected.sort();
                    assert_eq!(left, expected);
                    (map, cleared) = (BTreeMap::new(), cleared + 1);
                    window.clear();
                }
                let coin = vec![height as u8; 3 + random.below(90)];
                window.push(&outpoint, height, &coin);
                let mut record = Vec::new();
                write_output(&mut record, &outpoint, height, &coin);
                map.insert(outpoint, record);
            } else {
                let expected = map.remove(&outpoint);
                let expected = expected.as_ref().map(|record| &record[OUTPUT_HEAD_BYTES..]);
                assert_eq!(window.take(&outpoint), expected);
                found += usize::from(expected.is_some());
            }
        }
        assert!(cleared > 20 && found > 5000, "{cleared} {found}");
    }
}
