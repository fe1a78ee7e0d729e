//! Times the verification of post-quantum signatures and of BIP340, interleaved in one process, on one thread:
//!
//! `cargo run --release --example signatures -- [--json] [--rounds N]`
//!
//! The default of `--rounds` is 31. All implementations of a scheme verify the same signatures; first they accept these
//! and reject damaged ones. Times are medians of CPU time; the ratio is a verification's time over one of BIP340 by
//! libsecp256k1 in the same round, with its 95 % interval.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::hint::black_box;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail, ensure};
use assay_hash::Backend as HashBackend;
use assay_peer_pairing::interleaved::{Side, measure};
use assay_pq::{Check, Message, ParameterSet, TestKey, ml_dsa as ml, serial, verify_many_with};
use assay_secp::{Backend, BatchVerifier, Check as CurveCheck, verify_schnorr};
use ml_dsa::{MlDsa44, Signature as MlSignature, VerifyingKey as MlKey};
use pqcrypto_mldsa::mldsa44;
use secp256k1::{Keypair, SecretKey, schnorr};
use serde_json::json;
use slh_dsa::{Sha2_128s, Signature as SlhSignature, VerifyingKey as SlhKey};

const ROUNDS: usize = 31;
/// Number of signatures in a batch, as in a block of SLH-DSA.
const TOGETHER: usize = 494;
/// Number of distinct signatures if signing is slow.
const DISTINCT: usize = 16;

/// A key, a message and a signature.
#[derive(Clone)]
struct Signed {
    key: Vec<u8>,
    message: [u8; 32],
    signature: Vec<u8>,
}

impl Signed {
    /// The same with one flipped bit of the signature.
    fn damaged(&self) -> Self {
        let mut other = self.clone();
        other.signature[40] ^= 1;
        other
    }
}

/// Returns the verdict on each signature.
type Verify = Box<dyn FnMut(&[Signed]) -> Vec<bool>>;

/// An implementation.
struct Subject {
    scheme: &'static str,
    name: String,
    /// Signatures of one call.
    signed: Rc<[Signed]>,
    verify: Verify,
}

impl Subject {
    fn new(
        scheme: &'static str,
        name: impl Into<String>,
        signed: &Rc<[Signed]>,
        verify: impl FnMut(&[Signed]) -> Vec<bool> + 'static,
    ) -> Self {
        Self { scheme, name: name.into(), signed: Rc::clone(signed), verify: Box::new(verify) }
    }

    /// An implementation without batch verification.
    fn single(
        scheme: &'static str,
        name: impl Into<String>,
        signed: &Rc<[Signed]>,
        mut verify: impl FnMut(&Signed) -> bool + 'static,
    ) -> Self {
        Self::new(scheme, name, signed, move |all| all.iter().map(&mut verify).collect())
    }

    fn check(&mut self) -> Result<()> {
        let valid = (self.verify)(&self.signed);
        let damaged: Vec<Signed> = self.signed.iter().map(Signed::damaged).collect();
        let invalid = (self.verify)(&damaged);
        let is_right = valid.iter().all(|valid| *valid) && !invalid.contains(&true);
        ensure!(is_right, "{}, {}: a wrong verdict", self.scheme, self.name);
        Ok(())
    }
}

