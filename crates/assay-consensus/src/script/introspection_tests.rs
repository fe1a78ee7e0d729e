use assay_testkit::chain::TxBuilder;
use assay_wire::{Encoding, Transaction, TxOut};

use crate::script::checker::Unasked;
use crate::script::opcode::op::*;
use crate::script::{Flags, ScriptError, TxContext, asm, verify_input};

const VERSION: i32 = -7;
const LOCK_TIME: u32 = 4_000_000_000;
const VALUES: [i64; 3] = [2_100_000_000_000_000, 546, 0];

/// The verdict on input 1 of a transaction of three inputs and two outputs.
fn verdict(script_pubkey: &[u8]) -> Result<(), ScriptError> {
    let large = [vec![0; 520], vec![0; 521]];
    let tx = TxBuilder::new(VERSION)
        .input(0x11, 0, &[PUSH1, PUSH1], 0)
        .input(0x22, u32::MAX - 1, &[], 0xffff_fffe)
        .input(0x33, 7, &large[0], 5)
        .output(1000, &[RETURN, 1, 2])
        .output(0, &large[1])
        .lock_time(LOCK_TIME);
    let tx = Transaction::parse(tx.bytes(), Encoding::Legacy).expect("a transaction");
    let scripts = [&[DUP, DROP][..], script_pubkey, &large[1]];
    let spent: Vec<TxOut<'_>> = VALUES
        .into_iter()
        .zip(scripts)
        .map(|(value, script_pubkey)| TxOut { value, script_pubkey })
        .collect();
    let ctx = TxContext::new(tx.view(), &spent);
    verify_input(&ctx, 1, Flags::BCH_MAY_2022, &mut Unasked).map(|_| ())
}

/// Runs `opcode` on the index, if there is one, and compares what it leaves.
fn check(index: Option<i64>, opcode: u8, expected: Result<&[u8], ScriptError>) {
    let mut script = Vec::new();
    if let Some(index) = index {
        asm::push_number(&mut script, index);
    }
    script.push(opcode);
    if let Ok(expected) = expected {
        match expected {
            [] => script.push(0),
            [small @ 1..=16] => script.push(PUSH1 - 1 + small),
            _ => asm::push(&mut script, expected),
        }
    }
    script.push(EQUAL);
    let given = verdict(&script);
    assert_eq!(given, expected.map(|_| ()), "{opcode:#x} of {index:?}");
}

#[test]
fn each_opcode_reads_its_field() {
    check(None, INPUTINDEX, Ok(&[1]));
    check(None, TXVERSION, Ok(&[0x87]));
    check(None, TXINPUTCOUNT, Ok(&[3]));
    check(None, TXOUTPUTCOUNT, Ok(&[2]));
    check(None, TXLOCKTIME, Ok(&[0, 0x28, 0x6b, 0xee, 0]));
    check(Some(0), UTXOVALUE, Ok(&[0, 0x40, 7, 0x5a, 0xf0, 0x75, 7]));
    check(Some(2), UTXOVALUE, Ok(&[]));
    check(Some(0), UTXOBYTECODE, Ok(&[DUP, DROP]));
    check(Some(2), OUTPOINTTXHASH, Ok(&[0x33; 32]));
    check(Some(1), OUTPOINTINDEX, Ok(&[0xfe, 0xff, 0xff, 0xff, 0]));
    check(Some(0), INPUTBYTECODE, Ok(&[PUSH1, PUSH1]));
    check(Some(1), INPUTBYTECODE, Ok(&[]));
    check(Some(2), INPUTSEQUENCENUMBER, Ok(&[5]));
    check(Some(1), INPUTSEQUENCENUMBER, Ok(&[0xfe, 0xff, 0xff, 0xff, 0]));
    check(Some(0), OUTPUTVALUE, Ok(&[0xe8, 3]));
    check(Some(1), OUTPUTVALUE, Ok(&[]));
    check(Some(0), OUTPUTBYTECODE, Ok(&[RETURN, 1, 2]));
}

#[test]
fn indices_are_of_the_transaction() {
    let inputs = [
        UTXOVALUE,
        UTXOBYTECODE,
        OUTPOINTTXHASH,
        OUTPOINTINDEX,
        INPUTBYTECODE,
        INPUTSEQUENCENUMBER,
    ];
    for index in [-1, 3, 1 << 40] {
        for opcode in inputs {
            check(Some(index), opcode, Err(ScriptError::InvalidTxInputIndex));
        }
    }
    for index in [-1, 2, 3, i64::MAX] {
        for opcode in [OUTPUTVALUE, OUTPUTBYTECODE] {
            check(Some(index), opcode, Err(ScriptError::InvalidTxOutputIndex));
        }
    }
    for opcode in UTXOVALUE..=OUTPUTBYTECODE {
        check(None, opcode, Err(ScriptError::InvalidStackOperation));
        let mut script = vec![9, 0, 0, 0, 0, 0, 0, 0, 0, 1, opcode];
        assert_eq!(verdict(&script), Err(ScriptError::InvalidNumberRange64Bit));
        script = vec![2, 1, 0, opcode];
        assert_eq!(verdict(&script), Err(ScriptError::MinimalNum));
    }
}

#[test]
fn scripts_that_are_larger_than_elements() {
    for (opcode, index) in [(UTXOBYTECODE, 2), (OUTPUTBYTECODE, 1)] {
        check(Some(index), opcode, Err(ScriptError::PushSize));
    }
    check(Some(2), INPUTBYTECODE, Ok(&[0; 520]));
    // Padding in a branch not taken, so that the script is as large as an element may be.
    let body = [ACTIVEBYTECODE, SIZE, 2, 8, 2, NUMEQUALVERIFY, DROP, PUSH1];
    let mut script = vec![0, IF];
    script.resize(520 - 1 - body.len(), 0);
    script.push(ENDIF);
    script.extend(body);
    assert_eq!((script.len(), verdict(&script)), (520, Ok(())));
    script.insert(2, 0);
    assert_eq!(verdict(&script), Err(ScriptError::PushSize));
}

#[test]
fn active_bytecode_begins_after_the_last_code_separator_executed() {
    let whole = [ACTIVEBYTECODE, SIZE, 0x55, NUMEQUALVERIFY, NIP];
    assert_eq!(verdict(&whole), Err(ScriptError::InvalidStackOperation));
    let tail = [DROP, ACTIVEBYTECODE, SIZE, 0x57, NUMEQUALVERIFY, DROP, PUSH1];
    for head in [&[PUSH1, CODESEPARATOR][..], &[CODESEPARATOR, PUSH1, CODESEPARATOR]] {
        assert_eq!(verdict(&[head, &tail].concat()), Ok(()));
    }
    let skipped = [&[PUSH1, 0, IF, CODESEPARATOR, ENDIF][..], &tail].concat();
    assert_eq!(verdict(&skipped), Err(ScriptError::NumEqualVerify));
}
