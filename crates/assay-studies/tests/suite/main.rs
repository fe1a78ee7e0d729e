//! The program `assay-bench`, called as `assay` calls it and in wrong ways.

use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay-bench"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

#[test]
fn wrong_calls_are_rejected() {
    let suites = "[]";
    for (arguments, part) in [
        (&[][..], "usage: assay-bench serve"),
        (&["serve", "{", "smoke"], "no suites: {"),
        (&["serve", suites, "huge"], "no extent huge"),
        (&["once", suites, "{}"], "missing field"),
    ] {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn errors_of_experiments_are_answers() {
    for (name, options, part) in [
        ("alchemy", "{}", "there is no experiment alchemy"),
        ("signatures", "{}", "missing field"),
        (
            "signatures",
            r#"{"batch":0,"rounds":1,"backend":null,"seed":1}"#,
            "expected a nonzero usize",
        ),
    ] {
        let output = run(&["experiment", name, options]);
        assert!(output.status.success());
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an answer");
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(part), "{name} {options}: {answer}");
    }
}
