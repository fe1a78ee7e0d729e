//! Standard locking scripts.

use assay_consensus::script::opcode::op;
use assay_hash::hash160;

/// P2PK.
pub(super) fn pay_to_key(key: &[u8]) -> Vec<u8> {
    [&[key.len() as u8][..], key, &[op::CHECKSIG]].concat()
}

/// P2PKH of a key.
pub(super) fn pay_to_key_hash(key: &[u8]) -> Vec<u8> {
    pay_to_key_hash_of(&hash160(key))
}

/// P2PKH of a 20-byte hash.
pub(super) fn pay_to_key_hash_of(hash: &[u8]) -> Vec<u8> {
    [&[op::DUP, op::HASH160, 20][..], hash, &[op::EQUALVERIFY, op::CHECKSIG]].concat()
}

/// P2SH of a hash: 20 bytes, or 32 on Bitcoin Cash.
pub(super) fn pay_to_script_hash_of(hash: &[u8]) -> Vec<u8> {
    let opcode = if hash.len() == 32 { op::HASH256 } else { op::HASH160 };
    [&[opcode, hash.len() as u8][..], hash, &[op::EQUAL]].concat()
}

/// Witness program of at most 40 bytes.
pub(super) fn witness(version: u8, program: &[u8]) -> Vec<u8> {
    let opcode = if version == 0 { 0 } else { op::PUSH1 + version - 1 };
    [&[opcode, program.len() as u8][..], program].concat()
}

/// Bare multisig of at most 20 keys.
pub(super) fn multisig(threshold: u8, keys: &[&[u8]]) -> Vec<u8> {
    let mut script = Vec::new();
    push_number(threshold, &mut script);
    for key in keys {
        script.push(key.len() as u8);
        script.extend_from_slice(key);
    }
    push_number(keys.len() as u8, &mut script);
    script.push(op::CHECKMULTISIG);
    script
}

/// Script push of a number from 1 to 127.
fn push_number(number: u8, script: &mut Vec<u8>) {
    match number {
        1..=16 => script.push(op::PUSH1 + number - 1),
        _ => script.extend([1, number]),
    }
}

/// Script push of data (Core's `CScript::operator<<`).
pub(super) fn push(data: &[u8], script: &mut Vec<u8>) {
    let length = data.len();
    match length {
        0..0x4c => script.push(length as u8),
        0x4c..0x100 => script.extend([op::PUSHDATA1, length as u8]),
        0x100..0x1_0000 => {
            script.push(op::PUSHDATA2);
            script.extend((length as u16).to_le_bytes());
        }
        _ => {
            script.push(op::PUSHDATA4);
            script.extend((length as u32).to_le_bytes());
        }
    }
    script.extend_from_slice(data);
}
