//! Random changes of blocks: bytes, bits, fields, scripts.

use assay_wire::Encoding;

use super::{Class, Meant, sealed, valid};
use crate::build::{Block, Rng, Tx, chaotic_lock};
use crate::world::World;

pub(super) const CLASSES: &[Class] = &[
    Class { name: "random-bytes", weight: 60, meant: Meant::Anything, make: changed_bytes },
    Class { name: "random-bytes-refitted", weight: 160, meant: Meant::Anything, make: refitted },
    Class { name: "random-fields", weight: 160, meant: Meant::Anything, make: changed_fields },
    Class { name: "random-scripts", weight: 240, meant: Meant::Anything, make: random_scripts },
    Class { name: "random-bit", weight: 200, meant: Meant::Anything, make: changed_bit },
    Class { name: "random-header", weight: 40, meant: Meant::Anything, make: changed_header },
];

/// Changes random bytes of a valid block without any repair.
fn changed_bytes(world: &mut World) -> Vec<Vec<u8>> {
    let mut bytes = valid(world, 2).bytes();
    mutate(&mut world.rng, &mut bytes, 0);
    vec![bytes]
}

/// Changes random bytes after the header; if the result is still a block, merkle root, commitment
/// and nonce are repaired, or some of them.
fn refitted(world: &mut World) -> Vec<Vec<u8>> {
    let payments = world.rng.within(1, 3);
    let mut bytes = valid(world, payments).bytes();
    mutate(&mut world.rng, &mut bytes, 81);
    let Ok(parsed) = assay_wire::Block::parse_prefix(bytes.clone(), Encoding::Segwit) else {
        return vec![bytes];
    };
    let mut block = Block::from_wire(&parsed);
    if world.rng.chance(3, 4) && block.commitment_index().is_some() {
        block.commit();
    }
    if world.rng.chance(9, 10) {
        block.set_root();
    }
    block.mine(&world.params);
    vec![block.bytes()]
}

fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, from: usize) {
    for _ in 0..rng.within(1, 3) {
        if bytes.len() <= from + 1 {
            return;
        }
        let at = rng.within(from, bytes.len() - 1);
        match rng.below(8) {
            0 => bytes[at] = rng.u64() as u8,
            1 => bytes[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xfd, 0xfe, 0xff]),
            2 => {
                bytes.remove(at);
            }
            3 => bytes.insert(at, rng.u64() as u8),
            4 => {
                let len = rng.within(1, 40).min(bytes.len() - at);
                let piece = bytes[at..at + len].to_vec();
                let to = rng.within(from, bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => bytes[at] ^= 1 << rng.below(8),
        }
    }
}

/// Flips one bit of a script, witness, amount or outpoint, and repairs everything else.
fn changed_bit(world: &mut World) -> Vec<Vec<u8>> {
    let mut block = world.block(2);
    if block.txs.len() < 2 {
        return Vec::new();
    }
    let index = world.rng.within(1, block.txs.len() - 1);
    flip(&mut world.rng, &mut block.txs[index]);
    sealed(world, block)
}

fn flip_in(rng: &mut Rng, bytes: &mut [u8]) {
    if !bytes.is_empty() {
        let at = rng.below(bytes.len());
        bytes[at] ^= 1 << rng.below(8);
    }
}

fn flip(rng: &mut Rng, tx: &mut Tx) {
    let at = rng.below(tx.inputs.len());
    let input = &mut tx.inputs[at];
    match rng.below(12) {
        0 => flip_in(rng, &mut input.prevout.txid.0),
        1 => input.sequence ^= 1 << rng.below(32),
        2 => tx.lock_time ^= 1 << rng.below(32),
        3 => tx.version ^= 1 << rng.below(32),
        4 => {
            let out = rng.below(tx.outputs.len());
            tx.outputs[out].value ^= 1 << rng.below(64);
        }
        5 => {
            let out = rng.below(tx.outputs.len());
            flip_in(rng, &mut tx.outputs[out].script_pubkey);
        }
        _ if input.witness.is_empty() => flip_in(rng, &mut input.script_sig),
        6 if !input.script_sig.is_empty() => flip_in(rng, &mut input.script_sig),
        _ => {
            let item = rng.below(input.witness.len());
            flip_in(rng, &mut input.witness[item]);
        }
    }
}

/// Sets fields to unusual values, shuffles lists, drops or repeats transactions; then repairs the header.
fn changed_fields(world: &mut World) -> Vec<Vec<u8>> {
    let payments = world.rng.within(1, 4);
    let mut block = world.block(payments);
    for _ in 0..world.rng.within(1, 2) {
        change_field(&mut world.rng, &mut block);
    }
    sealed(world, block)
}

fn change_field(rng: &mut Rng, block: &mut Block) {
    const AMOUNTS: [i64; 6] = [0, 1, -1, i64::MAX, 2_100_000_000_000_000, 2_100_000_000_000_001];
    const NUMBERS: [u32; 8] =
        [0, 1, 100, 499_999_999, 500_000_000, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    let txs = block.txs.len();
    let index = rng.below(txs);
    match rng.below(12) {
        0 => {
            let with = rng.below(txs);
            block.txs.swap(index, with);
        }
        1 if txs > 1 => {
            block.txs.remove(index);
        }
        2 => {
            let copy = block.txs[index].clone();
            let at = rng.below(txs + 1);
            block.txs.insert(at, copy);
        }
        3 => block.txs[index].lock_time = *rng.pick(&NUMBERS),
        4 => block.txs[index].version = *rng.pick(&NUMBERS) as i32,
        drawn => {
            let tx = &mut block.txs[index];
            if tx.inputs.is_empty() || tx.outputs.is_empty() {
                return;
            }
            let (input, output) = (rng.below(tx.inputs.len()), rng.below(tx.outputs.len()));
            match drawn {
                5 => tx.outputs[output].value = *rng.pick(&AMOUNTS),
                6 => tx.inputs[input].sequence = *rng.pick(&NUMBERS),
                7 => tx.inputs[input].prevout.vout = *rng.pick(&NUMBERS),
                8 => {
                    tx.inputs.remove(input);
                }
                9 => {
                    let copy = tx.inputs[input].clone();
                    tx.inputs.push(copy);
                }
                10 => {
                    tx.outputs.remove(output);
                }
                _ => {
                    let len = rng.below(30);
                    let item = rng.bytes(len);
                    tx.inputs[input].witness.push(item);
                }
            }
        }
    }
}

/// Arbitrary locks and elements, each spent in the block that creates it.
fn random_scripts(world: &mut World) -> Vec<Vec<u8>> {
    let mut block = world.block(0);
    // Several at once save blocks, but only one may fail if the reason is compared; most fail.
    let lock = chaotic_lock(&mut world.rng);
    if world.pass_through(&mut block.txs, &lock).is_none() {
        return Vec::new();
    }
    sealed(world, block)
}

/// Changes header fields at random, and repeats the proof of work.
fn changed_header(world: &mut World) -> Vec<Vec<u8>> {
    let mut block = valid(world, 0);
    let mut bytes = block.header.to_bytes();
    let at = world.rng.below(76);
    bytes[at] ^= 1 << world.rng.below(8);
    block.header = assay_wire::Header::parse(&bytes);
    // A tiny target cannot be met.
    if block.header.bits == 0x207f_ffff && world.rng.chance(3, 4) {
        block.mine(&world.params);
    }
    vec![block.bytes()]
}
