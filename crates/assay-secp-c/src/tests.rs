//! The functions called as from C: results, and every invalid argument.

#![expect(unsafe_code, reason = "calls functions that take pointers")]

use core::ffi::{CStr, c_char};
use core::ptr::{null, null_mut};

use assay_secp::{Backend, BatchVerifier};
use secp256k1::{Keypair, Message, Parity, Scalar, SecretKey, ecdsa, schnorr};

use crate::calls::{
    Verifier, assay_secp_check_status, assay_secp_status_text, assay_secp_verifier_backend,
    assay_secp_verifier_free, assay_secp_verifier_has_failed_self_test, assay_secp_verifier_new,
    assay_secp_verify, assay_secp_verify_weighted, assay_secp_version, caught,
};
use crate::types::{Check, Kind, Status};

struct Operands {
    kind: Kind,
    parity: u32,
    key: Vec<u8>,
    sig: Vec<u8>,
    msg: Vec<u8>,
}

impl Operands {
    fn check(&self) -> Check {
        Check {
            kind: self.kind as u32,
            parity: self.parity,
            key: self.key.as_ptr(),
            key_len: self.key.len(),
            sig: self.sig.as_ptr(),
            sig_len: self.sig.len(),
            msg: self.msg.as_ptr(),
            msg_len: self.msg.len(),
        }
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("hex") as u8;
    text.as_bytes().as_chunks::<2>().0.iter().map(|[a, b]| digit(*a) << 4 | digit(*b)).collect()
}

/// A valid check, a different one per seed. BCH signatures are published vectors, because libsecp256k1 cannot make them.
fn valid(kind: Kind, seed: u32) -> Operands {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    let secret = SecretKey::from_secret_bytes(bytes).expect("below the order");
    let keys = Keypair::from_secret_key(&secret);
    let (xonly, _) = keys.x_only_public_key();
    let mut msg = bytes;
    msg.reverse();
    let operands = |key: &[u8], sig: &[u8], msg: &[u8], parity| Operands {
        kind,
        parity,
        key: key.to_vec(),
        sig: sig.to_vec(),
        msg: msg.to_vec(),
    };
    match kind {
        Kind::Ecdsa => {
            let sig = ecdsa::sign(Message::from_digest(msg), &secret).serialize_der();
            operands(&keys.public_key().serialize(), &sig, &msg, 0)
        }
        Kind::Bip340 => {
            let sig = schnorr::sign_no_aux_rand(&msg, &keys).to_byte_array();
            operands(&xonly.to_byte_array(), &sig, &msg, 0)
        }
        Kind::BchSchnorr => {
            let [key, msg, sig] = BCH_SCHNORR[seed as usize % BCH_SCHNORR.len()].map(hex);
            operands(&key, &sig, &msg, 0)
        }
        Kind::TaprootTweak => {
            let tweak = Scalar::from_be_bytes(msg).expect("below the order");
            let (output, parity) = xonly.add_tweak(&tweak).expect("not infinity");
            let parity = u32::from(parity == Parity::Odd);
            operands(&xonly.to_byte_array(), &msg, &output.to_byte_array(), parity)
        }
    }
}

/// Key, message, signature; from the Schnorr module in Bitcoin Cash nodes (`modules/schnorr/tests_impl.h`).
const BCH_SCHNORR: [[&str; 3]; 2] = [
    [
        "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "787a848e71043d280c50470e8e1532b2dd5d20ee912a45dbdd2bd1dfbf187ef67031a98831859dc34dffeedda86831842ccd0079e1f92af177f7f22cc1dced05",
    ],
    [
        "02dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
        "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
        "2a298dacae57395a15d0795ddbfd1dcb564da82b0f269bc70a74f8220429ba1d1e51a22ccec35599b8f266912281f8365ffc2d035a230434a1a64dc59f7013fd",
    ],
];

const KINDS: [Kind; 4] = [Kind::Ecdsa, Kind::Bip340, Kind::BchSchnorr, Kind::TaprootTweak];

/// A verifier that is freed on drop.
struct Handle(*mut Verifier);

impl Handle {
    fn new(name: Option<&CStr>) -> Result<Self, Status> {
        let mut verifier = null_mut();
        let name = name.map_or(null(), CStr::as_ptr);
        // SAFETY: a string or null, and a local variable.
        match unsafe { assay_secp_verifier_new(name, &raw mut verifier) } {
            Status::Ok => Ok(Self(verifier)),
            status => {
                assert!(verifier.is_null());
                Err(status)
            }
        }
    }

