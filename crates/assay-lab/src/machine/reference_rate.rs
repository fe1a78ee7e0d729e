//! Reference rate: signature throughput of one thread of the reference library on this machine, measured by a process that prints
//! one line of JSON.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context as _, ensure};
use assay_report::child;
use serde::{Deserialize, Serialize};

/// Signature rates of one thread of the reference library.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReferenceRate {
    #[serde(default)]
    pub library: Option<String>,
    /// ECDSA verifications per second, one thread.
    #[serde(default)]
    pub ecdsa_verify_per_s: Option<f64>,
    /// Schnorr verifications per second, one thread.
    #[serde(default)]
    pub schnorr_verify_per_s: Option<f64>,
    /// ECDSA signatures made per second, one thread.
    #[serde(default)]
    pub ecdsa_sign_per_s: Option<f64>,
    /// Schnorr signatures made per second, one thread.
    #[serde(default)]
    pub schnorr_sign_per_s: Option<f64>,
    /// ECDSA verifications per second of Assay's batches, one thread, keys parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_ecdsa_verify_per_s: Option<f64>,
    /// Arithmetic backend of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_backend: Option<String>,
}

/// Runs `command`; without one there is no reference rate.
pub(crate) fn measure(command: &[OsString]) -> anyhow::Result<Option<ReferenceRate>> {
    let Some((program, args)) = command.split_first() else { return Ok(None) };
    let output = child::output(Command::new(program).args(args))
        .with_context(|| format!("cannot run {} for the reference rate", program.display()))?;
    ensure!(
        output.status.success(),
        "the program for the reference rate failed ({}):\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    serde_json::from_slice(&output.stdout)
        .map(Some)
        .context("the program for the reference rate printed no JSON object with rates")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> anyhow::Result<Option<ReferenceRate>> {
        measure(&["sh", "-c", script].map(OsString::from))
    }

    #[test]
    fn reads_rates() {
        assert!(measure(&[]).expect("nothing to run").is_none());
        let reference_rate = run(r#"echo '{"ecdsa_verify_per_s": 38000, "threads": 1}'"#);
        let rate = reference_rate.expect("JSON").expect("a reference rate").ecdsa_verify_per_s;
        assert!(rate.is_some_and(|rate| (rate - 38000.0).abs() < 1e-9));
        let error = run("echo broken >&2; exit 4").expect_err("it fails").to_string();
        assert!(error.contains("exit status: 4") && error.contains("broken"), "{error}");
        let error = run("echo hello").expect_err("no JSON").to_string();
        assert!(error.ends_with("printed no JSON object with rates"), "{error}");
    }
}
