//! The section `[ibd]` of a plan: operations of the initial block download.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The section `[ibd]` of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IbdSettings {
    /// Folder with `mainnet-413567.blk`, or with a folder `blocks` that contains it; `ASSAY_TEST_DATA` if not given. Without it
    /// only the synthetic block is measured.
    pub data: Option<PathBuf>,
    /// Seed of the forged block and other generated data.
    pub seed: u64,
    /// Sizes to obfuscate, bytes; at least 64.
    pub xor_bytes: Vec<u64>,
    /// Inputs of the transaction that is checked for duplicates.
    pub duplicate_inputs: Vec<u64>,
    /// Coin cache sizes written to disk, coins; at least 16.
    pub flush_coins: Vec<u64>,
}

impl Default for IbdSettings {
    fn default() -> Self {
        Self {
            data: None,
            seed: 784_588,
            xor_bytes: vec![4 << 10, 32 << 10, 256 << 10, 1 << 20, 64 << 20],
            duplicate_inputs: vec![1, 2, 3, 10, 100, 2_000, 10_000, 24_290],
            flush_coins: vec![10_000, 100_000, 400_000],
        }
    }
}
