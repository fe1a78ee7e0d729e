//! Script writer, and random scripts with satisfying input.

use assay_consensus::script::asm::{push, push_number};
use assay_consensus::script::opcode::{is_p2sh, op};
use assay_hash::{hash160, ripemd160, sha1, sha256, sha256d};

use super::Rng;
use super::keys::{KEY_COUNT, KeyForm, encoded_key, x_only};
use super::lock::{Item, Lock, Place, Sig};

#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn op(mut self, opcode: u8) -> Self {
        self.0.push(opcode);
        self
    }

    #[must_use]
    pub fn ops(mut self, opcode: u8, count: usize) -> Self {
        self.0.resize(self.0.len() + count, opcode);
        self
    }

    /// Appends a push in its shortest form by length.
    #[must_use]
    pub fn push(mut self, data: &[u8]) -> Self {
        push(&mut self.0, data);
        self
    }

    #[must_use]
    pub fn num(mut self, number: i64) -> Self {
        push_number(&mut self.0, number);
        self
    }

    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn done(self) -> Vec<u8> {
        self.0
    }
}

/// A bare lock of a script with satisfying input, bottom first.
fn bare(script: Vec<u8>, items: Vec<Item>) -> Lock {
    Lock::new(Place::Bare, script, items)
}

const ECDSA_TYPES: [u8; 6] = [0x01, 0x02, 0x03, 0x81, 0x82, 0x83];
const TAPROOT_TYPES: [u8; 7] = [0x00, 0x01, 0x02, 0x03, 0x81, 0x82, 0x83];

/// A hash type that signs a message in every transaction of this harness. A matching output exists
/// for the first input only, so `SINGLE` is left to the classes that test it.
fn hash_type(rng: &mut Rng, place: Place) -> u8 {
    match place {
        Place::TapScript | Place::TapKey => {
            let drawn = *rng.pick(&TAPROOT_TYPES);
            if drawn & 3 == 3 { drawn & 0x80 | 1 } else { drawn }
        }
        // Undefined types are valid before Taproot.
        _ if rng.chance(1, 12) => rng.u64() as u8,
        _ => *rng.pick(&ECDSA_TYPES),
    }
}

fn key_bytes(rng: &mut Rng, place: Place, key: usize) -> Vec<u8> {
    match place {
        Place::TapScript => x_only(key).to_byte_array().to_vec(),
        _ => encoded_key(
            key,
            match rng.below(6) {
                0 => KeyForm::Uncompressed,
                1 => KeyForm::Hybrid,
                _ => KeyForm::Compressed,
            },
        ),
    }
}

fn single(rng: &mut Rng, place: Place) -> Lock {
    let key = rng.below(KEY_COUNT);
    let sig = Item::Sig(Sig::typed(key, hash_type(rng, place)));
    let script = Writer::new().push(&key_bytes(rng, place, key)).op(op::CHECKSIG).done();
    bare(script, vec![sig])
}

fn key_hash(rng: &mut Rng, place: Place) -> Lock {
    let key = rng.below(KEY_COUNT);
    let encoded = key_bytes(rng, place, key);
    let script = Writer::new()
        .op(op::DUP)
        .op(op::HASH160)
        .push(&hash160(&encoded))
        .op(op::EQUALVERIFY)
        .op(op::CHECKSIG)
        .done();
    let sig = Item::Sig(Sig::typed(key, hash_type(rng, place)));
    bare(script, vec![sig, Item::Bytes(encoded)])
}

fn multisig(rng: &mut Rng, place: Place) -> Lock {
    // A pushed redeem script has space for fifteen compressed keys; bare outputs allow twenty.
    let total = rng.within(1, 5);
    let needed = rng.within(0, total);
    let first = rng.below(KEY_COUNT);
    let mut writer = Writer::new().num(needed as i64);
    for index in 0..total {
        writer = writer.push(&encoded_key(first + index, KeyForm::Compressed));
    }
    let script = writer.num(total as i64).op(op::CHECKMULTISIG).done();
    let skip = rng.below(total - needed + 1);
    let mut items = vec![Item::Bytes(Vec::new())];
    items.extend((0..needed).map(|index| {
        Item::Sig(Sig::typed((first + skip + index) % KEY_COUNT, hash_type(rng, place)))
    }));
    bare(script, items)
}

fn threshold(rng: &mut Rng, place: Place) -> Lock {
    let total = rng.within(1, 4);
    let first = rng.below(KEY_COUNT);
    let mut writer = Writer::new();
    let mut items = Vec::new();
    let mut signed = 0;
    for index in 0..total {
        let key = (first + index) % KEY_COUNT;
        writer = writer.push(&x_only(key).to_byte_array());
        writer = writer.op(if index == 0 { op::CHECKSIG } else { op::CHECKSIGADD });
        if rng.chance(2, 3) {
            signed += 1;
            items.push(Item::Sig(Sig::typed(key, hash_type(rng, place))));
        } else {
            items.push(Item::Bytes(Vec::new()));
        }
    }
    items.reverse();
    bare(writer.num(signed).op(op::NUMEQUAL).done(), items)
}

