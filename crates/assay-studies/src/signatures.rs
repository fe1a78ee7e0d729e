//! Signatures on one thread: batches against plain calls of libsecp256k1.
//!
//! Keys are distinct and compressed, and parsing them is part of the work on all sides. The libsecp256k1 backend of
//! [`BatchVerifier`] is measured as well: it runs on machines without vector instructions, and must cost no more than the calls.

use std::fmt::Write as _;
use std::time::Instant;

use assay_report::stats::ratio::Ratio;
use assay_secp::{Backend, BatchVerifier, Check, SampledVerifier};
use rayon::prelude::*;
use secp256k1::{
    Keypair, Message, Parity, PublicKey, Scalar, SecretKey, XOnlyPublicKey, ecdsa, schnorr,
};
use serde::Serialize;

use assay_bench::conditions::Conditions;
use assay_bench::harness::{Alternative, Rounds, Row, Sample, compare};
use assay_bench::options::SignaturesOptions;
use assay_bench::{BenchError, LIBSECP, Progress, table};

/// Names of the alternatives.
const PLAIN: &str = "libsecp256k1, plain";
const FORCED: &str = "libsecp256k1, batch";
const BATCH: &str = "batch";
const WEIGHTED: &str = "weighted batch";
/// The same with spot checks of proven signatures by libsecp256k1, as in the engine.
const SAMPLED: &str = "batch, sampled";
const SAMPLED_WEIGHTED: &str = "weighted, sampled";

/// One in this many proven checks is sampled: the engine's default.
const SAMPLE_ONE_OF: u32 = assay_engine::SAMPLE_SIGNATURES_DEFAULT;

/// Warm-up rounds, which are ignored.
const WARM_UP: usize = 1;

/// One in this many checks is made invalid when results are compared.
const WRONG_EVERY: usize = 37;

/// Results. Every ratio is the plain library's time over Assay's: above 1 Assay is faster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    schema: u32,
    kind: &'static str,
    /// Compressed ECDSA.
    pub(crate) ecdsa_ratio: f64,
    /// BIP340, each signature separately.
    pub(crate) schnorr_ratio: f64,
    /// BIP340, one weighted sum of all.
    pub(crate) schnorr_batch_ratio: f64,
    /// Tweaks of Taproot output keys.
    pub(crate) tweak_ratio: f64,
    /// ECDSA with the libsecp256k1 backend of the batch verifier.
    pub(crate) libsecp_backend_ecdsa_ratio: f64,
    /// The same for BIP340.
    pub(crate) libsecp_backend_schnorr_ratio: f64,
    /// The same for weighted batches.
    pub(crate) libsecp_backend_schnorr_batch_ratio: f64,
    /// The same for tweaks.
    pub(crate) libsecp_backend_tweak_ratio: f64,
    /// ECDSA with spot checks: time of a batch without over that with them, so below 1.
    pub(crate) sampled_ecdsa_ratio: f64,
    /// The same for BIP340, each signature separately.
    pub(crate) sampled_schnorr_ratio: f64,
    /// The same for weighted batches.
    pub(crate) sampled_schnorr_batch_ratio: f64,
    /// The same for tweaks.
    pub(crate) sampled_tweak_ratio: f64,
    /// One in this many proven checks is repeated by libsecp256k1.
    sample_one_of: u32,
    /// Median time of one self-test of the backend, microseconds.
    self_test_us: f64,
    pub(crate) backend: &'static str,
    library: &'static str,
    threads: u32,
    batch: usize,
    rounds: usize,
    seed: u64,
    /// Compared checks.
    checks: u64,
    /// Invalid checks among them.
    checks_invalid: u64,
    intervals: Intervals,
    /// Ratios of CPU time, which other load does not affect.
    cpu_intervals: Intervals,
    rows: Vec<Row>,
    conditions: Conditions,
}

/// The ratios with their intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "named as the fields of the report that they belong to"
)]
pub(crate) struct Intervals {
    ecdsa_ratio: Option<Ratio>,
    schnorr_ratio: Option<Ratio>,
    schnorr_batch_ratio: Option<Ratio>,
    tweak_ratio: Option<Ratio>,
    libsecp_backend_ecdsa_ratio: Option<Ratio>,
    libsecp_backend_schnorr_ratio: Option<Ratio>,
    libsecp_backend_schnorr_batch_ratio: Option<Ratio>,
    libsecp_backend_tweak_ratio: Option<Ratio>,
    sampled_ecdsa_ratio: Option<Ratio>,
    sampled_schnorr_ratio: Option<Ratio>,
    sampled_schnorr_batch_ratio: Option<Ratio>,
    sampled_tweak_ratio: Option<Ratio>,
}

