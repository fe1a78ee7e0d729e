//! Blocks at and beyond the limits of size, weight and sigops; large, so rarely drawn.

use std::rc::Rc;

use assay_consensus::params::MAX_BLOCK_WEIGHT;
use assay_consensus::script::opcode::op;
use assay_wire::Encoding;

use super::{Class, Meant, class, sealed};
use crate::build::{Block, Lock, Output, Place, Writer};
use crate::world::{Coin, World};

pub(super) const CLASSES: &[Class] = &[
    class("bad-blk-length", 1, Meant::Rejected("bad-blk-length"), |world| {
        vec![stripped_to(world, 1_000_001)]
    }),
    class("valid-block-length", 1, Meant::Accepted, |world| vec![stripped_to(world, 1_000_000)]),
    class("bad-blk-weight", 1, Meant::Rejected("bad-blk-weight"), |world| {
        weight_to(world, MAX_BLOCK_WEIGHT + 1)
    }),
    class("valid-block-weight", 1, Meant::Accepted, |world| weight_to(world, MAX_BLOCK_WEIGHT)),
    class("bad-blk-sigops-p2sh", 4, Meant::Rejected("bad-blk-sigops"), |world| {
        sigops(world, Place::P2sh, 1)
    }),
    class("valid-sigops-p2sh", 4, Meant::Accepted, |world| sigops(world, Place::P2sh, 0)),
    class("bad-blk-sigops-witness", 3, Meant::Rejected("bad-blk-sigops"), |world| {
        sigops(world, Place::Wsh, 1)
    }),
    class("valid-sigops-witness", 3, Meant::Accepted, |world| sigops(world, Place::Wsh, 0)),
    class("valid-sigops-nested", 3, Meant::Accepted, |world| sigops(world, Place::NestedWsh, 0)),
    class("bad-blk-sigops-nested", 3, Meant::Rejected("bad-blk-sigops"), |world| {
        sigops(world, Place::NestedWsh, 1)
    }),
    class("valid-sigops-legacy", 4, Meant::Accepted, |world| {
        let mut block = bare(world);
        let output = Output { value: 0, script_pubkey: vec![op::CHECKSIG; 20_000] };
        block.txs[0].outputs.push(output);
        sealed(world, block)
    }),
];

/// A block with a coinbase without sigops.
fn bare(world: &mut World) -> Block {
    let mut block = world.block(0);
    block.txs[0].outputs[0].script_pubkey = vec![op::PUSH1];
    block
}

/// A block of this stripped size, padded with an unspendable output.
fn stripped_to(world: &mut World, bytes: usize) -> Vec<u8> {
    let mut block = bare(world);
    let mut filler = vec![op::RETURN; 900_000];
    for _ in 0..3 {
        block.txs[0].outputs.truncate(1);
        block.txs[0].outputs.push(Output { value: 0, script_pubkey: filler.clone() });
        let now: usize = 81 + block.txs.iter().map(|tx| tx.stripped().len()).sum::<usize>();
        filler.resize(filler.len() + bytes - now, op::RETURN);
    }
    block.seal(&world.params);
    block.bytes()
}

/// A block of this weight, padded with an ignored annex.
fn weight_to(world: &mut World, weight: u64) -> Vec<Vec<u8>> {
    let mut block = bare(world);
    let mut lock = Lock::open(Place::TapScript);
    lock.sequence = Some(u32::MAX);
    let Some(coin) = world.fund(&mut block.txs, &lock) else { return Vec::new() };
    let mut annex = vec![0x50; 3_900_000];
    let mut tx = world.sweep(&coin, &lock);
    tx.inputs[0].witness.push(Vec::new());
    block.txs.push(tx);
    for _ in 0..3 {
        let last = block.txs.len() - 1;
        if let Some(item) = block.txs[last].inputs[0].witness.last_mut() {
            item.clone_from(&annex);
        }
        block.commit();
        let Ok(parsed) = assay_wire::Block::parse(block.bytes(), Encoding::Segwit) else {
            return Vec::new();
        };
        let now = parsed.weight() as u64;
        annex.resize((annex.len() as u64 + weight - now) as usize, 0x50);
    }
    sealed(world, block)
}

/// A block whose sigop cost is the limit of 80,000, or slightly above it; the checks are not executed.
fn sigops(world: &mut World, place: Place, above: usize) -> Vec<Vec<u8>> {
    const COST: usize = 80_000;
    let weight = if place == Place::P2sh { 4 } else { 1 };
    let mut left = COST / weight;
    let mut locks = Vec::new();
    while left > 0 {
        // CHECKMULTISIG counts 20 without a preceding number of keys; CHECKSIG counts one.
        let many = (left / 20).min(CHECKS_MAX);
        let few = if left < 20 { left } else { 0 };
        left -= many * 20 + few;
        locks.push(unexecuted(place, many, few));
    }
    locks.push(unexecuted(place, 0, above));
    let mut block = bare(world);
    // The rest of the block must be without sigops, so it spends a single coin without any.
    let coins = world.available(&block.txs);
    let free = |coin: &&Rc<Coin>| {
        let is_free = |lock: &Rc<Lock>| {
            matches!(lock.place, Place::TapKey | Place::TapScript) && lock.is_timeless()
        };
        coin.output.value > 100_000 && coin.lock.as_ref().is_some_and(is_free)
    };
    let Some(coin) = coins.iter().find(free).cloned() else { return Vec::new() };
    let Some(spent_by) = coin.lock.clone() else { return Vec::new() };
    let value = coin.output.value / locks.len() as i64;
    let outputs =
        locks.iter().map(|lock| Output { value, script_pubkey: lock.script_pubkey() }).collect();
    let funding = world.spend(&[(coin, spent_by)], outputs);
    block.txs.push(funding.clone());
    for (vout, lock) in locks.iter().enumerate() {
        let funded = world.made(&funding, vout, None);
        let tx = world.sweep(&funded, lock);
        block.txs.push(tx);
    }
    sealed(world, block)
}

/// Maximum number of checks in one script, with IF and ENDIF, below the limit of 201 opcodes.
const CHECKS_MAX: usize = 190;

fn unexecuted(place: Place, many: usize, few: usize) -> Lock {
    let script = Writer::new()
        .op(0)
        .op(op::IF)
        .ops(op::CHECKMULTISIG, many)
        .ops(op::CHECKSIG, few)
        .op(op::ENDIF)
        .op(op::PUSH1)
        .done();
    Lock::new(place, script, Vec::new())
}
