//! NIST's ACVP vectors of SLH-DSA, from the Go module `github.com/cloudflare/circl`.
//!
//! Runs all SHA2 cases: verification of pure, prehashed and internal messages, and the expected signatures of the generation
//! vectors.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_hash::Backend;
use assay_pq::{Check, Message, ParameterSet, serial, verify_many_with};
use serde_json::Value;
use sha2::Digest;
use sha3::digest::{ExtendableOutput, Update, XofReader};

const MODULE: &str = "github.com/cloudflare/circl@v1.6.5";

/// The folder of the files, if the module is in Go's cache.
fn folder() -> Option<PathBuf> {
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output().ok()?;
    let cache = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(cache.trim()).join(MODULE).join("sign/slhdsa/testdata");
    folder.is_dir().then_some(folder)
}

fn read(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The bytes of a hex field; empty if it is absent.
fn bytes(value: &Value, field: &str) -> Vec<u8> {
    let text = value[field].as_str().unwrap_or_default().as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16).expect("hexadecimal") as u8;
    text.as_chunks::<2>().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

fn array(value: &Value, field: &str) -> Vec<Value> {
    value[field].as_array().expect("a list").clone()
}

/// The groups of a file, each with the tests of the other file.
fn groups(folder: &Path, prompt: &str, results: &str) -> Vec<(Value, Vec<(Value, Value)>)> {
    let (prompt, results) = (read(&folder.join(prompt)), read(&folder.join(results)));
    array(&prompt, "testGroups")
        .into_iter()
        .zip(array(&results, "testGroups"))
        .map(|(group, result)| {
            assert_eq!(group["tgId"], result["tgId"]);
            let tests = array(&group, "tests").into_iter().zip(array(&result, "tests")).collect();
            (group, tests)
        })
        .collect()
}

/// The input of `slh_verify_internal`, FIPS 205 algorithms 24 and 25.
fn internal_message(group: &Value, test: &Value) -> Vec<u8> {
    let message = bytes(test, "message");
    if group["signatureInterface"] == "internal" {
        return message;
    }
    let context = bytes(test, "context");
    let (mark, message) = match group["preHash"].as_str() {
        Some("pure") => (0, message),
        _ => (1, prehash(test["hashAlg"].as_str().expect("a hash function"), &message)),
    };
    [&[mark, context.len() as u8], &context[..], &message].concat()
}

/// The object identifier and the hash, FIPS 205 section 10.2.2.
fn prehash(name: &str, message: &[u8]) -> Vec<u8> {
    fn xof<X: Default + Update + ExtendableOutput>(message: &[u8], length: usize) -> Vec<u8> {
        let mut hasher = X::default();
        hasher.update(message);
        let mut digest = vec![0; length];
        hasher.finalize_xof().read(&mut digest);
        digest
    }
    let (last, digest) = match name {
        "SHA2-256" => (1, sha2::Sha256::digest(message).to_vec()),
        "SHA2-384" => (2, sha2::Sha384::digest(message).to_vec()),
        "SHA2-512" => (3, sha2::Sha512::digest(message).to_vec()),
        "SHA2-224" => (4, sha2::Sha224::digest(message).to_vec()),
        "SHA2-512/224" => (5, sha2::Sha512_224::digest(message).to_vec()),
        "SHA2-512/256" => (6, sha2::Sha512_256::digest(message).to_vec()),
        "SHA3-224" => (7, sha3::Sha3_224::digest(message).to_vec()),
        "SHA3-256" => (8, sha3::Sha3_256::digest(message).to_vec()),
        "SHA3-384" => (9, sha3::Sha3_384::digest(message).to_vec()),
        "SHA3-512" => (10, sha3::Sha3_512::digest(message).to_vec()),
        "SHAKE-128" => (11, xof::<sha3::Shake128>(message, 32)),
        "SHAKE-256" => (12, xof::<sha3::Shake256>(message, 64)),
        _ => panic!("no hash function is called {name}"),
    };
    let identifier = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, last];
    [&identifier[..], &digest].concat()
}

/// Key, message, signature, verdict.
type Case = (Vec<u8>, Vec<u8>, Vec<u8>, bool);

/// Runs cases on the oracle and on every backend.
fn run(set: &ParameterSet, cases: &[Case]) {
    let checks: Vec<Check<'_>> = cases
        .iter()
        .map(|(key, message, signature, _)| Check {
            key,
            message: Message::Internal(message),
            signature,
        })
        .collect();
    let expected: Vec<bool> = cases.iter().map(|case| case.3).collect();
    let oracle: Vec<bool> = checks.iter().map(|check| serial::verify(set, check)).collect();
    assert_eq!(oracle, expected, "{}", set.name());
    for backend in Backend::available() {
        assert_eq!(verify_many_with(backend, set, &checks), expected, "{} {backend:?}", set.name());
    }
}

#[test]
fn verification() {
    let Some(folder) = folder() else {
        println!("skipped: {MODULE} is not in Go's module cache (go mod download)");
        return;
    };
    let (mut passed, mut valid) = (0, 0);
    for (group, tests) in groups(&folder, "verify_prompt.json.gz", "verify_results.json.gz") {
        let name = group["parameterSet"].as_str().expect("a name");
        let Some(set) = ParameterSet::by_name(name) else {
            assert!(name.starts_with("SLH-DSA-SHAKE-"), "{name}");
            continue;
        };
        let case = |(test, result): &(Value, Value)| {
            assert_eq!(test["tcId"], result["tcId"]);
            let verdict = result["testPassed"].as_bool().expect("a verdict");
            let message = internal_message(&group, test);
            (bytes(test, "pk"), message, bytes(test, "signature"), verdict)
        };
        let cases: Vec<Case> = tests.iter().map(case).collect();
        run(&set, &cases);
        passed += cases.len();
        valid += cases.iter().filter(|case| case.3).count();
    }
    println!("verify_prompt.json: {passed} cases with SHA2 passed, {valid} of them valid");
    assert_eq!(passed, 18 * 14);
}

/// Expected signatures of the generation vectors are valid.
#[test]
fn generation() {
    let Some(folder) = folder() else {
        println!("skipped: {MODULE} is not in Go's module cache (go mod download)");
        return;
    };
    let mut passed = 0;
    for (group, tests) in groups(&folder, "sigGen_prompt.json.gz", "sigGen_results.json.gz") {
        let Some(set) = group["parameterSet"].as_str().and_then(ParameterSet::by_name) else {
            continue;
        };
        let case = |(test, result): &(Value, Value)| {
            assert_eq!(test["tcId"], result["tcId"]);
            let secret = bytes(test, "sk");
            // SK.seed, SK.prf, PK.seed, PK.root.
            let key = secret[set.key_bytes()..].to_vec();
            (key, internal_message(&group, test), bytes(result, "signature"), true)
        };
        let cases: Vec<Case> = tests.iter().map(case).collect();
        run(&set, &cases);
        passed += cases.len();
    }
    println!("sigGen_prompt.json: {passed} signatures with SHA2 are valid");
    assert!(passed > 0);
}
