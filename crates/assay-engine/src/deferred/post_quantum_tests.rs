//! Post-quantum signatures, deferred and immediate, under rules that include them.

use assay_consensus::script::opcode::op;
use assay_consensus::script::{RuleSet, ScriptError, asm};
use assay_hash::sha256d;
use assay_pq::{Message, ParameterSet, TestKey, ml_dsa};

use super::{Batches, Keypair, Verdict, push, secret, taproot_flags, tapscript_spend_of_messages};

const SIGNATURE_BYTES: usize = ParameterSet::SHA2_128S.signature_bytes();

fn sign(key: &TestKey, message: &[u8; 32]) -> Vec<u8> {
    key.sign(&Message::Pure { context: &[], message })
}

fn key(number: u64) -> TestKey {
    TestKey::new(ParameterSet::SHA2_128S, number)
}

fn verdict(
    rules: &str,
    leaf: &[u8],
    stack: impl Fn(&dyn Fn(u8) -> [u8; 32]) -> Vec<Vec<u8>>,
) -> Verdict {
    let rules = RuleSet::by_name(rules).expect("names of rule sets");
    let spend = tapscript_spend_of_messages(leaf, stack, None);
    spend.check_under::<Batches>(&rules, taproot_flags())[0]
}

fn checks(verdict: Verdict) -> Result<u32, ScriptError> {
    verdict.map(|stats| stats.sig_checks)
}

#[test]
fn one_signature() {
    let key = key(1);
    let mut leaf = Vec::new();
    asm::push(&mut leaf, key.public());
    leaf.push(op::CHECKSIG_SLH);
    let run = |rules: &str, change: &dyn Fn(&mut Vec<u8>)| {
        checks(verdict(rules, &leaf, |message| {
            let mut sig = sign(&key, &message(0));
            change(&mut sig);
            vec![sig]
        }))
    };
    for rules in ["pqsig+slh", "report-8000+slh", "slh+pqsig-dup"] {
        assert_eq!(run(rules, &|_| ()), Ok(1), "{rules}");
        for place in [0, 15, 16, 3_000, SIGNATURE_BYTES - 1] {
            let wrong = run(rules, &|sig| sig[place] ^= 1);
            assert_eq!(wrong, Err(ScriptError::PqSig), "{rules} {place}");
        }
        assert_eq!(run(rules, &Vec::clear), Err(ScriptError::EvalFalse), "{rules}");
        let short = run(rules, &|sig| sig.truncate(SIGNATURE_BYTES - 1));
        assert_eq!(short, Err(ScriptError::PqSigSize), "{rules}");
        let spelt_out = run(rules, &|sig| sig.push(0));
        assert_eq!(spelt_out, Err(ScriptError::SchnorrSigHashType), "{rules}");
        // The message differs.
        assert_eq!(run(rules, &|sig| sig.push(1)), Err(ScriptError::PqSig), "{rules}");
        assert_eq!(run(rules, &|sig| sig.push(4)), Err(ScriptError::SchnorrSigHashType), "{rules}");
    }
    assert_eq!(run("today", &|_| ()), Ok(0), "a success opcode");
    assert_eq!(run("slh", &|_| ()), Err(ScriptError::PushSize), "too large an element");
    let all =
        verdict("pqsig+slh", &leaf, |message| vec![[sign(&key, &message(1)), vec![1]].concat()]);
    assert_eq!(checks(all), Ok(1));
}

#[test]
fn keys_of_other_lengths_are_left_for_later() {
    for (key, expected) in [
        (&[][..], Err(ScriptError::TapscriptEmptyPubkey)),
        (&[2; 31][..], Ok(0)),
        (&[2; 33][..], Ok(0)),
    ] {
        let mut leaf = Vec::new();
        push(&mut leaf, key);
        leaf.push(op::CHECKSIG_SLH);
        let found = verdict("pqsig+slh", &leaf, |_| vec![vec![1; 10]]);
        assert_eq!(checks(found), expected, "{}", key.len());
    }
}

#[test]
fn signatures_are_counted() {
    let keys = [key(1), key(2)];
    let mut leaf = vec![0];
    for key in &keys {
        asm::push(&mut leaf, key.public());
        leaf.push(op::CHECKSIGADD_SLH);
    }
    let two = [&leaf[..], &[op::PUSH1 + 1, op::NUMEQUAL]].concat();
    let one = [&leaf[..], &[op::PUSH1, op::NUMEQUAL]].concat();
    // The last one is on top and checked first.
    let signed = |message: &dyn Fn(u8) -> [u8; 32]| {
        vec![sign(&keys[1], &message(0)), sign(&keys[0], &message(0))]
    };
    assert_eq!(checks(verdict("pqsig+slh", &two, signed)), Ok(2));
    assert_eq!(checks(verdict("pqsig+slh", &one, signed)), Err(ScriptError::EvalFalse));
    let first = |message: &dyn Fn(u8) -> [u8; 32]| vec![vec![], sign(&keys[0], &message(0))];
    assert_eq!(checks(verdict("pqsig+slh", &one, first)), Ok(1));
    let swapped = |message: &dyn Fn(u8) -> [u8; 32]| {
        vec![sign(&keys[0], &message(0)), sign(&keys[1], &message(0))]
    };
    assert_eq!(checks(verdict("pqsig+slh", &two, swapped)), Err(ScriptError::PqSig));
}

