//! Reconstructs a block from its compact form, the mempool and requested transactions (Core `blockencodings.cpp`).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use assay_engine::TxIds;
use assay_wire::p2p::{CompactBlock, ShortId, ShortIdKey};
use assay_wire::{Header, Transaction, encode};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Unusable {
    /// Invalid; the sender is at fault.
    Malformed,
    /// Two short txids collide.
    Ambiguous,
}

#[derive(Debug)]
pub(in super::super) struct Partial {
    header: Header,
    txs: Vec<Found>,
}

#[derive(Clone, Debug)]
enum Found {
    Nothing,
    Prefilled(Box<[u8]>),
    Ours(TxIds, Arc<Transaction>),
    /// Several of our transactions match the short txid.
    Several,
}

/// Indexes by short txid that are still missing.
struct Search {
    key: ShortIdKey,
    places: HashMap<ShortId, u32>,
    left: usize,
}

impl Partial {
    /// Fills in the prefilled transactions, then those of `visit_unconfirmed`, then those of `extra`.
    pub(in super::super) fn new(
        block: &CompactBlock<'_>,
        visit_unconfirmed: impl FnOnce(&mut dyn FnMut(TxIds, &Arc<Transaction>) -> ControlFlow<()>),
        extra: &[(TxIds, Arc<Transaction>)],
    ) -> Result<Self, Unusable> {
        if !block.is_whole() {
            return Err(Unusable::Malformed);
        }
        let mut txs = vec![Found::Nothing; block.tx_count()];
        for tx in &block.prefilled {
            txs[tx.index as usize] = Found::Prefilled(tx.raw.into());
        }
        let is_open = |(_, found): &(usize, &Found)| matches!(found, Found::Nothing);
        let open = txs.iter().enumerate().filter(is_open).map(|(place, _)| place as u32);
        let places: HashMap<ShortId, u32> = block.short_ids.iter().zip(open).collect();
        if places.len() != block.short_ids.len() {
            return Err(Unusable::Ambiguous);
        }
        let key = ShortIdKey::new(&block.header, block.nonce);
        let mut partial = Self { header: block.header, txs };
        let mut search = Search { key, left: places.len(), places };
        if search.left > 0 {
            visit_unconfirmed(&mut |ids, tx| partial.take(&mut search, ids, tx));
        }
        if search.left > 0 {
            let _ = extra.iter().try_for_each(|(ids, tx)| partial.take(&mut search, *ids, tx));
        }
        Ok(partial)
    }

    /// Fills in one of our transactions if its short txid matches; breaks when nothing is missing.
    fn take(&mut self, search: &mut Search, ids: TxIds, tx: &Arc<Transaction>) -> ControlFlow<()> {
        let Some(place) = search.places.get(&search.key.short_id(&ids.wtxid)) else {
            return ControlFlow::Continue(());
        };
        let found = &mut self.txs[*place as usize];
        match found {
            Found::Nothing => {
                *found = Found::Ours(ids, Arc::clone(tx));
                search.left -= 1;
            }
            // Ambiguous: request it.
            Found::Ours(other, _) if other.wtxid != ids.wtxid => {
                *found = Found::Several;
                search.left += 1;
            }
            _ => {}
        }
        // Later collisions are not detected: too rare to justify the time.
        if search.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub(in super::super) fn missing(&self) -> Vec<u32> {
        let is_missing = |found: &Found| matches!(found, Found::Nothing | Found::Several);
        let places = self.txs.iter().enumerate().filter(|(_, found)| is_missing(found));
        places.map(|(place, _)| place as u32).collect()
    }

    /// Ids of our transactions, by index.
    pub(in super::super) fn known(&self) -> Vec<Option<TxIds>> {
        let ids = |found: &Found| match found {
            Found::Ours(ids, _) => Some(*ids),
            _ => None,
        };
        self.txs.iter().map(ids).collect()
    }

    /// The block's bytes with the missing transactions; `None` if their number differs.
    pub(in super::super) fn fill(&self, missing: &[&[u8]]) -> Option<Vec<u8>> {
        let lengths = self.txs.iter().map(|found| match found {
            Found::Nothing | Found::Several => 0,
            Found::Prefilled(tx) => tx.len(),
            Found::Ours(_, tx) => tx.bytes().len(),
        });
        let bytes = lengths.chain(missing.iter().map(|tx| tx.len())).sum::<usize>();
        let mut raw = Vec::with_capacity(Header::SIZE + COUNT_BYTES_MAX + bytes);
        raw.extend_from_slice(&self.header.to_bytes());
        encode::compact_size(&mut raw, self.txs.len() as u64);
        let mut missing = missing.iter();
        for found in &self.txs {
            match found {
                Found::Nothing | Found::Several => raw.extend_from_slice(missing.next()?),
                Found::Prefilled(tx) => raw.extend_from_slice(tx),
                Found::Ours(_, tx) => raw.extend_from_slice(tx.bytes()),
            }
        }
        missing.next().is_none().then_some(raw)
    }
}

const COUNT_BYTES_MAX: usize = 9;

#[cfg(test)]
mod tests {
    use assay_wire::p2p::Prefilled;
    use assay_wire::{BlockHash, Encoding};

