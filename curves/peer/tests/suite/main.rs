//! Operations that two libraries share have equal results, and sessions follow README.md.

use std::collections::BTreeMap;

use assay_peer_pairing::table::Work;
use assay_peer_pairing::{SUBJECTS, Session, subject};
use serde_json::{Value, json};

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
