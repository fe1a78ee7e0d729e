//! Compact blocks (BIP152), sender side.

use sha2::{Digest as _, Sha256};
use siphasher::sip::SipHasher24;

use super::tx::BlockTx;
use super::{HEADER_BYTES, Hash, put_count, read_count};

/// Payload of `cmpctblock`: `prefilled` transactions (ascending) are included in full, the others as short ids of `name`.
pub(crate) fn compact_block(
    block: &[u8],
    txs: &[BlockTx],
    name: impl Fn(&BlockTx) -> Hash,
    nonce: u64,
    prefilled: &[usize],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + 8 + txs.len() * SHORT_BYTES);
    out.extend_from_slice(&block[..HEADER_BYTES]);
    out.extend_from_slice(&nonce.to_le_bytes());
    let hasher = short_hasher(&out);
    put_count(&mut out, txs.len() - prefilled.len());
    let mut whole = prefilled.iter().copied().peekable();
    for (at, tx) in txs.iter().enumerate() {
        if whole.next_if_eq(&at).is_none() {
            out.extend_from_slice(&hasher.hash(&name(tx)).to_le_bytes()[..SHORT_BYTES]);
        }
    }
    put_count(&mut out, prefilled.len());
    let mut next = 0;
    for &at in prefilled {
        // Indexes are encoded as differences (BIP152).
        put_count(&mut out, at - next);
        next = at + 1;
        out.extend_from_slice(&block[txs[at].place.clone()]);
    }
    out
}

/// Payload of `blocktxn`.
pub(crate) fn block_txn(hash: &Hash, block: &[u8], txs: &[BlockTx], wanted: &[usize]) -> Vec<u8> {
    let mut out = hash.to_vec();
    put_count(&mut out, wanted.len());
    for &at in wanted {
        out.extend_from_slice(&block[txs[at].place.clone()]);
    }
    out
}

/// Block and transactions requested by a `getblocktxn`; `None` if malformed, or out of range for a block of `count` transactions.
pub(crate) fn read_get_block_txn(payload: &[u8], count: usize) -> Option<(Hash, Vec<usize>)> {
    let (hash, mut rest) = payload.split_first_chunk()?;
    let wanted = read_count(&mut rest)?;
    let mut places = Vec::with_capacity(wanted.min(count));
    let mut next = 0_usize;
    for _ in 0..wanted {
        let at = next.checked_add(read_count(&mut rest)?)?;
        if at >= count {
            return None;
        }
        places.push(at);
        next = at + 1;
    }
    Some((*hash, places))
}

/// Keyed with the hash of header and nonce.
fn short_hasher(header_and_nonce: &[u8]) -> SipHasher24 {
    let key = Sha256::digest(header_and_nonce);
    let word = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight bytes"));
    SipHasher24::new_with_keys(word(0), word(8))
}

const SHORT_BYTES: usize = 6;

#[cfg(test)]
mod tests {
    use super::super::coinbase_block;
    use super::super::tx::transactions;
    use super::*;

    fn block_of(count: u8) -> (Vec<u8>, Vec<BlockTx>) {
        let mut block = coinbase_block(&[7; 32], 500, 1, 9);
        block[HEADER_BYTES] = count + 1;
        for byte in 0..count {
            let tx = super::super::coinbase(1000 + u32::from(byte), 1);
            block.extend(&tx);
        }
        let txs = transactions(&block).unwrap();
        (block, txs)
    }

    #[test]
    fn short_ids_or_prefilled() {
        let (block, txs) = block_of(4);
        let payload = compact_block(&block, &txs, |tx| tx.wtxid, 5, &[0, 3]);
        assert_eq!(payload[..HEADER_BYTES], block[..HEADER_BYTES]);
        let names = &payload[HEADER_BYTES + 8..];
        assert_eq!(names[0], 3);
        let hasher = short_hasher(&payload[..HEADER_BYTES + 8]);
        for (at, short) in [1, 2, 4].into_iter().zip(names[1..].chunks(SHORT_BYTES)) {
            assert_eq!(*short, hasher.hash(&txs[at].wtxid).to_le_bytes()[..SHORT_BYTES]);
        }
        let mut whole = vec![2, 0];
        whole.extend(&block[txs[0].place.clone()]);
        whole.push(2);
        whole.extend(&block[txs[3].place.clone()]);
        assert_eq!(names[1 + 3 * SHORT_BYTES..], whole);
    }

    #[test]
    fn serves_requested_transactions() {
        let (block, txs) = block_of(4);
        let asked = [&[7; 32][..], &[2, 1, 2]].concat();
        let (hash, places) = read_get_block_txn(&asked, txs.len()).unwrap();
        assert_eq!((hash, &places[..]), ([7; 32], &[1, 4][..]));
        let given = block_txn(&hash, &block, &txs, &places);
        assert_eq!(given[32], 2);
        assert!(given.ends_with(&block[txs[4].place.clone()]));
        for broken in [&asked[..20], &asked[..34], &[&[7; 32][..], &[2, 1, 3]].concat()] {
            assert_eq!(read_get_block_txn(broken, txs.len()), None);
        }
    }
}