fn main() -> Result<()> {
    let (is_json, rounds) = arguments()?;
    eprintln!("signing");
    let mut subjects = bip340();
    subjects.extend(slh_dsa());
    subjects.extend(ml_dsa_44());
    for subject in &mut subjects {
        subject.check()?;
    }
    let names: Vec<(&str, String)> =
        subjects.iter().map(|subject| (subject.scheme, subject.name.clone())).collect();
    let side = |Subject { signed, mut verify, .. }: Subject| {
        Side::new(signed.len(), move || drop(black_box(verify(black_box(&signed)))))
    };
    let mut sides: Vec<Side> = subjects.into_iter().map(side).collect();
    eprintln!("{} implementations, {rounds} rounds", sides.len());
    let figures = measure(&mut sides, rounds);
    if is_json {
        let results: Vec<_> = names
            .iter()
            .zip(&figures)
            .map(|((scheme, name), figures)| {
                let [low, ratio, high] = figures.ratio;
                json!({
                    "scheme": scheme, "implementation": name, "us": figures.ns / 1e3,
                    "ratio": ratio, "ratio_low": low, "ratio_high": high,
                })
            })
            .collect();
        println!("{}", json!({ "format": 1, "rounds": rounds, "signatures": results }));
        return Ok(());
    }
    println!(
        "{:20} {:34} {:>10} {:>24}",
        "scheme", "implementation", "us", "over BIP340 one by one"
    );
    for ((scheme, name), figures) in names.iter().zip(&figures) {
        let [low, ratio, high] = figures.ratio;
        let us = figures.ns / 1e3;
        println!("{scheme:20} {name:34} {us:>10.2} {ratio:>8.2} ({low:.2} to {high:.2})");
    }
    Ok(())
}

fn arguments() -> Result<(bool, usize)> {
    let (mut is_json, mut rounds) = (false, ROUNDS);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => is_json = true,
            "--rounds" => {
                let text = arguments.next().context("--rounds is followed by a number")?;
                rounds = text.parse().with_context(|| format!("--rounds {text}: no number"))?;
                ensure!((5..=10_000).contains(&rounds), "--rounds is from 5 to 10,000");
            }
            other => bail!("{other}: there are --json and --rounds N"),
        }
    }
    Ok((is_json, rounds))
}

fn message(number: usize) -> [u8; 32] {
    let mut message = [0x42; 32];
    message[..8].copy_from_slice(&(number as u64).to_le_bytes());
    message
}

/// `count` signatures made by `sign`, of which only the first `distinct` differ.
fn signed(count: usize, distinct: usize, sign: impl Fn(usize) -> Signed) -> Rc<[Signed]> {
    let made: Vec<Signed> = (0..distinct.min(count)).map(sign).collect();
    made.iter().cycle().take(count).cloned().collect()
}

fn curve_check(signed: &Signed) -> Option<CurveCheck<'_>> {
    let (xonly, sig) = (signed.key.first_chunk()?, signed.signature.first_chunk()?);
    Some(CurveCheck::Schnorr { xonly, sig, msg: &signed.message })
}

fn curve_checks(signed: &[Signed]) -> Vec<CurveCheck<'_>> {
    signed.iter().filter_map(curve_check).collect()
}

fn bip340() -> Vec<Subject> {
    let all = signed(TOGETHER, TOGETHER, |number| {
        let secret = SecretKey::from_secret_bytes(message(number + 1)).expect("below the order");
        let pair = Keypair::from_secret_key(&secret);
        let message = message(number);
        let signature = schnorr::sign_no_aux_rand(&message, &pair).to_byte_array().to_vec();
        let key = pair.x_only_public_key().0.to_byte_array().to_vec();
        Signed { key, message, signature }
    });
    let one_by_one = |signed: &Signed| {
        let key = signed.key.first_chunk().expect("32 bytes");
        verify_schnorr(key, signed.signature.first_chunk().expect("64 bytes"), &signed.message)
    };
    let backend = Backend::fastest();
    let mut subjects =
        vec![Subject::single("BIP340", "libsecp256k1, one by one", &all, one_by_one)];
    if backend != Backend::Libsecp {
        for (suffix, is_weighted) in [("", false), (", one sum", true)] {
            let mut verifier = BatchVerifier::with_backend(backend);
            let verify = move |signed: &[Signed]| {
                let (checks, mut valid) = (curve_checks(signed), Vec::new());
                if is_weighted {
                    verifier.verify_weighted(&checks, &mut valid);
                } else {
                    verifier.verify(&checks, &mut valid);
                }
                valid
            };
            let name = format!("assay-secp, {}{suffix}", backend.name());
            subjects.push(Subject::new("BIP340", name, &all, verify));
        }
    }
    subjects
}

fn slh_check(signed: &Signed) -> Check<'_> {
    let message = Message::Pure { context: &[], message: &signed.message };
    Check { key: &signed.key, message, signature: &signed.signature }
}

