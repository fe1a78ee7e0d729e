//! Loading of the shared library, and its functions by name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

/// A loaded library.
pub(super) struct Library {
    loaded: libloading::Library,
    /// First bytes of the file's SHA-256, since the library has no version number.
    pub(super) version: String,
    /// Compiler names found in the file.
    pub(super) compiler: String,
    /// Path of the trusted setup of EIP-4844 in the library's checkout.
    pub(super) setup: Option<PathBuf>,
}

/// Path of the setup within the checkout.
const SETUP: &str = "constantine/commitments_setups/trusted_setup_ethereum_kzg4844_reference.dat";

/// Parts of the lines that compilers leave in a file: GCC's, Clang's.
const COMPILERS: [&str; 2] = ["GCC: (", "clang version "];
/// Maximum length of such a line.
const LINE_BYTES: usize = 100;

impl Library {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let path = fs::canonicalize(path)?;
        let bytes = fs::read(&path)?;
        // SAFETY: the user named this file to be run; on loading, Constantine only runs Nim's initialisation.
        let loaded = unsafe { libloading::Library::new(&path) }?;
        let digest = Sha256::digest(&bytes);
        let setup = path.ancestors().map(|folder| folder.join(SETUP)).find(|file| file.is_file());
        let library = Self {
            loaded,
            version: format!("SHA-256 {}", faster_hex::hex_string(&digest[..8])),
            compiler: compilers(&bytes),
            setup,
        };
        ensure!(library.has("ctt_sha256_hash"), "it has no function `ctt_sha256_hash`");
        Ok(library)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.function::<unsafe extern "C" fn()>(name).is_ok()
    }

    /// A function by name and type.
    pub(super) fn function<F: Copy>(&self, name: &str) -> Result<F> {
        // SAFETY: callers pass the types of the library's C headers; the copied pointer lives as
        // long as the library, which is leaked.
        let symbol = unsafe { self.loaded.get::<F>(name.as_bytes()) };
        Ok(*symbol.with_context(|| format!("Constantine without {name}"))?)
    }
}

/// Lines of compilers in a file, without duplicates.
fn compilers(bytes: &[u8]) -> String {
    let mut found: Vec<&str> = Vec::new();
    for text in bytes.split(|byte| *byte == 0).filter(|text| text.len() < LINE_BYTES) {
        let Ok(text) = std::str::from_utf8(text) else { continue };
        if COMPILERS.iter().any(|mark| text.contains(mark)) && !found.contains(&text) {
            found.push(text);
        }
    }
    found.join("; ")
}
