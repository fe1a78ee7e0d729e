//! Constantine, the library of report 5: a shared library that the user has built and names by
//! path, called through its C interface.

#![expect(unsafe_code, reason = "a library that is found at run time has a C interface only")]

mod curves;
mod protocols;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::table::Table;

/// Loads the library at a path: its version, compiler and operations. The library stays loaded for
/// the lifetime of the process, like its subject.
///
/// # Errors
/// If there is no such file, or it is not Constantine.
pub(crate) fn open(path: &Path) -> Result<(String, String, Table)> {
    let library: &'static Library = Box::leak(Box::new(
        Library::open(path).with_context(|| format!("Constantine at {}", path.display()))?,
    ));
    let mut table = Table::default();
    curves::operations(&mut table, library)?;
    protocols::operations(&mut table, library)?;
    Ok((library.version.clone(), library.compiler.clone(), table))
}

/// A library that is loaded.
struct Library {
    loaded: libloading::Library,
    /// The first bytes of the file's SHA-256: the library says no version.
    version: String,
    /// Lines that compilers wrote into the file.
    compiler: String,
    /// The trusted setup of EIP-4844 in the checkout that the library was built in.
    setup: Option<PathBuf>,
}

/// Path of the setup in the checkout.
const SETUP: &str = "constantine/commitments_setups/trusted_setup_ethereum_kzg4844_reference.dat";

/// Marks of the line that a compiler leaves in a file: GCC's, Clang's.
const COMPILERS: [&str; 2] = ["GCC: (", "clang version "];
/// No such line is as long.
const LINE_BYTES: usize = 100;

impl Library {
    fn open(path: &Path) -> Result<Self> {
        let path = fs::canonicalize(path)?;
        let bytes = fs::read(&path)?;
        // SAFETY: the user named this file to be run; Constantine has no code that runs when it is loaded but Nim's set-up.
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

    fn has(&self, name: &str) -> bool {
        self.function::<unsafe extern "C" fn()>(name).is_ok()
    }

    /// A function of this name and type.
    fn function<F: Copy>(&self, name: &str) -> Result<F> {
        // SAFETY: callers give the types of the library's C headers; what is copied lives as long as the library, which is leaked.
        let symbol = unsafe { self.loaded.get::<F>(name.as_bytes()) };
        Ok(*symbol.with_context(|| format!("Constantine without {name}"))?)
    }
}

/// Lines of compilers in a file, each once.
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