/// Signatures of test keys, verified on every backend.
fn lanes(scheme: &'static str, set: ParameterSet) -> (Vec<Subject>, Rc<[Signed]>) {
    let keys: Vec<TestKey> = (0..DISTINCT as u64).map(|number| TestKey::new(set, number)).collect();
    let sign = |number: usize| {
        let (key, message) = (&keys[number % DISTINCT], message(number));
        let signature = key.sign(&Message::Pure { context: &[], message: &message });
        Signed { key: key.public().to_vec(), message, signature }
    };
    let all = signed(TOGETHER, TOGETHER, sign);
    let few = signed(DISTINCT, DISTINCT, sign);
    let mut subjects = Vec::new();
    for backend in HashBackend::available() {
        let some = if backend == HashBackend::PORTABLE { &few } else { &all };
        let verify = move |signed: &[Signed]| {
            let checks: Vec<Check<'_>> = signed.iter().map(slh_check).collect();
            verify_many_with(backend, &set, &checks)
        };
        subjects.push(Subject::new(scheme, format!("assay-pq, {}", backend.name()), some, verify));
    }
    (subjects, few)
}

fn slh_dsa() -> Vec<Subject> {
    const SCHEME: &str = "SLH-DSA-SHA2-128s";
    const SET: ParameterSet = ParameterSet::SHA2_128S;
    let (mut subjects, _) = lanes("SHRINCS, stateless", ParameterSet::SHRINCS_STATELESS);
    let (ours, few) = lanes(SCHEME, SET);
    subjects.extend(ours);
    let text = |signed: &Signed| serial::verify(&SET, &slh_check(signed));
    subjects.push(Subject::single(SCHEME, "assay-pq, the standard's text", &few, text));
    let by_crate = |signed: &Signed| {
        let key = SlhKey::<Sha2_128s>::try_from(&signed.key[..]);
        let signature = SlhSignature::<Sha2_128s>::try_from(&signed.signature[..]);
        let (Ok(key), Ok(signature)) = (key, signature) else { return false };
        key.try_verify_with_context(&signed.message, &[], &signature).is_ok()
    };
    subjects.push(Subject::single(SCHEME, "slh-dsa (RustCrypto)", &few, by_crate));
    subjects
}

fn ml_dsa_44() -> Vec<Subject> {
    const SCHEME: &str = "ML-DSA-44";
    let keys: Vec<ml::TestKey> =
        (0..DISTINCT as u8).map(|number| ml::TestKey::new([number; 32])).collect();
    let all = signed(TOGETHER, TOGETHER, |number| {
        let (key, message) = (&keys[number % DISTINCT], message(number));
        Signed { key: key.public().to_vec(), message, signature: key.sign(&message, &[]) }
    });
    let by_ours =
        |signed: &Signed| ml::verify(&signed.key, &signed.message, &[], &signed.signature);
    let by_crate = |signed: &Signed| {
        let (Ok(key), Ok(signature)) = (signed.key[..].try_into(), signed.signature[..].try_into())
        else {
            return false;
        };
        MlSignature::<MlDsa44>::decode(&signature).is_some_and(|signature| {
            MlKey::<MlDsa44>::decode(&key).verify_with_context(&signed.message, &[], &signature)
        })
    };
    let by_c = |signed: &Signed| {
        use pqcrypto_traits::sign::{DetachedSignature as _, PublicKey as _};
        let key = mldsa44::PublicKey::from_bytes(&signed.key);
        let signature = mldsa44::DetachedSignature::from_bytes(&signed.signature);
        let (Ok(key), Ok(signature)) = (key, signature) else { return false };
        mldsa44::verify_detached_signature(&signature, &signed.message, &key).is_ok()
    };
    vec![
        Subject::single(SCHEME, "libcrux-ml-dsa (in assay-pq)", &all, by_ours),
        Subject::single(SCHEME, "ml-dsa (RustCrypto)", &all, by_crate),
        Subject::single(SCHEME, "PQClean (C)", &all, by_c),
    ]
}