/// Two signatures copied alternately: each check differs from the previous one.
#[test]
fn copied_signatures() {
    let keys = [key(1), key(2)];
    let mut leaf = Vec::new();
    asm::push(&mut leaf, keys[1].public());
    leaf.extend([op::ROT]);
    asm::push(&mut leaf, keys[0].public());
    // sig 2, key 2, sig 1, key 1
    leaf.extend(
        [op::OVER2, op::CHECKSIG_SLH, op::VERIFY, op::DUP2, op::CHECKSIG_SLH, op::VERIFY]
            .repeat(20),
    );
    // The same check repeatedly.
    leaf.extend([op::DUP2, op::CHECKSIG_SLH, op::VERIFY].repeat(20));
    leaf.extend([op::DROP2, op::CHECKSIG_SLH]);
    let stack = |change: u8| {
        let keys = &keys;
        move |message: &dyn Fn(u8) -> [u8; 32]| {
            let mut second = sign(&keys[1], &message(0));
            second[5_000] ^= change;
            vec![sign(&keys[0], &message(0)), second]
        }
    };
    assert_eq!(checks(verdict("report-8000+slh", &leaf, stack(0))), Ok(61));
    let wrong = checks(verdict("report-8000+slh", &leaf, stack(1)));
    assert_eq!(wrong, Err(ScriptError::PqSig));
    let copied = checks(verdict("pqsig+slh", &leaf, stack(0)));
    assert_eq!(copied, Err(ScriptError::PushSize), "the draft does not copy signatures");
}

#[test]
fn together_with_schnorr_signatures() {
    use secp256k1::schnorr;
    let (post_quantum, pair) = (key(3), Keypair::from_secret_key(&secret(1)));
    let mut leaf = Vec::new();
    asm::push(&mut leaf, &pair.x_only_public_key().0.to_byte_array());
    leaf.push(op::CHECKSIGVERIFY);
    asm::push(&mut leaf, post_quantum.public());
    leaf.push(op::CHECKSIG_SLH);
    for (schnorr_flip, slh_flip, expected) in [
        (0, 0, Ok(2)),
        (1, 0, Err(ScriptError::SchnorrSig)),
        (0, 1, Err(ScriptError::PqSig)),
        (1, 1, Err(ScriptError::SchnorrSig)),
    ] {
        let found = verdict("pqsig+slh", &leaf, |message| {
            let mut sig = schnorr::sign_no_aux_rand(&message(0), &pair).to_byte_array().to_vec();
            sig[40] ^= schnorr_flip;
            let mut post_quantum = sign(&post_quantum, &message(0));
            post_quantum[100] ^= slh_flip;
            vec![post_quantum, sig]
        });
        assert_eq!(checks(found), expected);
    }
}

#[test]
fn large_keys_come_with_the_signature() {
    let key = ml_dsa::TestKey::new([1; 32]);
    let mut leaf = Vec::new();
    asm::push(&mut leaf, &sha256d(key.public()));
    leaf.push(op::CHECKSIG_ML);
    let run = |rules: &str, hash_type: u8, change: &dyn Fn(&mut Vec<u8>)| {
        checks(verdict(rules, &leaf, |message| {
            let mut element = [key.public(), &key.sign(&message(hash_type), &[])].concat();
            if hash_type > 0 {
                element.push(hash_type);
            }
            change(&mut element);
            vec![element]
        }))
    };
    for rules in ["pqsig+ml", "report-8000+ml+slh"] {
        for hash_type in [0, 1, 0x83] {
            assert_eq!(run(rules, hash_type, &|_| ()), Ok(1), "{rules} {hash_type}");
        }
        assert_eq!(run(rules, 0, &|element| element[3] ^= 1), Err(ScriptError::PqKeyHash));
        assert_eq!(run(rules, 0, &|element| element[1_400] ^= 1), Err(ScriptError::PqSig));
        assert_eq!(run(rules, 0, &|element| element.push(1)), Err(ScriptError::PqSig));
        assert_eq!(run(rules, 0, &|element| element.push(0)), Err(ScriptError::SchnorrSigHashType));
        assert_eq!(run(rules, 0, &Vec::clear), Err(ScriptError::EvalFalse));
        let signature_alone = run(rules, 0, &|element| drop(element.drain(..1_312)));
        assert_eq!(signature_alone, Err(ScriptError::PqSigSize), "{rules}");
    }
    assert_eq!(run("pqsig+slh", 0, &|_| ()), Ok(0), "a success opcode");
    assert_eq!(run("ml", 0, &|_| ()), Err(ScriptError::PushSize), "too large an element");
}
