//! Scripts as text: names of opcodes, and the notation of Bitcoin Core's vectors (`core_read.cpp`, `ParseScript`), in which
//! `OP_` may be left out.

use super::num;
use super::opcode::{op, push_prefix};

/// Names of the opcodes from `OP_NOP` to `OP_CHECKSIGADD` in Bitcoin Core's `script/script.cpp`.
#[rustfmt::skip]
const NAMES: [&str; (op::CHECKSIGADD - op::NOP) as usize + 1] = [
    "OP_NOP", "OP_VER", "OP_IF", "OP_NOTIF", "OP_VERIF", "OP_VERNOTIF", "OP_ELSE", "OP_ENDIF",
    "OP_VERIFY", "OP_RETURN", "OP_TOALTSTACK", "OP_FROMALTSTACK", "OP_2DROP", "OP_2DUP", "OP_3DUP",
    "OP_2OVER", "OP_2ROT", "OP_2SWAP", "OP_IFDUP", "OP_DEPTH", "OP_DROP", "OP_DUP", "OP_NIP",
    "OP_OVER", "OP_PICK", "OP_ROLL", "OP_ROT", "OP_SWAP", "OP_TUCK", "OP_CAT", "OP_SUBSTR",
    "OP_LEFT", "OP_RIGHT", "OP_SIZE", "OP_INVERT", "OP_AND", "OP_OR", "OP_XOR", "OP_EQUAL",
    "OP_EQUALVERIFY", "OP_RESERVED1", "OP_RESERVED2", "OP_1ADD", "OP_1SUB", "OP_2MUL", "OP_2DIV",
    "OP_NEGATE", "OP_ABS", "OP_NOT", "OP_0NOTEQUAL", "OP_ADD", "OP_SUB", "OP_MUL", "OP_DIV",
    "OP_MOD", "OP_LSHIFT", "OP_RSHIFT", "OP_BOOLAND", "OP_BOOLOR", "OP_NUMEQUAL",
    "OP_NUMEQUALVERIFY", "OP_NUMNOTEQUAL", "OP_LESSTHAN", "OP_GREATERTHAN", "OP_LESSTHANOREQUAL",
    "OP_GREATERTHANOREQUAL", "OP_MIN", "OP_MAX", "OP_WITHIN", "OP_RIPEMD160", "OP_SHA1",
    "OP_SHA256", "OP_HASH160", "OP_HASH256", "OP_CODESEPARATOR", "OP_CHECKSIG", "OP_CHECKSIGVERIFY",
    "OP_CHECKMULTISIG", "OP_CHECKMULTISIGVERIFY", "OP_NOP1", "OP_CHECKLOCKTIMEVERIFY",
    "OP_CHECKSEQUENCEVERIFY", "OP_NOP4", "OP_NOP5", "OP_NOP6", "OP_NOP7", "OP_NOP8", "OP_NOP9",
    "OP_NOP10", "OP_CHECKSIGADD",
];

/// Opcodes of Bitcoin Cash whose names are not Bitcoin Core's (BCHN `script/script.cpp`), up to May 2022.
#[rustfmt::skip]
const CASH_NAMES: [(u8, &str); 20] = [
    (op::SPLIT, "OP_SPLIT"), (op::NUM2BIN, "OP_NUM2BIN"), (op::BIN2NUM, "OP_BIN2NUM"),
    (op::CHECKDATASIG, "OP_CHECKDATASIG"), (op::CHECKDATASIGVERIFY, "OP_CHECKDATASIGVERIFY"),
    (op::REVERSEBYTES, "OP_REVERSEBYTES"),
    (op::INPUTINDEX, "OP_INPUTINDEX"), (op::ACTIVEBYTECODE, "OP_ACTIVEBYTECODE"),
    (op::TXVERSION, "OP_TXVERSION"), (op::TXINPUTCOUNT, "OP_TXINPUTCOUNT"),
    (op::TXOUTPUTCOUNT, "OP_TXOUTPUTCOUNT"), (op::TXLOCKTIME, "OP_TXLOCKTIME"),
    (op::UTXOVALUE, "OP_UTXOVALUE"), (op::UTXOBYTECODE, "OP_UTXOBYTECODE"),
    (op::OUTPOINTTXHASH, "OP_OUTPOINTTXHASH"), (op::OUTPOINTINDEX, "OP_OUTPOINTINDEX"),
    (op::INPUTBYTECODE, "OP_INPUTBYTECODE"),
    (op::INPUTSEQUENCENUMBER, "OP_INPUTSEQUENCENUMBER"),
    (op::OUTPUTVALUE, "OP_OUTPUTVALUE"), (op::OUTPUTBYTECODE, "OP_OUTPUTBYTECODE"),
];

