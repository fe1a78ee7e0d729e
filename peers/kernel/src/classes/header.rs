//! Header rules: work, time, version, parent, merkle root.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Class, Meant, Stage, Twist, class, sealed, twist, valid};
use crate::build::Block;
use crate::world::World;

pub(super) const TWISTS: &[Twist] = &[
    twist("high-hash", Stage::Mined, |world, block| {
        block.header.nonce = block.header.nonce.wrapping_add(1);
        block.mine_badly(&world.params);
        Some(())
    }),
    twist("high-hash-target", Stage::Mined, |world, block| {
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
    })
    .because("high-hash"),
    twist("bad-diffbits", Stage::Rooted, |world, block| {
        block.header.bits = *world.rng.pick(&[0x207f_fffe, 0x2070_0000, 0x2012_3456, 0x1f7f_ffff]);
        Some(())
    }),
    twist("time-too-old", Stage::Rooted, |world, block| {
        let back = *world.rng.pick(&[0, 0, 1, 600, 1_000_000]);
        block.header.time = world.state.median_time() - back;
        Some(())
    }),
    twist("time-too-new", Stage::Rooted, |world, block| {
        // Two minutes of slack, for slow machines.
        let ahead = *world.rng.pick(&[7320u64, 100_000, 1_000_000_000]);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        block.header.time = u32::try_from(now + ahead).unwrap_or(u32::MAX);
        Some(())
    }),
    twist("bad-version", Stage::Rooted, |world, block| {
        block.header.version = *world.rng.pick(&[3, 2, 1, 0, -1, i32::MIN, -0x2000_0000]);
        Some(())
    })
    .because("bad-version(0x"),
    twist("prev-blk-not-found", Stage::Rooted, |world, block| {
        let unknown = world.rng.bytes(32);
        block.header.prev_block.0.copy_from_slice(&unknown);
        Some(())
    }),
    twist("bad-txnmrklroot", Stage::Rooted, |world, block| {
        let at = world.rng.below(32);
        block.header.merkle_root[at] ^= 1 << world.rng.below(8);
        Some(())
    }),
];

pub(super) const CLASSES: &[Class] = &[
    class("valid-time-edge", 4, Meant::Accepted, |world| {
        let mut block = world.block(1);
        block.header.time = world.state.median_time() + 1;
        sealed(world, block)
    }),
    class("valid-version", 4, Meant::Accepted, |world| {
        let mut block = world.block(1);
        block.header.version = (world.rng.u64() as u32 & 0x7fff_ffff).max(4) as i32;
        sealed(world, block)
    }),
    class("empty-block", 4, Meant::Rejected("bad-blk-length"), |world| {
        let mut block = world.block(0);
        block.txs.clear();
        block.set_root();
        block.mine(&world.params);
        vec![block.bytes()]
    }),
    class("trailing-bytes", 4, Meant::Accepted, |world| {
        let mut bytes = valid(world, 1).bytes();
        let extra = world.rng.within(1, 20);
        bytes.extend(world.rng.bytes(extra));
        vec![bytes]
    }),
    class("truncated", 6, Meant::Undecodable, |world| {
        let mut bytes = valid(world, 1).bytes();
        let keep = world.rng.below(bytes.len());
        bytes.truncate(keep);
        vec![bytes]
    }),
    class("superfluous-witness", 6, Meant::Undecodable, |world| {
        vec![malformed_tx(world, &[0, 1, 0])]
    }),
    class("unknown-tx-flag", 6, Meant::Undecodable, |world| {
        let flag = *world.rng.pick(&[2u8, 3, 4, 0x80, 0xff]);
        vec![malformed_tx(world, &[0, flag, 0, 0])]
    }),
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
