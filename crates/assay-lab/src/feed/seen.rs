//! Which transactions of a block are sent beforehand, and which the node really has.

use std::collections::{HashMap, HashSet};

use assay_report::stats::random::SplitMix64;

use crate::chain::OrderEntry;
use crate::plan::SeenMode;

/// Indexes into the generation order of the transactions to send, parents before children.
///
/// `raw` is the raw block; only [`SeenMode::Random`] looks at it. The count is
/// `floor(order.len() * share)` in both modes.
pub(crate) fn choose(
    mode: SeenMode,
    share: f64,
    order: &[OrderEntry],
    raw: &[u8],
    seed: u64,
) -> Vec<u32> {
    // A share such as 0.9 is not exact in binary; without the nudge 10 * 0.9 could floor to 8.
    let count = (order.len() as f64 * share + 1e-9).floor() as usize;
    let count = count.min(order.len());
    match mode {
        SeenMode::Prefix => (0..count as u32).collect(),
        SeenMode::Random => choose_random(count, order, raw, seed),
    }
}

/// Takes transactions in a shuffled order, each with its ancestors inside the block, as long as
/// they fit into the count; fills up from the front, where every ancestor is taken already.
fn choose_random(count: usize, order: &[OrderEntry], raw: &[u8], seed: u64) -> Vec<u32> {
    let by_txid: HashMap<&[u8; 32], u32> =
        order.iter().zip(0_u32..).map(|(entry, index)| (&entry.txid, index)).collect();
    let mut shuffled: Vec<u32> = (0..order.len() as u32).collect();
    let mut random = SplitMix64::new(seed);
    for last in (1..shuffled.len()).rev() {
        let other = random.below(last as u64 + 1) as usize;
        shuffled.swap(last, other);
    }
    let mut chosen = vec![false; order.len()];
    let (mut taken, mut family, mut open) = (0, Vec::new(), Vec::new());
    for index in shuffled {
        if taken == count {
            break;
        }
        family.clear();
        open.clear();
        open.push(index);
        // A family is given up as soon as it is too large: chains can be tens of thousands deep.
        while taken + family.len() <= count
            && let Some(member) = open.pop()
        {
            // Marked while collecting so that a shared ancestor is counted once.
            if std::mem::replace(&mut chosen[member as usize], true) {
                continue;
            }
            family.push(member);
            let entry = &order[member as usize];
            let start = entry.offset as usize;
            let tx = raw.get(start..start + entry.length as usize).unwrap_or_default();
            each_parent(tx, |txid| open.extend(by_txid.get(txid)));
        }
        if taken + family.len() <= count {
            taken += family.len();
        } else {
            for &member in &family {
                chosen[member as usize] = false;
            }
        }
    }
    for unchosen in chosen.iter_mut().filter(|chosen| !**chosen).take(count - taken) {
        *unchosen = true;
    }
    (0..order.len() as u32).filter(|&index| chosen[index as usize]).collect()
}

/// Calls `each` with the txid of every output that a serialised transaction spends. Bytes that are
/// no transaction end the walk; the node will say what it thinks of them.
fn each_parent<'a>(tx: &'a [u8], mut each: impl FnMut(&'a [u8; 32])) {
    let mut walk = || -> Option<()> {
        let mut rest = tx.get(4..)?;
        // BIP 144: no inputs and flag 1 stand for a transaction with witnesses.
        if rest.starts_with(&[0, 1]) {
            rest = &rest[2..];
        }
        let inputs = take_compact_size(&mut rest)?;
        for _ in 0..inputs {
            let (txid, after) = rest.split_first_chunk::<32>()?;
            each(txid);
            rest = after.get(4..)?;
            let script = take_compact_size(&mut rest)?;
            rest = rest.get(usize::try_from(script).ok()?.checked_add(4)?..)?;
        }
        Some(())
    };
    // A walk that ends early found what there was to find.
    let _ = walk();
}

fn take_compact_size(rest: &mut &[u8]) -> Option<u64> {
    let (&first, after) = rest.split_first()?;
    let width = match first {
        0xfd => 2,
        0xfe => 4,
        0xff => 8,
        small => {
            *rest = after;
            return Some(u64::from(small));
        }
    };
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(after.get(..width)?);
    *rest = &after[width..];
    Some(u64::from_le_bytes(bytes))
}

