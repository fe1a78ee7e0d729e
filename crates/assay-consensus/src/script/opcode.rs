//! Opcodes, and reading a script one instruction at a time.

/// Opcode values by their names in Bitcoin Core `script/script.h`.
pub mod op {
    pub const PUSHDATA1: u8 = 0x4c;
    pub const PUSHDATA2: u8 = 0x4d;
    pub const PUSHDATA4: u8 = 0x4e;
    pub const NEGATE1: u8 = 0x4f;
    pub const RESERVED: u8 = 0x50;
    pub const PUSH1: u8 = 0x51;
    pub const PUSH16: u8 = 0x60;
    pub const NOP: u8 = 0x61;
    pub const VER: u8 = 0x62;
    pub const IF: u8 = 0x63;
    pub const NOTIF: u8 = 0x64;
    pub const VERIF: u8 = 0x65;
    pub const VERNOTIF: u8 = 0x66;
    pub const ELSE: u8 = 0x67;
    pub const ENDIF: u8 = 0x68;
    pub const VERIFY: u8 = 0x69;
    pub const RETURN: u8 = 0x6a;
    pub const TOALTSTACK: u8 = 0x6b;
    pub const FROMALTSTACK: u8 = 0x6c;
    pub const DROP2: u8 = 0x6d;
    pub const DUP2: u8 = 0x6e;
    pub const DUP3: u8 = 0x6f;
    pub const OVER2: u8 = 0x70;
    pub const ROT2: u8 = 0x71;
    pub const SWAP2: u8 = 0x72;
    pub const IFDUP: u8 = 0x73;
    pub const DEPTH: u8 = 0x74;
    pub const DROP: u8 = 0x75;
    pub const DUP: u8 = 0x76;
    pub const NIP: u8 = 0x77;
    pub const OVER: u8 = 0x78;
    pub const PICK: u8 = 0x79;
    pub const ROLL: u8 = 0x7a;
    pub const ROT: u8 = 0x7b;
    pub const SWAP: u8 = 0x7c;
    pub const TUCK: u8 = 0x7d;
    pub const CAT: u8 = 0x7e;
    pub const SUBSTR: u8 = 0x7f;
    pub const LEFT: u8 = 0x80;
    pub const RIGHT: u8 = 0x81;
    pub const SIZE: u8 = 0x82;
    pub const INVERT: u8 = 0x83;
    pub const AND: u8 = 0x84;
    pub const OR: u8 = 0x85;
    pub const XOR: u8 = 0x86;
    pub const EQUAL: u8 = 0x87;
    pub const EQUALVERIFY: u8 = 0x88;
    pub const RESERVED1: u8 = 0x89;
    pub const RESERVED2: u8 = 0x8a;
    pub const ADD1: u8 = 0x8b;
    pub const SUB1: u8 = 0x8c;
    pub const MUL2: u8 = 0x8d;
    pub const DIV2: u8 = 0x8e;
    pub const NEGATE: u8 = 0x8f;
    pub const ABS: u8 = 0x90;
    pub const NOT: u8 = 0x91;
    pub const NOTEQUAL0: u8 = 0x92;
    pub const ADD: u8 = 0x93;
    pub const SUB: u8 = 0x94;
    pub const MUL: u8 = 0x95;
    pub const DIV: u8 = 0x96;
    pub const MOD: u8 = 0x97;
    pub const LSHIFT: u8 = 0x98;
    pub const RSHIFT: u8 = 0x99;
    pub const BOOLAND: u8 = 0x9a;
    pub const BOOLOR: u8 = 0x9b;
    pub const NUMEQUAL: u8 = 0x9c;
    pub const NUMEQUALVERIFY: u8 = 0x9d;
    pub const NUMNOTEQUAL: u8 = 0x9e;
    pub const LESSTHAN: u8 = 0x9f;
    pub const GREATERTHAN: u8 = 0xa0;
    pub const LESSTHANOREQUAL: u8 = 0xa1;
    pub const GREATERTHANOREQUAL: u8 = 0xa2;
    pub const MIN: u8 = 0xa3;
    pub const MAX: u8 = 0xa4;
    pub const WITHIN: u8 = 0xa5;
    pub const RIPEMD160: u8 = 0xa6;
    pub const SHA1: u8 = 0xa7;
    pub const SHA256: u8 = 0xa8;
    pub const HASH160: u8 = 0xa9;
    pub const HASH256: u8 = 0xaa;
    pub const CODESEPARATOR: u8 = 0xab;
    pub const CHECKSIG: u8 = 0xac;
    pub const CHECKSIGVERIFY: u8 = 0xad;
    pub const CHECKMULTISIG: u8 = 0xae;
    pub const CHECKMULTISIGVERIFY: u8 = 0xaf;
    pub const NOP1: u8 = 0xb0;
    pub const CHECKLOCKTIMEVERIFY: u8 = 0xb1;
    pub const CHECKSEQUENCEVERIFY: u8 = 0xb2;
    pub const NOP4: u8 = 0xb3;
    pub const NOP10: u8 = 0xb9;
    /// Tapscript only (BIP-0342); the Bitcoin Cash family uses the same value for CHECKDATASIG.
    pub const CHECKSIGADD: u8 = 0xba;

