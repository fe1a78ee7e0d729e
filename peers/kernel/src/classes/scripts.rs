//! Scripts that fail for one named reason, and valid scripts that look invalid.

use assay_consensus::script::ScriptError;
use assay_consensus::script::opcode::op;

use super::{Meant, sealed};
use crate::build::{Flaw, Item, KeyForm, Lock, Place, Rng, Sig, Tx, Writer, encoded_key, x_only};
use crate::world::World;

/// A lock, the attempt to spend it, and the expected error.
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// `None` if the script passes.
    error: Option<ScriptError>,
    make: fn(&mut Rng) -> Try,
}

struct Try {
    lock: Lock,
    /// Lock whose data is used for spending.
    used: Lock,
    /// Change of the signed transaction, in which the tested input is the first.
    tweak: fn(&mut Tx),
}

impl Fault {
    pub(super) fn meant(&self) -> Meant {
        self.error.map_or(Meant::Accepted, Meant::Script)
    }
}

/// A block that is valid except for one transaction, which spends the lock incorrectly.
pub(super) fn failing(world: &mut World, fault: &Fault) -> Vec<Vec<u8>> {
    let made = (fault.make)(&mut world.rng);
    let payments = world.rng.below(2);
    let mut block = world.block(payments);
    let Some(coin) = world.fund(&mut block.txs, &made.lock) else { return Vec::new() };
    let mut tx = world.sweep(&coin, &made.used);
    (made.tweak)(&mut tx);
    block.txs.push(tx);
    sealed(world, block)
}

fn same(lock: Lock) -> Try {
    Try { used: lock.clone(), lock, tweak: |_| {} }
}

fn tweaked(lock: Lock, tweak: fn(&mut Tx)) -> Try {
    Try { used: lock.clone(), lock, tweak }
}

fn other(lock: Lock, items: Vec<Item>) -> Try {
    Try { used: lock.with_items(items), lock, tweak: |_| {} }
}

/// Any location of pre-Taproot scripts.
fn classic(rng: &mut Rng) -> Place {
    *rng.pick(&[Place::Bare, Place::P2sh, Place::Wsh, Place::NestedWsh])
}

fn any_place(rng: &mut Rng) -> Place {
    *rng.pick(&[Place::Bare, Place::P2sh, Place::Wsh, Place::NestedWsh, Place::TapScript])
}

fn classic_script(rng: &mut Rng, script: Vec<u8>) -> Try {
    classic_with(rng, script, Vec::new())
}

fn classic_with(rng: &mut Rng, script: Vec<u8>, items: Vec<Item>) -> Try {
    same(Lock::new(classic(rng), script, items))
}

fn any_script(rng: &mut Rng, script: Vec<u8>) -> Try {
    let place = any_place(rng);
    same(Lock::new(place, script, Vec::new()))
}

fn bytes(data: &[u8]) -> Item {
    Item::Bytes(data.to_vec())
}

fn key(index: usize) -> Vec<u8> {
    encoded_key(index, KeyForm::Compressed)
}

fn one_of_one() -> Vec<u8> {
    Writer::new().op(op::PUSH1).push(&key(0)).op(op::PUSH1).op(op::CHECKMULTISIG).done()
}

fn tap_pk() -> Lock {
    let script = Writer::new().push(&x_only(0).to_byte_array()).op(op::CHECKSIG).done();
    Lock::new(Place::TapScript, script, vec![Item::Sig(Sig::typed(0, 0))])
}

fn signed_with(rng: &mut Rng, flaw: Flaw) -> Try {
    let script = Writer::new().push(&key(1)).op(op::CHECKSIG).done();
    classic_with(rng, script, vec![Item::Sig(Sig::flawed(1, flaw))])
}

macro_rules! fault {
    ($name:literal, $error:expr, $make:expr) => {
        Fault { name: $name, error: $error, make: $make }
    };
}

use ScriptError as E;

