//! Block filters: what decodes has as many values as it says, and a filter that is made finds all it was made of.

#![no_main]

use assay_wire::BlockHash;
use assay_wire::filter::{Filter, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(filter) = Filter::parse(data) {
        assert_eq!(filter.values().count(), filter.count() as usize);
    }
    let Some((hash, rest)) = data.split_first_chunk::<32>() else { return };
    let hash = BlockHash(*hash);
    let elements: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    let bytes = encode(&hash, elements.clone());
    let filter = Filter::parse(&bytes).expect("our own filter");
    assert!(filter.values().is_sorted());
    for element in elements {
        assert!(filter.matches_any(&hash, [element]));
    }
});
