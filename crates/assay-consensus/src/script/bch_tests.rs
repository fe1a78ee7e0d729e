//! Opcodes, signature forms and counted checks of the Bitcoin Cash family, with a scripted checker.

use assay_hash::{hash160, sha256d};
use assay_testkit::chain::TxBuilder;
use assay_testkit::random::Random;
use assay_wire::TxOut;
use assay_wire::encode::var_bytes;

use super::*;
use crate::script::opcode::op::*;
use crate::script::{PqScheme, SIGHASH_ALL, TxContext, verify_input};

/// Answers every question alike and remembers what it was asked.
pub(crate) struct Scripted {
    answer: bool,
    pub(crate) asked: Vec<Question>,
}

/// Kind, key, signature and message.
pub(crate) type Question = (&'static str, Vec<u8>, Vec<u8>, [u8; 32]);

impl Scripted {
    pub(crate) fn new(answer: bool) -> Self {
        Self { answer, asked: Vec::new() }
    }
    fn note(&mut self, kind: &'static str, key: &[u8], sig: &[u8], msg: &[u8; 32]) -> bool {
        self.asked.push((kind, key.to_vec(), sig.to_vec(), *msg));
        self.answer
    }
}

impl SignatureChecker for Scripted {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        self.note("ecdsa", pubkey, der_sig, msg)
    }
    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        self.note("bip340", xonly, sig, msg)
    }
    fn schnorr_of_any_length(&mut self, _: &[u8; 32], _: &[u8; 64], _: &[u8]) -> bool {
        false
    }
    fn post_quantum(&mut self, _: PqScheme, _: &[u8], _: &[u8], _: &[u8; 32]) -> bool {
        false
    }

    fn schnorr_bch(&mut self, pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        self.note("schnorr", pubkey, sig, msg)
    }
    fn taproot_tweak(&mut self, _: &[u8; 32], _: &[u8; 32], _: &[u8; 32], _: bool) -> bool {
        self.answer
    }
}

/// Spends `script_pubkey` with `script_sig`; the error, or the count of checks.
fn spend(
    script_sig: &[u8],
    script_pubkey: &[u8],
    flags: Flags,
    checker: &mut Scripted,
) -> Result<u32, ScriptError> {
    let tx = TxBuilder::new(2).input(7, 0x0707_0707, script_sig, 0xffff_fffe).output(5, &[]);
    let tx = tx.lock_time(9).build();
    let spent = [TxOut { value: 1234, script_pubkey }];
    let ctx = TxContext::new(tx.view(), &spent);
    verify_input(&ctx, 0, flags, checker).map(|stats| stats.sig_checks)
}

fn push(data: &[u8]) -> Vec<u8> {
    let mut script = match data {
        [] => return vec![0],
        [small @ 1..=16] => return vec![PUSH1 - 1 + small],
        [0x81] => return vec![NEGATE1],
        _ if data.len() < 76 => vec![data.len() as u8],
        _ if data.len() < 256 => vec![PUSHDATA1, data.len() as u8],
        _ => vec![PUSHDATA2, data.len() as u8, (data.len() >> 8) as u8],
    };
    script.extend(data);
    script
}

