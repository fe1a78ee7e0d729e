//! Locates the transactions of a block and computes their ids.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

use super::{HEADER_BYTES, Hash, read_count};

/// A transaction in the bytes of its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockTx {
    pub(crate) place: Range<usize>,
    pub(crate) txid: Hash,
    /// wtxid (BIP141); the txid without witnesses.
    pub(crate) wtxid: Hash,
}

/// All transactions of a block in order; `None` if it is truncated or has trailing bytes.
pub(crate) fn transactions(block: &[u8]) -> Option<Vec<BlockTx>> {
    let mut rest = block.get(HEADER_BYTES..)?;
    let count = read_count(&mut rest)?;
    let mut txs = Vec::with_capacity(count.min(rest.len() / TX_BYTES_MIN));
    for _ in 0..count {
        let parts = Parts::take(&mut rest)?;
        let end = block.len() - rest.len();
        let start = end - parts.bytes;
        let tx = &block[start..end];
        let wtxid = super::double_sha256(tx);
        let txid = if parts.witness.is_empty() { wtxid } else { parts.txid(tx) };
        txs.push(BlockTx { place: start..end, txid, wtxid });
    }
    rest.is_empty().then_some(txs)
}

/// Calls `each` with the txid of every spent output. Malformed bytes end the walk: the node will reject them.
pub(crate) fn each_parent<'a>(tx: &'a [u8], mut each: impl FnMut(&'a Hash)) {
    each_spent(tx, |txid, _| each(txid));
}

/// The same with the output index.
pub(crate) fn each_spent<'a>(tx: &'a [u8], each: impl FnMut(&'a Hash, u32)) {
    let mut rest = tx;
    // A truncated walk has reported what it could parse.
    let _ = walk(&mut rest, each);
}

/// Byte ranges of a transaction.
struct Parts {
    bytes: usize,
    /// Witnesses, relative to the transaction; empty without any.
    witness: Range<usize>,
}

impl Parts {
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let all = rest.len();
        let witness = walk(rest, |_, _| ())?;
        Some(Self { bytes: all - rest.len(), witness })
    }

    /// Hash of a transaction without marker, flag and witnesses.
    fn txid(&self, tx: &[u8]) -> Hash {
        let once = Sha256::new()
            .chain_update(&tx[..VERSION_BYTES])
            .chain_update(&tx[VERSION_BYTES + MARKER.len()..self.witness.start])
            .chain_update(&tx[self.witness.end..])
            .finalize();
        Sha256::digest(once).into()
    }
}

/// Walks over a transaction; returns the range of its witnesses.
fn walk<'a>(rest: &mut &'a [u8], mut each: impl FnMut(&'a Hash, u32)) -> Option<Range<usize>> {
    let all = rest.len();
    skip(rest, VERSION_BYTES)?;
    // No inputs and flag 1 mark a transaction with witnesses (BIP144).
    let has_witness = rest.starts_with(&MARKER);
    if has_witness {
        skip(rest, MARKER.len())?;
    }
    let inputs = read_count(rest)?;
    for _ in 0..inputs {
        let (txid, after) = rest.split_first_chunk()?;
        let (output, after) = after.split_first_chunk()?;
        each(txid, u32::from_le_bytes(*output));
        *rest = after;
        skip_counted(rest)?;
        skip(rest, 4)?;
    }
    for _ in 0..read_count(rest)? {
        skip(rest, 8)?;
        skip_counted(rest)?;
    }
    let start = all - rest.len();
    if has_witness {
        for _ in 0..inputs {
            for _ in 0..read_count(rest)? {
                skip_counted(rest)?;
            }
        }
    }
    let end = all - rest.len();
    skip(rest, 4)?;
    Some(start..end)
}

fn skip(rest: &mut &[u8], bytes: usize) -> Option<()> {
    *rest = rest.get(bytes..)?;
    Some(())
}

fn skip_counted(rest: &mut &[u8]) -> Option<()> {
    let bytes = read_count(rest)?;
    skip(rest, bytes)
}

const VERSION_BYTES: usize = 4;
const MARKER: [u8; 2] = [0, 1];
/// Shorter bytes are no transaction.
const TX_BYTES_MIN: usize = 10;

#[cfg(test)]
mod tests {
    use super::super::{coinbase, coinbase_block};
    use super::*;

    /// A transaction that spends output 0 of each parent.
    pub(in super::super) fn tx(parents: &[Hash], has_witness: bool) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0];
        if has_witness {
            bytes.extend(MARKER);
        }
        bytes.push(parents.len() as u8);
        for parent in parents {
            bytes.extend(parent);
            bytes.extend([0, 0, 0, 0, 3, 1, 2, 3, 255, 255, 255, 255]);
        }
        bytes.extend([1, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0x51]);
        if has_witness {
            for _ in parents {
                bytes.extend([2, 1, 7, 2, 8, 8]);
            }
        }
        bytes.extend([0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn transactions_are_found_and_named() {
        let mut block = coinbase_block(&[7; 32], 500, 1, 9);
        let plain = tx(&[[1; 32], [2; 32]], false);
        let witness = tx(&[[1; 32], [2; 32]], true);
        block[HEADER_BYTES] = 3;
        block.extend(&plain);
        block.extend(&witness);
        let txs = transactions(&block).unwrap();
        let bytes: Vec<&[u8]> = txs.iter().map(|tx| &block[tx.place.clone()]).collect();
        assert_eq!(bytes, [&coinbase(500, 9)[..], &plain, &witness]);
        assert_eq!(txs[1].txid, super::super::double_sha256(&plain));
        assert_eq!((txs[1].wtxid, txs[2].txid), (txs[1].txid, txs[1].txid));
        assert_eq!(txs[2].wtxid, super::super::double_sha256(&witness));
    }

    #[test]
    fn broken_bytes_end_the_walk() {
        let whole = tx(&[[1; 32], [2; 32]], true);
        let mut block = coinbase_block(&[7; 32], 500, 1, 9);
        for end in 0..whole.len() {
            let mut parents = 0;
            each_parent(&whole[..end], |_| parents += 1);
            assert!(parents <= 2);
            let mut more = block.clone();
            more[HEADER_BYTES] = 2;
            more.extend(&whole[..end]);
            assert_eq!(transactions(&more), None);
        }
        block.push(0);
        assert_eq!(transactions(&block), None);
        let huge = [1, 0, 0, 0, 0xff, 255, 255, 255, 255, 255, 255, 255, 255];
        each_parent(&huge, |_| panic!("there is no input"));
    }
}
