//! `assay bench libsecp`.

use assay_bench::signatures::{LIBRARY, batch_rate};
use assay_forge::reference_rate;
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
            library: LIBRARY,
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
