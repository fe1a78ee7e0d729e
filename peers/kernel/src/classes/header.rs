//! Header rules: work, time, version, parent, merkle root.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Class, Meant, Stage, Twist, valid};
use crate::build::Block;
use crate::world::World;

pub(super) const TWISTS: &[Twist] = &[
    Twist {
        name: "high-hash",
        reason: "high-hash",
        stage: Stage::Mined,
        apply: |world, block| {
            block.header.nonce = block.header.nonce.wrapping_add(1);
            block.mine_badly(&world.params);
            Some(())
        },
    },
    Twist {
        name: "high-hash-target",
        reason: "high-hash",
        stage: Stage::Mined,
        apply: |world, block| {
            // Target zero, negative, above the limit, beyond 256 bits.
            block.header.bits = *world.rng.pick(&[
                0,
                0x0100_0000,
                0x2080_0001,
                0x2100_ffff,
                0xff12_3456,
                0x207f_ffff + 1,
            ]);
            Some(())
        },
    },
    Twist {
        name: "bad-diffbits",
        reason: "bad-diffbits",
        stage: Stage::Rooted,
        apply: |world, block| {
            block.header.bits =
                *world.rng.pick(&[0x207f_fffe, 0x2070_0000, 0x2012_3456, 0x1f7f_ffff]);
            Some(())
        },
    },
    Twist {
        name: "time-too-old",
        reason: "time-too-old",
        stage: Stage::Rooted,
        apply: |world, block| {
            let back = *world.rng.pick(&[0, 0, 1, 600, 1_000_000]);
            block.header.time = world.state.median_time() - back;
            Some(())
        },
    },
    Twist {
        name: "time-too-new",
        reason: "time-too-new",
        stage: Stage::Rooted,
        apply: |world, block| {
            // Two minutes of slack, for slow machines.
            let ahead = *world.rng.pick(&[7320u64, 100_000, 1_000_000_000]);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
            block.header.time = u32::try_from(now + ahead).unwrap_or(u32::MAX);
            Some(())
        },
    },
    Twist {
        name: "bad-version",
        reason: "bad-version(0x",
        stage: Stage::Rooted,
        apply: |world, block| {
            block.header.version = *world.rng.pick(&[3, 2, 1, 0, -1, i32::MIN, -0x2000_0000]);
            Some(())
        },
    },
    Twist {
        name: "prev-blk-not-found",
        reason: "prev-blk-not-found",
        stage: Stage::Rooted,
        apply: |world, block| {
            let unknown = world.rng.bytes(32);
            block.header.prev_block.0.copy_from_slice(&unknown);
            Some(())
        },
    },
    Twist {
        name: "bad-txnmrklroot",
        reason: "bad-txnmrklroot",
        stage: Stage::Rooted,
        apply: |world, block| {
            let at = world.rng.below(32);
            block.header.merkle_root[at] ^= 1 << world.rng.below(8);
            Some(())
        },
    },
];

pub(super) const CLASSES: &[Class] = &[
    Class {
        name: "valid-time-edge",
        weight: 4,
        meant: Meant::Accepted,
        make: |world| {
            let mut block = world.block(1);
            block.header.time = world.state.median_time() + 1;
            block.seal(&world.params);
            vec![block.bytes()]
        },
    },
    Class {
        name: "valid-version",
        weight: 4,
        meant: Meant::Accepted,
        make: |world| {
            let mut block = world.block(1);
            block.header.version = (world.rng.u64() as u32 & 0x7fff_ffff).max(4) as i32;
            block.seal(&world.params);
            vec![block.bytes()]
        },
    },
    Class {
        name: "empty-block",
        weight: 4,
        meant: Meant::Rejected("bad-blk-length"),
        make: |world| {
            let mut block = world.block(0);
            block.txs.clear();
            block.set_root();
            block.mine(&world.params);
            vec![block.bytes()]
        },
    },
    Class {
        name: "trailing-bytes",
        weight: 4,
        meant: Meant::Accepted,
        make: |world| {
            let mut bytes = valid(world, 1).bytes();
            let extra = world.rng.within(1, 20);
            bytes.extend(world.rng.bytes(extra));
            vec![bytes]
        },
    },
    Class {
        name: "truncated",
        weight: 6,
        meant: Meant::Undecodable,
        make: |world| {
            let mut bytes = valid(world, 1).bytes();
            let keep = world.rng.below(bytes.len());
            bytes.truncate(keep);
            vec![bytes]
        },
    },
    Class {
        name: "superfluous-witness",
        weight: 6,
        meant: Meant::Undecodable,
        make: |world| vec![malformed_tx(world, &[0, 1, 0])],
    },
    Class {
        name: "unknown-tx-flag",
        weight: 6,
        meant: Meant::Undecodable,
        make: |world| {
            let flag = *world.rng.pick(&[2u8, 3, 4, 0x80, 0xff]);
            vec![malformed_tx(world, &[0, flag, 0, 0])]
        },
    },
    Class { name: "vin-empty", weight: 6, meant: Meant::Anything, make: no_inputs },
];

/// A block whose last transaction is a version, these bytes, and a lock time.
fn malformed_tx(world: &mut World, middle: &[u8]) -> Vec<u8> {
    let block = valid(world, 0);
    let mut bytes = block.bytes();
    bytes[80] = 2;
    bytes.extend_from_slice(&[1, 0, 0, 0]);
    bytes.extend_from_slice(middle);
    bytes.extend_from_slice(&[0, 0, 0, 0]);
    bytes
}

/// A transaction without inputs and outputs: the only one without inputs that can be serialised,
/// because an empty list of inputs is the marker of the format with witnesses.
fn no_inputs(world: &mut World) -> Vec<Vec<u8>> {
    let mut block: Block = world.block(0);
    block.txs.push(crate::build::Tx {
        version: 1,
        inputs: Vec::new(),
        outputs: Vec::new(),
        lock_time: 0,
    });
    block.set_root();
    block.mine(&world.params);
    vec![block.bytes()]
}
