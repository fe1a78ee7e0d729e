//! Published values; the rules of retargets are compared with an oracle in `tests/suite/main.rs`.

use super::*;

fn params(name: &str) -> ChainParams {
    ChainParams::by_name(name).expect("the chain is known")
}

/// Rows of Core's `arith_uint256_tests.cpp`: compact, decoded, encoded again, negative, overflow.
#[test]
fn compact_table() {
    let check = |bits: u32, target: U256, encoded: u32, negative: bool, overflow: bool| {
        let decoded = decode_compact(bits);
        assert_eq!(decoded.negative, negative, "{bits:#010x}");
        assert_eq!(decoded.overflow, overflow, "{bits:#010x}");
        if !overflow {
            assert_eq!(decoded.target, target, "{bits:#010x}");
            assert_eq!(encode_compact(target), encoded, "{bits:#010x}");
        }
    };
    for zero in [
        0x0000_0000,
        0x0012_3456,
        0x0100_3456,
        0x0200_0056,
        0x0300_0000,
        0x0400_0000,
        0x0092_3456,
        0x0180_3456,
        0x0280_0056,
        0x0380_0000,
        0x0480_0000,
    ] {
        check(zero, U256::ZERO, 0, false, false);
    }
    check(0x0112_3456, U256::from(0x12), 0x0112_0000, false, false);
    check(0x01fe_dcba, U256::from(0x7e), 0x017e_0000, true, false);
    check(0x0212_3456, U256::from(0x1234), 0x0212_3400, false, false);
    check(0x0312_3456, U256::from(0x12_3456), 0x0312_3456, false, false);
    check(0x0412_3456, U256::from(0x1234_5600), 0x0412_3456, false, false);
    check(0x0492_3456, U256::from(0x1234_5600), 0x0412_3456, true, false);
    check(0x0500_9234, U256::from(0x9234_0000), 0x0500_9234, false, false);
    check(0x2012_3456, U256::from(0x12_3456) << (29 * 8), 0x2012_3456, false, false);
    check(0xff12_3456, U256::ZERO, 0, false, true);
    check(0x2200_0100, U256::ZERO, 0, false, true);
    check(0x2200_00ff, U256::from(0xff) << 248, 0x2100_ff00, false, false);
    check(0x2101_0000, U256::ZERO, 0, false, true);
    check(0x2100_ffff, U256::from(0xffff) << 240, 0x2100_ffff, false, false);
    assert_eq!(encode_compact(U256::from(0x80)), 0x0200_8000);
    assert_eq!(encode_compact(U256::MAX), 0x2100_ffff);
}

/// The four cases of Core's `pow_tests.cpp`.
#[test]
fn retarget_vectors() {
    let pow = params("main").pow;
    let check = |height: u32, bits: u32, first: i64, last: i64, expected: u32| {
        assert_eq!(retarget(&pow, bits, last - first), expected);
        assert!(permitted_transition(&pow, height, bits, expected));
    };
    check(32_256, 0x1d00_ffff, 1_261_130_161, 1_262_152_739, 0x1d00_d86a);
    check(2016, 0x1d00_ffff, 1_231_006_505, 1_233_061_996, 0x1d00_ffff);
    check(68_544, 0x1c05_a3f4, 1_279_008_237, 1_279_297_671, 0x1c01_68fd);
    check(46_368, 0x1c38_7f6f, 1_263_163_443, 1_269_211_443, 0x1d00_e1fd);
    assert!(!permitted_transition(&pow, 68_544, 0x1c05_a3f4, 0x1c01_68fc));
    assert!(!permitted_transition(&pow, 46_368, 0x1c38_7f6f, 0x1d00_e1fe));
    assert!(!permitted_transition(&pow, 46_369, 0x1c38_7f6f, 0x1d00_e1fd));
    assert!(permitted_transition(&params("test").pow, 5, 1, 2));
    // Time may run backwards over a period: the step is limited all the same.
    assert_eq!(retarget(&pow, 0x1c05_a3f4, -1), 0x1c01_68fd);
}

#[test]
fn targets_that_no_header_may_carry() {
    let pow = params("main").pow;
    let low = BlockHash({
        let mut bytes = [0; 32];
        bytes[0] = 1;
        bytes
    });
    let limit_bits = encode_compact(pow.limit);
    assert!(check_proof_of_work(&low, limit_bits, &pow));
    assert!(!check_proof_of_work(&low, limit_bits | 0x0080_0000, &pow), "negative");
    assert!(!check_proof_of_work(&low, !0x0080_0000, &pow), "overflow");
    assert!(!check_proof_of_work(&low, encode_compact(pow.limit << 1), &pow), "too easy");
    assert!(!check_proof_of_work(&low, 0, &pow), "zero");
    let high = BlockHash((pow.limit << 1).to_le_bytes());
    assert!(!check_proof_of_work(&high, limit_bits, &pow), "hash above target");
    let target = decode_compact(limit_bits).target;
    assert!(check_proof_of_work(&BlockHash(target.to_le_bytes()), limit_bits, &pow));
    let above = target.wrapping_add(U256::ONE);
    assert!(!check_proof_of_work(&BlockHash(above.to_le_bytes()), limit_bits, &pow));
}

#[test]
fn work_of_known_targets() {
    for (bits, work) in [
        (0x1d00_ffff, U256::from(0x1_0001_0001)),
        (0x207f_ffff, U256::from(2)),
        (0x0300_0001, U256::ONE << 255),
        (0x2100_ffff, U256::ONE),
        (0, U256::ZERO),
        (0x0380_0001, U256::ZERO),
        (0xff12_3456, U256::ZERO),
    ] {
        assert_eq!(block_work(bits), work, "{bits:#010x}");
    }
}