fn script(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Runs `opcode` on the operands; what it leaves must be `expected`, bottom first.
fn check(operands: &[&[u8]], opcode: u8, expected: Result<&[&[u8]], ScriptError>) {
    check_under(Flags::BCH_MAY_2020, operands, opcode, expected);
}

fn check_under(
    flags: Flags,
    operands: &[&[u8]],
    opcode: u8,
    expected: Result<&[&[u8]], ScriptError>,
) {
    let script_sig = operands.iter().flat_map(|data| push(data)).collect::<Vec<_>>();
    let mut script_pubkey = vec![opcode];
    for data in expected.unwrap_or_default().iter().rev() {
        script_pubkey.extend(push(data));
        script_pubkey.push(EQUALVERIFY);
    }
    script_pubkey.push(PUSH1);
    let verdict = spend(&script_sig, &script_pubkey, flags, &mut Scripted::new(true));
    assert_eq!(verdict, expected.map(|_| 0), "opcode {opcode:#x} on {operands:?}");
}

/// The vectors of BCHN have one byte at most, and the other opcodes.
#[test]
fn bits_of_longer_strings() {
    check(&[&[0b1100, 1], &[0b1010, 3]], AND, Ok(&[&[0b1000, 1]]));
    check(&[&[0b1100, 1], &[0b1010, 3]], OR, Ok(&[&[0b1110, 3]]));
    check(&[&[0b1100, 1], &[0b1010, 3]], XOR, Ok(&[&[0b0110, 2]]));
}

/// Numbers of eight bytes: the ends of the range, what leaves it, and what would take nine bytes.
#[test]
fn integers_of_64_bits() {
    const MAX: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    const MIN: &[u8] = &[0xff; 8];
    const NINE: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0x80, 0];
    let overflow = Err(ScriptError::InvalidNumberRange64Bit);
    let check = |operands: &[&[u8]], opcode, expected| {
        check_under(Flags::BCH_MAY_2022, operands, opcode, expected);
    };
    check(&[MAX, &[]], ADD, Ok(&[MAX]));
    check(&[MAX, &[1]], ADD, overflow);
    check(&[MIN, &[0x81]], ADD, overflow);
    check(&[MIN, MAX], ADD, Ok(&[&[]]));
    check(&[MIN, &[1]], SUB, overflow);
    check(&[MIN, &[0x81]], SUB, Ok(&[&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]));
    check(&[MAX], ADD1, overflow);
    check(&[MIN], SUB1, overflow);
    check(&[MIN], NEGATE, Ok(&[MAX]));
    check(&[MIN], ABS, Ok(&[MAX]));
    check(&[&[3], &[0x85]], MUL, Ok(&[&[0x8f]]));
    check(&[MAX, &[0x81]], MUL, Ok(&[MIN]));
    check(&[MAX, &[2]], MUL, overflow);
    // -2^31 times 2^32 is the least number of 64 bits, which eight bytes do not hold here.
    check(&[&[0, 0, 0, 0x80, 0x80], &[0, 0, 0, 0, 1]], MUL, overflow);
    check(&[MIN, &[0x81]], DIV, Ok(&[MAX]));
    check(&[MIN, &[0x81]], MOD, Ok(&[&[]]));
    check(&[MIN, &[]], DIV, Err(ScriptError::DivByZero));
    check(&[MIN, MAX], MAX_OPCODE, Ok(&[MAX]));
    check(&[&[], MIN, MAX], WITHIN, Ok(&[&[1]]));
    for opcode in [ADD1, SUB1, NEGATE, ABS, NOT, NOTEQUAL0] {
        check(&[NINE], opcode, overflow);
    }
    for opcode in [ADD, SUB, MUL, DIV, MOD, BOOLAND, NUMEQUAL, LESSTHAN, MIN_OPCODE, PICK, ROLL] {
        check(&[&[1], NINE], opcode, overflow);
    }
    check(&[&[1], &[0, 0, 0, 0, 1]], PICK, Err(ScriptError::InvalidStackOperation));
    check(&[b"ab", &[0, 0, 0, 0, 1]], SPLIT, Err(ScriptError::InvalidSplitRange));
    check(&[b"ab", &[0, 0, 0, 0, 1]], NUM2BIN, Err(ScriptError::PushSize));
    check(&[MAX], BIN2NUM, Ok(&[MAX]));
    check(&[NINE], BIN2NUM, overflow);
    check(&[&[0, 0, 0, 0, 1]], CHECKMULTISIG, Err(ScriptError::PubkeyCount));
    check(&[&[0x80, 0, 0]], ADD1, Err(ScriptError::MinimalNum));
    // Lock times have five bytes as before.
    check(&[&[1, 1, 1, 1, 1, 1]], CHECKLOCKTIMEVERIFY, Err(ScriptError::InvalidNumberRange));
    // Results of four bytes are none of the earlier rules' errors.
    check_under(
        Flags::BCH_MAY_2020,
        &[&[0xff, 0xff, 0xff, 0x7f], &[1]],
        ADD,
        Ok(&[&[0, 0, 0, 0x80, 0]]),
    );
}

