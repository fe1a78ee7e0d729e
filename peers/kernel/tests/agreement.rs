//! Small runs of all comparisons: both sides agree, and every class ends as intended.

use assay_peer_kernel::{compare, flips, kernel, scripts};

#[test]
fn blocks_of_every_class() {
    let _tap = kernel::listen().unwrap();
    let out = tempfile::tempdir().unwrap();
    let options = compare::Options {
        seed: 7,
        blocks: 3000,
        round_blocks: 1000,
        first_round: 0,
        class: None,
        jobs: 2,
        out: out.path().to_path_buf(),
    };
    let summary = compare::run(&options, &|_| {}).unwrap();
    let table = summary.table();
    assert_eq!(summary.disagreements(), 0, "{table}");
    let not_meant: u64 = summary.classes.values().map(|tally| tally.not_meant).sum();
    assert_eq!(not_meant, 0, "{table}");
    for reason in ["bad-cb-amount", "bad-txns-BIP30", "high-hash", "unexpected-witness"] {
        assert!(summary.reasons.contains_key(reason), "{reason} is missing\n{table}");
    }
}

#[test]
fn random_scripts() {
    let summary = scripts::run(7, 20_000, 2);
    assert!(summary.disagreements.is_empty(), "{:#?}", summary.disagreements);
    assert!(summary.errors.len() > 25, "{:?}", summary.errors);
}

#[test]
fn flips_in_real_blocks() {
    let shared = std::env::var_os("ASSAY_TEST_DATA").map(std::path::PathBuf::from);
    let Some(shared) = shared.filter(|folder| folder.join("blocks").exists()) else {
        println!("skipped: no real blocks in ASSAY_TEST_DATA");
        return;
    };
    let summary = flips::run(&shared, 200, 7).unwrap();
    assert!(summary.disagreements.is_empty(), "{:#?}", summary.disagreements);
    assert_eq!(summary.flips, 200);
}
