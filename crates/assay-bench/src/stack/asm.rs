//! Scripts as text: the notation of Bitcoin Core's vectors (`core_read.cpp`, `ParseScript`), with `OP_` in front if liked.

use assay_consensus::script::opcode::op;

/// Names of the opcodes from 0x61 to 0xba, without `OP_`.
const NAMES: [&str; 0xbb - 0x61] = [
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

/// Appends the push of `data` as Core's `CScript << data` writes it.
pub(super) fn push(script: &mut Vec<u8>, data: &[u8]) {
    let [a, b, c, d, ..] = (data.len() as u64).to_le_bytes();
    match data.len() {
        0..=75 => script.push(a),
        76..=255 => script.extend([op::PUSHDATA1, a]),
        256..=65_535 => script.extend([op::PUSHDATA2, a, b]),
        _ => script.extend([op::PUSHDATA4, a, b, c, d]),
    }
    script.extend_from_slice(data);
}

/// Appends a number as `CScript << number` writes it.
pub(super) fn push_number(script: &mut Vec<u8>, number: i64) {
    if let -1 | 1..=16 = number {
        script.push((number + i64::from(op::RESERVED)) as u8);
        return;
    }
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

/// Appends what a word stands for; `None` when it stands for nothing.
pub(super) fn word(script: &mut Vec<u8>, word: &str) -> Option<()> {
    let name = word.strip_prefix("OP_").unwrap_or(word);
    if let Ok(number) = name.parse::<i64>() {
        // `OP_17` is no opcode, 17 is a number.
        if name.len() < word.len() && !(0..=16).contains(&number) {
            return None;
        }
        push_number(script, number);
    } else if let Some(raw) = word.strip_prefix("0x") {
        script.extend(from_hex(raw)?);
    } else if let Some(quoted) = word.strip_prefix('\'') {
        push(script, quoted.strip_suffix('\'')?.as_bytes());
    } else {
        script.push(match name {
            "RESERVED" => op::RESERVED,
            "1NEGATE" => op::NEGATE1,
            "FALSE" => 0,
            "TRUE" => op::PUSH1,
            "NOP2" => op::CHECKLOCKTIMEVERIFY,
            "NOP3" => op::CHECKSEQUENCEVERIFY,
            _ => op::NOP + NAMES.iter().position(|&known| known == name)? as u8,
        });
    }
    Some(())
}

/// Assembles a script; `Err` has the word that is not understood.
pub(super) fn assemble(text: &str) -> Result<Vec<u8>, &str> {
    let mut script = Vec::new();
    for part in text.split_ascii_whitespace() {
        word(&mut script, part).ok_or(part)?;
    }
    Ok(script)
}

/// Decodes an even number of hex digits.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for (text, expected) in [
            ("OP_1 1 OP_16 OP_0 0", &[0x51, 0x51, 0x60, 0, 0][..]),
            ("-1 17 128 -255 'ab'", &[0x4f, 1, 17, 2, 128, 0, 2, 255, 128, 2, b'a', b'b']),
            ("NOP OP_NOP10 CHECKSIGADD OP_SHA256", &[0x61, 0xb9, 0xba, 0xa8]),
            ("0x4c02 0xbeef OP_2DROP 1ADD", &[0x4c, 2, 0xbe, 0xef, 0x6d, 0x8b]),
            ("NOP2 CHECKSEQUENCEVERIFY RESERVED TRUE", &[0xb1, 0xb2, 0x50, 0x51]),
        ] {
            assert_eq!(assemble(text).expect("words"), expected, "{text}");
        }
        for bad in ["OP_17", "OP_NOPE", "0xabc", "'open", "0xzz", "sha256"] {
            assert_eq!(assemble(bad), Err(bad));
        }
    }

    #[test]
    fn pushes_of_every_length() {
        for (length, prefix) in [
            (75, &[75][..]),
            (76, &[0x4c, 76]),
            (256, &[0x4d, 0, 1]),
            (65_536, &[0x4e, 0, 0, 1, 0]),
        ] {
            let mut script = Vec::new();
            push(&mut script, &vec![7; length]);
            assert_eq!(script.strip_prefix(prefix).map(<[u8]>::len), Some(length));
        }
    }
}
