//! Signatures on one thread: batches against plain calls of libsecp256k1.
//!
//! Keys are distinct and compressed, and parsing them is part of the work on all sides. The libsecp256k1 backend of
//! [`BatchVerifier`] is measured as well: it runs on machines without vector instructions, and must cost no more than the calls.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use assay_report::record::{Outcome, Record, Unit, count};
use assay_report::stats::median;
use assay_secp::{Backend, BatchVerifier, Check, SampledVerifier};
use rayon::prelude::*;
use secp256k1::{
    Keypair, Message, Parity, PublicKey, Scalar, SecretKey, XOnlyPublicKey, ecdsa, schnorr,
};

use assay_bench::experiment;
use assay_bench::harness::{Alternative, Rounds, Sample, compare};
use assay_bench::options::SignaturesOptions;
use assay_bench::{LIBSECP, Progress, wrong_answer};

const PLAIN: &str = "libsecp256k1, plain";
const FORCED: &str = "libsecp256k1, batch";
const FORCED_WEIGHTED: &str = "libsecp256k1, weighted";
const BATCH: &str = "batch";
const WEIGHTED: &str = "weighted batch";
/// The same with spot checks of proven signatures by libsecp256k1, as in the engine.
const SAMPLED: &str = "batch, sampled";
const SAMPLED_WEIGHTED: &str = "weighted, sampled";

/// One in this many proven checks is sampled: the engine's default.
const SAMPLE_ONE_OF: u32 = assay_engine::SAMPLE_SIGNATURES_DEFAULT;

const WARM_UP: usize = 1;

/// One in this many checks is made invalid when results are compared.
const WRONG_EVERY: usize = 37;

/// Alternatives that are compared, where both were measured: the time of the first over that of the second. With sampling the
/// ratios are those of a batch without over one with it, so below 1.
const RATIOS: [(&str, &str); 6] = [
    (PLAIN, BATCH),
    (PLAIN, WEIGHTED),
    (PLAIN, FORCED),
    (PLAIN, FORCED_WEIGHTED),
    (BATCH, SAMPLED),
    (WEIGHTED, SAMPLED_WEIGHTED),
];

pub(crate) fn run(options: &SignaturesOptions, progress: &dyn Progress) -> Result<Record> {
    let SignaturesOptions { batch, rounds, seed, .. } = *options;
    let backend = backend(options.backend.as_deref())?;
    let mut record = experiment::record("signatures");
    let numbers = 0..batch.get() as u64;
    let cases: Vec<Case> = numbers.into_par_iter().map(|number| Case::new(seed, number)).collect();
    let kinds: [(&str, Question); 3] =
        [("ECDSA", Case::ecdsa), ("Schnorr", Case::schnorr), ("Taproot tweak", Case::tweak)];
    let rounds = Rounds { count: rounds.get(), warm_up: WARM_UP };
    let wrong = wrong_cases(&cases);
    let (mut checks, mut checks_invalid) = (0, 0);
    let mut faster = Vec::new();
    for (name, check) in kinds {
        progress.begin(name, (WARM_UP + rounds.count) as u64);
        let wrong: Vec<Check<'_>> = wrong.iter().map(check).collect();
        let (answered, invalid) = compare_answers(name, &wrong, backend)?;
        checks += answered;
        checks_invalid += invalid;
        let right: Vec<Check<'_>> = cases.iter().map(check).collect();
        let mut alternatives = alternatives(&right, backend, name == "Schnorr");
        let epochs = (WARM_UP + rounds.count) * alternatives.len();
        checks += (epochs * right.len()) as u64;
        let row = compare(name, &mut alternatives, rounds, &mut || progress.step())?;
        experiment::add_row(&mut record, &row);
        for (above, below) in RATIOS {
            experiment::add_ratio(&mut record, &row, above, below);
        }
        let ratio = row.ratio(PLAIN, BATCH);
        faster.extend(ratio.map(|ratio| format!("{name} {:.2}", ratio.median)));
    }
    let figures = [
        count("invalid checks", checks_invalid),
        ("self-test of the backend", Unit::Seconds, Some(self_test_s(backend))),
    ];
    record.add(("all kinds", "", None), &figures);
    record.check("results as those of the library", Outcome::of(checks, None));
    record.headline = format!(
        "Time of plain {LIBSECP} over that of batches of {batch}, one thread: {}.",
        faster.join(", ")
    );
    record.set("backend", BatchVerifier::with_backend(backend).backend().name());
    record.set("library", LIBSECP);
    record.set("checks in a batch", batch);
    record.set("rounds", rounds.count);
    record.set("seed", seed);
    record.set(
        "sampled",
        format!("one of {SAMPLE_ONE_OF} proven checks is verified again by the library"),
    );
    record.notes.push("Keys are compressed; parsing them is timed on all sides.".to_owned());
    Ok(record)
}