/// How many of the block's transactions are in a reply to `getrawmempool`.
pub(crate) fn count_in_mempool(order: &[OrderEntry], mempool: &[String]) -> u64 {
    let of_block: HashSet<&[u8; 32]> = order.iter().map(|entry| &entry.txid).collect();
    let in_block = |txid: &&String| internal_order(txid).is_some_and(|t| of_block.contains(&t));
    mempool.iter().filter(in_block).count() as u64
}

/// A txid as RPC prints it (reversed) in internal byte order.
fn internal_order(txid: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if txid.len() != 64 {
        return None;
    }
    faster_hex::hex_decode(txid.as_bytes(), &mut bytes).ok()?;
    bytes.reverse();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transaction that spends output 0 of each parent.
    fn tx(parents: &[[u8; 32]], witness: bool) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0];
        if witness {
            bytes.extend([0, 1]);
        }
        bytes.push(parents.len() as u8);
        for parent in parents {
            bytes.extend(parent);
            bytes.extend([0, 0, 0, 0, 3, 1, 2, 3, 255, 255, 255, 255]);
        }
        bytes.extend([0, 0, 0, 0, 0]);
        bytes
    }

    /// A block of chains: transaction `i` spends transaction `i - chains`.
    fn block_of_chains(count: u8, chains: u8) -> (Vec<OrderEntry>, Vec<u8>) {
        let (mut order, mut raw) = (Vec::new(), vec![0; 81]);
        for index in 0..count {
            let parent = if index < chains { [200; 32] } else { [index - chains; 32] };
            let bytes = tx(&[parent], index % 2 == 0);
            let (offset, length) = (raw.len() as u32, bytes.len() as u32);
            order.push(OrderEntry { txid: [index; 32], offset, length });
            raw.extend(bytes);
        }
        (order, raw)
    }

    #[test]
    fn prefix_floors_the_share() {
        let (order, raw) = block_of_chains(10, 1);
        for (share, count) in [(0.0, 0), (0.09, 0), (0.1, 1), (0.9, 9), (0.99, 9), (1.0, 10)] {
            let chosen = choose(SeenMode::Prefix, share, &order, &raw, 1);
            assert_eq!(chosen, (0..count).collect::<Vec<_>>(), "share {share}");
        }
        assert!(choose(SeenMode::Prefix, 0.9, &[], &[], 1).is_empty());
    }

    #[test]
    fn random_is_seeded_and_closed_under_ancestors() {
        let (order, raw) = block_of_chains(100, 10);
        let chosen = choose(SeenMode::Random, 0.5, &order, &raw, 7);
        assert_eq!(chosen, choose(SeenMode::Random, 0.5, &order, &raw, 7));
        assert_ne!(chosen, choose(SeenMode::Random, 0.5, &order, &raw, 8));
        assert_ne!(chosen, choose(SeenMode::Prefix, 0.5, &order, &raw, 7));
        assert_eq!(chosen.len(), 50);
        assert!(chosen.is_sorted());
        for index in chosen.iter().filter(|index| **index >= 10) {
            assert!(chosen.contains(&(index - 10)), "parent of {index}");
        }
    }

    #[test]
    fn broken_transactions_have_no_parents() {
        let whole = tx(&[[1; 32], [2; 32]], true);
        for end in 0..whole.len() {
            let mut parents = 0;
            each_parent(&whole[..end], |_| parents += 1);
            assert!(parents <= 2);
        }
        let huge = [1, 0, 0, 0, 0xff, 255, 255, 255, 255, 255, 255, 255, 255];
        each_parent(&huge, |_| panic!("there is no input"));
    }

    #[test]
    fn mempool_intersection() {
        let (order, _) = block_of_chains(3, 1);
        let mut first = "00".repeat(32);
        let mempool = ["01".repeat(32), first.clone(), "ff".repeat(32), "zz".repeat(32)];
        assert_eq!(count_in_mempool(&order, &mempool), 2);
        first.push('0');
        assert_eq!(count_in_mempool(&order, &[first]), 0);
    }
}
