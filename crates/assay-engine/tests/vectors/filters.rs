//! `blockfilters.json` (Core, from BIP158): basic filters and their headers.

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
