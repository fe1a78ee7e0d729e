//! Second runs of inputs, with long messages of the first.

use assay_testkit::chain::TxBuilder;
use assay_wire::{Encoding, Transaction, TxOut};

use crate::script::opcode::op::*;
use crate::script::{Flags, Interpreter, LongMessages, Scripted, TxContext, asm};

/// Checks with three hash types, the same ones twice in a row, with other script codes and with signatures that are deleted
/// from them. A check that holds skips the one after it.
fn script() -> Vec<u8> {
    let mut script = Vec::new();
    let check = |script: &mut Vec<u8>, hash_type: u8| {
        asm::push(script, &[0x30, 6, 2, 1, 1, 2, 1, 1, hash_type]);
        asm::push(script, &[2; 33]);
        script.push(CHECKSIG);
    };
    for hash_type in [1, 0x82, 3, 1] {
        check(&mut script, hash_type);
        script.push(DROP);
        check(&mut script, hash_type);
        script.extend([NOT, IF]);
        check(&mut script, 2);
        script.extend([DROP, CODESEPARATOR, ENDIF, CODESEPARATOR]);
    }
    script.push(PUSH1);
    script
}

/// The messages of a run, and those that are kept of it.
fn run(
    output_bytes: usize,
    answer: bool,
    known: Option<LongMessages>,
) -> (Vec<[u8; 32]>, LongMessages) {
    let raw = TxBuilder::new(2)
        .input(7, 0, &[], 0)
        .input(8, 0, &[], 5)
        .output(1, &vec![PUSH1; output_bytes])
        .output(2, &[PUSH1]);
    let tx = Transaction::parse(raw.bytes(), Encoding::Segwit).expect("a transaction");
    let script = script();
    let spent = [TxOut { value: 2, script_pubkey: &script }; 2];
    let context = TxContext::new(tx.view(), &spent);
    let mut interpreter = Interpreter::new();
    let mut checker = Scripted::new(answer);
    let verdict = match known {
        Some(known) => {
            interpreter.verify_input_again(&context, 1, Flags::P2SH, &mut checker, known)
        }
        None => interpreter.verify_input(&context, 1, Flags::P2SH, &mut checker),
    };
    verdict.expect("the script passes whatever the answers are");
    let messages = checker.asked.into_iter().map(|question| question.3).collect();
    (messages, interpreter.take_long_messages())
}

#[test]
fn a_second_run_asks_for_the_same_messages() {
    for (first, second) in [(true, false), (false, true), (true, true), (false, false)] {
        let (_, kept) = run(5_000, first, None);
        assert!(!kept.is_empty());
        let expected = run(5_000, second, None).0;
        assert_eq!(run(5_000, second, Some(kept)).0, expected, "{first} and then {second}");
    }
}

#[test]
fn kept_messages_are_used() {
    let (hashed, kept) = run(5_000, true, None);
    let spoiled = run(5_000, true, Some(kept.clone().spoiled())).0;
    assert_eq!(spoiled.len(), hashed.len());
    assert!(spoiled.iter().all(|message| *message == [0xee; 32]), "all of the same run");
    let other = run(5_000, false, Some(kept.spoiled())).0;
    let of_both = other.iter().filter(|message| **message == [0xee; 32]).count();
    assert!(of_both >= 4 && of_both < other.len(), "{of_both} of {}", other.len());
}

#[test]
fn short_messages_are_not_kept() {
    assert!(run(500, true, None).1.is_empty());
}
