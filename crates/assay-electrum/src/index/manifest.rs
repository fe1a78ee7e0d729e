//! The manifest: the index files and the tip.

use std::path::{Path, PathBuf};

use assay_store::io::Io;
use assay_store::{ReplaceError, read_file, replace_file};
use assay_wire::BlockHash;
use serde::{Deserialize, Serialize};

use crate::chain::Tip;

/// All index metadata; replaced atomically.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Version of all files: [`FORMAT`].
    pub(crate) format: u32,
    pub(crate) genesis: String,
    /// Secret of the key hash.
    pub(crate) secret: [u64; 2],
    /// Highest block; `None` in a new index.
    pub(crate) tip: Option<TipLine>,
    /// Number of transactions up to the tip.
    pub(crate) tx_count: u64,
    /// In chain order.
    pub(crate) runs: Vec<RunLine>,
    pub(crate) next_run: u64,
    /// Bytes written since the index was created.
    pub(crate) bytes_written: u64,
    /// True if the tables of scripts and spenders are empty; absent in a full index.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) txids_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TipLine {
    pub(crate) height: u32,
    pub(crate) hash: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunLine {
    /// File number.
    pub(crate) id: u64,
    /// Rows from this transaction on are void.
    pub(crate) end_tx: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is damaged ({what}); remove the folder, and the index is built anew", path.display())]
    Manifest { path: PathBuf, what: String },
    #[error("{} has format {found}, this version reads {FORMAT}; remove the folder, and the index is built anew", path.display())]
    Format { path: PathBuf, found: u32 },
    #[error("{} is an index of the chain with genesis block {found}, not {expected}", path.display())]
    OtherChain { path: PathBuf, found: String, expected: BlockHash },
    #[error("{} is an index of another kind; remove the folder, and the index is built anew", path.display())]
    OtherScope { path: PathBuf },
    /// A file named in the manifest is damaged or missing.
    #[error("{source}; remove the folder, and the index is built anew")]
    File {
        #[from]
        source: super::types::QueryError,
    },
    #[error("no random numbers: {0}")]
    Random(String),
}

impl Manifest {
    pub(crate) fn new(genesis: &BlockHash, secret: [u64; 2]) -> Self {
        Self {
            format: FORMAT,
            genesis: genesis.to_string(),
            secret,
            tip: None,
            tx_count: 0,
            runs: Vec::new(),
            next_run: 0,
            bytes_written: 0,
            txids_only: false,
        }
    }

    /// Reads the manifest of a folder, if present.
    pub(crate) fn read(
        io: &dyn Io,
        dir: &Path,
        genesis: &BlockHash,
    ) -> Result<Option<Self>, OpenError> {
        let path = dir.join(NAME);
        let Some(bytes) = read_file(io, &path)? else { return Ok(None) };
        let damaged = |what: String| OpenError::Manifest { path: path.clone(), what };
        let text = std::str::from_utf8(&bytes).map_err(|error| damaged(error.to_string()))?;
        let (json, sum) = text
            .trim_end()
            .rsplit_once('\n')
            .ok_or_else(|| damaged("it has no line with a checksum".to_owned()))?;
        if sum != sum_line(json) {
            return Err(damaged("it does not have its checksum".to_owned()));
        }
        let version: Version =
            serde_json::from_str(json).map_err(|error| damaged(error.to_string()))?;
        if version.format != FORMAT {
            return Err(OpenError::Format { path, found: version.format });
        }
        let manifest: Self =
            serde_json::from_str(json).map_err(|error| damaged(error.to_string()))?;
        if manifest.genesis != genesis.to_string() {
            return Err(OpenError::OtherChain {
                path,
                found: manifest.genesis,
                expected: *genesis,
            });
        }
        Ok(Some(manifest))
    }

    /// Replaces the manifest; on return the new one survives a power cut.
    pub(crate) fn write(&self, io: &dyn Io, dir: &Path) -> Result<u64, ReplaceError> {
        let json = serde_json::to_string(self).expect("a manifest has nothing that JSON lacks");
        let text = format!("{json}\n{}\n", sum_line(&json));
        replace_file(io, &dir.join(NAME), std::iter::once(text.into_bytes()))
    }

    /// `None` if the index is new or the hash is malformed.
    pub(crate) fn tip(&self) -> Option<Tip> {
        let line = self.tip.as_ref()?;
        Some(Tip { height: line.height, hash: line.hash.parse().ok()? })
    }
}

impl From<Tip> for TipLine {
    fn from(tip: Tip) -> Self {
        Self { height: tip.height, hash: tip.hash.to_string() }
    }
}

#[derive(Deserialize)]
struct Version {
    format: u32,
}

fn sum_line(json: &str) -> String {
    format!("crc32 {:08x}", crc32fast::hash(json.as_bytes()))
}

pub(crate) const FORMAT: u32 = 1;
const NAME: &str = "manifest.json";
