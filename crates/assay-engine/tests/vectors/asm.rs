//! Scripts in the notation of the published vectors (Core `core_read.cpp`, `ParseScript`).

use crate::data::hex;

/// Names of the opcodes from 0x61 to 0xba, without `OP_`.
const NAMES: &[&str] = &[
    "NOP",
    "VER",
    "IF",
    "NOTIF",
    "VERIF",
    "VERNOTIF",
    "ELSE",
    "ENDIF",
    "VERIFY",
    "RETURN",
    "TOALTSTACK",
    "FROMALTSTACK",
    "2DROP",
    "2DUP",
    "3DUP",
    "2OVER",
    "2ROT",
    "2SWAP",
    "IFDUP",
    "DEPTH",
    "DROP",
    "DUP",
    "NIP",
    "OVER",
    "PICK",
    "ROLL",
    "ROT",
    "SWAP",
    "TUCK",
    "CAT",
    "SUBSTR",
    "LEFT",
    "RIGHT",
    "SIZE",
    "INVERT",
    "AND",
    "OR",
    "XOR",
    "EQUAL",
    "EQUALVERIFY",
    "RESERVED1",
    "RESERVED2",
    "1ADD",
    "1SUB",
    "2MUL",
    "2DIV",
    "NEGATE",
    "ABS",
    "NOT",
    "0NOTEQUAL",
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "MOD",
    "LSHIFT",
    "RSHIFT",
    "BOOLAND",
    "BOOLOR",
    "NUMEQUAL",
    "NUMEQUALVERIFY",
    "NUMNOTEQUAL",
    "LESSTHAN",
    "GREATERTHAN",
    "LESSTHANOREQUAL",
    "GREATERTHANOREQUAL",
    "MIN",
    "MAX",
    "WITHIN",
    "RIPEMD160",
    "SHA1",
    "SHA256",
    "HASH160",
    "HASH256",
    "CODESEPARATOR",
    "CHECKSIG",
    "CHECKSIGVERIFY",
    "CHECKMULTISIG",
    "CHECKMULTISIGVERIFY",
    "NOP1",
    "CHECKLOCKTIMEVERIFY",
    "CHECKSEQUENCEVERIFY",
    "NOP4",
    "NOP5",
    "NOP6",
    "NOP7",
    "NOP8",
    "NOP9",
    "NOP10",
    "CHECKSIGADD",
];

/// Appends the push of `data` as `CScript << data` writes it.
fn push(script: &mut Vec<u8>, data: &[u8]) {
    match data.len() {
        0..=75 => script.push(data.len() as u8),
        76..=255 => script.extend([0x4c, data.len() as u8]),
        _ => {
            script.push(0x4d);
            script.extend((data.len() as u16).to_le_bytes());
        }
    }
    script.extend(data);
}

/// Appends a number as `CScript << number` writes it.
fn push_number(script: &mut Vec<u8>, number: i64) {
    match number {
        0 => script.push(0),
        -1 | 1..=16 => script.push((number + 0x50) as u8),
        _ => {
            let mut digits = Vec::new();
            let mut rest = number.unsigned_abs();
            while rest > 0 {
                digits.push(rest as u8);
                rest >>= 8;
            }
            if digits.last().is_some_and(|top| top & 0x80 != 0) {
                digits.push(0);
            }
            if number < 0
                && let Some(top) = digits.last_mut()
            {
                *top |= 0x80;
            }
            push(script, &digits);
        }
    }
}

/// Assembles a script; `None` when a word is not understood.
pub(crate) fn assemble(text: &str) -> Option<Vec<u8>> {
    let mut script = Vec::new();
    for word in text.split_ascii_whitespace() {
        if let Ok(number) = word.parse::<i64>() {
            push_number(&mut script, number);
        } else if let Some(raw) = word.strip_prefix("0x") {
            script.extend(hex(raw)?);
        } else if let Some(quoted) = word.strip_prefix('\'') {
            push(&mut script, quoted.strip_suffix('\'')?.as_bytes());
        } else {
            let name = word.strip_prefix("OP_").unwrap_or(word);
            script.push(match name {
                "RESERVED" => 0x50,
                "NOP2" => 0xb1,
                "NOP3" => 0xb2,
                _ => 0x61 + NAMES.iter().position(|&known| known == name)? as u8,
            });
        }
    }
    Some(script)
}
