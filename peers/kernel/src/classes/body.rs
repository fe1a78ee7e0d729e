//! Context-free rules of a block: structure of transactions, the coinbase, duplicates, lock times.

use assay_consensus::amount::MAX_MONEY;
use assay_consensus::commitment::height_prefix;
use assay_wire::OutPoint;

use super::{Class, Meant, Stage, Twist, class, sealed, twist, valid};
use crate::build::{Block, Input, Lock, Output, Place, Tx};
use crate::world::World;

pub(super) const TWISTS: &[Twist] = &[
    twist("bad-cb-missing", Stage::Committed, |world, block| {
        add_payments(world, block, 2);
        let first = if world.rng.chance(1, 2) { 1 } else { 2 };
        (block.txs.len() > first).then_some(())?;
        if first == 1 {
            block.txs.remove(0);
        } else {
            block.txs.swap(0, first);
        }
        Some(())
    }),
    twist("bad-cb-multiple", Stage::Committed, |_, block| {
        let mut second = block.txs[0].clone();
        second.lock_time = 0;
        second.outputs.first_mut()?.value = 1;
        second.inputs.first_mut()?.witness.clear();
        block.txs.push(second);
        Some(())
    }),
    twist("bad-cb-length", Stage::Committed, |world, block| {
        let len = *world.rng.pick(&[0, 1, 101, 102, 520]);
        block.first_input()?.script_sig.resize(len, 0x51);
        Some(())
    }),
    twist("bad-cb-height", Stage::Committed, |world, block| {
        let height = world.state.height() + 1;
        let mut script = match world.rng.below(4) {
            0 => height_prefix(height + 1),
            1 => height_prefix(height - 1),
            // The right number in a non-minimal encoding.
            2 => [&[3u8][..], &height.to_le_bytes()[..3]].concat(),
            _ => [&[0x4c, 1][..], &[height as u8]].concat(),
        };
        script.extend_from_slice(&[0x51; 8]);
        block.first_input()?.script_sig = script;
        Some(())
    }),
    twist("bad-txns-duplicate", Stage::Rooted, |world, block| {
        // CVE-2012-2459: repeats the last transactions, which preserves the merkle root.
        while block.txs.len() < 3 || block.txs.len() % 2 == 0 {
            let tx = world.payment(&block.txs)?;
            block.txs.push(tx);
        }
        block.commit();
        block.set_root();
        let last = block.txs[block.txs.len() - 1].clone();
        block.txs.push(last);
        Some(())
    }),
    twist("bad-txns-vin-empty", Stage::Committed, |_, block| {
        block.txs.push(Tx { version: 2, inputs: Vec::new(), outputs: Vec::new(), lock_time: 0 });
        Some(())
    }),
    twist("bad-txns-vout-empty", Stage::Body, |world, block| {
        let mut tx = world.payment(&block.txs)?;
        tx.outputs.clear();
        block.txs.push(tx);
        Some(())
    }),
    twist("bad-txns-vout-negative", Stage::Body, |world, block| {
        let value = *world.rng.pick(&[-1, -5_000_000_000, i64::MIN]);
        set_a_value(world, block, value)
    }),
    twist("bad-txns-vout-toolarge", Stage::Body, |world, block| {
        let value = *world.rng.pick(&[MAX_MONEY + 1, i64::MAX, MAX_MONEY * 2]);
        set_a_value(world, block, value)
    }),
    twist("bad-txns-txouttotal-toolarge", Stage::Body, |world, block| {
        let index = pick_tx(world, block)?;
        let script_pubkey = vec![0x51];
        let first = MAX_MONEY - world.rng.below(2) as i64;
        block.txs[index].outputs = vec![
            Output { value: first, script_pubkey: script_pubkey.clone() },
            Output { value: MAX_MONEY - first + 1, script_pubkey },
        ];
        Some(())
    }),
    twist("bad-txns-inputs-duplicate", Stage::Body, |world, block| {
        // CVE-2018-17144.
        let mut tx = world.payment(&block.txs)?;
        let copy = tx.inputs[world.rng.below(tx.inputs.len())].clone();
        tx.inputs.push(copy);
        block.txs.push(tx);
        Some(())
    }),
    twist("bad-txns-prevout-null", Stage::Body, |world, block| {
        let mut tx = world.payment(&block.txs)?;
        let at = world.rng.below(tx.inputs.len() + 1);
        tx.inputs.insert(at, Input::new(OutPoint::NULL, u32::MAX));
        block.txs.push(tx);
        Some(())
    }),
    twist("bad-txns-nonfinal-height", Stage::Body, |world, block| {
        let lock_time = world.state.height() + 1 + world.rng.below(3) as u32;
        lock_a_tx(world, block, lock_time)
    })
    .because("bad-txns-nonfinal"),
    twist("bad-txns-nonfinal-time", Stage::Body, |world, block| {
        // BIP113: lock times are compared with the median time past, not the time of the block.
        let lock_time = world.state.median_time() + world.rng.below(3) as u32;
        block.header.time = block.header.time.max(lock_time + 10);
        lock_a_tx(world, block, lock_time)
    })
    .because("bad-txns-nonfinal"),
    twist("bad-txns-nonfinal-coinbase", Stage::Body, |world, block| {
        block.first_input()?.sequence = 0;
        block.txs[0].lock_time = world.state.height() + 1;
        Some(())
    })
    .because("bad-txns-nonfinal"),
    twist("bad-blk-sigops-legacy", Stage::Body, |world, block| {
        let script_pubkey = match world.rng.below(3) {
            0 => vec![0xac; 20_001],
            1 => vec![0xae; 1001],
            // Sigops are counted up to the first invalid opcode.
            _ => [vec![0xad; 20_001], vec![0x4c]].concat(),
        };
        block.txs[0].outputs.push(Output { value: 0, script_pubkey });
        Some(())
    })
    .because("bad-blk-sigops"),
];

