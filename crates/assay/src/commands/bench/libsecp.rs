//! `assay bench libsecp`.

use std::time::Instant;

use assay_bench::LIBSECP;
use assay_forge::reference_rate;
use assay_secp::{BatchVerifier, Check, Sample, SampledVerifier};
use serde::Serialize;

use crate::Outcome;
use crate::output;

/// Single-thread rates; the lab parses this format too.
#[derive(Debug, Serialize)]
pub(crate) struct LibsecpRates {
    library: &'static str,
    threads: u32,
    pub(crate) ecdsa_sign_per_s: f64,
    pub(crate) schnorr_sign_per_s: f64,
    ecdsa_verify_per_s: f64,
    schnorr_verify_per_s: f64,
    /// Field backend of our batches.
    batch_backend: &'static str,
    batch_ecdsa_verify_per_s: f64,
}

impl LibsecpRates {
    /// Measures the rates in about a second.
    pub(crate) fn measure() -> Self {
        let (batch_backend, batch_ecdsa_verify_per_s) = batch_rate();
        let (sign, verify) = (reference_rate::sign_rate(), reference_rate::verify_rate());
        Self {
            library: LIBSECP,
            threads: 1,
            ecdsa_sign_per_s: sign.ecdsa_per_s,
            schnorr_sign_per_s: sign.schnorr_per_s,
            ecdsa_verify_per_s: verify.ecdsa_per_s,
            schnorr_verify_per_s: verify.schnorr_per_s,
            batch_backend,
            batch_ecdsa_verify_per_s,
        }
    }
}

/// The fastest backend of this machine, and its ECDSA verifications per second on one thread, in batches with spot checks by
/// libsecp256k1, as in the engine; keys are distinct and have to be parsed. Takes a third of a second.
fn batch_rate() -> (&'static str, f64) {
    let signatures = reference_rate::samples(RATE_BATCH);
    let mut checks = Vec::with_capacity(RATE_BATCH);
    for reference_rate::Sample { public_key, der, message, .. } in &signatures {
        checks.push(Check::Ecdsa { pubkey: public_key, der_sig: der, msg: message });
    }
    // The sample of a benchmark needs no secret.
    let sample = Sample::new(assay_engine::SAMPLE_SIGNATURES_DEFAULT, [1, 2]);
    let verifier = BatchVerifier::new();
    let backend = verifier.backend().name();
    let (mut verifier, mut answers) = (SampledVerifier::new(verifier, sample), Vec::new());
    let mut times_s: Vec<f64> = (0..RATE_ROUNDS)
        .map(|_| {
            let start = Instant::now();
            let verified = verifier.verify(&checks, &mut answers);
            verified.unwrap_or_else(|found| panic!("{found}"));
            start.elapsed().as_secs_f64()
        })
        .collect();
    assert!(!answers.contains(&false), "all checks hold");
    times_s.sort_by(f64::total_cmp);
    (backend, RATE_BATCH as f64 / times_s[times_s.len() / 2])
}

const RATE_BATCH: usize = 4096;
const RATE_ROUNDS: usize = 9;

pub(super) fn run(json: bool) -> anyhow::Result<Outcome> {
    let rates = LibsecpRates::measure();
    if json {
        output::print_json(&rates)?;
        return Ok(Outcome::Good);
    }
    let line =
        |name: &str, rate: f64| format!("{name:<16}{rate:>10.0} /s {:>8.2} us\n", 1e6 / rate);
    output::print(&format!(
        "{}, one thread, public keys parsed\n{}{}{}{}\nour batches of 4,096, backend {}\n{}",
        rates.library,
        line("ECDSA verify", rates.ecdsa_verify_per_s),
        line("Schnorr verify", rates.schnorr_verify_per_s),
        line("ECDSA sign", rates.ecdsa_sign_per_s),
        line("Schnorr sign", rates.schnorr_sign_per_s),
        rates.batch_backend,
        line("ECDSA verify", rates.batch_ecdsa_verify_per_s),
    ))?;
    Ok(Outcome::Good)
}
