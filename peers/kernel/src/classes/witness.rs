//! Witness commitments (BIP141).

use super::branch::on_top_of;
use super::{Class, Meant, Stage, Twist, class, sealed, twist};
use crate::build::{Block, Lock, Output, Place, Tx};
use crate::world::World;

pub(super) const TWISTS: &[Twist] = &[
    twist("bad-witness-nonce-size", Stage::Committed, |world, block| {
        block.commit();
        let witness = &mut block.first_input()?.witness;
        *witness = match world.rng.below(6) {
            0 => Vec::new(),
            1 => vec![vec![0; 31]],
            2 => vec![vec![0; 33]],
            3 => vec![vec![0; 32], vec![0; 32]],
            4 => vec![vec![0; 32], Vec::new()],
            _ => vec![Vec::new()],
        };
        Some(())
    }),
    twist("bad-witness-merkle-match", Stage::Committed, |world, block| {
        block.commit();
        let index = block.commitment_index()?;
        let at = world.rng.within(6, 37);
        let bit = 1 << world.rng.below(8);
        block.txs[0].outputs[index].script_pubkey[at] ^= bit;
        Some(())
    }),
    twist("bad-witness-reserved", Stage::Committed, |world, block| {
        block.commit();
        let at = world.rng.below(32);
        let bit = 1 << world.rng.below(8);
        *block.first_input()?.witness.first_mut()?.get_mut(at)? ^= bit;
        Some(())
    })
    .because("bad-witness-merkle-match"),
    twist("bad-witness-changed", Stage::Mined, |world, block| {
        // All txids are unchanged, and so is the header.
        let index = block.txs.iter().skip(1).position(Tx::has_witness)? + 1;
        let input = block.txs[index].inputs.iter_mut().find(|input| !input.witness.is_empty())?;
        if world.rng.chance(1, 2) {
            input.witness.push(vec![1]);
        } else {
            let at = world.rng.below(input.witness.len());
            input.witness[at].push(0);
        }
        Some(())
    })
    .because("bad-witness-merkle-match"),
    twist("unexpected-witness", Stage::Committed, |world, block| {
        drop_commitment(block);
        block.first_input()?.witness.clear();
        if world.rng.chance(1, 2) || !block.txs.iter().any(Tx::has_witness) {
            // Including the coinbase's own witness.
            block.first_input()?.witness = vec![vec![0; 32]];
        }
        Some(())
    }),
    twist("unexpected-witness-short", Stage::Committed, |world, block| {
        // One byte short of a commitment, or another marker.
        block.commit();
        let index = block.commitment_index()?;
        let script = &mut block.txs[0].outputs[index].script_pubkey;
        if world.rng.chance(1, 2) {
            script.truncate(37);
        } else {
            script[world.rng.below(6)] ^= 1;
        }
        Some(())
    })
    .because("unexpected-witness"),
    twist("last-commitment-counts", Stage::Committed, |_, block| {
        block.commit();
        let index = block.commitment_index()?;
        let mut wrong = block.txs[0].outputs[index].clone();
        wrong.script_pubkey[37] ^= 0x80;
        block.txs[0].outputs.push(wrong);
        Some(())
    })
    .because("bad-witness-merkle-match"),
];

pub(super) const CLASSES: &[Class] = &[
    class("valid-commitments", 10, Meant::Accepted, |world| {
        let mut block = world.block(2);
        // A wrong commitment before the right one, any reserved value, and bytes after the hash.
        let mut decoy = vec![0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];
        decoy.extend(world.rng.bytes(32));
        block.txs[0].outputs.push(Output { value: 0, script_pubkey: decoy });
        let mut right = vec![0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];
        let len = 32 + world.rng.below(10);
        right.extend(world.rng.bytes(len));
        block.txs[0].outputs.push(Output { value: 0, script_pubkey: right });
        block.txs[0].inputs[0].witness = vec![world.rng.bytes(32)];
        block.seal(&world.params);
        block.commit();
        block.set_root();
        block.mine(&world.params);
        vec![block.bytes()]
    }),
    class("valid-without-commitment", 6, Meant::Accepted, |world| {
        let mut block = world.block(0);
        let lock = Lock::open(Place::P2sh);
        let before = block.txs.len();
        if world.fund(&mut block.txs, &lock).is_none() || block.txs[before].has_witness() {
            block.txs.truncate(before);
        }
        sealed(world, block)
    }),
    class("mutated-then-whole", 8, Meant::Accepted, |world| {
        // A rejection of a wrong witness must not invalidate the block with the right one.
        let Some((mutated, whole)) = mutated_pair(world) else { return Vec::new() };
        vec![mutated.bytes(), whole.bytes()]
    }),
    class("mutated-then-child", 8, Meant::Accepted, |world| {
        // The header of a mutated block stays known; a block on top of it is stored and waits.
        let Some((mutated, whole)) = mutated_pair(world) else { return Vec::new() };
        let child = on_top_of(world, &whole, 1);
        vec![mutated.bytes(), child.bytes(), whole.bytes()]
    }),
];

/// A valid block and the same block with a changed witness.
pub(super) fn mutated_pair(world: &mut World) -> Option<(Block, Block)> {
    let mut whole = world.block(3);
    whole.commit();
    whole.seal(&world.params);
    let mut mutated = whole.clone();
    let spoil = |tx: &mut Tx| {
        let input = tx.inputs.iter_mut().find(|input| !input.witness.is_empty())?;
        input.witness[0].push(9);
        Some(())
    };
    mutated.txs.iter_mut().skip(1).find_map(spoil)?;
    Some((mutated, whole))
}

fn drop_commitment(block: &mut Block) {
    while let Some(index) = block.commitment_index() {
        block.txs[0].outputs.remove(index);
    }
    if block.txs[0].outputs.is_empty() {
        block.txs[0].outputs.push(Output { value: 0, script_pubkey: vec![0x51] });
    }
}
