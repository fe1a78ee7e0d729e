//! Test data outside the repository.

use std::path::PathBuf;

/// The folder in `ASSAY_TEST_DATA`, if set.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("ASSAY_TEST_DATA").map(PathBuf::from)
}

/// A file of that folder; if it is missing, prints that the test was skipped.
#[expect(clippy::print_stdout, reason = "skipped tests are noted in the output")]
pub fn read(name: &str) -> Option<Vec<u8>> {
    let bytes = folder().and_then(|folder| std::fs::read(folder.join(name)).ok());
    if bytes.is_none() {
        println!("skipped: {name} is not among the test data");
    }
    bytes
}