    /// Proposed (BIP-0349, BIP-0348, BIP-0446), in tapscript.
    pub const INTERNALKEY: u8 = 0xcb;
    pub const CHECKSIGFROMSTACK: u8 = 0xcc;
    pub const TEMPLATEHASH: u8 = 0xce;
    /// Proposed (PQSIG draft), in tapscript.
    pub const CHECKSIG_SLH: u8 = 0x7f;
    pub const CHECKSIGADD_SLH: u8 = 0x80;
    pub const CHECKSIG_ML: u8 = 0x81;

    pub const SPLIT: u8 = SUBSTR;
    pub const NUM2BIN: u8 = LEFT;
    pub const BIN2NUM: u8 = RIGHT;
    pub const CHECKDATASIG: u8 = 0xba;
    pub const CHECKDATASIGVERIFY: u8 = 0xbb;
    pub const REVERSEBYTES: u8 = 0xbc;
    pub const INPUTINDEX: u8 = 0xc0;
    pub const ACTIVEBYTECODE: u8 = 0xc1;
    pub const TXVERSION: u8 = 0xc2;
    pub const TXINPUTCOUNT: u8 = 0xc3;
    pub const TXOUTPUTCOUNT: u8 = 0xc4;
    pub const TXLOCKTIME: u8 = 0xc5;
    pub const UTXOVALUE: u8 = 0xc6;
    pub const UTXOBYTECODE: u8 = 0xc7;
    pub const OUTPOINTTXHASH: u8 = 0xc8;
    pub const OUTPOINTINDEX: u8 = 0xc9;
    pub const INPUTBYTECODE: u8 = 0xca;
    pub const INPUTSEQUENCENUMBER: u8 = 0xcb;
    pub const OUTPUTVALUE: u8 = 0xcc;
    pub const OUTPUTBYTECODE: u8 = 0xcd;
}

/// Most bytes one stack element may have.
pub const MAX_ELEMENT_SIZE: usize = 520;
/// Most operations (opcodes above `OP_16`) outside tapscript.
pub const MAX_OPS: u32 = 201;
pub const MAX_MULTISIG_KEYS: i64 = 20;
/// Most bytes of a script outside tapscript.
pub const MAX_SCRIPT_SIZE: usize = 10_000;
/// Most elements on both stacks together.
pub const MAX_STACK_SIZE: usize = 1000;

/// One instruction: its opcode and, for pushes of data, the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction<'s> {
    pub opcode: u8,
    /// Bytes pushed by opcodes up to `OP_PUSHDATA4`, empty for all others.
    pub data: &'s [u8],
}

/// Reads the instruction at `*pos` and moves `*pos` behind it; `None` when it is cut off.
///
/// On `None` the position stays where Core's `GetScriptOp` leaves it (behind the length bytes that
/// were readable), because the legacy signature hash of a malformed script depends on it.
///
/// # Panics
/// When `*pos` is at or beyond the end of the script.
#[inline]
pub fn read_instruction<'s>(script: &'s [u8], pos: &mut usize) -> Option<Instruction<'s>> {
    let opcode = script[*pos];
    *pos += 1;
    if opcode > op::PUSHDATA4 {
        return Some(Instruction { opcode, data: &[] });
    }
    let size = if opcode < op::PUSHDATA1 {
        usize::from(opcode)
    } else {
        let width = 1usize << (opcode - op::PUSHDATA1);
        let length = script.get(*pos..*pos + width)?;
        *pos += width;
        length.iter().rev().fold(0usize, |size, &byte| size << 8 | usize::from(byte))
    };
    let data = script.get(*pos..)?.get(..size)?;
    *pos += size;
    Some(Instruction { opcode, data })
}

/// Iterates over the instructions of a script; ends after the first one that is cut off, which is
/// reported as `None` inside.
#[derive(Clone, Debug)]
pub struct Instructions<'s> {
    script: &'s [u8],
    pos: usize,
    broken: bool,
}

