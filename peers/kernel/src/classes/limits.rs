//! Blocks at and beyond the limits of size, weight and sigops; large, so drawn seldom.

use assay_consensus::params::MAX_BLOCK_WEIGHT;
use assay_consensus::script::opcode::op;
use assay_wire::Encoding;

use super::{Class, Meant};
use crate::build::{Block, Item, Lock, Output, Place, Writer};
use crate::world::World;

pub(super) const CLASSES: &[Class] = &[
    Class {
        name: "bad-blk-length",
        weight: 1,
        meant: Meant::Rejected("bad-blk-length"),
        make: |world| vec![stripped_to(world, 1_000_001)],
    },
    Class {
        name: "valid-block-length",
        weight: 1,
        meant: Meant::Accepted,
        make: |world| vec![stripped_to(world, 1_000_000)],
    },
    Class {
        name: "bad-blk-weight",
        weight: 1,
        meant: Meant::Rejected("bad-blk-weight"),
        make: |world| weight_to(world, MAX_BLOCK_WEIGHT + 1),
    },
    Class {
        name: "valid-block-weight",
        weight: 1,
        meant: Meant::Accepted,
        make: |world| weight_to(world, MAX_BLOCK_WEIGHT),
    },
    Class {
        name: "bad-blk-sigops-p2sh",
        weight: 4,
        meant: Meant::Rejected("bad-blk-sigops"),
        make: |world| sigops(world, Place::P2sh, 1),
    },
    Class {
        name: "valid-sigops-p2sh",
        weight: 4,
        meant: Meant::Accepted,
        make: |world| sigops(world, Place::P2sh, 0),
    },
    Class {
        name: "bad-blk-sigops-witness",
        weight: 3,
        meant: Meant::Rejected("bad-blk-sigops"),
        make: |world| sigops(world, Place::Wsh, 1),
    },
    Class {
        name: "valid-sigops-witness",
        weight: 3,
        meant: Meant::Accepted,
        make: |world| sigops(world, Place::Wsh, 0),
    },
    Class {
        name: "valid-sigops-nested",
        weight: 3,
        meant: Meant::Accepted,
        make: |world| sigops(world, Place::NestedWsh, 0),
    },
    Class {
        name: "bad-blk-sigops-nested",
        weight: 3,
        meant: Meant::Rejected("bad-blk-sigops"),
        make: |world| sigops(world, Place::NestedWsh, 1),
    },
    Class {
        name: "valid-sigops-legacy",
        weight: 4,
        meant: Meant::Accepted,
        make: |world| {
            let mut block = bare(world);
            let output = Output { value: 0, script_pubkey: vec![op::CHECKSIG; 20_000] };
            block.txs[0].outputs.push(output);
            block.seal(&world.params);
            vec![block.bytes()]
        },
    },
];

/// A block with a coinbase that has no sigops of its own.
fn bare(world: &mut World) -> Block {
    let mut block = world.block(0);
    block.txs[0].outputs[0].script_pubkey = vec![op::PUSH1];
    block
}

/// A block of this stripped size, filled with an output that is no coin.
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

/// A block of this weight, most of it an annex that nobody reads.
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
    block.seal(&world.params);
    vec![block.bytes()]
}

/// A block whose sigop cost is the limit of 80,000, or a little above it; none of the checks is executed.
fn sigops(world: &mut World, place: Place, above: usize) -> Vec<Vec<u8>> {
    /// Opcodes in one script besides those that count: IF, ENDIF and what is left of the limit of 201.
    const CHECKS_MAX: usize = 190;
    const COST: usize = 80_000;
    let weight = if place == Place::P2sh { 4 } else { 1 };
    // CHECKMULTISIG counts 20 where no number of keys stands before it; CHECKSIG counts one.
    let mut left = COST / weight;
    let mut block = bare(world);
    let mut first = true;
    while left > 0 {
        let many = (left / 20).min(CHECKS_MAX);
        let mut few = if many < CHECKS_MAX { left % 20 } else { 0 };
        left -= many * 20 + few;
        if first {
            few += above;
            first = false;
        }
        let script = Writer::new()
            .op(0)
            .op(op::IF)
            .ops(op::CHECKMULTISIG, many.min(CHECKS_MAX - few))
            .ops(op::CHECKSIG, few)
            .op(op::ENDIF)
            .op(op::PUSH1)
            .done();
        left += (many - many.min(CHECKS_MAX - few)) * 20;
        let lock = Lock::new(place, script, Vec::<Item>::new());
        // The rest of the block must not have sigops, so all of it comes from one coin without any.
        let Some(tx) = open_chain(world, &mut block, &lock) else { return Vec::new() };
        block.txs.push(tx);
    }
    block.seal(&world.params);
    vec![block.bytes()]
}

/// Pays to a lock and spends it, by transactions that have no sigops besides the lock's.
fn open_chain(world: &mut World, block: &mut Block, lock: &Lock) -> Option<crate::build::Tx> {
    let coins = world.available(&block.txs);
    let free = |coin: &&std::rc::Rc<crate::world::Coin>| {
        coin.output.value > 10_000
            && coin.lock.as_deref().is_some_and(|lock| {
                matches!(lock.place, Place::TapKey | Place::TapScript) && lock.sequence.is_none()
            })
    };
    let coin = coins.iter().find(free).cloned()?;
    let spent_by = coin.lock.clone()?;
    let output = Output { value: coin.output.value - 1000, script_pubkey: lock.script_pubkey() };
    let tx = world.spend(&[(std::rc::Rc::clone(&coin), spent_by)], vec![output]);
    let funded = std::rc::Rc::new(crate::world::Coin {
        outpoint: tx.outpoint(0),
        output: tx.outputs[0].clone(),
        height: world.state.height() + 1,
        coinbase: false,
        lock: None,
    });
    block.txs.push(tx);
    Some(world.sweep(&funded, lock))
}