/// The backend of this name, which this CPU can run; without a name the fastest.
fn backend(name: Option<&str>) -> Result<Backend> {
    let Some(name) = name else { return Ok(Backend::fastest()) };
    let backend = Backend::by_name(name).with_context(|| {
        let known: Vec<&str> = Backend::all().map(Backend::name).collect();
        format!("there is no backend `{name}`; there are {}", known.join(", "))
    })?;
    ensure!(backend.available(), "this processor or build does not run the backend {name}");
    Ok(backend)
}

type Question = for<'a> fn(&'a Case) -> Check<'a>;

/// A batch verifier under its name: backend, sampling rate of proven checks, and whether it verifies weighted batches.
type Way = (&'static str, Backend, u32, bool);

fn ways(backend: Backend) -> [Way; 6] {
    [
        (BATCH, backend, 0, false),
        (SAMPLED, backend, SAMPLE_ONE_OF, false),
        (WEIGHTED, backend, 0, true),
        (SAMPLED_WEIGHTED, backend, SAMPLE_ONE_OF, true),
        (FORCED, Backend::Libsecp, 0, false),
        (FORCED_WEIGHTED, Backend::Libsecp, 0, true),
    ]
}

/// Verifies batches in one way.
fn verify_in(
    (_, backend, sample_one_of, is_weighted): Way,
) -> impl FnMut(&[Check<'_>], &mut Vec<bool>) {
    // The sample of a benchmark needs no secret.
    let sample = assay_secp::Sample::new(sample_one_of, [1, 2]);
    let mut verifier = SampledVerifier::new(BatchVerifier::with_backend(backend), sample);
    move |checks, out| {
        let verified = if is_weighted {
            verifier.verify_weighted(checks, out)
        } else {
            verifier.verify(checks, out)
        };
        verified.unwrap_or_else(|found| panic!("{found}"));
    }
}

fn self_test_s(backend: Backend) -> f64 {
    let verifier = BatchVerifier::with_backend(backend);
    let time = |_| {
        let start = Instant::now();
        assert!(verifier.repeat_self_test(), "it passed before");
        start.elapsed().as_secs_f64()
    };
    median(&(0..9).map(time).collect::<Vec<f64>>())
}

fn alternatives<'a>(
    checks: &'a [Check<'a>],
    backend: Backend,
    can_be_weighted: bool,
) -> Vec<Alternative<'a>> {
    let batched = |way: Way| {
        let (mut verify, mut answers) = (verify_in(way), Vec::new());
        Alternative::new(way.0, move || {
            let sample = Sample::of(checks.len() as u64, || verify(checks, &mut answers));
            assert!(answers.len() == checks.len() && !answers.contains(&false), "all checks hold");
            sample
        })
    };
    let plain = Alternative::new(PLAIN, move || {
        let mut held = 0;
        let sample = Sample::of(checks.len() as u64, || {
            held = checks.iter().filter(|check| plain_call(check)).count();
        });
        assert_eq!(held, checks.len(), "all checks hold");
        sample
    });
    let batches = ways(backend).into_iter().filter(|way| can_be_weighted || !way.3);
    batches.map(batched).chain([plain]).collect()
}

/// The work of a program with plain libsecp256k1: parse the key, parse the signature, verify.
fn plain_call(check: &Check<'_>) -> bool {
    match *check {
        Check::Ecdsa { pubkey, der_sig, msg } => PublicKey::from_slice(pubkey)
            .and_then(|key| {
                let sig = ecdsa::Signature::from_der(der_sig)?;
                ecdsa::verify(&sig, Message::from_digest(*msg), &key)
            })
            .is_ok(),
        Check::Schnorr { xonly, sig, msg } => XOnlyPublicKey::from_byte_array(*xonly)
            .and_then(|key| schnorr::verify(&schnorr::Signature::from_byte_array(*sig), msg, &key))
            .is_ok(),
        Check::TaprootTweak { internal, tweak, output, parity } => {
            let key = XOnlyPublicKey::from_byte_array(*internal);
            let tweaked = key
                .ok()
                .zip(Scalar::from_be_bytes(*tweak).ok())
                .and_then(|(key, tweak)| key.add_tweak(&tweak).ok());
            tweaked.is_some_and(|(key, odd)| {
                key.to_byte_array() == *output && (odd == Parity::Odd) == parity
            })
        }
        Check::SchnorrBch { .. } => false,
    }
}

