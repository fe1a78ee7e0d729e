//! Plans, results of parts and timings of `assay shard`, checksums right: read or rejected, and what is read can be merged.

#![no_main]

use assay_engine::{ChainParams, PartResult, PartTiming, Plan, merge};
use assay_fuzz::Input;
use assay_hash::sha256;
use assay_wire::BlockHash;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (text, table) = (input.counted(), input.counted());
    let folder = assay_fuzz::folder();
    let regtest = ChainParams::by_name("regtest").expect("a known chain");
    let params_of = |_: &str, _: &[String]| Ok(regtest.clone());
    assay_fuzz::write("blocks.bin", table);
    let whole = [text, format!("table {}\n", BlockHash(sha256(table))).as_bytes()].concat();
    assay_fuzz::write("plan.txt", &whole);
    assay_fuzz::write("part-00000.time", text);
    let _ = PartTiming::read(folder, 0);
    let Ok(plan) = Plan::open(folder, &params_of) else { return };
    let body = input.rest();
    // A result of this very plan, if it is one at all.
    let plan_line = format!("\nplan {}\n", BlockHash(plan.id()));
    let title = b"assay shard result 2";
    let body = [&title[..], plan_line.as_bytes(), body].concat();
    let end = format!("end {}\n", BlockHash(sha256(&body)));
    assay_fuzz::write("part-00000.txt", &[&body[..], end.as_bytes()].concat());
    if let Ok(Some(result)) = PartResult::read(folder, &plan, 0, None) {
        let mut results = vec![Some(result)];
        results.resize(plan.parts().len(), None);
        let _ = merge(&plan, &results);
        let all = vec![results[0].clone(); plan.parts().len()];
        let _ = merge(&plan, &all);
    }
});
