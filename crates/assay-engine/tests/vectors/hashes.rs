//! `siphash.json` (Core): SipHash-2-4. The column `siphash13uj` has another function, for Core's coins cache, which is local to a
//! node.

use assay_hash::SipHash24;
use serde_json::Value;

use crate::data::{self, array, bytes, text};
use crate::outcome::{Outcome, Report};

pub(crate) fn run(report: &mut Report) {
    report.file("siphash.json", || data::shared_json("vectors/siphash.json"), siphash);
}

fn siphash(json: &Value, outcome: &mut Outcome) {
    let number = |value: &Value| u64::from_str_radix(text(value), 16).expect("a 64-bit number");
    for vector in array(json) {
        outcome.case(&vector.to_string(), |log| {
            let hash = SipHash24::new(number(&vector["key"][0]), number(&vector["key"][1]));
            let input: Vec<u8> = array(&vector["input"]).iter().flat_map(bytes).collect();
            let right = hash.hash(&input) == number(&vector["expected"]["siphash24"]);
            log.check(right, || "wrong hash".into());
        });
    }
}