/// The name that Bitcoin Cash's nodes give an opcode, where it is not [`opcode_name`].
pub fn cash_opcode_name(opcode: u8) -> Option<&'static str> {
    CASH_NAMES.iter().find(|(known, _)| *known == opcode).map(|(_, name)| *name)
}

/// The name of an opcode that is neither a push nor a number: `OP_RESERVED`, and `OP_NOP` to `OP_CHECKSIGADD`.
pub fn opcode_name(opcode: u8) -> Option<&'static str> {
    if opcode == op::RESERVED {
        return Some("OP_RESERVED");
    }
    NAMES.get(usize::from(opcode.checked_sub(op::NOP)?)).copied()
}

/// Appends the push of `data` as Core's `CScript << data` writes it.
pub fn push(script: &mut Vec<u8>, data: &[u8]) {
    let (prefix, used) = push_prefix(data.len());
    script.extend_from_slice(&prefix[..used]);
    script.extend_from_slice(data);
}

/// Appends a number as `CScript << number` writes it.
pub fn push_number(script: &mut Vec<u8>, number: i64) {
    if let -1 | 1..=16 = number {
        script.push((number + i64::from(op::RESERVED)) as u8);
        return;
    }
    let (digits, used) = num::encode(number);
    push(script, &digits[..used]);
}

/// Appends what a word stands for; `None` when it stands for nothing.
pub fn word(script: &mut Vec<u8>, word: &str) -> Option<()> {
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
            _ => op::NOP + NAMES.iter().position(|known| known[3..] == *name)? as u8,
        });
    }
    Some(())
}

/// Assembles a script.
///
/// # Errors
/// The word that is not understood.
pub fn assemble(text: &str) -> Result<Vec<u8>, &str> {
    let mut script = Vec::new();
    for part in text.split_ascii_whitespace() {
        word(&mut script, part).ok_or(part)?;
    }
    Ok(script)
}

/// Assembles a script in which opcodes have the names of Bitcoin Cash's nodes as well.
///
/// # Errors
/// The word that is not understood.
pub fn assemble_cash(text: &str) -> Result<Vec<u8>, &str> {
    let mut script = Vec::new();
    for part in text.split_ascii_whitespace() {
        let name = part.strip_prefix("OP_").unwrap_or(part);
        match CASH_NAMES.iter().find(|(_, known)| known[3..] == *name) {
            Some(&(opcode, _)) => script.push(opcode),
            None => word(&mut script, part).ok_or(part)?,
        }
    }
    Ok(script)
}

/// Decodes an even number of hex digits.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(opcode_name(op::RESERVED), Some("OP_RESERVED"));
        assert_eq!(opcode_name(op::NOP), Some("OP_NOP"));
        assert_eq!(opcode_name(op::CHECKSEQUENCEVERIFY), Some("OP_CHECKSEQUENCEVERIFY"));
        assert_eq!(opcode_name(op::CHECKSIGADD), Some("OP_CHECKSIGADD"));
        for nameless in [0, op::PUSHDATA4, op::NEGATE1, op::PUSH1, op::PUSH16, 0xbb, 0xff] {
            assert_eq!(opcode_name(nameless), None, "{nameless:#x}");
        }
    }

    #[test]
    fn words_of_cash() {
        let script = assemble_cash("1 OP_SPLIT CHECKDATASIG OUTPUTBYTECODE 0x02 0xbeef MUL");
        assert_eq!(script, Ok(vec![0x51, 0x7f, 0xba, 0xcd, 2, 0xbe, 0xef, 0x95]));
        assert_eq!(assemble_cash("1 TOKENAMOUNT"), Err("TOKENAMOUNT"));
        assert_eq!(cash_opcode_name(op::UTXOVALUE), Some("OP_UTXOVALUE"));
        assert_eq!(cash_opcode_name(op::DUP), None);
    }

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
