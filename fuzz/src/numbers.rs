//! Arithmetic of scripts and of compact targets, each against a second implementation.

use assay_consensus::params::ChainParams;
use assay_consensus::pow::{
    block_work, decode_compact, encode_compact, permitted_transition, retarget, target_from_bits,
};
use assay_consensus::script::{Flags, ScriptError, TxContext, verify_input};
use assay_consensus::uint256::U256;
use assay_wire::encode::var_bytes;
use assay_wire::{TxBuilder, TxOut};
use oracle::Number;

use crate::input::{FirstByte, Input};

/// Arithmetic of scripts against 64-bit integers: every operation on every pair of numbers, the
/// encodings read and written by a second implementation.
pub fn numbers(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.byte();
    let minimal = input.byte() % 2 == 0;
    let (length_a, length_b) = (input.byte() % 7, input.byte() % 7);
    let a = input.bytes(usize::from(length_a));
    let b = input.bytes(usize::from(length_b));

    let operations = OPERATIONS.len() as u8;
    let (opcode, unary, operation) = OPERATIONS[usize::from(choice % operations)];
    let (x, y) = (read(a, minimal), read(b, minimal));
    let expected =
        if unary { x.map(|x| operation(x, 0)) } else { x.zip(y).map(|(x, y)| operation(x, y)) };
    let wanted = expected.map_or(Vec::new(), write);

    let mut script = Vec::new();
    push(&mut script, a);
    if !unary {
        push(&mut script, b);
    }
    script.push(opcode);
    push(&mut script, &wanted);
    script.push(0x87);
    let tx = TxBuilder::new(1).input(1, 1, &[], 0).output(0, &[]).build();
    let spent = [TxOut { value: 0, script_pubkey: &script }];
    let context = TxContext::new(tx.view(), &spent);
    let flags = if minimal { Flags::MINIMALDATA } else { Flags::NONE };
    let verdict = verify_input(&context, 0, flags, &mut FirstByte).map(|_| ());
    match expected {
        Some(_) => assert_eq!(verdict, Ok(()), "{script:02x?}"),
        None => assert_eq!(verdict, Err(ScriptError::ScriptNum), "{script:02x?}"),
    }
}

type Operation = (u8, bool, fn(i64, i64) -> i64);

const OPERATIONS: [Operation; 18] = [
    (0x8b, true, |x, _| x + 1),
    (0x8c, true, |x, _| x - 1),
    (0x8f, true, |x, _| -x),
    (0x90, true, |x, _| x.abs()),
    (0x91, true, |x, _| i64::from(x == 0)),
    (0x92, true, |x, _| i64::from(x != 0)),
    (0x93, false, |x, y| x + y),
    (0x94, false, |x, y| x - y),
    (0x9a, false, |x, y| i64::from(x != 0 && y != 0)),
    (0x9b, false, |x, y| i64::from(x != 0 || y != 0)),
    (0x9c, false, |x, y| i64::from(x == y)),
    (0x9e, false, |x, y| i64::from(x != y)),
    (0x9f, false, |x, y| i64::from(x < y)),
    (0xa0, false, |x, y| i64::from(x > y)),
    (0xa1, false, |x, y| i64::from(x <= y)),
    (0xa2, false, |x, y| i64::from(x >= y)),
    (0xa3, false, i64::min),
    (0xa4, false, i64::max),
];

/// Sign and magnitude, least significant byte first, at most four bytes.
fn read(bytes: &[u8], minimal: bool) -> Option<i64> {
    if bytes.len() > 4 {
        return None;
    }
    let Some((&top, low)) = bytes.split_last() else { return Some(0) };
    let sign = if top >= 0x80 { -1 } else { 1 };
    let mut magnitude = i64::from(top % 0x80);
    for &byte in low.iter().rev() {
        magnitude = magnitude * 256 + i64::from(byte);
    }
    let value = sign * magnitude;
    (!minimal || write(value) == bytes).then_some(value)
}

fn write(value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = value.abs();
    while rest > 0 {
        out.push((rest % 256) as u8);
        rest /= 256;
    }
    if out.last().is_some_and(|&top| top >= 0x80) {
        out.push(0);
    }
    if let Some(top) = out.last_mut().filter(|_| value < 0) {
        *top += 0x80;
    }
    out
}

/// The shortest push there is.
fn push(script: &mut Vec<u8>, bytes: &[u8]) {
    match bytes {
        [] => script.push(0),
        [0x81] => script.push(0x4f),
        [small @ 1..=16] => script.push(0x50 + small),
        _ => var_bytes(script, bytes),
    }
}

#[path = "../../crates/assay-consensus/tests/suite/oracle.rs"]
#[allow(dead_code, reason = "the oracle's networks are for whole chains")]
mod oracle;

/// Compact targets, retargeting and work against schoolbook arithmetic on base-256 digits.
pub fn compact(data: &[u8]) {
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
}
