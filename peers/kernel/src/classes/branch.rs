//! Branches: known blocks, missing or invalid parents, reorganisations.

use std::rc::Rc;

use super::{Class, Meant, class, valid};
use crate::build::{Block, Rng};
use crate::world::World;

pub(super) const CLASSES: &[Class] = &[
    // A side block may have been found invalid since.
    class("duplicate", 8, Meant::Anything, |world| one_of(&mut world.rng, &world.accepted)),
    class("duplicate-refused", 12, Meant::Anything, |world| {
        one_of(&mut world.rng, &world.rejected)
    }),
    class("duplicate-invalid", 8, Meant::Rejected("duplicate-invalid"), |world| {
        let bytes = invalid(world).bytes();
        vec![bytes.clone(), bytes]
    }),
    class("duplicate-mutated", 8, Meant::Rejected("bad-txn"), |world| {
        // The header of a known block with other transactions.
        let block = valid(world, 2);
        let mut mutated = block.clone();
        if mutated.txs.len() > 1 && world.rng.chance(1, 2) {
            mutated.txs.pop();
        } else {
            let last = mutated.txs[mutated.txs.len() - 1].clone();
            mutated.txs.push(last);
        }
        vec![block.bytes(), mutated.bytes()]
    }),
    class("duplicate-other-witness", 8, Meant::Duplicate, |world| {
        let Some((mutated, whole)) = super::witness::mutated_pair(world) else {
            return Vec::new();
        };
        vec![whole.bytes(), mutated.bytes()]
    }),
    class("bad-prevblk", 10, Meant::Rejected("bad-prevblk"), |world| {
        let parent = invalid(world);
        let child = on_top_of(world, &parent, 0);
        vec![parent.bytes(), child.bytes()]
    }),
    class("unmarked-parent", 8, Meant::Rejected("prev-blk-not-found"), |world| {
        // A context-free failure is not remembered.
        let mut parent = world.block(1);
        parent.txs[0].inputs[0].script_sig.resize(101, 0);
        parent.seal(&world.params);
        let child = on_top_of(world, &parent, 0);
        vec![parent.bytes(), child.bytes()]
    }),
    class("child-first", 8, Meant::Accepted, |world| {
        let parent = valid(world, 2);
        let child = on_top_of(world, &parent, 2);
        vec![child.bytes(), parent.bytes(), child.bytes()]
    }),
    class("side-block", 14, Meant::Inconclusive, |world| {
        let depth = world.rng.within(1, 4);
        side(world, depth, 1, None)
    }),
    class("reorg", 14, Meant::Accepted, |world| {
        let depth = world.rng.within(1, 5);
        side(world, depth, depth + 1, None)
    }),
    class("reorg-and-back", 8, Meant::Accepted, |world| {
        let depth = world.rng.within(1, 3);
        let back = Rc::clone(&world.state);
        let there = side(world, depth, depth + 1, None);
        world.build_on(Rc::clone(&back));
        let first = valid(world, 2);
        let second = on_top_of(world, &first, 2);
        world.build_on(back);
        let mut blocks = there;
        blocks.extend([first.bytes(), second.bytes()]);
        blocks
    }),
    class("reorg-to-invalid", 14, Meant::Anything, |world| {
        // A branch with more work that has one invalid block; afterwards a child of its tip.
        let depth = world.rng.within(1, 4);
        let bad = world.rng.below(depth + 1);
        side(world, depth, depth + 2, Some(bad))
    }),
    class("header-then-block", 8, Meant::Accepted, |world| {
        let bytes = valid(world, 1).bytes();
        vec![head(&bytes), bytes]
    }),
    class("headers-then-blocks", 14, Meant::Anything, |world| {
        // All headers of a branch, then its blocks in any order: the tip moves when the last gap is closed.
        let depth = world.rng.below(4);
        let length = depth + world.rng.within(1, 3);
        let bad = world.rng.chance(1, 3).then(|| world.rng.below(length));
        let mut blocks = side(world, depth, length, bad);
        let mut order: Vec<Vec<u8>> = blocks.iter().map(|bytes| head(bytes)).collect();
        while !blocks.is_empty() {
            let at = world.rng.below(blocks.len());
            order.push(blocks.swap_remove(at));
        }
        order
    }),
    class("header-of-refused", 10, Meant::Anything, |world| {
        one_of(&mut world.rng, &world.rejected).iter().map(|block| head(block)).collect()
    }),
    class("random-headers", 30, Meant::Anything, |world| {
        let twists: Vec<_> = super::header::TWISTS.iter().collect();
        let twist = *world.rng.pick(&twists);
        let Some(block) = super::twisted(world, &[twist]) else { return Vec::new() };
        let bytes = block.bytes();
        vec![head(&bytes), bytes]
    }),
    class("equal-work-first-seen", 8, Meant::Inconclusive, |world| {
        let back = Rc::clone(&world.state);
        let first = valid(world, 1);
        world.build_on(Rc::clone(&back));
        let second = valid(world, 1);
        world.build_on(back);
        vec![first.bytes(), second.bytes()]
    }),
    class("invalid-tip-then-sibling", 8, Meant::Accepted, |world| {
        let bad = invalid(world);
        let good = valid(world, 1);
        vec![bad.bytes(), good.bytes()]
    }),
];

/// One of these blocks, if there are any.
fn one_of(rng: &mut Rng, blocks: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if blocks.is_empty() { Vec::new() } else { vec![rng.pick(blocks).clone()] }
}

fn head(block: &[u8]) -> Vec<u8> {
    block[..block.len().min(80)].to_vec()
}

/// An invalid block, rejected in its context or on connection.
fn invalid(world: &mut World) -> Block {
    let payments = world.rng.below(2);
    let mut block = world.block(payments);
    match world.rng.below(3) {
        0 => spoil_coins(&mut block),
        1 => {
            if let Some(mut tx) = world.payment(&block.txs) {
                tx.inputs[0].prevout.txid.0[3] ^= 4;
                block.txs.push(tx);
            } else {
                spoil_coins(&mut block);
            }
        }
        _ => {
            block.txs[0].lock_time = 400_000_000;
            block.txs[0].inputs[0].sequence = 1;
        }
    }
    block.seal(&world.params);
    block
}

pub(super) fn on_top_of(world: &mut World, parent: &Block, payments: usize) -> Block {
    let back = Rc::clone(&world.state);
    world.assume(parent);
    let child = valid(world, payments);
    world.build_on(back);
    child
}

/// A branch of `length` blocks that forks `depth` blocks below the tip; block number `bad` breaks a rule.
fn side(world: &mut World, depth: usize, length: usize, bad: Option<usize>) -> Vec<Vec<u8>> {
    let back = Rc::clone(&world.state);
    let at = back.headers.len() - 1 - depth.min(back.headers.len() - 101);
    let Some(fork) = world.state_of(&back.headers[at].0) else { return Vec::new() };
    world.build_on(fork);
    let mut blocks = Vec::new();
    for index in 0..length {
        let payments = world.rng.below(3);
        let mut block = world.block(payments);
        if bad == Some(index) {
            spoil_coins(&mut block);
        }
        block.seal(&world.params);
        blocks.push(block.bytes());
        world.assume(&block);
    }
    world.build_on(back);
    blocks
}

/// Breaks a rule that is only checked on connection.
fn spoil_coins(block: &mut Block) {
    block.txs[0].outputs[0].value += 50_000_000_000;
}
