//! The program as `assay run` starts it.

use std::process::{Command, Output, Stdio};

use assay_bench::Silent;
use assay_bench::plan::{BenchPlan, CompilersSettings, PairingSettings, PlanText};
use assay_bench::registry::Section;
use assay_bench::results::BenchResults;
use assay_bench::run::{RunOptions, run};
use assay_bench::served::ServedSuite;
use assay_bench::suite::Extent;
use serde::Serialize;

const PROGRAM: &str = env!("CARGO_BIN_EXE_assay-curves");

/// Results of a section with its default settings at the smallest extent: every result is checked.
fn results(name: &'static str, settings: &impl Serialize, plan: Option<BenchPlan>) -> BenchResults {
    let settings = serde_json::to_string(settings).expect("settings are JSON");
    let suite = ServedSuite::new(PROGRAM.into(), vec![name.to_owned(), settings]);
    let options = RunOptions { plan, extent: Extent::Smoke, ..RunOptions::default() };
    let sections = [Section { name, suite: Box::new(suite) }];
    let results = run(&sections, &options, &Silent).expect("a suite with its defaults");
    assert!(results.failures.is_empty(), "{:#?}", results.failures);
    let text = serde_json::to_string(&results).expect("results are JSON");
    assert_eq!(serde_json::from_str::<BenchResults>(&text).expect("and back"), results);
    results
}

#[test]
fn every_benchmark_of_curves_gives_correct_results() {
    let plan = PlanText::find("pairing-curves").and_then(|text| text.bench(&[]));
    let plan = plan.expect("a built-in plan of benchmarks");
    let results = results("pairing", &PairingSettings::default(), Some(plan));
    let names: Vec<&str> = results.benchmarks.iter().map(|one| one.name.as_str()).collect();
    assert!(names.iter().any(|name| name.starts_with("secp256k1/schnorr-verify")), "{names:?}");
    assert!(results.studies.iter().any(|study| study.id == "pairing-subjects"));
    assert!(results.published.iter().any(|one| one.benchmark == "bls12-381/pairing"));
}

#[test]
fn every_benchmark_of_compilers_gives_correct_results() {
    results("compilers", &CompilersSettings::default(), None);
}

#[test]
fn wrong_calls_are_errors() {
    for (arguments, said) in [
        (&[][..], "usage: assay-curves"),
        (&["stack", "{}", "full"], "no suite stack"),
        (&["pairing", "{}", "fuller"], "no extent fuller"),
        (&["pairing", r#"{"curve":[]}"#, "full"], "settings of [pairing]: unknown field `curve`"),
    ] {
        let output = call(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(said), "{text}");
    }
}

fn call(arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}
