//! Selects the pre-relayed transactions of a block, and counts those in the mempool.

use std::collections::{HashMap, HashSet};

use assay_report::stats::random::SplitMix64;

use crate::chain::OrderEntry;
use crate::p2p::{each_input, hash_from_hex};
use crate::plan::SeenMode;

/// Indexes into the generation order of the transactions to send, parents before children.
///
/// `raw` is the raw block; only [`SeenMode::Random`] reads it. The count is `floor(order.len() * share)` in both modes.
pub(crate) fn choose(
    mode: SeenMode,
    share: f64,
    order: &[OrderEntry],
    raw: &[u8],
    seed: u64,
) -> Vec<u32> {
    // A share such as 0.9 is not exact in binary: without the offset, 10 * 0.9 could floor to 8.
    let count = (order.len() as f64 * share + 1e-9).floor() as usize;
    let count = count.min(order.len());
    match mode {
        SeenMode::Prefix => (0..count as u32).collect(),
        SeenMode::Random => choose_random(count, order, raw, seed),
    }
}

/// Moves a share of the transactions before the last of their sent parents, so that the node receives them as orphans. Returns
/// the new order and the number moved, which is lower if too few have a sent parent.
pub(crate) fn with_orphans(
    chosen: &[u32],
    share: f64,
    order: &[OrderEntry],
    raw: &[u8],
    seed: u64,
) -> (Vec<u32>, u64) {
    let place: HashMap<&[u8; 32], usize> =
        chosen.iter().enumerate().map(|(at, index)| (&order[*index as usize].txid, at)).collect();
    let wanted = (chosen.len() as f64 * share + 1e-9).floor() as usize;
    let mut shuffled: Vec<usize> = (0..chosen.len()).collect();
    SplitMix64::new(seed ^ ORPHANS).shuffle(&mut shuffled);
    // Transactions to insert before the one at each position.
    let mut before: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut is_moved = vec![false; chosen.len()];
    // A parent keeps its position: otherwise it could end up before its child.
    let mut is_parent = vec![false; chosen.len()];
    let mut moved = 0;
    for at in shuffled {
        if moved == wanted {
            break;
        }
        let entry = &order[chosen[at] as usize];
        let start = entry.offset as usize;
        let tx = raw.get(start..start + entry.length as usize).unwrap_or_default();
        let mut last = None;
        each_input(tx, |input| last = last.max(place.get(&input.prevout.txid.0).copied()));
        let Some(parent) = last.filter(|parent| !is_moved[*parent] && !is_parent[at]) else {
            continue;
        };
        (is_moved[at], is_parent[parent]) = (true, true);
        before.entry(parent).or_default().push(at);
        moved += 1;
    }
    let mut out = Vec::with_capacity(chosen.len());
    for at in (0..chosen.len()).filter(|at| !is_moved[*at]) {
        out.extend(before.remove(&at).into_iter().flatten().map(|child| chosen[child]));
        out.push(chosen[at]);
    }
    (out, moved as u64)
}

/// Seed offset: random numbers independent of those of the choice.
const ORPHANS: u64 = 0x6f72_7068_616e_7321;

/// Selects transactions in random order, each with its ancestors in the block, while they fit into the count; fills up from the
/// front, where every ancestor is already selected.
fn choose_random(count: usize, order: &[OrderEntry], raw: &[u8], seed: u64) -> Vec<u32> {
    let by_txid: HashMap<&[u8; 32], u32> =
        order.iter().zip(0_u32..).map(|(entry, index)| (&entry.txid, index)).collect();
    let mut shuffled: Vec<u32> = (0..order.len() as u32).collect();
    SplitMix64::new(seed).shuffle(&mut shuffled);
    let mut chosen = vec![false; order.len()];
    let (mut taken, mut family, mut open) = (0, Vec::new(), Vec::new());
    for index in shuffled {
        if taken == count {
            break;
        }
        family.clear();
        open.clear();
        open.push(index);
        // Stops as soon as the ancestor set is too large: chains can be tens of thousands deep.
        while taken + family.len() <= count
            && let Some(member) = open.pop()
        {
            // Marked while collecting, so that a shared ancestor is counted once.
            if std::mem::replace(&mut chosen[member as usize], true) {
                continue;
            }
            family.push(member);
            let entry = &order[member as usize];
            let start = entry.offset as usize;
            let tx = raw.get(start..start + entry.length as usize).unwrap_or_default();
            each_input(tx, |input| open.extend(by_txid.get(&input.prevout.txid.0)));
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

/// Number of the block's transactions in a `getrawmempool` reply.
pub(crate) fn count_in_mempool(order: &[OrderEntry], mempool: &[String]) -> u64 {
    let of_block: HashSet<&[u8; 32]> = order.iter().map(|entry| &entry.txid).collect();
    let in_block = |txid: &&String| hash_from_hex(txid).is_some_and(|t| of_block.contains(&t));
    mempool.iter().filter(in_block).count() as u64
}

#[cfg(test)]
mod tests {
    use assay_wire::TxBuilder;

    use super::*;

    /// A block of chains: transaction `i` spends transaction `i - chains`.
    fn block_of_chains(count: u8, chains: u8) -> (Vec<OrderEntry>, Vec<u8>) {
        let (mut order, mut raw) = (Vec::new(), vec![0; 81]);
        for index in 0..count {
            let parent = if index < chains { 200 } else { index - chains };
            let tx = TxBuilder::new(2).input(parent, 0, &[1, 2, 3], u32::MAX);
            let bytes = if index % 2 == 0 { tx.witness(&[&[7]]) } else { tx }.bytes();
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
    fn orphans_come_before_their_parents() {
        let (order, raw) = block_of_chains(100, 10);
        let all: Vec<u32> = (0..100).collect();
        assert_eq!(with_orphans(&all, 0.0, &order, &raw, 7), (all.clone(), 0));
        let (sent, moved) = with_orphans(&all, 0.3, &order, &raw, 7);
        assert_eq!(moved, 30);
        assert_eq!(with_orphans(&all, 0.3, &order, &raw, 7).0, sent);
        let at = |index: u32| sent.iter().position(|other| *other == index).unwrap();
        let early = (10..100).filter(|index| at(*index) < at(index - 10)).count();
        assert_eq!(early, 30);
        let mut sorted = sent.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, all);
        // No transaction has a parent here.
        assert_eq!(with_orphans(&all[..10], 1.0, &order, &raw, 7).1, 0);
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
