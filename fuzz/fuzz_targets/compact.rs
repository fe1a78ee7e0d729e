//! Compact targets, retargeting and work against schoolbook arithmetic on base-256 digits.

#![no_main]

use assay_consensus::params::ChainParams;
use assay_consensus::pow::{
    block_work, decode_compact, encode_compact, permitted_transition, retarget, target_from_bits,
};
use assay_consensus::uint256::U256;
use assay_fuzz::Input;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/assay-consensus/tests/suite/difficulty/oracle.rs"]
#[allow(dead_code, reason = "the oracle's networks are for whole chains")]
mod oracle;

use oracle::Number;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let bits = u32::from_le_bytes(input.array());
    let number: [u8; 32] = input.array();
    let elapsed = i64::from_le_bytes(input.array());
    let main = ChainParams::by_name("main").expect("a known chain").pow;

    let decoded = decode_compact(bits);
    let (expected, negative) = oracle::read_compact(bits);
    assert_eq!(decoded.overflow, expected.bytes() > 32);
    assert_eq!(decoded.negative, negative);
    if !decoded.overflow {
        assert_eq!(decoded.target.to_le_bytes().to_vec(), expected.to_le_bytes(32));
    }
    let written = encode_compact(U256::from_le_bytes(&number));
    assert_eq!(written, Number::from_le_bytes(&number).write_compact());

    // Work times target + 1 is the most that fits 256 bits.
    let work = Number::from_le_bytes(&block_work(bits).to_le_bytes());
    if decoded.overflow || negative || expected.bytes() == 0 {
        assert_eq!(work.bytes(), 0);
    } else {
        let above = expected.plus_one();
        assert!(work.times(&above) <= Number::power_of_256(32));
        assert!(work.plus_one().times(&above) > Number::power_of_256(32));
    }
    let next = retarget(&main, bits, elapsed);
    let acceptable = target_from_bits(bits, main.limit).is_some();
    if acceptable {
        assert!(permitted_transition(&main, 2016, bits, next), "{bits:#010x} to {next:#010x}");
    }
});
