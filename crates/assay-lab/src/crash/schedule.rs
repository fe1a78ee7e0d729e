//! Schedule of a round: two chains alternate as the best chain, with invalidations and restarts.

use assay_report::stats::random::SplitMix64;

/// One step of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Submit the block of this rival at this height.
    Submit {
        /// Index of the chain.
        rival: usize,
        height: u32,
    },
    /// Invalidate the active block this far below the tip, then reconsider it.
    TurnBack {
        /// Blocks below the tip.
        below_tip: u32,
    },
    /// Stop the node properly and start it again.
    Restart,
}

/// One in this many blocks is followed by a [`Step::TurnBack`].
const TURN_BACK_ONE_IN: u64 = 24;
/// Maximum number of blocks that a turn back disconnects.
const TURN_BACK_BLOCKS: u64 = 12;
/// One in this many blocks is followed by a [`Step::Restart`].
const RESTART_ONE_IN: u64 = 60;
/// The lead changes about every `1 / LEADS` of the chain.
const LEADS: u32 = 12;

/// A round over two chains that fork at genesis: every change of the lead is a reorg to genesis. The first chain wins in the end.
pub(crate) fn schedule(heights: [u32; 2], random: &mut SplitMix64) -> Vec<Step> {
    let last = last_heights(heights);
    let span = u64::from((heights[0] / LEADS).max(1));
    let mut steps = Vec::new();
    let mut at = [0, 0];
    let mut leader = 0;
    while at != last {
        let other = 1 - leader;
        let ahead = at[other] + 1 + random.below(span) as u32;
        for height in at[leader] + 1..=ahead.max(at[leader] + 1).min(last[leader]) {
            at[leader] = height;
            steps.push(Step::Submit { rival: leader, height });
            if random.below(TURN_BACK_ONE_IN) == 0 {
                steps.push(Step::TurnBack { below_tip: random.below(TURN_BACK_BLOCKS) as u32 });
            }
            if random.below(RESTART_ONE_IN) == 0 {
                steps.push(Step::Restart);
            }
        }
        if at[other] < last[other] {
            leader = other;
        }
    }
    steps
}

/// Final heights: the first chain has more work.
pub(crate) fn last_heights(heights: [u32; 2]) -> [u32; 2] {
    [heights[0], heights[1].min(heights[0].saturating_sub(1))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_comes_once_in_order_and_the_first_chain_wins() {
        for (seed, heights) in [(1, [130, 130]), (2, [130, 90]), (3, [5, 200]), (4, [1, 1])] {
            let steps = schedule(heights, &mut SplitMix64::new(seed));
            assert_eq!(steps, schedule(heights, &mut SplitMix64::new(seed)), "seeded");
            let mut at = [0, 0];
            for step in &steps {
                if let Step::Submit { rival, height } = *step {
                    at[rival] += 1;
                    assert_eq!(height, at[rival], "seed {seed}");
                }
            }
            assert_eq!(at[0], heights[0]);
            assert_eq!(at[1], heights[1].min(heights[0] - 1), "the first chain has more work");
        }
    }

    #[test]
    fn the_lead_changes() {
        let steps = schedule([130, 130], &mut SplitMix64::new(9));
        let (mut at, mut leader, mut changes) = ([0, 0], 0, 0);
        for step in steps {
            if let Step::Submit { rival, height } = step {
                at[rival] = height;
                if at[rival] > at[1 - rival] && leader != rival {
                    leader = rival;
                    changes += 1;
                }
            }
        }
        assert!(changes >= 6, "{changes} reorganisations");
    }
}
