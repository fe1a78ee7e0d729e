//! The classes of blocks: each generates blocks that are valid, or invalid for one named reason.

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// The last block is valid and becomes the tip.
    Accepted,
    /// The last block is stored on a side branch.
    Inconclusive,
    Duplicate,
    Undecodable,
    /// The last block is rejected with a reason that begins with this text.
    Rejected(&'static str),
    /// A script of the last block fails for this reason.
    Script(ScriptError),
    /// Any verdict, as long as both agree.
    Anything,
}

impl Meant {
    /// True if a verdict is the intended one.
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

#[derive(Clone, Copy)]
pub struct Class {
    pub name: &'static str,
    pub weight: u32,
    pub meant: Meant,
    /// Generates the blocks to submit, in order; empty if the round has no coins for them.
    pub make: fn(&mut World) -> Vec<Vec<u8>>,
}

/// A change of a block, applied before the header is repaired according to the stage.
#[derive(Clone, Copy)]
pub(crate) struct Twist {
    pub(crate) name: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) stage: Stage,
    pub(crate) apply: fn(&mut World, &mut Block) -> Option<()>,
}

const fn class(
    name: &'static str,
    weight: u32,
    meant: Meant,
    make: fn(&mut World) -> Vec<Vec<u8>>,
) -> Class {
    Class { name, weight, meant, make }
}

/// A change with the reject reason of its name.
const fn twist(
    name: &'static str,
    stage: Stage,
    apply: fn(&mut World, &mut Block) -> Option<()>,
) -> Twist {
    Twist { name, reason: name, stage, apply }
}

impl Twist {
    /// The same change with another reject reason.
    const fn because(self, reason: &'static str) -> Self {
        Self { reason, ..self }
    }
}

/// Stage at which a change is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Before the witness commitment is computed.
    Body,
    /// After the commitment, before the merkle root.
    Committed,
    /// After the merkle root, before the nonce.
    Rooted,
    /// After the nonce.
    Mined,
}

/// A random block with some changes; `None` if the round has no coins for them.
pub(crate) fn twisted(world: &mut World, twists: &[&Twist]) -> Option<Block> {
    let payments = world.rng.below(3);
    let mut block = world.block(payments);
    let at = |stage: Stage, world: &mut World, block: &mut Block| {
        let mut twists = twists.iter().filter(|twist| twist.stage == stage);
        twists.try_for_each(|twist| (twist.apply)(world, block))
    };
    at(Stage::Body, world, &mut block)?;
    if block.txs.iter().any(crate::build::Tx::has_witness) {
        block.commit();
    }
    at(Stage::Committed, world, &mut block)?;
    block.set_root();
    at(Stage::Rooted, world, &mut block)?;
    block.mine(&world.params);
    at(Stage::Mined, world, &mut block)?;
    Some(block)
}

/// The changes that are invalid for one named reason.
fn twists() -> impl Iterator<Item = &'static Twist> {
    [header::TWISTS, body::TWISTS, coins::TWISTS, witness::TWISTS].into_iter().flatten()
}

/// Generator of the blocks to submit, in order; none if the round has no coins for them.
type Make = Box<dyn Fn(&mut World) -> Vec<Vec<u8>> + Send + Sync>;

pub struct Listed {
    pub name: &'static str,
    pub weight: u32,
    pub meant: Meant,
    pub make: Make,
}

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
    let bytes = |block: Option<Block>| -> Vec<Vec<u8>> { block.iter().map(Block::bytes).collect() };
    let listed = |name, weight, meant, make| Listed { name, weight, meant, make };
    let classes = classes.into_iter().flatten();
    let mut list: Vec<Listed> = classes
        .map(|class| listed(class.name, class.weight, class.meant, Box::new(class.make)))
        .collect();
    list.extend(twists().map(|twist| {
        let make = move |world: &mut World| bytes(twisted(world, &[twist]));
        listed(twist.name, 10, Meant::Rejected(twist.reason), Box::new(make))
    }));
    list.extend(scripts::FAULTS.iter().map(|fault| {
        let make = move |world: &mut World| scripts::failing(world, fault);
        listed(fault.name, 8, fault.meant(), Box::new(make))
    }));
    let two = move |world: &mut World| {
        let all: Vec<&Twist> = twists().collect();
        let first = *world.rng.pick(&all);
        let second = *world.rng.pick(&all);
        bytes(twisted(world, &[first, second]))
    };
    list.push(listed("two-faults", 160, Meant::Anything, Box::new(two)));
    list
}

/// A block, sealed, as the only one to submit.
fn sealed(world: &World, mut block: Block) -> Vec<Vec<u8>> {
    block.seal(&world.params);
    vec![block.bytes()]
}

/// A valid sealed block.
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