impl<'s> Instructions<'s> {
    pub fn new(script: &'s [u8]) -> Self {
        Self { script, pos: 0, broken: false }
    }
}

impl<'s> Iterator for Instructions<'s> {
    type Item = Option<Instruction<'s>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.broken || self.pos >= self.script.len() {
            return None;
        }
        let instruction = read_instruction(self.script, &mut self.pos);
        self.broken = instruction.is_none();
        Some(instruction)
    }
}

/// Returns `true` if the script only pushes. `OP_RESERVED` counts as a push here, as in Core's `IsPushOnly`.
pub fn is_push_only(script: &[u8]) -> bool {
    Instructions::new(script).all(|i| i.is_some_and(|i| i.opcode <= op::PUSH16))
}

/// Returns `true` if `script` is `DUP HASH160 <20 bytes> EQUALVERIFY CHECKSIG`.
#[inline]
pub fn is_p2pkh(script: &[u8]) -> bool {
    matches!(script, [op::DUP, op::HASH160, 20, .., op::EQUALVERIFY, op::CHECKSIG] if script.len() == 25)
}

/// The last item that a script of pushes leaves; `None` when it is cut off or does more than push.
pub fn last_push(script_sig: &[u8]) -> Option<&[u8]> {
    let mut last: &[u8] = &[];
    for instruction in Instructions::new(script_sig) {
        let instruction = instruction?;
        if instruction.opcode > op::PUSH16 {
            return None;
        }
        last = instruction.data;
    }
    Some(last)
}

/// Returns `true` if `script` is `HASH160 <20 bytes> EQUAL`.
#[inline]
pub fn is_p2sh(script: &[u8]) -> bool {
    matches!(script, [op::HASH160, 20, .., op::EQUAL] if script.len() == 23)
}

/// Returns `true` if `script` is `HASH256 <32 bytes> EQUAL` (Bitcoin Cash).
#[inline]
pub fn is_p2sh_32(script: &[u8]) -> bool {
    matches!(script, [op::HASH256, 32, .., op::EQUAL] if script.len() == 35)
}

/// Version and program if `script` is a witness program (BIP-0141): a small integer and one direct
/// push of 2 to 40 bytes.
#[inline]
pub fn witness_program(script: &[u8]) -> Option<(u8, &[u8])> {
    let (&version, &length, program) = match script {
        [version, length, program @ ..] if (4..=42).contains(&script.len()) => {
            (version, length, program)
        }
        _ => return None,
    };
    if usize::from(length) != program.len() {
        return None;
    }
    match version {
        0 => Some((0, program)),
        op::PUSH1..=op::PUSH16 => Some((version - op::PUSH1 + 1, program)),
        _ => None,
    }
}

/// Returns `true` if a push of `data` with `opcode` is the shortest possible (BIP-0062 rule 3).
#[inline]
pub fn is_minimal_push(opcode: u8, data: &[u8]) -> bool {
    match data {
        [] => opcode == 0,
        [1..=16 | 0x81] => false,
        _ if data.len() <= 75 => usize::from(opcode) == data.len(),
        _ if data.len() <= 0xff => opcode == op::PUSHDATA1,
        _ if data.len() <= 0xffff => opcode == op::PUSHDATA2,
        _ => true,
    }
}

/// Returns `true` if the length agrees with the one that the first byte announces (Core's `CPubKey::ValidSize`).
pub fn has_key_size(key: &[u8]) -> bool {
    match key.first() {
        Some(2 | 3) => key.len() == 33,
        Some(4 | 6 | 7) => key.len() == 65,
        _ => false,
    }
}

/// The number of signatures that a bare multi-signature script asks for, and its keys; `None` for any other script
/// (Core's `MatchMultisig` in `script/solver.cpp`).
pub fn multisig(script: &[u8]) -> Option<(u8, Vec<&[u8]>)> {
    let (&op::CHECKMULTISIG, _) = script.split_last()? else { return None };
    let mut instructions = Instructions::new(script);
    let required = small_number(instructions.next()??)?;
    let mut keys = Vec::new();
    let total = loop {
        let instruction = instructions.next()??;
        if !has_key_size(instruction.data) {
            break small_number(instruction)?;
        }
        keys.push(instruction.data);
    };
    let last = instructions.next()??;
    let complete = instructions.next().is_none() && last.opcode == op::CHECKMULTISIG;
    let fits = (1..=MULTISIG_KEYS_MAX).contains(&required)
        && (required..=MULTISIG_KEYS_MAX).contains(&total)
        && keys.len() == usize::from(total);
    (complete && fits).then_some((required, keys))
}

