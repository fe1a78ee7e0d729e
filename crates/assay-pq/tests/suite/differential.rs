//! Lanes against the serial oracle and the crate `slh-dsa`, on valid and damaged input.

use assay_hash::Backend;
use assay_pq::{Check, Message, ParameterSet, serial, verify, verify_many, verify_many_with};

use crate::signer::{Random, Signed, Signer};

/// Verdicts of every backend, of the serial oracle and of the crate.
#[track_caller]
fn check_all(signer: &Signer, signed: &[Signed], expected: &[bool]) {
    let set = &signer.set;
    let checks: Vec<Check<'_>> = signed.iter().map(Signed::check).collect();
    assert_eq!(verify_many(set, &checks), expected, "{}", set.name());
    for backend in Backend::available() {
        assert_eq!(verify_many_with(backend, set, &checks), expected, "{} {backend:?}", set.name());
    }
    for ((check, signed), expected) in checks.iter().zip(signed).zip(expected) {
        assert_eq!(serial::verify(set, check), *expected, "{}", set.name());
        assert_eq!((signer.verify)(signed), *expected, "{}", set.name());
    }
}

#[test]
fn all_sets() {
    let mut random = Random::new(1);
    for signer in &Signer::ALL {
        // Signing with few tall trees takes seconds.
        let count = if signer.set.name().ends_with('f') { 3 } else { 1 };
        let mut signed: Vec<Signed> = (0..count).map(|_| (signer.sign)(&mut random)).collect();
        let mut expected = vec![true; signed.len()];
        for i in 0..5 {
            signed.push(signed[i % count].clone());
            signed.last_mut().expect("pushed").flip(&mut random);
            expected.push(false);
        }
        check_all(signer, &signed, &expected);
    }
}

/// Batch sizes around those of lanes and groups, with valid and damaged signatures mixed.
#[test]
fn batch_sizes() {
    let mut random = Random::new(2);
    let signer = &Signer::ALL[1];
    let valid: Vec<Signed> = (0..8).map(|_| (signer.sign)(&mut random)).collect();
    for count in [0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130] {
        let mut signed: Vec<Signed> = (0..count).map(|i| valid[i % valid.len()].clone()).collect();
        let expected: Vec<bool> = (0..count).map(|i| i % 3 != 1).collect();
        for (signed, expected) in signed.iter_mut().zip(&expected) {
            if !expected {
                signed.flip(&mut random);
            }
        }
        let checks: Vec<Check<'_>> = signed.iter().map(Signed::check).collect();
        for backend in Backend::available() {
            assert_eq!(verify_many_with(backend, &signer.set, &checks), expected, "{backend:?}");
        }
    }
}

/// Every byte of a signature matters.
#[test]
fn every_byte() {
    let mut random = Random::new(3);
    let signer = &Signer::ALL[0];
    let signed = (signer.sign)(&mut random);
    let damaged: Vec<Signed> = (0..signed.signature.len())
        .map(|i| {
            let mut signed = signed.clone();
            signed.signature[i] ^= 1 << random.below(8);
            signed
        })
        .collect();
    for damaged in damaged.chunks(1000) {
        let checks: Vec<Check<'_>> = damaged.iter().map(Signed::check).collect();
        assert!(verify_many(&signer.set, &checks).into_iter().all(|valid| !valid));
    }
    assert!(verify(&signer.set, &signed.check()));
}

/// Wrong lengths are invalid signatures, also among valid ones.
#[test]
fn lengths() {
    let mut random = Random::new(4);
    let signer = &Signer::ALL[1];
    let set = &signer.set;
    let Signed { key, message, signature, .. } = (signer.sign)(&mut random);
    let long_context = [7; 256];
    let mut checks = Vec::new();
    let pure = Message::Pure { context: &[], message: &message };
    let longer_key = [&key[..], &[0]].concat();
    let longer_signature = [&signature[..], &[0]].concat();
    for length in 0..key.len() {
        checks.push(Check { key: &key[..length], message: pure, signature: &signature });
    }
    checks.push(Check { key: &longer_key, message: pure, signature: &signature });
    for length in (0..signature.len()).step_by(7).chain([signature.len() - 1]) {
        checks.push(Check { key: &key, message: pure, signature: &signature[..length] });
    }
    checks.push(Check { key: &key, message: pure, signature: &longer_signature });
    let context = Message::Pure { context: &long_context, message: &message };
    checks.push(Check { key: &key, message: context, signature: &signature });
    for other in ParameterSet::ALL.iter().filter(|other| *other != set) {
        let check = Check { key: &key, message: pure, signature: &signature };
        assert!(!verify(other, &check) && !serial::verify(other, &check));
    }
    for check in &checks {
        assert!(!verify(set, check) && !serial::verify(set, check));
    }
    let valid = (signer.sign)(&mut random);
    checks.insert(5, valid.check());
    let answers = verify_many(set, &checks);
    let ones: Vec<usize> = (0..checks.len()).filter(|&i| answers[i]).collect();
    assert_eq!(ones, [5]);
}

/// A signature of a message with a context is invalid for the message alone and for raw bytes, but valid for the standard's
/// encoding as raw bytes.
#[test]
fn message_formats() {
    let mut random = Random::new(5);
    let signer = &Signer::ALL[1];
    let mut signed = (signer.sign)(&mut random);
    while signed.context.is_empty() {
        signed = (signer.sign)(&mut random);
    }
    let Signed { key, context, message, signature } = &signed;
    let verify = |message| verify(&signer.set, &Check { key, message, signature });
    assert!(verify(Message::Pure { context, message }));
    assert!(!verify(Message::Pure { context: &[], message }));
    assert!(!verify(Message::Internal(message)));
    let formatted = [&[0, context.len() as u8], &context[..], message].concat();
    assert!(verify(Message::Internal(&formatted)));
}
