//! Plans: any text is a plan or an explanation.

#![no_main]

use assay_lab::plan::Plan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Plan::parse(text, "input") {
        Ok(plan) => drop(plan.phase_title("steady-1")),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