/// `MAX_PUBKEYS_PER_MULTISIG` (Core's `script/script.h`).
pub const MULTISIG_KEYS_MAX: u8 = 20;

/// A number up to 127, pushed in the shortest form.
fn small_number(instruction: Instruction<'_>) -> Option<u8> {
    match instruction {
        Instruction { opcode: opcode @ op::PUSH1..=op::PUSH16, .. } => Some(opcode - op::PUSH1 + 1),
        Instruction { opcode, data: &[byte @ 17..=0x7f] } if is_minimal_push(opcode, &[byte]) => {
            Some(byte)
        }
        _ => None,
    }
}

/// Returns `true` if tapscript treats the opcode as an unconditional success (BIP-0342).
#[inline]
pub const fn is_op_success(opcode: u8) -> bool {
    matches!(
        opcode,
        80 | 98 | 126..=129 | 131..=134 | 137 | 138 | 141 | 142 | 149..=153 | 187..=254
    )
}

/// Length bytes and opcode that precede `length` bytes of data in Core's `CScript << data`; returns
/// the buffer and how much of it is used.
#[inline]
pub(super) fn push_prefix(length: usize) -> ([u8; 5], usize) {
    let [a, b, c, d, ..] = (length as u64).to_le_bytes();
    if length < usize::from(op::PUSHDATA1) {
        ([a, 0, 0, 0, 0], 1)
    } else if length <= 0xff {
        ([op::PUSHDATA1, a, 0, 0, 0], 2)
    } else if length <= 0xffff {
        ([op::PUSHDATA2, a, b, 0, 0], 3)
    } else {
        ([op::PUSHDATA4, a, b, c, d], 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_push_form() {
        let script = [1, 7, op::PUSHDATA1, 2, 8, 9, op::PUSHDATA2, 1, 0, 5, op::PUSHDATA4, 0, 0, 0];
        let mut with_zero = script.to_vec();
        with_zero.extend([0, op::NOP]);
        let read: Vec<_> = Instructions::new(&with_zero).map(Option::unwrap).collect();
        let data: Vec<&[u8]> = read.iter().map(|i| i.data).collect();
        assert_eq!(data, [&[7][..], &[8, 9], &[5], &[], &[]]);
        assert_eq!(read[4].opcode, op::NOP);
    }

    #[test]
    fn cut_off_pushes_leave_the_position_behind_the_readable_length() {
        for (script, left_at) in [
            (&[2u8, 1][..], 1),
            (&[op::PUSHDATA1], 1),
            (&[op::PUSHDATA1, 3, 1], 2),
            (&[op::PUSHDATA2, 3], 1),
            (&[op::PUSHDATA2, 3, 0, 1], 3),
            (&[op::PUSHDATA4, 0xff, 0xff, 0xff], 1),
            (&[op::PUSHDATA4, 0xff, 0xff, 0xff, 0xff], 5),
        ] {
            let mut pos = 0;
            assert_eq!(read_instruction(script, &mut pos), None);
            assert_eq!(pos, left_at, "{script:?}");
        }
    }

    #[test]
    fn recognises_programs() {
        let mut p2wpkh = vec![0, 20];
        p2wpkh.extend([3; 20]);
        assert_eq!(witness_program(&p2wpkh), Some((0, &[3; 20][..])));
        assert_eq!(witness_program(&[op::PUSH1 + 1, 2, 9, 9]), Some((2, &[9, 9][..])));
        assert_eq!(witness_program(&[op::NEGATE1, 2, 9, 9]), None);
        assert_eq!(witness_program(&[0, 1, 9]), None);
        assert_eq!(witness_program(&p2wpkh[..21]), None);
    }

    #[test]
    fn minimal_pushes() {
        assert!(is_minimal_push(0, &[]));
        assert!(!is_minimal_push(1, &[16]) && is_minimal_push(1, &[17]));
        assert!(!is_minimal_push(1, &[0x81]) && is_minimal_push(1, &[0x80]));
        assert!(is_minimal_push(75, &[1; 75]) && !is_minimal_push(op::PUSHDATA1, &[1; 75]));
        assert!(is_minimal_push(op::PUSHDATA1, &[1; 76]));
        assert!(is_minimal_push(op::PUSHDATA2, &[1; 256]));
    }

    #[test]
    fn success_opcodes_are_those_bip342_lists() {
        assert_eq!((0..=255u8).filter(|&o| is_op_success(o)).count(), 87);
        assert!(!is_op_success(op::CHECKSIGADD) && !is_op_success(0xff));
    }
}