impl Intervals {
    fn new(rows: &[Row; 3], ratio: fn(&Row, &str, &str) -> Option<Ratio>) -> Self {
        let [ecdsa, schnorr, tweak] = rows;
        Self {
            ecdsa_ratio: ratio(ecdsa, PLAIN, BATCH),
            schnorr_ratio: ratio(schnorr, PLAIN, BATCH),
            schnorr_batch_ratio: ratio(schnorr, PLAIN, WEIGHTED),
            tweak_ratio: ratio(tweak, PLAIN, BATCH),
            libsecp_backend_ecdsa_ratio: ratio(ecdsa, PLAIN, FORCED),
            libsecp_backend_schnorr_ratio: ratio(schnorr, PLAIN, FORCED),
            libsecp_backend_schnorr_batch_ratio: ratio(schnorr, PLAIN, FORCED_WEIGHTED),
            libsecp_backend_tweak_ratio: ratio(tweak, PLAIN, FORCED),
            sampled_ecdsa_ratio: ratio(ecdsa, BATCH, SAMPLED),
            sampled_schnorr_ratio: ratio(schnorr, BATCH, SAMPLED),
            sampled_schnorr_batch_ratio: ratio(schnorr, WEIGHTED, SAMPLED_WEIGHTED),
            sampled_tweak_ratio: ratio(tweak, BATCH, SAMPLED),
        }
    }

    fn lines(&self) -> [(&'static str, Option<Ratio>); 12] {
        [
            ("ecdsa_ratio", self.ecdsa_ratio),
            ("schnorr_ratio", self.schnorr_ratio),
            ("schnorr_batch_ratio", self.schnorr_batch_ratio),
            ("tweak_ratio", self.tweak_ratio),
            ("libsecp_backend_ecdsa_ratio", self.libsecp_backend_ecdsa_ratio),
            ("libsecp_backend_schnorr_ratio", self.libsecp_backend_schnorr_ratio),
            ("libsecp_backend_schnorr_batch_ratio", self.libsecp_backend_schnorr_batch_ratio),
            ("libsecp_backend_tweak_ratio", self.libsecp_backend_tweak_ratio),
            ("sampled_ecdsa_ratio", self.sampled_ecdsa_ratio),
            ("sampled_schnorr_ratio", self.sampled_schnorr_ratio),
            ("sampled_schnorr_batch_ratio", self.sampled_schnorr_batch_ratio),
            ("sampled_tweak_ratio", self.sampled_tweak_ratio),
        ]
    }
}

const FORCED_WEIGHTED: &str = "libsecp256k1, weighted";

impl Report {
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "batches of {}, {} rounds, one thread, compressed keys parsed, seed {}; backend {}, {}\n\n",
            self.batch, self.rounds, self.seed, self.backend, self.library
        );
        text.push_str(&table::rows(&self.rows));
        text.push('\n');
        let (wall, cpu) = (self.intervals.lines(), self.cpu_intervals.lines());
        let lines = wall.into_iter().zip(cpu).map(|((name, wall), (_, cpu))| (name, (wall, cpu)));
        text.push_str(&table::ratios(lines));
        let _ = writeln!(
            text,
            "\nsampled: one of {} proven checks is verified again by the library; a self-test takes {:.0} us",
            self.sample_one_of, self.self_test_us
        );
        let _ = writeln!(
            text,
            "\n{} checks answered, {} of them false: all as the library answers",
            self.checks, self.checks_invalid
        );
        text
    }
}

