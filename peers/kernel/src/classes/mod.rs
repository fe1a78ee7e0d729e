//! The classes of blocks: each makes blocks that are valid in one way or wrong in one named way.

mod body;
mod branch;
mod coins;
mod header;
mod limits;
mod random;
mod scripts;
mod witness;

use assay_consensus::script::ScriptError;

use crate::build::Block;
use crate::verdict::Verdict;
use crate::world::World;

/// What a class is meant to end in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// Its last block is valid and becomes the tip.
    Accepted,
    /// Its last block is kept beside the tip.
    Inconclusive,
    /// Its last block is known already.
    Duplicate,
    /// Its last block is not one.
    Undecodable,
    /// Its last block is refused, and the reason begins with this.
    Rejected(&'static str),
    /// A script of its last block fails for this reason.
    Script(ScriptError),
    /// Whatever both say.
    Anything,
}

impl Meant {
    /// Whether a verdict is the one that was meant.
    pub fn is_met_by(self, verdict: &Verdict) -> bool {
        match (self, verdict) {
            (Self::Accepted, Verdict::Accepted)
            | (Self::Inconclusive, Verdict::Inconclusive)
            | (Self::Duplicate, Verdict::Duplicate)
            | (Self::Undecodable, Verdict::Undecodable)
            | (Self::Anything, _) => true,
            (Self::Rejected(meant), Verdict::Rejected { reason, .. }) => reason.starts_with(meant),
            (Self::Script(error), Verdict::Rejected { reason, .. }) => {
                *reason == format!("block-script-verify-flag-failed ({error})")
            }
            _ => false,
        }
    }
}

/// A way to make blocks.
#[derive(Clone, Copy)]
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// How often it is drawn, relative to the others.
    pub weight: u32,
    /// What it is meant to end in.
    pub meant: Meant,
    /// The blocks to submit, in order; empty when the round has no coins for it.
    pub make: fn(&mut World) -> Vec<Vec<u8>>,
}

/// A change of a block, made before its header is fitted again as far as the stage says.
#[derive(Clone, Copy)]
pub(crate) struct Twist {
    pub(crate) name: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) stage: Stage,
    pub(crate) apply: fn(&mut World, &mut Block) -> Option<()>,
}

/// When a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Before the witness commitment is computed.
    Body,
    /// Behind it, before the merkle root.
    Committed,
    /// Behind the merkle root, before the nonce.
    Rooted,
    /// Behind the nonce.
    Mined,
}

/// A random block with some changes; `None` when the round has no coins for them.
pub(crate) fn twisted(world: &mut World, twists: &[&Twist]) -> Option<Block> {
    let payments = world.rng.below(3);
    let mut block = world.block(payments);
    let mut at = |stage: Stage, block: &mut Block| {
        twists
            .iter()
            .filter(|twist| twist.stage == stage)
            .try_for_each(|twist| (twist.apply)(world, block))
    };
    at(Stage::Body, &mut block)?;
    if block.txs.iter().any(crate::build::Tx::has_witness) {
        block.commit();
    }
    at(Stage::Committed, &mut block)?;
    block.set_root();
    at(Stage::Rooted, &mut block)?;
    block.mine(&world.params);
    let mut at = |stage: Stage, block: &mut Block| {
        twists
            .iter()
            .filter(|twist| twist.stage == stage)
            .try_for_each(|twist| (twist.apply)(world, block))
    };
    at(Stage::Mined, &mut block)?;
    Some(block)
}

/// The changes that are wrong in one named way.
fn twists() -> impl Iterator<Item = &'static Twist> {
    [header::TWISTS, body::TWISTS, coins::TWISTS, witness::TWISTS].into_iter().flatten()
}

/// A class as the runner sees it.
#[derive(Clone, Copy)]
pub enum Entry {
    /// A function.
    Class(Class),
    /// A change of a valid block.
    Twist(usize),
    /// A script that fails, by its place in the list.
    Script(usize),
    /// Two changes at once.
    TwoTwists,
}

/// One class of the list.
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// How often it is drawn.
    pub weight: u32,
    /// What it is meant to end in.
    pub meant: Meant,
    entry: Entry,
}

impl Listed {
    /// The blocks to submit.
    pub fn make(&self, world: &mut World) -> Vec<Vec<u8>> {
        match self.entry {
            Entry::Class(class) => (class.make)(world),
            Entry::Twist(index) => {
                let twist = twists().nth(index);
                twist
                    .and_then(|twist| twisted(world, &[twist]))
                    .map_or_else(Vec::new, |block| vec![block.bytes()])
            }
            Entry::Script(index) => scripts::failing(world, index),
            Entry::TwoTwists => {
                let all: Vec<&Twist> = twists().collect();
                let first = *world.rng.pick(&all);
                let second = *world.rng.pick(&all);
                twisted(world, &[first, second]).map_or_else(Vec::new, |block| vec![block.bytes()])
            }
        }
    }
}

/// All classes.
pub fn all() -> Vec<Listed> {
    let classes = [
        header::CLASSES,
        body::CLASSES,
        coins::CLASSES,
        witness::CLASSES,
        limits::CLASSES,
        branch::CLASSES,
        random::CLASSES,
    ];
    let mut list: Vec<Listed> = classes
        .into_iter()
        .flatten()
        .map(|class| Listed {
            name: class.name,
            weight: class.weight,
            meant: class.meant,
            entry: Entry::Class(*class),
        })
        .collect();
    list.extend(twists().enumerate().map(|(index, twist)| Listed {
        name: twist.name,
        weight: 10,
        meant: Meant::Rejected(twist.reason),
        entry: Entry::Twist(index),
    }));
    list.extend(scripts::FAULTS.iter().enumerate().map(|(index, fault)| Listed {
        name: fault.name,
        weight: 8,
        meant: fault.meant(),
        entry: Entry::Script(index),
    }));
    list.push(Listed {
        name: "two-faults",
        weight: 160,
        meant: Meant::Anything,
        entry: Entry::TwoTwists,
    });
    list
}

/// A valid block, sealed.
pub(crate) fn valid(world: &mut World, payments: usize) -> Block {
    let mut block = world.block(payments);
    block.seal(&world.params);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = all().iter().map(|class| class.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