fn height_lock(rng: &mut Rng, by_time: bool) -> Lock {
    const GENESIS_TIME: usize = 1_296_688_602;
    let bound = if by_time { GENESIS_TIME + rng.below(30_000) } else { rng.within(1, 100) } as u32;
    let script = Writer::new().num(i64::from(bound)).op(op::CHECKLOCKTIMEVERIFY).done();
    let sequence = *rng.pick(&[0xffff_fffe, 0x8000_0000, 0xfffe_ffff]);
    Lock {
        sequence: Some(sequence),
        lock_time: Some(bound + rng.below(2) as u32),
        ..bare(script, Vec::new())
    }
}

fn age_lock(rng: &mut Rng, by_time: bool) -> Lock {
    const TYPE_TIME: u32 = 1 << 22;
    let bound = rng.below(3) as u32 | if by_time { TYPE_TIME } else { 0 };
    let script = Writer::new().num(i64::from(bound)).op(op::CHECKSEQUENCEVERIFY).done();
    // Bits other than type and value are ignored.
    let noise = if rng.chance(1, 3) { 0x2050_0000 & !TYPE_TIME } else { 0 };
    Lock {
        sequence: Some(bound | noise),
        ..bare(Writer::new().raw(&script).op(op::DROP).op(op::PUSH1).done(), Vec::new())
    }
}

fn hash_lock(rng: &mut Rng) -> Lock {
    let len = *rng.pick(&[0usize, 1, 32, 55, 56, 64, 119, 520]);
    let preimage = rng.bytes(len);
    let (opcode, digest) = match rng.below(5) {
        0 => (op::RIPEMD160, ripemd160(&preimage).to_vec()),
        1 => (op::SHA1, sha1(&preimage).to_vec()),
        2 => (op::SHA256, sha256(&preimage).to_vec()),
        3 => (op::HASH160, hash160(&preimage).to_vec()),
        _ => (op::HASH256, sha256d(&preimage).to_vec()),
    };
    let script = Writer::new().op(opcode).push(&digest).op(op::EQUAL).done();
    bare(script, vec![Item::Bytes(preimage)])
}

fn branches(rng: &mut Rng, place: Place) -> Lock {
    let (taken, other) = (single(rng, place), key_hash(rng, place));
    let script = Writer::new()
        .op(op::IF)
        .raw(&taken.script)
        .op(op::ELSE)
        .raw(&other.script)
        .op(op::ENDIF)
        .done();
    let (mut items, choice) = if rng.chance(1, 2) {
        // Before tapscript any true value is valid.
        let is_odd = place != Place::TapScript && rng.chance(1, 3);
        (taken.items, if is_odd { vec![0, 2] } else { vec![1] })
    } else {
        (other.items, Vec::new())
    };
    items.push(Item::Bytes(choice));
    bare(script, items)
}

fn separated(rng: &mut Rng, place: Place) -> Lock {
    let (a, b) = (rng.below(KEY_COUNT), rng.below(KEY_COUNT));
    let head = Writer::new()
        .push(&key_bytes(rng, place, a))
        .op(op::CHECKSIGVERIFY)
        .op(op::CODESEPARATOR)
        .done();
    let tail = Writer::new().push(&key_bytes(rng, place, b)).op(op::CHECKSIG).done();
    let second = Sig { code_from: head.len(), separator: 2, ..Sig::typed(b, 1) };
    let script = Writer::new().raw(&head).raw(&tail).done();
    bare(script, vec![Item::Sig(second), Item::Sig(Sig::typed(a, 1))])
}

fn negated(rng: &mut Rng, place: Place) -> Lock {
    let key = rng.below(KEY_COUNT);
    let script =
        Writer::new().push(&key_bytes(rng, place, key)).op(op::CHECKSIG).op(op::NOT).done();
    // An invalid signature is allowed here; in tapscript only the empty one is.
    let item = if place == Place::TapScript || rng.chance(1, 2) {
        Item::Bytes(Vec::new())
    } else {
        Item::Sig(Sig::flawed(key, super::lock::Flaw::OtherMessage))
    };
    bare(script, vec![item])
}

fn arithmetic(rng: &mut Rng) -> Lock {
    let (a, b) = (rng.below(2000) as i64 - 1000, rng.below(2000) as i64 - 1000);
    let (opcode, result) = match rng.below(5) {
        0 => (op::ADD, a + b),
        1 => (op::SUB, a - b),
        2 => (op::MIN, a.min(b)),
        3 => (op::MAX, a.max(b)),
        _ => (op::LESSTHAN, i64::from(a < b)),
    };
    let script = Writer::new().num(a).num(b).op(opcode).num(result).op(op::NUMEQUAL).done();
    bare(script, Vec::new())
}

