//! Random scripts and elements, usually invalid ones.

use assay_consensus::script::opcode::op;

use super::Rng;
use super::keys::{KEY_COUNT, KeyForm, encoded_key, x_only};
use super::lock::{Flaw, Item, Lock, Place, Sig};
use super::script::{Writer, inner};

/// A script of random opcodes, most of which find operands.
pub fn random_script(rng: &mut Rng, ops_max: usize) -> Vec<u8> {
    let mut writer = Writer::new();
    for _ in 0..rng.within(0, ops_max) {
        writer = random_op(rng, writer);
    }
    let mut script = writer.done();
    if rng.chance(1, 20) && !script.is_empty() {
        let at = rng.below(script.len());
        script[at] ^= 1 << rng.below(8);
    }
    script
}

fn random_op(rng: &mut Rng, writer: Writer) -> Writer {
    match rng.below(24) {
        0..=5 => writer.num(rng.below(20) as i64 - 2),
        6 => {
            let len = rng.below(6);
            let data = rng.bytes(len);
            writer.push(&data)
        }
        7 => {
            let len = *rng.pick(&[20usize, 32, 33, 64, 65, 75, 76, 80, 255, 256, 519, 520, 521]);
            let data = rng.bytes(len);
            writer.push(&data)
        }
        8 => {
            let key = random_key(rng);
            writer.push(&key)
        }
        9 => writer.op(*rng.pick(&[op::IF, op::NOTIF, op::ELSE, op::ENDIF, op::ENDIF])),
        10 => writer.op(*rng.pick(&[
            op::CHECKSIG,
            op::CHECKSIGVERIFY,
            op::CHECKMULTISIG,
            op::CHECKMULTISIGVERIFY,
            op::CHECKSIGADD,
            op::CODESEPARATOR,
        ])),
        11 => writer.op(*rng.pick(&[op::CHECKLOCKTIMEVERIFY, op::CHECKSEQUENCEVERIFY, op::NOP])),
        // Any opcode.
        12 => writer.op(rng.u64() as u8),
        // From `NOP` to the hashes: stack, arithmetic, logic.
        _ => writer.op(rng.within(op::NOP as usize, op::HASH256 as usize) as u8),
    }
}

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let index = rng.below(KEY_COUNT);
    match rng.below(8) {
        0 => encoded_key(index, KeyForm::Uncompressed),
        1 => encoded_key(index, KeyForm::Hybrid),
        2 => x_only(index).to_byte_array().to_vec(),
        3 => {
            let mut key = encoded_key(index, KeyForm::Compressed);
            let at = rng.below(key.len());
            key[at] ^= 1 << rng.below(8);
            key
        }
        4 => Vec::new(),
        _ => encoded_key(index, KeyForm::Compressed),
    }
}

/// A random initial stack element.
pub fn random_item(rng: &mut Rng) -> Item {
    match rng.below(10) {
        0 | 1 => Item::Bytes(Vec::new()),
        2..=4 => Item::Bytes(vec![rng.below(20) as u8]),
        5 => {
            let len = rng.below(40);
            Item::Bytes(rng.bytes(len))
        }
        6 => Item::Bytes(random_key(rng)),
        7 => {
            let len = *rng.pick(&[80usize, 519, 520, 521]);
            Item::Bytes(rng.bytes(len))
        }
        _ => Item::Sig(random_sig(rng)),
    }
}

fn random_sig(rng: &mut Rng) -> Sig {
    let flaw = if rng.chance(2, 3) { Flaw::None } else { *rng.pick(&Flaw::ALL) };
    let hash_type =
        if rng.chance(1, 6) { rng.u64() as u8 } else { *rng.pick(&[0, 1, 2, 3, 0x81, 0x82, 0x83]) };
    Sig { flaw, ..Sig::typed(rng.below(KEY_COUNT), hash_type) }
}

/// A random lock with random elements for it: a known script with other elements, a slightly
/// changed script, or an arbitrary one.
pub fn chaotic_lock(rng: &mut Rng) -> Lock {
    const PLACES: [Place; 6] = {
        use Place::{Bare, NestedWsh, P2sh, TapScript, Wsh};
        [Bare, P2sh, Wsh, NestedWsh, TapScript, TapScript]
    };
    if rng.chance(1, 8) {
        return chaotic_key_lock(rng);
    }
    let place = *rng.pick(&PLACES);
    let mut lock = match rng.below(4) {
        0 => {
            let mut lock = inner(rng, place);
            change_items(rng, &mut lock.items);
            lock
        }
        1 => {
            let Lock { mut script, items, .. } = inner(rng, place);
            change_script(rng, &mut script);
            Lock::new(place, script, items)
        }
        _ => {
            let count = rng.below(5);
            let items = (0..count).map(|_| random_item(rng)).collect();
            Lock::new(place, random_script(rng, 14), items)
        }
    };
    lock.key = rng.below(KEY_COUNT);
    if rng.chance(1, 8) {
        lock.leaf_version = rng.u64() as u8 & 0xfe;
    }
    if rng.chance(1, 8) {
        lock.annex = Some(vec![0x50, 1, 2]);
    }
    lock
}

/// A lock to one key, with a signature that may have any flaw.
fn chaotic_key_lock(rng: &mut Rng) -> Lock {
    let key = rng.below(KEY_COUNT);
    let mut lock = match rng.below(5) {
        0 => Lock::p2pkh(key, *rng.pick(&[KeyForm::Compressed, KeyForm::Uncompressed])),
        1 => Lock::wpkh(key, Place::Wpkh),
        2 => Lock::wpkh(key, Place::NestedWpkh),
        _ => Lock::tap_key(key, 0),
    };
    lock.items[0] = Item::Sig(Sig { key, ..random_sig(rng) });
    if rng.chance(1, 4) {
        change_items(rng, &mut lock.items);
    }
    if rng.chance(1, 8) {
        lock.annex = Some(vec![0x50; rng.within(1, 300)]);
    }
    lock
}

fn change_items(rng: &mut Rng, items: &mut Vec<Item>) {
    match rng.below(4) {
        0 if !items.is_empty() => {
            let at = rng.below(items.len());
            items[at] = random_item(rng);
        }
        1 if !items.is_empty() => {
            let at = rng.below(items.len());
            items.remove(at);
        }
        2 => {
            let at = rng.below(items.len() + 1);
            let item = random_item(rng);
            items.insert(at, item);
        }
        _ => {}
    }
}

fn change_script(rng: &mut Rng, script: &mut Vec<u8>) {
    for _ in 0..rng.within(1, 2) {
        match rng.below(3) {
            0 if !script.is_empty() => {
                let at = rng.below(script.len());
                script[at] ^= 1 << rng.below(8);
            }
            1 if !script.is_empty() => {
                let at = rng.below(script.len());
                script.remove(at);
            }
            _ => {
                let at = rng.below(script.len() + 1);
                let opcode = rng.within(0x50, 0xba) as u8;
                script.insert(at, opcode);
            }
        }
    }
}
