//! Soft forks signalled by others and unknown to this program (Core `versionbits.cpp`, `CheckUnknownActivations`).
//!
//! Every version bit without a known deployment is tracked as a deployment that has always been started. States change only
//! between periods, so those after each period are cached.

use std::collections::HashMap;

use assay_consensus::params::ChainParams;
use assay_consensus::versionbits::{Deployment, VERSION_TOP_BITS, VERSION_TOP_MASK};

use crate::tree::{BlockTree, NodeId};

/// Bits of unknown deployments, as masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnknownBits {
    /// Bits that become active after the period.
    pub(crate) locked_in: u32,
    pub(crate) active: u32,
}

/// Cached states after periods.
#[derive(Default)]
pub(crate) struct UnknownRules {
    /// By the last block of a period.
    known: HashMap<NodeId, UnknownBits>,
}

impl UnknownRules {
    /// States for the block after the tip.
    pub(crate) fn after_tip(&mut self, tree: &BlockTree, params: &ChainParams) -> UnknownBits {
        let Some(first_height) = params.unknown_rules_from else { return UnknownBits::default() };
        let period = params.pow.retarget_interval();
        let mut periods = (tree.tip_node().height + 1) / period;
        let mut open = Vec::new();
        let mut bits = UnknownBits::default();
        // All are started after the first period; blocks below the first height do not signal.
        while periods > 1 {
            let last = periods * period - 1;
            let Some(id) = tree.active_at(last).filter(|_| last >= first_height) else { break };
            if let Some(known) = self.known.get(&id) {
                bits = *known;
                break;
            }
            open.push((id, last));
            periods -= 1;
        }
        for (id, last) in open.into_iter().rev() {
            let signalled = counted(tree, params, (last + 1 - period).max(first_height), last);
            bits.active |= bits.locked_in;
            bits.locked_in = signalled & !bits.active;
            self.known.insert(id, bits);
        }
        bits
    }
}

/// Unknown bits that enough of these active blocks, the last ones of a period, signal.
fn counted(tree: &BlockTree, params: &ChainParams, first: u32, last: u32) -> u32 {
    let period = params.pow.retarget_interval();
    // 90 % as in BIP341; 75 % on test chains as BIP9 suggests.
    let threshold = if params.name == "main" { 1815 } else { period * 3 / 4 };
    // Deployments share the periods, so the known bits are the same for all blocks of one.
    let parent = tree.active_at((last + 1 - period).saturating_sub(1)).unwrap_or(NodeId::GENESIS);
    let known = signals_after(tree, parent, &params.deployments).cast_unsigned();
    let mut counts = [0u32; BITS];
    for id in (first..=last).filter_map(|height| tree.active_at(height)) {
        let version = tree.get(id).header.version.cast_unsigned();
        if version & VERSION_TOP_MASK == VERSION_TOP_BITS.cast_unsigned() {
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += (version & !known) >> bit & 1;
            }
        }
    }
    counts.iter().rev().fold(0, |mask, count| mask << 1 | u32::from(*count >= threshold))
}

/// The version of a block after `parent`, with the bits of signalled deployments.
pub(crate) fn signals_after(tree: &BlockTree, parent: NodeId, deployments: &[Deployment]) -> i32 {
    use assay_consensus::chain::Ancestors;
    let branch = tree.ancestors(parent);
    let version_at = |height| tree.get(tree.ancestor_at(parent, height)).header.version;
    deployments.iter().fold(VERSION_TOP_BITS, |version, one| {
        let state = one.state_after(&branch, Some(branch.tip_height()), version_at);
        if state.is_signalled() { version | one.mask() } else { version }
    })
}

/// Bits for deployments (BIP323; Core's `VERSIONBITS_NUM_BITS`): miners may use the others freely.
const BITS: usize = 5;

#[cfg(test)]
mod tests {
    use assay_wire::{Block, Header};

    use super::*;

    /// A regtest chain with blocks of these versions, with their counts.
    fn after(versions: &[(i32, u32)]) -> UnknownBits {
        let params = ChainParams::by_name("regtest").unwrap();
        let genesis = Block::parse(params.genesis_block(), params.encoding).unwrap();
        let mut header = *genesis.header();
        let mut tree = BlockTree::new(header);
        let mut rules = UnknownRules::default();
        let mut bits = UnknownBits::default();
        let mut tip = NodeId::GENESIS;
        for (version, count) in versions {
            for _ in 0..*count {
                header = Header {
                    version: *version,
                    prev_block: header.hash(),
                    time: header.time + 1,
                    ..header
                };
                tip = tree.insert(tip, header);
                tree.extend_active(tip);
                bits = rules.after_tip(&tree, &params);
            }
        }
        // The same without the cache.
        assert_eq!(UnknownRules::default().after_tip(&tree, &params), bits);
        bits
    }

    #[test]
    fn three_quarters_of_a_period_lock_an_unknown_bit_in() {
        const PLAIN: i32 = 0x2000_0000;
        let bit = |bit: u32| PLAIN | 1 << bit;
        let none = UnknownBits::default();
        assert_eq!(after(&[(bit(3), 143)]), none, "the first period counts for nobody");
        assert_eq!(after(&[(PLAIN, 143), (bit(3), 107), (PLAIN, 37)]), none);
        let locked = UnknownBits { locked_in: 8, active: 0 };
        assert_eq!(after(&[(PLAIN, 143), (bit(3), 108), (PLAIN, 36)]), locked);
        assert_eq!(after(&[(PLAIN, 143), (bit(3), 108), (PLAIN, 36 + 143)]), locked);
        let active = UnknownBits { locked_in: 0, active: 8 };
        assert_eq!(after(&[(PLAIN, 143), (bit(3), 108), (PLAIN, 36 + 144)]), active);
        assert_eq!(after(&[(PLAIN, 143), (bit(3), 144), (PLAIN, 700)]), active, "for good");
        assert_eq!(after(&[(PLAIN, 143), (bit(5), 144)]), none, "no bit of deployments");
        assert_eq!(after(&[(PLAIN, 143), (0x4000_0008, 144)]), none, "no signal");
    }

    #[test]
    fn each_branch_has_states_of_its_own() {
        const PLAIN: i32 = 0x2000_0000;
        let params = ChainParams::by_name("regtest").unwrap();
        let genesis = Block::parse(params.genesis_block(), params.encoding).unwrap();
        let mut tree = BlockTree::new(*genesis.header());
        let mut rules = UnknownRules::default();
        let extend = |tree: &mut BlockTree, version: i32, count: u32| {
            for _ in 0..count {
                let tip = tree.tip_node();
                let header = Header {
                    version,
                    prev_block: tip.hash,
                    time: tip.header.time + 1,
                    ..tip.header
                };
                let id = tree.insert(tree.tip(), header);
                tree.extend_active(id);
            }
        };
        extend(&mut tree, PLAIN, 143);
        let fork = tree.tip();
        let mut tips = Vec::new();
        for (version, locked_in) in [(PLAIN | 8, 8), (PLAIN, 0), (PLAIN | 16, 16)] {
            while tree.tip() != fork {
                tree.shrink_active();
            }
            extend(&mut tree, version, 144);
            let expected = UnknownBits { locked_in, active: 0 };
            assert_eq!(rules.after_tip(&tree, &params), expected);
            tips.push((tree.tip(), expected));
        }
        for (tip, expected) in tips {
            tree.set_active(tip);
            assert_eq!(rules.after_tip(&tree, &params), expected, "what is kept is by branch");
        }
    }
}
