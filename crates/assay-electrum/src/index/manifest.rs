//! The manifest: which files make up the index, and how far it goes.

use std::path::{Path, PathBuf};

use assay_store::io::Io;
use assay_store::{ReplaceError, read_file, replace_file};
use assay_wire::BlockHash;
use serde::{Deserialize, Serialize};

use crate::chain::Tip;

/// Everything about an index that is not in its other files; replaced as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Version of all files: [`FORMAT`].
    pub(crate) format: u32,
    /// Hash of the genesis block.
    pub(crate) genesis: String,
    /// Key of all hashed keys.
    pub(crate) secret: [u64; 2],
    /// The highest block; none in a new index.
    pub(crate) tip: Option<TipLine>,
    /// Transactions up to the tip.
    pub(crate) tx_count: u64,
    /// The runs, in the order of the chain.
    pub(crate) runs: Vec<RunLine>,
    /// Number of the next run's file.
    pub(crate) next_run: u64,
    /// Bytes written since the index was begun.
    pub(crate) bytes_written: u64,
    /// Whether the tables of scripts and spenders are left empty; absent in an index of everything.
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
    /// Number of its file.
    pub(crate) id: u64,
    /// The transaction from which on its rows are void.
    pub(crate) end_tx: u64,
}

/// Why an index could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or the manifest cannot be read or written.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    /// The folder cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The manifest does not read.
    #[error("{} is damaged ({what}); remove the folder, and the index is built anew", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Another version wrote it.
    #[error("{} has format {found}, this version reads {FORMAT}; remove the folder, and the index is built anew", path.display())]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It is of another chain.
    #[error("{} is an index of the chain with genesis block {found}, not {expected}", path.display())]
    OtherChain {
        /// The manifest.
        path: PathBuf,
        /// Genesis block of the index.
        found: String,
        /// Genesis block of the chain.
        expected: BlockHash,
    },
    /// It was begun for other questions.
    #[error("{} is an index of another kind; remove the folder, and the index is built anew", path.display())]
    OtherScope {
        /// The folder.
        path: PathBuf,
    },
    /// A file that the manifest names is damaged or missing.
    #[error("{source}; remove the folder, and the index is built anew")]
    File {
        /// Which, and what is wrong.
        #[from]
        source: super::types::QueryError,
    },
    /// No secret could be drawn.
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

    /// Reads the manifest of a folder, if it has one.
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

    /// Puts the manifest in the place of the one before; when this returns it survives a power cut.
    pub(crate) fn write(&self, io: &dyn Io, dir: &Path) -> Result<u64, ReplaceError> {
        let json = serde_json::to_string(self).expect("a manifest has nothing that JSON lacks");
        let text = format!("{json}\n{}\n", sum_line(&json));
        replace_file(io, &dir.join(NAME), std::iter::once(text.into_bytes()))
    }

    /// The tip; `None` also where the hash does not read.
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

/// Version of the files that this version reads and writes.
pub(crate) const FORMAT: u32 = 1;
const NAME: &str = "manifest.json";
