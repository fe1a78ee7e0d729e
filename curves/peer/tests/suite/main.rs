//! Operations that two libraries share have equal results, and sessions follow README.md.

mod pools;

use std::collections::BTreeMap;

use assay_pairing::curve::{BlsG1, Curve as _};
use assay_peer_pairing::derive::expand;
use assay_peer_pairing::evm::{at, verdict};
use assay_peer_pairing::table::Work;
use assay_peer_pairing::{SUBJECTS, Session, subject};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Results with the names of their subjects.
type Answers = Vec<(&'static str, Vec<u8>)>;

#[test]
fn libraries_agree() {
    let mut answers: BTreeMap<(String, String), Answers> = BTreeMap::new();
    for name in ["blst", "arkworks", "c-kzg", "libsecp256k1", "revm", "assay-pairing"] {
        let subject = subject(name).expect("a subject");
        for operation in &subject.table.0 {
            // Signatures of secp256k1 are part of the order.
            if operation.curve == "secp256k1" && operation.name.ends_with("-verify")
                || operation.name == "ecrecover"
            {
                continue;
            }
            let work = Work {
                curve: operation.curve.to_owned(),
                operation: operation.name.clone(),
                size: 5,
                threads: 1,
                seed: 11,
                ..Work::default()
            };
            let mut prepared = (operation.prepare)(&work).expect(&operation.name);
            (prepared.run)(3);
            let key = (work.curve, work.operation);
            answers.entry(key).or_default().push((name, prepared.answer));
        }
    }
    let compared = answers.values().filter(|answers| answers.len() > 1).count();
    assert!(compared >= 65, "{compared} operations were compared");
    for (operation, answers) in &answers {
        let (first, right) = &answers[0];
        for (other, answer) in &answers[1..] {
            assert_eq!(right, answer, "{operation:?}: {first} and {other}");
        }
    }
}

#[test]
fn precompiles_and_signatures_answer() {
    for (name, operation, size, right) in [
        ("blst", "verify", 0, "0100"),
        ("blst", "fast-aggregate-verify", 3, "0100"),
        ("blst", "batch-verify", 4, "0100"),
        ("assay-pairing", "verify", 0, "0100"),
        ("assay-pairing", "fast-aggregate-verify", 3, "0100"),
        ("assay-pairing", "batch-verify", 4, "0100"),
        (
            "revm",
            "bn254-pairing",
            2,
            "0000000000000000000000000000000000000000000000000000000000000001",
        ),
        (
            "revm",
            "bls12-381-pairing",
            3,
            "0000000000000000000000000000000000000000000000000000000000000000",
        ),
    ] {
        let mut session = Session::new(subject(name).expect("a subject"));
        let curve = if name == "revm" { "evm" } else { "bls-signatures" };
        let order = json!({ "do": "prepare", "curve": curve, "operation": operation, "size": size, "threads": 0, "seed": 3 });
        let answer = session.obey(&order.to_string());
        assert_eq!(answer["answer"], right, "{operation}: {answer}");
        let times = session.obey(r#"{"do":"time","iterations":2}"#);
        assert!(times["wall_ns"].as_u64().is_some_and(|ns| ns > 0), "{times}");
    }
}

#[test]
fn conversations() {
    for name in SUBJECTS {
        let mut session = Session::new(subject(name).expect("a subject"));
        let told = session.obey(r#"{"do":"describe"}"#);
        assert!(told["operations"].as_array().is_some_and(|all| !all.is_empty()), "{told}");
        assert!(told["compiler"].as_str().is_some_and(|text| text.contains("rustc")), "{told}");
        for (line, complaint) in [
            ("", "not an order"),
            (r#"{"do":"time","iterations":1}"#, "nothing is prepared"),
            (
                r#"{"do":"prepare","curve":"p256","operation":"fp-mul","seed":1}"#,
                "no operation fp-mul of p256",
            ),
        ] {
            let answer = session.obey(line);
            let error = answer["error"].as_str().unwrap_or_default();
            assert!(error.contains(complaint), "{line}: {answer}");
        }
    }
    assert!(subject("nobody").is_none());
    let mut session = Session::new(subject("libsecp256k1").expect("a subject"));
    let order = r#"{"do":"prepare","curve":"secp256k1","operation":"ecdsa-verify","size":2,"threads":1,"seed":1}"#;
    assert_ne!(session.obey(order).get("error"), None::<&Value>, "signatures are missing");
}

#[test]
fn our_curves_against_others() {
    let counts = assay_peer_pairing::differential::compare(100_000, 1, &[], &mut |_, _, _| {})
        .expect("no difference");
    assert!(counts.iter().all(|(_, cases)| *cases > 0), "{counts:?}");
}

#[test]
fn bytes_follow_from_label_seed_and_index() {
    // SHA-256 of "fp", 0, seed 7, index 1, counter 0, computed by another program.
    let bytes = expand("fp", 7, 1, 40);
    assert_eq!(bytes.len(), 40);
    assert_eq!(
        bytes[..32],
        Sha256::digest(b"fp\0\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01\0\0\0\0")[..]
    );
    assert_eq!(expand("fp", 7, 1, 8), bytes[..8]);
    assert_ne!(expand("fp", 7, 2, 8), bytes[..8]);
    assert_ne!(expand("fr", 7, 1, 8), bytes[..8]);
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let mut bytes = vec![0; hex.len() / 2];
    faster_hex::hex_decode(hex.as_bytes(), &mut bytes).expect("hexadecimal");
    bytes
}

/// EIP-2537, `bls_g1add_(g1+g1=2*g1)`.
#[test]
fn twice_the_generator() {
    let generator = BlsG1::GENERATOR.to_evm();
    let precompile = at(0x0b).expect("it exists");
    let (sum, _) = verdict(precompile, &generator.repeat(2)).expect("points");
    let x = "0572cbea904d67468808c8eb50a9450c9721db309128012543902d0ac358a62ae28f75bb8f1c7c42c39a8c5529bf0f4e";
    let y = "166a9d8cabc673a322fda673779d8e3822ba3ecb8670e461f73bb9021d5fd76a4c56d9d4cd16bd1bba86881979749d28";
    let zeros = "00".repeat(16);
    assert_eq!(sum, bytes_of(&[&zeros, x, &zeros, y].concat()));
}

fn session(name: &str) -> Session {
    Session::new(subject(name).expect("a subject"))
}

fn prepare(operation: &str) -> String {
    format!(r#"{{"do":"prepare","curve":"pool","operation":"{operation}","size":16,"seed":7}}"#)
}

#[test]
fn a_trace_has_a_lane_for_each_thread_and_the_same_answer() {
    let mut session = session("assay-pool");
    let listed = session.obey(r#"{"do":"describe"}"#);
    assert_eq!(listed["traces"][0]["operation"], "render");
    let operations = listed["operations"].as_array().expect("a list");
    assert!(operations.iter().all(|operation| operation["operation"] != "render"));
    let prepared = session.obey(&prepare("render"));
    let trace = session.obey(r#"{"do":"trace"}"#);
    assert_eq!(trace["digest"], prepared["digest"], "{trace}");
    let threads = trace["threads"].as_array().expect("a list");
    assert!(threads.len() >= rayon::current_num_threads(), "{trace}");
    let rows: u64 = threads.iter().filter_map(|thread| thread["rows"].as_u64()).sum();
    assert_eq!(rows, 16);
    let spans = threads.iter().filter_map(|thread| thread["spans"].as_array()).flatten();
    for span in spans {
        assert!(span[0].as_u64() <= span[1].as_u64(), "{trace}");
        assert!(span[1].as_u64() <= trace["wall_ns"].as_u64(), "{trace}");
    }
}

#[test]
fn a_trace_of_nothing_is_an_error() {
    let mut session = session("sequential");
    let order = r#"{"do":"trace"}"#;
    assert_eq!(session.obey(order)["error"], "nothing is prepared");
    session.obey(&prepare("fibonacci"));
    assert_eq!(session.obey(order)["error"], "what is prepared has no trace");
}

#[test]
fn subjects_without_loops_have_no_traces() {
    let listed = session("blst").obey(r#"{"do":"describe"}"#);
    assert_eq!(listed["traces"], json!([]));
}