pub(super) const CLASSES: &[Class] = &[
    class("valid", 90, Meant::Accepted, |world| {
        let payments = world.rng.within(1, 6);
        vec![valid(world, payments).bytes()]
    }),
    class("valid-coinbase-length", 4, Meant::Accepted, |world| {
        let mut block = world.block(1);
        let script = &mut block.txs[0].inputs[0].script_sig;
        script.truncate(height_prefix(world.state.height() + 1).len());
        let len = if world.rng.chance(1, 2) { 100 } else { script.len() };
        script.resize(len, 0xab);
        sealed(world, block)
    }),
    class("valid-lock-times", 10, Meant::Accepted, |world| {
        let mut block = world.block(0);
        for lock_time in [world.state.height(), world.state.median_time() - 1] {
            if lock_a_tx(world, &mut block, lock_time).is_none() {
                return Vec::new();
            }
        }
        // The lock time is ignored if all inputs are final.
        block.txs[0].lock_time = 499_999_999;
        sealed(world, block)
    }),
    class("valid-money-range", 4, Meant::Rejected("bad-cb-amount"), |world| {
        // The largest amount is in range; only the subsidy forbids it.
        let mut block = world.block(0);
        block.txs[0].outputs[0].value = MAX_MONEY;
        sealed(world, block)
    }),
];

fn add_payments(world: &mut World, block: &mut Block, count: usize) {
    for _ in 0..count {
        if let Some(tx) = world.payment(&block.txs) {
            block.txs.push(tx);
        }
    }
}

/// Index of a transaction to change: the coinbase, or a payment added for this.
fn pick_tx(world: &mut World, block: &mut Block) -> Option<usize> {
    if world.rng.chance(1, 3) {
        return Some(0);
    }
    let tx = world.payment(&block.txs)?;
    block.txs.push(tx);
    Some(block.txs.len() - 1)
}

fn set_a_value(world: &mut World, block: &mut Block, value: i64) -> Option<()> {
    let index = pick_tx(world, block)?;
    (!block.txs[index].outputs.is_empty()).then_some(())?;
    let at = world.rng.below(block.txs[index].outputs.len());
    block.txs[index].outputs[at].value = value;
    Some(())
}

/// Adds a transaction of an anyone-can-spend coin with this lock time.
fn lock_a_tx(world: &mut World, block: &mut Block, lock_time: u32) -> Option<()> {
    let lock = Lock {
        sequence: Some(0xffff_fffe),
        lock_time: Some(lock_time),
        ..Lock::open(*world.rng.pick(&[Place::Bare, Place::P2sh, Place::Wsh, Place::TapScript]))
    };
    world.pass_through(&mut block.txs, &lock)
}
