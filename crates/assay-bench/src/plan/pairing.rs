//! The section `[pairing]` of a plan: curves, libraries and sizes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PairingSettings {
    /// Curves and protocol groups in the order of the report.
    pub curves: Vec<String>,
    /// Points of a multi-scalar multiplication.
    pub msm_points: Vec<usize>,
    /// Signatures that are aggregated, or verified together.
    pub signatures: Vec<usize>,
    /// Blobs whose proofs are verified together.
    pub blobs: Vec<usize>,
    /// Point pairs of a pairing check of the virtual machine.
    pub pairs: Vec<usize>,
    pub seed: u64,
    /// Path of `assay-peer-pairing`. Default: `ASSAY_PEER_PAIRING`, the folder of `assay-curves`, then the checkout's build folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<PathBuf>,
    /// The program of `peers/gnark`; by default `ASSAY_PEER_GNARK`, or its place in this checkout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gnark: Option<PathBuf>,
    /// Constantine's shared library, `libconstantine.so`; by default `ASSAY_CONSTANTINE`. Skipped if neither is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constantine: Option<PathBuf>,
    pub without: Vec<String>,
    /// Additional subjects: other libraries, or other builds of one.
    pub subjects: Vec<SubjectSettings>,
    /// CPU clock for figures in cycles; estimated by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectSettings {
    /// Name in the report.
    pub name: String,
    /// The program and its arguments; it speaks the protocol of `curves/peer/README.md`.
    pub command: Vec<String>,
}

impl Default for PairingSettings {
    fn default() -> Self {
        let curves = [
            "bn254-nogami",
            "bn254",
            "bls12-381",
            "bls12-377",
            "secp256k1",
            "bls-signatures",
            "kzg",
            "evm",
            "pool",
        ];
        Self {
            curves: curves.map(str::to_owned).to_vec(),
            msm_points: (1..=18).map(|bits| 1 << bits).collect(),
            signatures: vec![2, 8, 32, 60, 128, 180],
            blobs: vec![1, 2, 4, 8, 16, 32, 64],
            pairs: (1..=8).collect(),
            seed: 7,
            peer: None,
            gnark: None,
            constantine: None,
            without: Vec::new(),
            subjects: Vec::new(),
            clock_ghz: None,
        }
    }
}
