//! BIP-0340's own table, all rows: valid and invalid signatures, and messages of any length.
//!
//! The file is part of the package `schnorr_fun`.

use assay_testkit::hex;

use crate::data;
use crate::outcome::{Outcome, Report};

pub(crate) fn run(report: &mut Report) {
    let file = || {
        let folder = data::package("schnorr_fun")?;
        std::fs::read_to_string(folder.join("tests/bip340-test-vectors.csv")).ok()
    };
    report.file("BIP340 test-vectors.csv", file, |csv, outcome| verify_rows(csv, outcome));
}

/// Columns: index, secret key, public key, auxiliary randomness, message, signature, result, comment. This program cannot sign,
/// so the first four rows are verified as well.
fn verify_rows(csv: &str, outcome: &mut Outcome) {
    for row in csv.lines().skip(1) {
        outcome.case(row, |log| {
            let columns: Vec<&str> = row.splitn(8, ',').collect();
            let column = |index: usize| hex::decode(columns[index].trim());
            let key = column(2).try_into().expect("a key of 32 bytes");
            let sig = column(5).try_into().expect("a signature of 64 bytes");
            let expected = match columns[6].trim() {
                "TRUE" => true,
                "FALSE" => false,
                other => panic!("{other} is no verdict"),
            };
            let verdict = assay_secp::verify_schnorr(&key, &sig, &column(4));
            log.check(verdict == expected, || format!("gave {verdict}"));
        });
    }
}