/// Runs the measurement.
///
/// # Errors
/// When a result is wrong.
pub(crate) fn run(
    options: &SignaturesOptions,
    progress: &dyn Progress,
) -> Result<Report, BenchError> {
    if options.batch == 0 || options.rounds == 0 {
        return Err(BenchError::Parameter { what: "--batch and --rounds", wanted: "at least 1" });
    }
    let backend = backend(options.backend.as_deref())?;
    let conditions = Conditions::now();
    let numbers = 0..options.batch as u64;
    let cases: Vec<Case> =
        numbers.into_par_iter().map(|number| Case::new(options.seed, number)).collect();
    let kinds: [(&str, Question); 3] =
        [("ECDSA", Case::ecdsa), ("Schnorr", Case::schnorr), ("Taproot tweak", Case::tweak)];
    let rounds = Rounds { count: options.rounds, warm_up: WARM_UP };
    let wrong = wrong_cases(&cases);
    let (mut checks, mut checks_invalid) = (0, 0);
    let mut rows = Vec::new();
    for (name, check) in kinds {
        progress.begin(name, (WARM_UP + options.rounds) as u64);
        let wrong: Vec<Check<'_>> = wrong.iter().map(check).collect();
        let (answered, invalid) = compare_answers(name, &wrong, backend)?;
        checks += answered;
        checks_invalid += invalid;
        let right: Vec<Check<'_>> = cases.iter().map(check).collect();
        let mut alternatives = alternatives(&right, backend, name == "Schnorr");
        let epochs = (WARM_UP + options.rounds) * alternatives.len();
        checks += (epochs * right.len()) as u64;
        rows.push(compare(name, &mut alternatives, rounds, &mut || progress.step())?);
    }
    let rows: [Row; 3] = rows.try_into().expect("there are three kinds");
    let intervals = Intervals::new(&rows, Row::ratio);
    let median = |ratio: Option<Ratio>| ratio.map_or(0.0, |ratio| ratio.median);
    Ok(Report {
        schema: 1,
        kind: "signatures",
        ecdsa_ratio: median(intervals.ecdsa_ratio),
        schnorr_ratio: median(intervals.schnorr_ratio),
        schnorr_batch_ratio: median(intervals.schnorr_batch_ratio),
        tweak_ratio: median(intervals.tweak_ratio),
        libsecp_backend_ecdsa_ratio: median(intervals.libsecp_backend_ecdsa_ratio),
        libsecp_backend_schnorr_ratio: median(intervals.libsecp_backend_schnorr_ratio),
        libsecp_backend_schnorr_batch_ratio: median(intervals.libsecp_backend_schnorr_batch_ratio),
        libsecp_backend_tweak_ratio: median(intervals.libsecp_backend_tweak_ratio),
        sampled_ecdsa_ratio: median(intervals.sampled_ecdsa_ratio),
        sampled_schnorr_ratio: median(intervals.sampled_schnorr_ratio),
        sampled_schnorr_batch_ratio: median(intervals.sampled_schnorr_batch_ratio),
        sampled_tweak_ratio: median(intervals.sampled_tweak_ratio),
        sample_one_of: SAMPLE_ONE_OF,
        self_test_us: self_test_us(backend),
        backend: BatchVerifier::with_backend(backend).backend().name(),
        library: LIBSECP,
        threads: 1,
        batch: options.batch,
        rounds: options.rounds,
        seed: options.seed,
        checks,
        checks_invalid,
        intervals,
        cpu_intervals: Intervals::new(&rows, Row::cpu_ratio),
        rows: rows.into(),
        conditions,
    })
}

/// The backend of this name, which this CPU can run; without a name the fastest.
fn backend(name: Option<&str>) -> Result<Backend, BenchError> {
    let Some(name) = name else { return Ok(Backend::fastest()) };
    match Backend::by_name(name) {
        Some(backend) if backend.available() => Ok(backend),
        Some(_) => Err(BenchError::Setting(
            format!("this processor or build does not run the backend {name}").into(),
        )),
        None => {
            let known = Backend::all().map(|backend| backend.name().to_owned()).collect();
            Err(BenchError::UnknownName { what: "backend", name: name.to_owned(), known })
        }
    }
}

type Question = for<'a> fn(&'a Case) -> Check<'a>;

