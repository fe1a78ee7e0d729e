//! Integration tests.

mod acvp;
mod differential;
mod ml_dsa;
mod signer;

use assay_pq::shrincs::verify_stateless;
use serde_json::Value;

/// The bytes of a hex field; empty if it is absent.
fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default().as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16).expect("hexadecimal") as u8;
    text.as_chunks::<2>().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

/// Stateless signatures made by the draft's own program: see docs/testing.md.
///
/// `ASSAY_SHRINCS_KAT=…/kat.json cargo test -p assay-pq shrincs`
#[test]
fn known_answers_of_shrincs() {
    let Ok(path) = std::env::var("ASSAY_SHRINCS_KAT") else {
        eprintln!("absent: ASSAY_SHRINCS_KAT names no file");
        return;
    };
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let cases = file["cases"].as_array().expect("a list");
    for case in cases {
        let (key, stateless) = (bytes(&case["pubkey"]), &case["stateless"]);
        let [message, context, signature] =
            ["msg", "ctx", "sig"].map(|field| bytes(&stateless[field]));
        assert!(verify_stateless(&key, &message, &context, &signature));
        assert!(!verify_stateless(&key, &message, b"other", &signature));
        for place in (0..signature.len()).step_by(97) {
            let mut flipped = signature.clone();
            flipped[place] ^= 4;
            assert!(!verify_stateless(&key, &message, &context, &flipped), "{place}");
        }
    }
    eprintln!("{} cases, all passed", cases.len());
}