/// Every operation on random numbers gives what arithmetic in 128 bits gives.
#[test]
fn integers_against_wider_ones() {
    let mut random = Random(1);
    // All widths, both signs.
    let mut random = || random.next() as i64 >> random.below(61);
    let number = |value: i64| {
        let (bytes, length) = num::encode(value);
        bytes[..length].to_vec()
    };
    for _ in 0..20_000 {
        let (a, b) = (random().max(-i64::MAX), random().max(-i64::MAX));
        for opcode in [ADD, SUB, MUL, DIV, MOD, MAX_OPCODE, LESSTHAN] {
            let (x, y) = (i128::from(a), i128::from(b));
            let exact = match opcode {
                ADD => x + y,
                SUB => x - y,
                MUL => x * y,
                DIV | MOD if b == 0 => continue,
                DIV => x / y,
                MOD => x % y,
                MAX_OPCODE => x.max(y),
                _ => i128::from(x < y),
            };
            let expected = i64::try_from(exact).ok().filter(|&result| result != i64::MIN);
            let operands: [&[u8]; 2] = [&number(a), &number(b)];
            let result = expected.map(number);
            let left = result.as_deref().map(|result| [result]);
            let expected = left
                .as_ref()
                .map_or(Err(ScriptError::InvalidNumberRange64Bit), |left| Ok(&left[..]));
            check_under(Flags::BCH_MAY_2022, &operands, opcode, expected);
        }
    }
}

const MIN_OPCODE: u8 = 0xa3;
const MAX_OPCODE: u8 = 0xa4;

#[test]
fn opcodes_appear_with_their_upgrades() {
    let run = |opcode: u8, flags: Flags| {
        let script_pubkey = [0, IF, opcode, ENDIF, PUSH1];
        spend(&[], &script_pubkey, flags, &mut Scripted::new(true))
    };
    for opcode in [CAT, SPLIT, NUM2BIN, BIN2NUM, AND, OR, XOR, DIV, MOD] {
        assert_eq!(run(opcode, Flags::BCH_NOV_2017), Err(ScriptError::DisabledOpcode));
        assert_eq!(run(opcode, Flags::BCH_MAY_2018), Ok(0));
    }
    for opcode in [INVERT, MUL2, DIV2, LSHIFT, RSHIFT] {
        assert_eq!(run(opcode, Flags::BCH_MAY_2022), Err(ScriptError::DisabledOpcode));
    }
    assert_eq!(run(MUL, Flags::BCH_MAY_2020), Err(ScriptError::DisabledOpcode));
    assert_eq!(run(MUL, Flags::BCH_MAY_2022), Ok(0));
    let run = |opcode: u8, flags: Flags| {
        let script_sig = [0, 0, 0];
        let flags = flags.without(Flags::STRICTENC | Flags::SIGHASH_FORKID);
        spend(&script_sig, &[opcode, PUSH1], flags, &mut Scripted::new(true)).err()
    };
    for (opcode, before, from) in [
        (CHECKDATASIG, Flags::BCH_MAY_2018, Flags::BCH_NOV_2018),
        (CHECKDATASIGVERIFY, Flags::BCH_MAY_2018, Flags::BCH_NOV_2018),
        (REVERSEBYTES, Flags::BCH_NOV_2019, Flags::BCH_MAY_2020),
    ] {
        assert_eq!(run(opcode, before), Some(ScriptError::BadOpcode));
        assert_ne!(run(opcode, from), Some(ScriptError::BadOpcode));
    }
    for opcode in INPUTINDEX..=OUTPUTBYTECODE {
        assert_eq!(run(opcode, Flags::BCH_MAY_2020), Some(ScriptError::BadOpcode));
        assert_ne!(run(opcode, Flags::BCH_MAY_2022), Some(ScriptError::BadOpcode));
    }
    // Tokens and everything undefined.
    for opcode in (0xbd..INPUTINDEX).chain(OUTPUTBYTECODE + 1..=0xff) {
        assert_eq!(run(opcode, Flags::BCH_STANDARD), Some(ScriptError::BadOpcode));
    }
}

fn key(tag: u8) -> Vec<u8> {
    let mut key = vec![tag; 33];
    key[0] = 2;
    key
}

/// A well-formed DER signature with a hash type.
fn der(tag: u8, hash_type: u8) -> Vec<u8> {
    let mut sig = vec![0x30, 6, 2, 1, tag, 2, 1, 1];
    sig.push(hash_type);
    sig
}

