//! Reference rate: signature throughput of one thread of the reference library on this machine, measured by a process that prints
//! one line of JSON.

use std::ffi::OsString;
use std::io;
use std::process::Command;

use assay_report::child;
use serde::{Deserialize, Serialize};

/// Signature rates of one thread of the reference library.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReferenceRate {
    /// Library and version.
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

#[derive(Debug, thiserror::Error)]
pub enum ReferenceRateError {
    #[error("cannot run {program} for the reference rate")]
    Run { program: String, source: io::Error },
    #[error("the program for the reference rate failed ({status}):\n{stderr}")]
    Failed {
        status: String,
        /// Standard error of the program.
        stderr: String,
    },
    #[error("the program for the reference rate printed no JSON object with rates")]
    Output {
        /// Error of the JSON library.
        source: serde_json::Error,
    },
}

/// Runs `command`; without one there is no reference rate.
pub(crate) fn measure(command: &[OsString]) -> Result<Option<ReferenceRate>, ReferenceRateError> {
    let Some((program, args)) = command.split_first() else { return Ok(None) };
    let output = child::output(Command::new(program).args(args)).map_err(|source| {
        ReferenceRateError::Run { program: program.to_string_lossy().into_owned(), source }
    })?;
    if !output.status.success() {
        return Err(ReferenceRateError::Failed {
            status: output.status.to_string(),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    serde_json::from_slice(&output.stdout)
        .map(Some)
        .map_err(|source| ReferenceRateError::Output { source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<Option<ReferenceRate>, ReferenceRateError> {
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
        assert!(matches!(run("echo hello"), Err(ReferenceRateError::Output { .. })));
    }
}