/// Compares results of all alternatives on checks, some of them invalid; returns the number of results and of invalid ones.
fn compare_answers(name: &str, checks: &[Check<'_>], backend: Backend) -> Result<(u64, u64)> {
    let expected: Vec<bool> = checks.iter().map(plain_call).collect();
    let invalid = expected.iter().filter(|holds| !**holds).count();
    if invalid != checks.len().div_ceil(WRONG_EVERY) {
        let detail = format!("{invalid} of {} do not hold", checks.len());
        return Err(wrong_answer(name, PLAIN, detail));
    }
    let ways = ways(backend);
    for way in ways {
        let mut answers = Vec::new();
        verify_in(way)(checks, &mut answers);
        if answers != expected {
            let at = answers.iter().zip(&expected).position(|(left, right)| left != right);
            let at = at.map_or_else(|| "in their number".to_owned(), |at| format!("first at {at}"));
            return Err(wrong_answer(name, way.0, at));
        }
    }
    Ok(((checks.len() * (ways.len() + 1)) as u64, (invalid * (ways.len() + 1)) as u64))
}

#[derive(Clone)]
struct Case {
    pubkey: [u8; 33],
    xonly: [u8; 32],
    msg: [u8; 32],
    der_sig: Vec<u8>,
    schnorr_sig: [u8; 64],
    tweak: [u8; 32],
    output: [u8; 32],
    parity: bool,
}

impl Case {
    fn new(seed: u64, number: u64) -> Self {
        let hash = |tag: u8| {
            let (seed, number) = (seed.to_le_bytes(), number.to_le_bytes());
            assay_hash::sha256(&[&seed[..], &number, &[tag]].concat())
        };
        let secret =
            SecretKey::from_secret_bytes(hash(0)).expect("a hash is a key but once in 2^127");
        let keypair = Keypair::from_secret_key(&secret);
        let (xonly, _) = keypair.x_only_public_key();
        let (msg, tweak) = (hash(1), hash(2));
        let scalar = Scalar::from_be_bytes(tweak).expect("a hash is a scalar but once in 2^127");
        let (output, parity) = xonly.add_tweak(&scalar).expect("the sum is infinite once in 2^256");
        Self {
            pubkey: PublicKey::from_secret_key(&secret).serialize(),
            xonly: xonly.to_byte_array(),
            msg,
            der_sig: ecdsa::sign(Message::from_digest(msg), &secret).serialize_der().to_vec(),
            schnorr_sig: schnorr::sign_with_aux_rand(&msg, &keypair, &hash(3)).to_byte_array(),
            tweak,
            output: output.to_byte_array(),
            parity: parity == Parity::Odd,
        }
    }

    fn ecdsa(&self) -> Check<'_> {
        Check::Ecdsa { pubkey: &self.pubkey, der_sig: &self.der_sig, msg: &self.msg }
    }

    fn schnorr(&self) -> Check<'_> {
        Check::Schnorr { xonly: &self.xonly, sig: &self.schnorr_sig, msg: &self.msg }
    }

    fn tweak(&self) -> Check<'_> {
        let Self { xonly: internal, tweak, output, parity, .. } = self;
        Check::TaprootTweak { internal, tweak, output, parity: *parity }
    }
}

/// The same with some invalid ones: another message, another signature, another parity.
fn wrong_cases(cases: &[Case]) -> Vec<Case> {
    let mut cases = cases.to_vec();
    for (index, case) in cases.iter_mut().enumerate().filter(|(index, _)| index % WRONG_EVERY == 0)
    {
        if index % 2 == 0 {
            case.msg[index % 32] ^= 1;
            case.parity = !case.parity;
        } else {
            let last = case.der_sig.len() - 1;
            case.der_sig[last] ^= 1;
            case.schnorr_sig[63] ^= 1;
            case.tweak[index % 32] ^= 1;
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use assay_bench::Silent;

    #[test]
    fn every_backend_gives_the_results_of_the_library() {
        let [batch, rounds] = [75, 2].map(|number| NonZeroUsize::new(number).expect("not zero"));
        let options = |backend| SignaturesOptions { batch, rounds, backend, seed: 3 };
        for backend in [Backend::Libsecp, Backend::Portable, Backend::detect()] {
            let options = options(Some(backend.name().to_owned()));
            let record = run(&options, &Silent).expect("right answers");
            assert!(record.has_passed());
            // Three kinds, seven alternatives, one wrong check in 37.
            assert_eq!(record.values("", "invalid checks"), [63.0]);
            assert!(record.values("", "self-test of the backend")[0] > 0.0);
            for (above, below) in RATIOS {
                let ratios = record.values(&format!("{above} / {below}"), experiment::TIMES);
                let kinds =
                    if above.contains("weighted") || below.contains("weighted") { 1 } else { 3 };
                assert_eq!(ratios.len(), kinds, "{above} / {below}");
                assert!(ratios.iter().all(|ratio| *ratio > 0.0), "{above} / {below}");
            }
        }
        let error = run(&options(Some("gpu".to_owned())), &Silent).expect_err("there is none");
        assert!(error.to_string().contains("no backend `gpu`"), "{error}");
    }
}