fn schnorr(tag: u8, hash_type: u8) -> Vec<u8> {
    let mut sig = vec![tag; 64];
    sig.push(hash_type);
    sig
}

const ALL_FORK: u8 = (SIGHASH_ALL | SIGHASH_FORKID) as u8;

#[test]
fn fork_signatures_sign_the_bip143_message() {
    let mut script_pubkey = push(&key(9));
    script_pubkey.push(CHECKSIG);
    let mut checker = Scripted::new(true);
    let verdict =
        spend(&push(&der(1, ALL_FORK)), &script_pubkey, Flags::BCH_MAY_2020, &mut checker);
    assert_eq!(verdict, Ok(1));
    let (kind, asked_key, sig, msg) = &checker.asked[0];
    assert_eq!((*kind, &asked_key[..], &sig[..]), ("ecdsa", &key(9)[..], &der(1, 0)[..8]));
    let mut preimage = vec![2, 0, 0, 0];
    preimage.extend(sha256d(&[7; 36]));
    preimage.extend(sha256d(&[0xfe, 0xff, 0xff, 0xff]));
    preimage.extend([7; 36]);
    var_bytes(&mut preimage, &script_pubkey);
    preimage.extend(1234i64.to_le_bytes());
    preimage.extend([0xfe, 0xff, 0xff, 0xff]);
    preimage.extend(sha256d(&[5, 0, 0, 0, 0, 0, 0, 0, 0]));
    preimage.extend([9, 0, 0, 0]);
    preimage.extend([ALL_FORK, 0, 0, 0]);
    assert_eq!(*msg, sha256d(&preimage));
}

#[test]
fn hash_types() {
    let mut script_pubkey = push(&key(9));
    script_pubkey.push(CHECKSIG);
    let run = |hash_type: u8, flags: Flags| {
        spend(&push(&der(1, hash_type)), &script_pubkey, flags, &mut Scripted::new(true)).err()
    };
    let before_fork = Flags::BCH_AUG_2017.without(Flags::SIGHASH_FORKID);
    for (hash_type, flags, expected) in [
        (1, Flags::BCH_AUG_2017, Some(ScriptError::MustUseForkId)),
        (0x41, Flags::BCH_AUG_2017, None),
        (0xc3, Flags::BCH_MAY_2020, None),
        (0x40, Flags::BCH_MAY_2020, Some(ScriptError::SigHashType)),
        (0x44, Flags::BCH_MAY_2020, Some(ScriptError::SigHashType)),
        (0x61, Flags::BCH_MAY_2020, Some(ScriptError::SigHashType)),
        (0x41, before_fork, Some(ScriptError::IllegalForkId)),
        (1, before_fork, None),
    ] {
        assert_eq!(run(hash_type, flags), expected, "{hash_type:#x} {flags:?}");
    }
}

#[test]
fn schnorr_signatures_by_length() {
    let mut script_pubkey = push(&key(9));
    script_pubkey.push(CHECKSIG);
    let mut checker = Scripted::new(true);
    let script_sig = push(&schnorr(5, ALL_FORK));
    assert_eq!(spend(&script_sig, &script_pubkey, Flags::BCH_MAY_2019, &mut checker), Ok(1));
    assert_eq!((checker.asked[0].0, &checker.asked[0].2[..]), ("schnorr", &[5; 64][..]));
    assert_eq!(
        spend(&script_sig, &script_pubkey, Flags::BCH_NOV_2018, &mut checker),
        Err(ScriptError::SigDer)
    );
    let mut refusing = Scripted::new(false);
    assert_eq!(
        spend(&script_sig, &script_pubkey, Flags::BCH_MAY_2020, &mut refusing),
        Err(ScriptError::SigNullFail)
    );
}

fn two_of_three() -> Vec<u8> {
    script(&[
        &[PUSH1 + 1],
        &push(&key(1)),
        &push(&key(2)),
        &push(&key(3)),
        &[PUSH1 + 2, CHECKMULTISIG],
    ])
}