    use super::*;

    const HEADER: Header = Header {
        version: 1,
        prev_block: BlockHash([7; 32]),
        merkle_root: [8; 32],
        time: 9,
        bits: 10,
        nonce: 11,
    };

    fn tx(version: u8) -> Arc<Transaction> {
        let mut raw = [0; 10];
        raw[0] = version;
        Arc::new(Transaction::parse(raw.to_vec(), Encoding::Segwit).expect("a transaction"))
    }

    fn named(tx: &Arc<Transaction>) -> (TxIds, Arc<Transaction>) {
        let ids = TxIds { txid: tx.view().txid(), wtxid: tx.view().wtxid() };
        (ids, Arc::clone(tx))
    }

    /// Four transactions, the first prefilled, the others as short txids.
    fn rebuilt(
        pool: &[Arc<Transaction>],
        extra: &[Arc<Transaction>],
    ) -> (Result<Partial, Unusable>, Vec<u8>) {
        let txs = [1, 2, 3, 4].map(tx);
        let key = ShortIdKey::new(&HEADER, 5);
        let ids: Vec<ShortId> =
            txs[1..].iter().map(|tx| key.short_id(&tx.view().wtxid())).collect();
        let prefilled = vec![Prefilled { index: 0, raw: txs[0].bytes() }];
        let block = CompactBlock { header: HEADER, nonce: 5, short_ids: ids[..].into(), prefilled };
        let extra: Vec<_> = extra.iter().map(named).collect();
        let partial = Partial::new(
            &block,
            |visit| {
                let _ = pool.iter().try_for_each(|tx| visit(named(tx).0, tx));
            },
            &extra,
        );
        let mut whole = HEADER.to_bytes().to_vec();
        whole.push(4);
        for tx in &txs {
            whole.extend_from_slice(tx.bytes());
        }
        (partial, whole)
    }

    #[test]
    fn known_transactions_are_not_missing() {
        let (partial, whole) = rebuilt(&[tx(9), tx(3)], &[tx(8), tx(4), tx(3)]);
        let partial = partial.unwrap();
        assert_eq!(partial.missing(), [1]);
        assert_eq!(partial.fill(&[tx(2).bytes()]).unwrap(), whole);
        assert_eq!(partial.fill(&[]), None);
        assert_eq!(partial.fill(&[tx(2).bytes(), tx(3).bytes()]), None);
        let (partial, whole) = rebuilt(&[tx(4), tx(3), tx(2)], &[]);
        let known = partial.as_ref().unwrap().known();
        assert_eq!(known, [None, Some(2), Some(3), Some(4)].map(|n| n.map(|n| named(&tx(n)).0)));
        assert_eq!(partial.unwrap().fill(&[]).unwrap(), whole);
        let (partial, _) = rebuilt(&[], &[]);
        assert_eq!(partial.unwrap().missing(), [1, 2, 3]);
    }

    #[test]
    fn colliding_transactions_are_requested() {
        let key = ShortIdKey::new(&HEADER, 5);
        let ids = [key.short_id(&tx(2).view().wtxid())];
        let block =
            CompactBlock { header: HEADER, nonce: 5, short_ids: ids[..].into(), prefilled: vec![] };
        let mut partial = Partial { header: HEADER, txs: vec![Found::Nothing; 2] };
        let places = HashMap::from([(ids[0], 0)]);
        let mut search = Search { key, places, left: 2 };
        let (ids, first) = named(&tx(2));
        let _ = partial.take(&mut search, ids, &first);
        assert_eq!(partial.missing(), [1]);
        // The same transaction changes nothing; another one with this short txid does, and a third does not undo it.
        let _ = partial.take(&mut search, ids, &first);
        assert_eq!(partial.missing(), [1]);
        partial.txs[0] = Found::Ours(named(&tx(3)).0, tx(3));
        let _ = partial.take(&mut search, ids, &first);
        assert_eq!((partial.missing(), search.left), (vec![0, 1], 2));
        let _ = partial.take(&mut search, ids, &first);
        assert_eq!(partial.missing(), [0, 1]);
        assert!(block.is_whole());
    }

    #[test]
    fn rejects_collisions_and_bad_indexes() {
        let key = ShortIdKey::new(&HEADER, 5);
        let ids = [key.short_id(&tx(2).view().wtxid()); 2];
        let none = |_: &mut dyn FnMut(TxIds, &Arc<Transaction>) -> ControlFlow<()>| {};
        let mut block =
            CompactBlock { header: HEADER, nonce: 5, short_ids: ids[..].into(), prefilled: vec![] };
        assert_eq!(Partial::new(&block, none, &[]).unwrap_err(), Unusable::Ambiguous);
        let raw = tx(1);
        block.prefilled = vec![Prefilled { index: 3, raw: raw.bytes() }];
        assert_eq!(Partial::new(&block, none, &[]).unwrap_err(), Unusable::Malformed);
    }
}
