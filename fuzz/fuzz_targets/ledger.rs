//! Ledgers of forged chains, as forge and laboratory read them: what the stricter reader takes, the
//! other takes too, with the same tip.

#![no_main]

use assay_forge::Ledger;
use assay_lab::chain::Chain;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assay_fuzz::write("ledger.jsonl", data);
    let ledger = Ledger::read(assay_fuzz::folder());
    if let Ok(chain) = Chain::open(assay_fuzz::folder()) {
        assert_eq!(chain.tip.height, chain.blocks.last().map_or(0, |block| block.height));
        if let Ok(ledger) = ledger {
            assert_eq!(u64::from(ledger.tip.height), u64::from(chain.tip.height));
            assert_eq!(ledger.blocks.len(), chain.blocks.len());
        }
    }
});