#[test]
fn multisig_counts_and_forms() {
    let flags = Flags::BCH_MAY_2020;
    let ecdsa = script(&[&[0], &push(&der(1, ALL_FORK)), &push(&der(2, ALL_FORK))]);
    assert_eq!(spend(&ecdsa, &two_of_three(), flags, &mut Scripted::new(true)), Ok(3));
    let mut not = two_of_three();
    not.push(NOT);
    assert_eq!(spend(&[0, 0, 0], &not, flags, &mut Scripted::new(false)), Ok(0));

    let sigs = [push(&schnorr(11, ALL_FORK)), push(&schnorr(13, ALL_FORK))].concat();
    let mut checker = Scripted::new(true);
    let chosen = script(&[&push(&[0b101]), &sigs]);
    assert_eq!(spend(&chosen, &two_of_three(), flags, &mut checker), Ok(2));
    let pairs: Vec<_> = checker.asked.iter().map(|a| (a.0, a.1[1], a.2[0])).collect();
    assert_eq!(pairs, [("schnorr", 1, 11), ("schnorr", 3, 13)]);

    for (dummy, expected) in [
        (&[0b100][..], ScriptError::InvalidBitCount),
        (&[0b111], ScriptError::InvalidBitCount),
        (&[0b1001], ScriptError::InvalidBitRange),
        (&[0b101, 0], ScriptError::InvalidBitfieldSize),
        (&[], ScriptError::SigBadLength),
    ] {
        let script_sig = script(&[&push(dummy), &sigs]);
        let verdict = spend(&script_sig, &two_of_three(), flags, &mut Scripted::new(true));
        assert_eq!(verdict, Err(expected), "{dummy:?}");
    }
    let mixed = script(&[&push(&[0b011]), &push(&der(1, ALL_FORK)), &push(&der(2, ALL_FORK))]);
    assert_eq!(
        spend(&mixed, &two_of_three(), flags, &mut Scripted::new(true)),
        Err(ScriptError::SigNonSchnorr)
    );
}

#[test]
fn data_signatures_cover_the_message_alone() {
    let script_pubkey = script(&[&push(&key(4)), &[CHECKDATASIG]]);
    let script_sig = script(&[&push(&der(1, ALL_FORK)[..8]), &push(b"message")]);
    let mut checker = Scripted::new(true);
    assert_eq!(spend(&script_sig, &script_pubkey, Flags::BCH_NOV_2018, &mut checker), Ok(1));
    assert_eq!(checker.asked[0].3, sha256(b"message"));
    let mut not = script_pubkey.clone();
    not.push(NOT);
    let empty = script(&[&[0], &push(b"message")]);
    assert_eq!(spend(&empty, &not, Flags::BCH_MAY_2020, &mut Scripted::new(false)), Ok(0));
}

#[test]
fn segwit_recovery() {
    let redeem = script(&[&[0, 20], &[6; 20]]);
    let script_pubkey = script(&[&[HASH160, 20], &hash160(&redeem), &[EQUAL]]);
    let run = |script_sig: &[u8], flags: Flags| {
        spend(script_sig, &script_pubkey, flags, &mut Scripted::new(true))
    };
    assert_eq!(run(&push(&redeem), Flags::BCH_NOV_2018), Err(ScriptError::CleanStack));
    assert_eq!(run(&push(&redeem), Flags::BCH_MAY_2019), Ok(0));
    assert_eq!(run(&push(&redeem), Flags::BCH_STANDARD), Err(ScriptError::CleanStack));
    let two = script(&[&[PUSH1], &push(&redeem)]);
    assert_eq!(run(&two, Flags::BCH_MAY_2020), Err(ScriptError::CleanStack));
}

#[test]
fn policy_limits_sig_checks_by_script_size() {
    // 3 SigChecks need an input script of 69 bytes.
    let flags = Flags::BCH_STANDARD;
    for (padding, expected) in [(46, Err(ScriptError::InputSigChecks)), (47, Ok(3))] {
        let script_sig = script(&[
            &push(&vec![1; padding]),
            &[0],
            &push(&der(1, ALL_FORK)),
            &push(&der(2, ALL_FORK))[..],
        ]);
        let mut script_pubkey = two_of_three();
        script_pubkey.push(NIP);
        assert_eq!(script_sig.len(), padding + 22);
        let verdict = spend(&script_sig, &script_pubkey, flags, &mut Scripted::new(true));
        assert_eq!(verdict, expected, "{padding}");
    }
}