type Verify = fn(&mut SampledVerifier, &[Check<'_>], &mut Vec<bool>);

/// A verifier with this sampling rate of proven checks.
fn verifier(backend: Backend, sample_one_of: u32) -> SampledVerifier {
    // The sample of a benchmark needs no secret.
    let sample = assay_secp::Sample::new(sample_one_of, [1, 2]);
    SampledVerifier::new(BatchVerifier::with_backend(backend), sample)
}

fn each(verifier: &mut SampledVerifier, checks: &[Check<'_>], out: &mut Vec<bool>) {
    verifier.verify(checks, out).unwrap_or_else(|found| panic!("{found}"));
}

fn weighted(verifier: &mut SampledVerifier, checks: &[Check<'_>], out: &mut Vec<bool>) {
    verifier.verify_weighted(checks, out).unwrap_or_else(|found| panic!("{found}"));
}

/// Median time of repeated self-tests.
fn self_test_us(backend: Backend) -> f64 {
    let verifier = BatchVerifier::with_backend(backend);
    let mut times_us: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            assert!(verifier.repeat_self_test(), "it passed before");
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times_us.sort_by(f64::total_cmp);
    times_us[times_us.len() / 2]
}

fn alternatives<'a>(
    checks: &'a [Check<'a>],
    backend: Backend,
    can_be_weighted: bool,
) -> Vec<Alternative<'a>> {
    let batched = |name: &str, backend: Backend, sample_one_of: u32, verify: Verify| {
        let (mut verifier, mut answers) = (verifier(backend, sample_one_of), Vec::new());
        Alternative::new(name, move || {
            let sample =
                Sample::of(checks.len() as u64, || verify(&mut verifier, checks, &mut answers));
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
    let mut all = vec![
        batched(BATCH, backend, 0, each),
        batched(SAMPLED, backend, SAMPLE_ONE_OF, each),
        plain,
        batched(FORCED, Backend::Libsecp, 0, each),
    ];
    if can_be_weighted {
        all.insert(2, batched(WEIGHTED, backend, 0, weighted));
        all.insert(3, batched(SAMPLED_WEIGHTED, backend, SAMPLE_ONE_OF, weighted));
        all.push(batched(FORCED_WEIGHTED, Backend::Libsecp, 0, weighted));
    }
    all
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
fn compare_answers(
    name: &str,
    checks: &[Check<'_>],
    backend: Backend,
) -> Result<(u64, u64), BenchError> {
    let expected: Vec<bool> = checks.iter().map(plain_call).collect();
    let invalid = expected.iter().filter(|holds| !**holds).count();
    let wrong_answer = |alternative: &str, detail: String| BenchError::WrongAnswer {
        benchmark: name.to_owned(),
        alternative: alternative.to_owned(),
        detail,
    };
    if invalid != checks.len().div_ceil(WRONG_EVERY) {
        return Err(wrong_answer(PLAIN, format!("{invalid} of {} do not hold", checks.len())));
    }
    let ways: [(&str, Backend, u32, Verify); 6] = [
        (BATCH, backend, 0, each),
        (SAMPLED, backend, SAMPLE_ONE_OF, each),
        (WEIGHTED, backend, 0, weighted),
        (SAMPLED_WEIGHTED, backend, SAMPLE_ONE_OF, weighted),
        (FORCED, Backend::Libsecp, 0, each),
        (FORCED_WEIGHTED, Backend::Libsecp, 0, weighted),
    ];
    for (alternative, backend, sample_one_of, verify) in ways {
        let mut answers = Vec::new();
        verify(&mut verifier(backend, sample_one_of), checks, &mut answers);
        if answers != expected {
            let at = answers.iter().zip(&expected).position(|(left, right)| left != right);
            let at = at.map_or_else(|| "in their number".to_owned(), |at| format!("first at {at}"));
            return Err(wrong_answer(alternative, at));
        }
    }
    Ok(((checks.len() * (ways.len() + 1)) as u64, (invalid * (ways.len() + 1)) as u64))
}

/// Operands of one key.
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
    use super::*;
    use assay_bench::Silent;

    #[test]
    fn every_backend_answers_right() {
        for backend in [Backend::Libsecp, Backend::Portable, Backend::detect()] {
            let backend = Some(backend.name().to_owned());
            let options = SignaturesOptions { batch: 75, rounds: 2, backend, seed: 3 };
            let report = run(&options, &Silent).expect("right answers");
            assert!(report.ecdsa_ratio > 0.0 && report.tweak_ratio > 0.0);
            // Three kinds, seven alternatives, one wrong check in 37.
            assert_eq!(report.checks_invalid, 3 * 7 * 3);
            assert!(report.sampled_ecdsa_ratio > 0.0 && report.self_test_us > 0.0);
            assert!(report.text().contains("schnorr_batch_ratio"));
        }
    }

    #[test]
    fn empty_batches_and_unknown_backends_are_rejected() {
        let options = SignaturesOptions { batch: 0, rounds: 1, backend: None, seed: 1 };
        assert!(run(&options, &Silent).is_err());
        let options = SignaturesOptions { batch: 1, backend: Some("gpu".to_owned()), ..options };
        let error = run(&options, &Silent).expect_err("there is none").to_string();
        assert!(error.contains("no backend `gpu`"), "{error}");
    }
}
