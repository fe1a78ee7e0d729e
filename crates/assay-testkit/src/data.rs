//! Test data that is not part of the repository.

use std::path::PathBuf;

/// The folder that `ASSAY_TEST_DATA` names, if it names one.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("ASSAY_TEST_DATA").map(PathBuf::from)
}

/// A file of it; where it is missing, the output of the test says that something was skipped.
#[expect(clippy::print_stdout, reason = "what a test skips is in its output")]
pub fn read(name: &str) -> Option<Vec<u8>> {
    let bytes = folder().and_then(|folder| std::fs::read(folder.join(name)).ok());
    if bytes.is_none() {
        println!("skipped: {name} is not among the test data");
    }
    bytes
}
