//! Input taken apart, a folder for files, and a judge of signatures: common to several targets.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use assay_consensus::script::{PqScheme, SignatureChecker};

/// Takes values off the front of the input; zeros when it has ended.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let taken = self.bytes(N);
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    /// At most `count` bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Bytes with their length, two bytes, before them.
    pub fn counted(&mut self) -> &'a [u8] {
        let length = usize::from(u16::from_le_bytes(self.array()));
        self.bytes(length)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// Answers by the signature alone: one that begins with an even byte is valid for every message. So
/// valid and invalid ones are equally easy to write, and the answer never depends on the rules.
pub struct FirstByte;

impl SignatureChecker for FirstByte {
    fn ecdsa(&mut self, _: &[u8], der_sig: &[u8], _: &[u8; 32]) -> bool {
        der_sig.last().is_some_and(|byte| byte % 2 == 0)
    }
    fn schnorr(&mut self, _: &[u8; 32], sig: &[u8; 64], _: &[u8; 32]) -> bool {
        sig[0] % 2 == 0
    }
    fn schnorr_of_any_length(&mut self, _: &[u8; 32], sig: &[u8; 64], _: &[u8]) -> bool {
        sig[0] % 2 == 0
    }
    fn post_quantum(&mut self, _: PqScheme, _: &[u8], sig: &[u8], _: &[u8; 32]) -> bool {
        sig[0] % 2 == 0
    }
    fn schnorr_bch(&mut self, _: &[u8], sig: &[u8; 64], _: &[u8; 32]) -> bool {
        sig[0] % 2 == 0
    }
    fn taproot_tweak(&mut self, _: &[u8; 32], _: &[u8; 32], output: &[u8; 32], _: bool) -> bool {
        output[0] % 2 == 0
    }
}

/// A folder of this process, in memory where the system has such a place.
pub fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let shared = Path::new("/dev/shm");
        let parent = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let path = parent.join(format!("assay-fuzz-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        path
    });
    &FOLDER
}

/// Writes a file into [`folder`].
pub fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    fs::write(&path, bytes).expect("a temporary file");
    path
}