fn stack_play(rng: &mut Rng) -> Lock {
    let depth = rng.within(2, 6);
    let at = rng.below(depth);
    let items = (0..depth).map(|index| Item::Bytes(vec![index as u8 + 1])).collect();
    let opcode = *rng.pick(&[op::PICK, op::ROLL]);
    let mut writer = Writer::new().num(at as i64).op(opcode).num((depth - at) as i64);
    writer = writer.op(op::EQUALVERIFY);
    let left = if opcode == op::ROLL { depth - 1 } else { depth };
    for _ in 0..left {
        writer = writer.op(op::TOALTSTACK);
    }
    bare(writer.op(op::PUSH1).done(), items)
}

/// A random script of the kinds allowed at `place`, with satisfying input.
pub(super) fn inner(rng: &mut Rng, place: Place) -> Lock {
    let lock = match rng.below(16) {
        0 | 1 => single(rng, place),
        2 => key_hash(rng, place),
        3 | 4 if place == Place::TapScript => threshold(rng, place),
        3 | 4 => multisig(rng, place),
        5 => height_lock(rng, false),
        6 => height_lock(rng, true),
        7 => age_lock(rng, false),
        8 => age_lock(rng, true),
        9 => hash_lock(rng),
        10 => branches(rng, place),
        11 => separated(rng, place),
        12 => negated(rng, place),
        13 => arithmetic(rng),
        14 => stack_play(rng),
        _ if place == Place::TapScript && rng.chance(1, 2) => success_or_unknown_key(rng),
        _ => bare(vec![op::PUSH1], Vec::new()),
    };
    Lock { place, ..lock }
}

/// Scripts reserved for later soft forks: `OP_SUCCESSx`, or an unknown key type (BIP342).
fn success_or_unknown_key(rng: &mut Rng) -> Lock {
    if rng.chance(1, 2) {
        let opcode = *rng.pick(&[0x50, 0x62, 0x7e, 0x8d, 0xbb, 0xfe]);
        // The rest of the script may be invalid.
        bare(Writer::new().op(op::RETURN).op(opcode).raw(&[0x4c]).done(), Vec::new())
    } else {
        let key = rng.bytes(33);
        let script = Writer::new().push(&key).op(op::CHECKSIG).done();
        bare(script, vec![Item::Bytes(vec![7])])
    }
}

pub fn random_lock(rng: &mut Rng) -> Lock {
    let key = rng.below(KEY_COUNT);
    let forms = [KeyForm::Compressed, KeyForm::Uncompressed, KeyForm::Hybrid];
    match rng.below(20) {
        0 => Lock::p2pk(key, *rng.pick(&forms)),
        1 | 2 => Lock::p2pkh(key, *rng.pick(&forms)),
        3 | 4 => Lock::wpkh(key, Place::Wpkh),
        5 => Lock::wpkh(key, Place::NestedWpkh),
        6..=8 => {
            let mut lock = Lock::tap_key(key, hash_type(rng, Place::TapKey));
            lock.annex = annex(rng);
            lock
        }
        9 => future_program(rng),
        10 => future_leaf(rng),
        drawn => {
            let places = [Place::Bare, Place::P2sh, Place::Wsh, Place::NestedWsh, Place::TapScript];
            let place = places[drawn % 5];
            let mut lock = inner(rng, place);
            // A bare hash lock may have the form of pay-to-script-hash.
            if place == Place::Bare && is_p2sh(&lock.script) {
                return Lock::open(Place::Bare);
            }
            if place == Place::TapScript {
                lock.key = key;
                lock.path = path(rng);
                lock.annex = annex(rng);
            }
            lock
        }
    }
}

fn annex(rng: &mut Rng) -> Option<Vec<u8>> {
    rng.chance(1, 5).then(|| {
        let mut annex = vec![0x50];
        let len = rng.below(40);
        annex.extend(rng.bytes(len));
        annex
    })
}

fn path(rng: &mut Rng) -> Vec<[u8; 32]> {
    let depth = if rng.chance(1, 10) { rng.within(100, 128) } else { rng.below(4) };
    (0..depth).map(|_| sha256(&rng.bytes(8))).collect()
}

/// An anyone-can-spend output of an undefined witness version or length.
fn future_program(rng: &mut Rng) -> Lock {
    let version = if rng.chance(1, 3) { 1 } else { rng.within(2, 16) as u8 };
    let mut len = rng.within(2, 40);
    if version == 1 && len == 32 {
        len = 31;
    }
    let program = rng.bytes(len);
    let script = Writer::new().op(0x50 + version).push(&program).done();
    // A witness would be allowed and ignored, but this lock has none.
    Lock::new(Place::Bare, script, Vec::new())
}

fn future_leaf(rng: &mut Rng) -> Lock {
    let len = rng.below(30);
    let mut lock = Lock::new(Place::TapScript, rng.bytes(len), Vec::new());
    lock.leaf_version = *rng.pick(&[0xc2, 0xbe, 0x00, 0x66, 0xfe]);
    lock.key = rng.below(KEY_COUNT);
    lock.path = path(rng);
    lock
}