pub(super) const FAULTS: &[Fault] = &[
    fault!("script-eval-false", Some(E::EvalFalse), |rng| {
        let script = rng.pick(&[vec![0x00], vec![0x01, 0x80], vec![0x02, 0, 0]]).clone();
        any_script(rng, script)
    }),
    fault!("script-eval-empty", Some(E::EvalFalse), |_| {
        same(Lock::new(Place::P2sh, Vec::new(), Vec::new()))
    }),
    fault!("script-wrong-signature-legacy", Some(E::EvalFalse), |rng| {
        signed_with(rng, Flaw::OtherMessage)
    }),
    fault!("script-wrong-signature-wpkh", Some(E::EvalFalse), |rng| {
        let place = *rng.pick(&[Place::Wpkh, Place::NestedWpkh]);
        let lock = Lock::wpkh(2, place);
        let items = vec![Item::Sig(Sig::flawed(2, Flaw::OtherMessage)), bytes(&key(2))];
        other(lock, items)
    }),
    fault!("script-wrong-amount", Some(E::EvalFalse), |rng| {
        // Segwit signs the amount: a signature for another output is invalid.
        let place = *rng.pick(&[Place::Wpkh, Place::NestedWpkh]);
        let lock = Lock::wpkh(3, place);
        tweaked(lock, |tx| tx.outputs[0].value -= 1)
    }),
    fault!("script-empty-signature", Some(E::EvalFalse), |rng| {
        let place = any_place(rng);
        let public =
            if place == Place::TapScript { x_only(1).to_byte_array().to_vec() } else { key(1) };
        let script = Writer::new().push(&public).op(op::CHECKSIG).done();
        same(Lock::new(place, script, vec![bytes(&[])]))
    }),
    fault!("script-key-not-on-curve", Some(E::EvalFalse), |rng| {
        let mut wrong = key(0);
        wrong[1..].fill(0xff);
        let script = Writer::new().push(&wrong).op(op::CHECKSIG).done();
        classic_with(rng, script, vec![Item::Sig(Sig::all(0))])
    }),
    fault!("script-hybrid-wrong-parity", Some(E::EvalFalse), |rng| {
        let mut wrong = encoded_key(0, KeyForm::Hybrid);
        wrong[0] ^= 1;
        let script = Writer::new().push(&wrong).op(op::CHECKSIG).done();
        classic_with(rng, script, vec![Item::Sig(Sig::all(0))])
    }),
    fault!("script-verify", Some(E::Verify), |rng| {
        any_script(rng, vec![0x00, op::VERIFY, op::PUSH1])
    }),
    fault!("script-equalverify", Some(E::EqualVerify), |_| {
        let lock = Lock::p2pkh(1, KeyForm::Compressed);
        other(lock, vec![Item::Sig(Sig::all(2)), bytes(&key(2))])
    }),
    fault!("script-checksigverify", Some(E::CheckSigVerify), |rng| {
        let script = Writer::new().push(&key(1)).op(op::CHECKSIGVERIFY).op(op::PUSH1).done();
        classic_with(rng, script, vec![Item::Sig(Sig::all(2))])
    }),
    fault!("script-checkmultisigverify", Some(E::CheckMultisigVerify), |rng| {
        let mut script = one_of_one();
        script.pop();
        script.extend_from_slice(&[op::CHECKMULTISIGVERIFY, op::PUSH1]);
        classic_with(rng, script, vec![bytes(&[]), Item::Sig(Sig::all(1))])
    }),
    fault!("script-multisig-order", Some(E::EvalFalse), |rng| {
        let script =
            Writer::new().num(2).push(&key(0)).push(&key(1)).num(2).op(op::CHECKMULTISIG).done();
        classic_with(rng, script, vec![bytes(&[]), Item::Sig(Sig::all(1)), Item::Sig(Sig::all(0))])
    }),
    fault!("script-numequalverify", Some(E::NumEqualVerify), |rng| {
        any_script(rng, vec![0x51, 0x52, op::NUMEQUALVERIFY, op::PUSH1])
    }),
    fault!("script-op-return", Some(E::OpReturn), |rng| {
        any_script(rng, vec![0x51, op::RETURN])
    }),
    fault!("script-size", Some(E::ScriptSize), |rng| {
        let place = *rng.pick(&[Place::Wsh, Place::NestedWsh]);
        same(Lock::new(place, vec![op::PUSH1; 10_001], Vec::new()))
    }),
    fault!("script-size-edge-stack", Some(E::StackSize), |rng| {
        let place = *rng.pick(&[Place::Bare, Place::Wsh, Place::NestedWsh]);
        same(Lock::new(place, vec![op::PUSH1; 10_000], Vec::new()))
    }),
    fault!("script-push-size", Some(E::PushSize), |rng| {
        let data = rng.bytes(521);
        let script = Writer::new().push(&data).op(op::DROP).op(op::PUSH1).done();
        let place = *rng.pick(&[Place::Bare, Place::Wsh, Place::NestedWsh, Place::TapScript]);
        same(Lock::new(place, script, Vec::new()))
    }),
    fault!("script-witness-item-size", Some(E::PushSize), |rng| {
        let place = *rng.pick(&[Place::Wsh, Place::NestedWsh, Place::TapScript]);
        let script = vec![op::DROP, op::PUSH1];
        let item = Item::Bytes(rng.bytes(521));
        same(Lock::new(place, script, vec![item]))
    }),
    fault!("script-op-count", Some(E::OpCount), |rng| {
        let script = Writer::new().ops(op::NOP, 202).op(op::PUSH1).done();
        classic_script(rng, script)
    }),
    fault!("script-op-count-multisig", Some(E::OpCount), |rng| {
        let place = *rng.pick(&[Place::Bare, Place::Wsh]);
        let mut writer = Writer::new().ops(op::NOP, 190).op(0).op(0);
        for index in 0..11 {
            writer = writer.push(&key(index));
        }
        same(Lock::new(place, writer.num(11).op(op::CHECKMULTISIG).done(), Vec::new()))
    }),
    fault!("script-stack-size", Some(E::StackSize), |rng| {
        let place = *rng.pick(&[Place::Bare, Place::Wsh, Place::NestedWsh, Place::TapScript]);
        same(Lock::new(place, vec![op::PUSH1; 1001], Vec::new()))
    }),
    fault!("script-sig-count", Some(E::SigCount), |rng| {
        let head = if rng.chance(1, 2) { op::PUSH1 + 1 } else { op::NEGATE1 };
        let script =
            Writer::new().op(head).push(&key(0)).op(op::PUSH1).op(op::CHECKMULTISIG).done();
        classic_script(rng, script)
    }),
    fault!("script-pubkey-count", Some(E::PubkeyCount), |rng| {
        let count = if rng.chance(1, 2) { 21 } else { -1 };
        let script = Writer::new().op(0).num(count).op(op::CHECKMULTISIG).done();
        classic_script(rng, script)
    }),
    fault!("script-bad-opcode", Some(E::BadOpcode), |rng| {
        let opcode = *rng.pick(&[0xba, 0xbb, 0xfe, 0xff, op::VER, op::RESERVED, op::RESERVED1]);
        classic_script(rng, vec![op::PUSH1, opcode])
    }),
    fault!("script-bad-opcode-unexecuted", Some(E::BadOpcode), |rng| {
        let opcode = *rng.pick(&[op::VERIF, op::VERNOTIF]);
        let script = vec![0x00, op::IF, opcode, op::ENDIF, op::PUSH1];
        any_script(rng, script)
    }),
    fault!("script-truncated-push", Some(E::BadOpcode), |rng| {
        let tail = rng
            .pick(&[vec![0x4c], vec![0x05, 1, 2], vec![0x4d, 1], vec![0x4e, 255, 255, 255, 255]])
            .clone();
        any_script(rng, [vec![op::PUSH1], tail].concat())
    }),
    fault!("script-bad-opcode-tapscript", Some(E::BadOpcode), |_| {
        same(Lock::new(Place::TapScript, vec![op::PUSH1, 0xff], Vec::new()))
    }),
    fault!("script-truncated-before-success", Some(E::BadOpcode), |_| {
        same(Lock::new(Place::TapScript, vec![0x4d, 0x50, 0x00, 0x7e], Vec::new()))
    }),
    fault!("script-disabled-opcode", Some(E::DisabledOpcode), |rng| {
        let opcode = *rng.pick(&[
            op::CAT,
            op::SUBSTR,
            op::LEFT,
            op::RIGHT,
            op::INVERT,
            op::AND,
            op::OR,
            op::XOR,
            op::MUL2,
            op::DIV2,
            op::MUL,
            op::DIV,
            op::MOD,
            op::LSHIFT,
            op::RSHIFT,
        ]);
        classic_script(rng, vec![0x00, op::IF, opcode, op::ENDIF, op::PUSH1])
    }),
    fault!("script-stack-empty", Some(E::InvalidStackOperation), |rng| {
        let opcode = *rng.pick(&[op::DUP, op::ADD, op::SWAP, op::PICK, op::WITHIN, op::DROP]);
        any_script(rng, vec![opcode, op::PUSH1])
    }),
    fault!("script-altstack-empty", Some(E::InvalidAltstackOperation), |rng| {
        any_script(rng, vec![op::FROMALTSTACK])
    }),
    fault!("script-unbalanced", Some(E::UnbalancedConditional), |rng| {
        let script = rng
            .pick(&[
                vec![op::PUSH1, op::PUSH1, op::IF],
                vec![op::PUSH1, op::ENDIF],
                vec![op::PUSH1, op::ELSE],
            ])
            .clone();
        any_script(rng, script)
    }),
    fault!("script-negative-locktime", Some(E::NegativeLocktime), |rng| {
        let opcode = *rng.pick(&[op::CHECKLOCKTIMEVERIFY, op::CHECKSEQUENCEVERIFY]);
        any_script(rng, vec![op::NEGATE1, opcode])
    }),
    fault!("script-cltv", Some(E::UnsatisfiedLocktime), |rng| {
        let place = any_place(rng);
        let bound = if rng.chance(1, 2) { 60 } else { 500_000_000 };
        let script = Writer::new().num(bound).op(op::CHECKLOCKTIMEVERIFY).done();
        let mut lock = Lock::new(place, script, Vec::new());
        lock.sequence = Some(0xffff_fffe);
        lock.lock_time = Some(59);
        same(lock)
    }),
    fault!("script-cltv-final-input", Some(E::UnsatisfiedLocktime), |rng| {
        let place = any_place(rng);
        let script = Writer::new().num(60).op(op::CHECKLOCKTIMEVERIFY).done();
        let mut lock = Lock::new(place, script, Vec::new());
        lock.sequence = Some(u32::MAX);
        lock.lock_time = Some(61);
        same(lock)
    }),
    fault!("script-csv", Some(E::UnsatisfiedLocktime), |rng| {
        let place = any_place(rng);
        let bound = *rng.pick(&[1, 1 << 22, 0xffff]);
        let script = Writer::new().num(bound).op(op::CHECKSEQUENCEVERIFY).done();
        let mut lock = Lock::new(place, script, Vec::new());
        lock.sequence = Some(*rng.pick(&[0, 0x8000_0001]));
        same(lock)
    }),
    fault!("script-csv-version", Some(E::UnsatisfiedLocktime), |rng| {
        let place = any_place(rng);
        let script = Writer::new().op(0).op(op::CHECKSEQUENCEVERIFY).op(op::PUSH1).done();
        let mut lock = Lock::new(place, script, Vec::new());
        lock.sequence = Some(0);
        tweaked(lock, |tx| tx.version = 1)
    }),
    fault!("script-number-too-long", Some(E::ScriptNum), |rng| {
        let script = Writer::new().push(&[0, 0, 0, 0, 1]).op(op::ADD1).done();
        any_script(rng, script)
    }),
    fault!("script-cltv-number-too-long", Some(E::ScriptNum), |rng| {
        let script = Writer::new().push(&[0; 6]).op(op::CHECKLOCKTIMEVERIFY).done();
        any_script(rng, script)
    }),
    fault!("script-sig-der-padded", Some(E::SigDer), |rng| { signed_with(rng, Flaw::Padded) }),
    fault!("script-sig-der-short", Some(E::SigDer), |rng| { signed_with(rng, Flaw::Short) }),
    fault!("script-sig-der-long", Some(E::SigDer), |rng| { signed_with(rng, Flaw::Long) }),
    fault!("script-sig-no-hash-type", Some(E::SigDer), |rng| {
        signed_with(rng, Flaw::NoHashType)
    }),
    fault!("script-nulldummy", Some(E::SigNullDummy), |rng| {
        let place = classic(rng);
        let dummy = rng.pick(&[vec![0], vec![1], vec![0x80]]).clone();
        same(Lock::new(place, one_of_one(), vec![Item::Bytes(dummy), Item::Sig(Sig::all(0))]))
    }),
    fault!("script-p2sh-push-only", Some(E::SigPushOnly), |_| {
        tweaked(Lock::open(Place::P2sh), |tx| {
            tx.inputs[0].script_sig.insert(0, op::NOP);
        })
    }),
    fault!("script-p2sh-mismatch", Some(E::EvalFalse), |_| {
        tweaked(Lock::open(Place::P2sh), |tx| {
            tx.inputs[0].script_sig = vec![1, op::PUSH1 + 1];
        })
    }),
    fault!("script-program-length", Some(E::WitnessProgramWrongLength), |rng| {
        let len = *rng.pick(&[2usize, 19, 21, 31, 33, 40]);
        let script = Writer::new().op(0).push(&rng.bytes(len)).done();
        tweaked(Lock::new(Place::Bare, script, Vec::new()), |tx| {
            tx.inputs[0].witness = vec![vec![1]];
        })
    }),
    fault!("script-witness-empty", Some(E::WitnessProgramWitnessEmpty), |rng| {
        let place = *rng.pick(&[Place::Wsh, Place::NestedWsh, Place::TapKey, Place::TapScript]);
        tweaked(Lock::open(place), |tx| tx.inputs[0].witness.clear())
    }),
    fault!("script-wpkh-items", Some(E::WitnessProgramMismatch), |rng| {
        let lock = Lock::wpkh(1, *rng.pick(&[Place::Wpkh, Place::NestedWpkh]));
        let mut items = lock.items.clone();
        if rng.chance(1, 2) {
            items.insert(0, bytes(&[]));
        } else {
            items.remove(0);
        }
        other(lock, items)
    }),
    fault!("script-wsh-mismatch", Some(E::WitnessProgramMismatch), |rng| {
        let place = *rng.pick(&[Place::Wsh, Place::NestedWsh]);
        tweaked(Lock::open(place), |tx| tx.inputs[0].witness[0].push(op::NOP))
    }),
    fault!("script-tap-mismatch", Some(E::WitnessProgramMismatch), |rng| {
        let mut lock = Lock::open(Place::TapScript);
        lock.path = vec![[7; 32]; rng.below(3)];
        if rng.chance(1, 2) {
            // Flips the parity bit.
            tweaked(lock, |tx| tx.inputs[0].witness[1][0] ^= 1)
        } else {
            tweaked(lock, |tx| tx.inputs[0].witness[0].push(op::NOP))
        }
    }),
    fault!("script-tap-internal-key", Some(E::WitnessProgramMismatch), |_| {
        tweaked(Lock::open(Place::TapScript), |tx| tx.inputs[0].witness[1][1..].fill(0xff))
    }),
    fault!("script-witness-malleated", Some(E::WitnessMalleated), |rng| {
        let place = *rng.pick(&[Place::Wpkh, Place::Wsh, Place::TapKey]);
        let lock = match place {
            Place::Wpkh => Lock::wpkh(0, place),
            Place::TapKey => Lock::tap_key(0, 0),
            _ => Lock::open(place),
        };
        tweaked(lock, |tx| tx.inputs[0].script_sig = vec![op::PUSH1])
    }),
    fault!("script-witness-malleated-p2sh", Some(E::WitnessMalleatedP2sh), |rng| {
        let place = *rng.pick(&[Place::NestedWpkh, Place::NestedWsh]);
        let lock =
            if place == Place::NestedWpkh { Lock::wpkh(0, place) } else { Lock::open(place) };
        tweaked(lock, |tx| tx.inputs[0].script_sig.insert(0, op::PUSH1))
    }),
    fault!("script-witness-unexpected", Some(E::WitnessUnexpected), |rng| {
        let place = *rng.pick(&[Place::Bare, Place::P2sh]);
        tweaked(Lock::open(place), |tx| tx.inputs[0].witness = vec![Vec::new()])
    }),
    fault!("script-witness-cleanstack", Some(E::CleanStack), |rng| {
        let place = *rng.pick(&[Place::Wsh, Place::NestedWsh, Place::TapScript]);
        same(Lock::new(place, vec![op::PUSH1, op::PUSH1], Vec::new()))
    }),
    fault!("script-schnorr-size", Some(E::SchnorrSigSize), |rng| {
        let flaw = *rng.pick(&[Flaw::Short, Flaw::Long]);
        if rng.chance(1, 2) {
            let mut lock = Lock::tap_key(1, 0);
            lock.items = vec![Item::Sig(Sig { flaw, ..Sig::typed(1, 0) })];
            same(lock)
        } else {
            let items = vec![Item::Sig(Sig { flaw, ..Sig::typed(0, 0) })];
            same(tap_pk().with_items(items))
        }
    }),
    fault!("script-schnorr-hash-type", Some(E::SchnorrSigHashType), |rng| {
        // Undefined types, and an explicit default type.
        let hash_type = *rng.pick(&[0x04u8, 0x10, 0x80, 0x84, 0xff]);
        let sig = if rng.chance(1, 4) {
            Sig { flaw: Flaw::Padded, ..Sig::typed(0, 0) }
        } else {
            Sig::typed(0, hash_type)
        };
        let lock = if rng.chance(1, 2) { Lock::tap_key(0, 0) } else { tap_pk() };
        same(lock.with_items(vec![Item::Sig(sig)]))
    }),
    fault!("script-schnorr", Some(E::SchnorrSig), |rng| {
        let flaw = *rng.pick(&[Flaw::OtherMessage, Flaw::HighS]);
        let lock = if rng.chance(1, 2) { Lock::tap_key(0, 0) } else { tap_pk() };
        same(lock.with_items(vec![Item::Sig(Sig { flaw, ..Sig::typed(0, 0) })]))
    }),
    fault!("script-annex-not-signed", Some(E::SchnorrSig), |rng| {
        let lock = if rng.chance(1, 2) { Lock::tap_key(0, 0) } else { tap_pk() };
        tweaked(lock, |tx| tx.inputs[0].witness.push(vec![0x50, 1]))
    }),
    fault!("script-tap-control-size", Some(E::TaprootWrongControlSize), |rng| {
        let mut lock = Lock::open(Place::TapScript);
        match rng.below(3) {
            0 => tweaked(lock, |tx| {
                tx.inputs[0].witness[1].pop();
            }),
            1 => tweaked(lock, |tx| tx.inputs[0].witness[1].push(0)),
            _ => {
                lock.path = vec![[1; 32]; 129];
                same(lock)
            }
        }
    }),
    fault!("script-tap-validation-weight", Some(E::TapscriptValidationWeight), |_| {
        let mut writer = Writer::new().push(&x_only(0).to_byte_array());
        for _ in 0..8 {
            writer = writer.op(op::DUP2).op(op::CHECKSIGVERIFY);
        }
        let script = writer.op(op::CHECKSIG).done();
        same(Lock::new(Place::TapScript, script, vec![Item::Sig(Sig::typed(0, 0))]))
    }),
    fault!("script-tap-checkmultisig", Some(E::TapscriptCheckMultisig), |rng| {
        let opcode = *rng.pick(&[op::CHECKMULTISIG, op::CHECKMULTISIGVERIFY]);
        same(Lock::new(Place::TapScript, vec![0, 0, 0, opcode], Vec::new()))
    }),
    fault!("script-tap-minimalif", Some(E::TapscriptMinimalIf), |rng| {
        let choice = rng.pick(&[vec![2], vec![1, 0], vec![0], vec![0x80]]).clone();
        let script = vec![op::IF, op::ENDIF, op::PUSH1];
        same(Lock::new(Place::TapScript, script, vec![Item::Bytes(choice)]))
    }),
    fault!("script-tap-empty-key", Some(E::TapscriptEmptyPubkey), |rng| {
        let opcode = *rng.pick(&[op::CHECKSIG, op::CHECKSIGVERIFY]);
        let sig = if rng.chance(1, 2) { Item::Sig(Sig::typed(0, 0)) } else { bytes(&[]) };
        same(Lock::new(Place::TapScript, vec![0, opcode, op::PUSH1], vec![sig]))
    }),
    fault!("script-valid-high-s", None, |rng| signed_with(rng, Flaw::HighS)),
    fault!("script-valid-undefined-hash-type", None, |rng| {
        let place = classic(rng);
        let script = Writer::new().push(&key(1)).op(op::CHECKSIG).done();
        let hash_type = *rng.pick(&[0x00, 0x04, 0x1f, 0x42, 0x84, 0xff]);
        same(Lock::new(place, script, vec![Item::Sig(Sig::typed(1, hash_type))]))
    }),
    fault!("script-valid-not-push-only", None, |_| {
        tweaked(Lock::open(Place::Bare), |tx| {
            tx.inputs[0].script_sig = vec![op::PUSH1, op::DUP, op::DROP];
        })
    }),
    fault!("script-valid-unclean-stack", None, |rng| {
        let place = *rng.pick(&[Place::Bare, Place::P2sh]);
        same(Lock::new(place, vec![op::PUSH1, op::PUSH1], Vec::new()))
    }),
    fault!("script-valid-odd-if", None, |rng| {
        let script = vec![op::IF, op::PUSH1, op::ELSE, 0, op::ENDIF];
        classic_with(rng, script, vec![bytes(&[0, 2])])
    }),
    fault!("script-valid-long-numbers", None, |rng| {
        // Non-minimal encodings, which are valid by consensus.
        let script =
            Writer::new().push(&[1, 0, 0, 0]).push(&[2, 0]).op(op::ADD).op(0x53).op(op::EQUAL);
        any_script(rng, script.done())
    }),
    fault!("script-valid-limits", None, |rng| {
        // 201 counted opcodes, 1,000 elements, a push of 520 bytes.
        let data = rng.bytes(520);
        let script = Writer::new()
            .push(&data)
            .ops(op::PUSH1, 999)
            .ops(op::NOP, 101)
            .ops(op::DROP2, 100)
            .done();
        let script = [script, vec![0x51; 200]].concat();
        same(Lock::new(Place::Bare, script, Vec::new()))
    }),
    fault!("script-valid-budget-edge", None, |rng| {
        // Four checks need a budget of 200; the annex provides for more.
        let count = rng.within(3, 8);
        let mut writer = Writer::new().push(&x_only(0).to_byte_array());
        for _ in 0..count {
            writer = writer.op(op::DUP2).op(op::CHECKSIGVERIFY);
        }
        let script = writer.op(op::CHECKSIG).done();
        let mut lock = Lock::new(Place::TapScript, script, vec![Item::Sig(Sig::typed(0, 0))]);
        lock.annex = Some(vec![0x50; 400]);
        same(lock)
    }),
    fault!("script-valid-program-in-p2sh-v1", None, |_| {
        // Version 1 programs of 32 bytes inside pay-to-script-hash are not Taproot.
        let program = [vec![op::PUSH1, 32], vec![9; 32]].concat();
        same(Lock::new(Place::P2sh, program, Vec::new()))
    }),
    fault!("script-valid-find-and-delete", None, |_| {
        // The script does not contain the signature, but a push that looks like its beginning.
        let script =
            Writer::new().push(&[0x30, 0x44]).op(op::DROP).push(&key(0)).op(op::CHECKSIG).done();
        same(Lock::new(Place::Bare, script, vec![Item::Sig(Sig::all(0))]))
    }),
];