    fn verify(&self, checks: &[Check], is_weighted: bool) -> (Status, Vec<u8>) {
        let call = if is_weighted { assay_secp_verify_weighted } else { assay_secp_verify };
        let mut results = vec![9; checks.len()];
        // SAFETY: slices whose operands live in the caller.
        let status = unsafe { call(self.0, checks.as_ptr(), checks.len(), results.as_mut_ptr()) };
        (status, results)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `new` and used nowhere else.
        unsafe { assay_secp_verifier_free(self.0) };
    }
}

fn text<'a>(pointer: *const c_char) -> &'a str {
    assert!(!pointer.is_null());
    // SAFETY: from a function of this crate that returns strings.
    unsafe { CStr::from_ptr(pointer) }.to_str().expect("ASCII")
}

fn status_of(check: &Check) -> Status {
    // SAFETY: tests pass pointers to as many bytes as the lengths state.
    unsafe { assay_secp_check_status(check) }
}

#[test]
fn results_are_those_of_each_check() {
    let mut operands: Vec<Operands> =
        (0..400).map(|seed| valid(KINDS[seed as usize % 4], seed)).collect();
    // Enough for a weighted sum.
    operands.extend((400..700).map(|seed| valid(Kind::Bip340, seed)));
    let changed = [3, 64, 65, 66, 67, 350, 699];
    for (number, index) in changed.into_iter().enumerate() {
        let Operands { key, sig, msg, .. } = &mut operands[index];
        let bytes = [key, sig, msg];
        let place = bytes[number % 3].len() - 1;
        bytes[number % 3][place] ^= 1;
    }
    operands[103].parity ^= 1;
    // An empty key is an invalid signature, not an error.
    operands[4].key.clear();
    let checks: Vec<Check> = operands.iter().map(Operands::check).collect();
    assert!(checks.iter().all(|check| status_of(check) == Status::Ok));

    let invalid: Vec<usize> = [&changed[..], &[103, 4]].concat();
    for name in [None, Some(c"libsecp256k1"), Some(c"portable"), Some(c"ifma")] {
        let handle = match Handle::new(name) {
            Ok(handle) => handle,
            Err(status) => {
                assert_eq!(status, Status::UnavailableBackend);
                println!("skipped: this processor does not run {name:?}");
                continue;
            }
        };
        for is_weighted in [false, true] {
            let (status, results) = handle.verify(&checks, is_weighted);
            assert_eq!(status, Status::Ok);
            for (index, result) in results.into_iter().enumerate() {
                let expected = u8::from(!invalid.contains(&index));
                assert_eq!(result, expected, "{name:?}, weighted {is_weighted}, check {index}");
            }
        }
    }
}

#[test]
fn wrong_operands_are_statuses() {
    let handle = Handle::new(Some(c"libsecp256k1")).expect("every processor runs it");
    let good = valid(Kind::Ecdsa, 1);
    let reject = |operands: &Operands, change: &dyn Fn(&mut Check), expected| {
        let mut check = operands.check();
        change(&mut check);
        assert_eq!(status_of(&check), expected, "{check:?}");
        for is_weighted in [false, true] {
            let batch = [good.check(), check, good.check()];
            assert_eq!(handle.verify(&batch, is_weighted), (expected, vec![0; 3]), "{check:?}");
        }
    };
    for kind in KINDS {
        let operands = valid(kind, 2);
        reject(&operands, &|check| check.kind = 4, Status::BadKind);
        reject(&operands, &|check| check.kind = u32::MAX, Status::BadKind);
        reject(&operands, &|check| check.parity = 2, Status::BadKind);
        reject(&operands, &|check| check.key = null(), Status::NullPointer);
        reject(&operands, &|check| check.sig = null(), Status::NullPointer);
        reject(&operands, &|check| check.msg = null(), Status::NullPointer);
        reject(&operands, &|check| check.msg_len = usize::MAX, Status::TooLarge);
        if kind != Kind::TaprootTweak {
            reject(&operands, &|check| check.parity = 1, Status::BadKind);
        }
        if kind != Kind::Bip340 {
            reject(&operands, &|check| check.msg_len = 31, Status::BadLength);
            reject(&operands, &|check| check.msg_len = 0, Status::BadLength);
        }
        if kind != Kind::Ecdsa {
            reject(&operands, &|check| check.sig_len -= 1, Status::BadLength);
        }
        if matches!(kind, Kind::Bip340 | Kind::TaprootTweak) {
            reject(&operands, &|check| check.key_len = 31, Status::BadLength);
        }
    }
    // A BIP340 message may be empty, and then null.
    let mut check = valid(Kind::Bip340, 3).check();
    (check.msg, check.msg_len) = (null(), 0);
    assert_eq!(status_of(&check), Status::Ok);
}

#[test]
fn wrong_arguments_are_statuses() {
    let handle = Handle::new(None).expect("a backend for every processor");
    let operands = valid(Kind::Ecdsa, 1);
    let checks = [operands.check(), operands.check()];
    let (verifier, pointer) = (handle.0, checks.as_ptr());
    let misaligned = pointer.wrapping_byte_add(1);
    for call in [assay_secp_verify, assay_secp_verify_weighted] {
        let mut results = [9; 2];
        let place = results.as_mut_ptr();
        // SAFETY: the invalid argument must be detected before it is dereferenced.
        unsafe {
            assert_eq!(call(null_mut(), pointer, 2, place), Status::NullPointer);
            assert_eq!(call(verifier.wrapping_byte_add(1), pointer, 2, place), Status::Misaligned);
            assert_eq!(call(verifier, null(), 2, place), Status::NullPointer);
            assert_eq!(call(verifier, misaligned, 2, place), Status::Misaligned);
            assert_eq!(call(verifier, pointer, 2, null_mut()), Status::NullPointer);
            assert_eq!(call(verifier, pointer, usize::MAX, place), Status::TooLarge);
            assert_eq!(results, [0; 2]);
            assert_eq!(call(verifier, pointer, 0, place), Status::EmptyBatch);
            assert_eq!(call(verifier, pointer, 2, place), Status::Ok);
            assert_eq!(results, [1; 2]);
        }
    }
    // SAFETY: null is either allowed and ignored, or detected.
    unsafe {
        assay_secp_verifier_free(null_mut());
        assert_eq!(assay_secp_verifier_new(null(), null_mut()), Status::NullPointer);
        assert!(assay_secp_verifier_backend(null()).is_null());
        assert_eq!(assay_secp_verifier_has_failed_self_test(null()), 0);
        assert_eq!(assay_secp_check_status(null()), Status::NullPointer);
        assert_eq!(assay_secp_check_status(misaligned), Status::Misaligned);
    }
}

#[test]
fn backends_by_name() {
    let handle = Handle::new(None).expect("a backend for every processor");
    // SAFETY: a verifier.
    let (name, has_failed) = unsafe {
        let name = text(assay_secp_verifier_backend(handle.0));
        (name, assay_secp_verifier_has_failed_self_test(handle.0))
    };
    assert_eq!((name, has_failed), (BatchVerifier::new().backend().name(), 0));
    for name in [c"libsecp256k1", c"portable"] {
        let handle = Handle::new(Some(name)).expect("every processor runs it");
        // SAFETY: a verifier.
        assert_eq!(text(unsafe { assay_secp_verifier_backend(handle.0) }), name.to_str().unwrap());
    }
    let ifma = Handle::new(Some(c"ifma"));
    let expected = (!Backend::Ifma.available()).then_some(Status::UnavailableBackend);
    assert_eq!(ifma.err(), expected);
    for name in [c"", c"IFMA", c"libsecp256k1 ", c"\xff"] {
        assert_eq!(Handle::new(Some(name)).err(), Some(Status::UnknownBackend), "{name:?}");
    }
}

#[test]
fn a_panic_is_a_status_and_ends_the_verifier() {
    let handle = Handle::new(Some(c"libsecp256k1")).expect("every processor runs it");
    let operands = valid(Kind::Bip340, 1);
    assert_eq!(handle.verify(&[operands.check()], false), (Status::Ok, vec![1]));
    // SAFETY: a verifier that nobody frees meanwhile.
    let verifier = unsafe { &*handle.0 };
    let end = caught(|| verifier.with(|_| -> Result<(), Status> { panic!("on purpose") }));
    assert_eq!(end, Err(Status::Defect));
    for is_weighted in [false, true] {
        assert_eq!(
            handle.verify(&[operands.check()], is_weighted),
            (Status::Defect, vec![0]),
            "a verifier in an unknown state must not be used"
        );
    }
    // Other verifiers are unaffected.
    let other = Handle::new(Some(c"libsecp256k1")).expect("every processor runs it");
    assert_eq!(other.verify(&[operands.check()], false), (Status::Ok, vec![1]));
}

#[test]
fn second_thread_gets_busy() {
    let handle = Handle::new(Some(c"libsecp256k1")).expect("every processor runs it");
    let operands = valid(Kind::Bip340, 1);
    // SAFETY: a verifier that nobody frees meanwhile.
    let verifier = unsafe { &*handle.0 };
    let inside = verifier.with(|_| Ok(handle.verify(&[operands.check()], false)));
    assert_eq!(inside, Ok((Status::Busy, vec![0])));
    assert_eq!(handle.verify(&[operands.check()], false), (Status::Ok, vec![1]));
}

#[test]
fn texts() {
    let unknown = text(assay_secp_status_text(-1));
    assert_eq!(text(assay_secp_status_text(13)), unknown);
    let texts: std::collections::BTreeSet<&str> =
        (0..13).map(|status| text(assay_secp_status_text(status))).collect();
    assert_eq!(texts.len(), 13);
    assert!(!texts.contains(unknown));
    let text_of = |status: Status| text(assay_secp_status_text(status as i32));
    assert_eq!(text_of(Status::Ok), "done");
    assert_eq!(text_of(Status::Busy), "another thread is using the verifier");
    assert!(text_of(Status::Defect).starts_with("a defect of this library"));
    assert_eq!(text(assay_secp_version()), env!("CARGO_PKG_VERSION"));
}
