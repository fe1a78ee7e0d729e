//! `blockfilters.json` (Core, from BIP158): basic filters and their headers; and the hash function of filters.

use assay_hash::SipHash24;
use assay_wire::{Block, Encoding, filter};
use serde_json::Value;

use crate::data::{self, array, bytes, bytes32, text};
use crate::outcome::{Case, Outcome, Report};

pub(crate) fn run(report: &mut Report) {
    report.file("blockfilters.json", || data::shared_json("vectors/blockfilters.json"), filters);
}

fn filters(json: &Value, outcome: &mut Outcome) {
    // The first line has the column names.
    for vector in &array(json)[1..] {
        outcome.case(text(&vector[7]), |log| one(vector, log));
    }
}

fn one(vector: &Value, log: &mut Case) {
    let block = Block::parse(bytes(&vector[2]), Encoding::Segwit).expect("a block");
    let spent: Vec<Vec<u8>> = array(&vector[3]).iter().map(bytes).collect();
    let reversed = |value: &Value| {
        let mut hash = bytes32(value);
        hash.reverse();
        hash
    };
    log.check(block.hash().0 == reversed(&vector[1]), || "block hash".into());
    let made = filter::basic(&block, spent.iter().map(Vec::as_slice));
    log.check(made == bytes(&vector[5]), || "filter".into());
    let header = filter::filter_header(&filter::filter_hash(&made), &reversed(&vector[4]));
    log.check(header == reversed(&vector[6]), || "filter header".into());
    let hash = block.hash();
    match filter::Filter::parse(&made) {
        Ok(filter) => {
            let is_found = |script: &Vec<u8>| {
                script.is_empty() || filter.matches_any(&hash, [script.as_slice()])
            };
            log.check(spent.iter().all(is_found), || "a spent script is not found".into());
        }
        Err(error) => log.check(false, || error.to_string()),
    }
}

/// `siphash.json` (Core): SipHash-2-4. The column `siphash13uj` has another function, for Core's coins cache, which is local to a
/// node.
pub(crate) fn run_siphash(report: &mut Report) {
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
