//! Sizes of elements, limits on copying, and the table of names.

use assay_hash::{hash160, sha256};
use assay_wire::{Encoding, Transaction, TxOut};

use super::*;
use crate::script::opcode::op::*;
use crate::script::rule_sets::NAMED_RULES;
use crate::script::{
    Flags, Interpreter, ScriptError, TxContext, checker::Unasked, opcode::Instructions,
};
use assay_testkit::chain::TxBuilder;

fn verify(
    rules: &RuleSet,
    flags: Flags,
    script_sig: &[u8],
    script_pubkey: &[u8],
    witness: &[&[u8]],
) -> Result<(), ScriptError> {
    let mut builder = TxBuilder::new(2).input(7, 0, script_sig, 0).output(1, &[PUSH1]);
    if !witness.is_empty() {
        builder = builder.witness(witness);
    }
    let tx = Transaction::parse(builder.bytes(), Encoding::Segwit).expect("a transaction");
    let spent = [TxOut { value: 2, script_pubkey }];
    let context = TxContext::new(tx.view(), &spent);
    let mut interpreter = Interpreter::with_rules(*rules);
    interpreter.verify_input(&context, 0, flags, &mut Unasked).map(|_| ())
}

fn push(data: &[u8]) -> Vec<u8> {
    let mut script = vec![PUSHDATA4];
    script.extend((data.len() as u32).to_le_bytes());
    script.extend(data);
    script
}

fn of(element_bytes_max: usize) -> RuleSet {
    RuleSet::TODAY.with_element_bytes_max(element_bytes_max).expect("below the ceiling")
}

/// Each place that knows the limit, at the limit and one above it.
#[test]
fn every_source_of_elements_follows_the_limit() {
    let block = Flags::BITCOIN_BLOCK;
    for max in [0, 100, 520, 521, 8000] {
        for (size, expected) in [(max, Ok(())), (max + 1, Err(ScriptError::PushSize))] {
            let data = vec![7; size];
            let rules = &of(max);
            let pushed = [&push(&data)[..], &[DROP, PUSH1]].concat();
            assert_eq!(verify(rules, block, &[], &pushed, &[]), expected, "{size}");
            let skipped = [&[0, IF], &push(&data)[..], &[ENDIF, PUSH1]].concat();
            assert_eq!(verify(rules, block, &[], &skipped, &[]), expected, "{size}");
            // The script itself is not an element.
            let script = [&[DROP, PUSH1][..], &[NOP; 150]].concat();
            let p2wsh = [&[0, 32], &sha256(&script)[..]].concat();
            let verdict = verify(rules, block, &[], &p2wsh, &[&data, &script]);
            assert_eq!(verdict, expected, "{size}");
        }
    }
}

#[test]
fn redeem_scripts_are_elements_and_scripts() {
    for (size, max, expected) in [
        (520, 520, Ok(())),
        (521, 520, Err(ScriptError::PushSize)),
        (684, 520, Err(ScriptError::PushSize)),
        (684, 8000, Ok(())),
        (8000, 8000, Ok(())),
        (8001, 8000, Err(ScriptError::PushSize)),
        // An element may be larger than what may be run.
        (9990, 20_000, Ok(())),
        (10_001, 20_000, Err(ScriptError::ScriptSize)),
    ] {
        let mut redeem_script = vec![];
        while redeem_script.len() + 503 < size {
            redeem_script.extend([PUSHDATA2, 0xf4, 1]);
            redeem_script.extend([9; 500]);
        }
        // The rest is pushes of nothing, up to a thousand elements.
        redeem_script.resize(size - 1, 0);
        redeem_script.push(PUSH1);
        assert!(Instructions::new(&redeem_script).all(|read| read.is_some()));
        let script_pubkey = [&[HASH160, 20], &hash160(&redeem_script)[..], &[EQUAL]].concat();
        let script_sig = push(&redeem_script);
        let verdict = verify(&of(max), Flags::P2SH, &script_sig, &script_pubkey, &[]);
        // Input scripts are scripts as well.
        let expected = if script_sig.len() > 10_000 && expected.is_ok() {
            Err(ScriptError::ScriptSize)
        } else {
            expected
        };
        assert_eq!(verdict, expected, "{size} of {max}");
    }
}

/// Verifies a bare script that pushes `size` bytes first.
fn with(size: usize, opcodes: &[u8], rules: &RuleSet) -> Result<(), ScriptError> {
    let script = [&push(&vec![1; size])[..], opcodes].concat();
    verify(rules, Flags::NONE, &[], &script, &[])
}

/// Each way to copy, with the large element in every place from which it copies.
const COPIES: [(u8, &[u8]); 14] = [
    (DUP, &[DUP]),
    (IFDUP, &[IFDUP]),
    (DUP2, &[PUSH1, DUP2]),
    (DUP2, &[PUSH1, SWAP, DUP2]),
    (DUP3, &[PUSH1, PUSH1, DUP3]),
    (DUP3, &[PUSH1, SWAP, PUSH1, DUP3]),
    (DUP3, &[PUSH1, PUSH1, ROT, DUP3]),
    (OVER, &[PUSH1, OVER]),
    (OVER2, &[PUSH1, PUSH1, PUSH1, OVER2]),
    (OVER2, &[PUSH1, SWAP, PUSH1, PUSH1, OVER2]),
    (TUCK, &[PUSH1, SWAP, TUCK]),
    (PICK, &[0, PICK]),
    (PICK, &[PUSH1, PUSH1, PICK]),
    (PICK, &[PUSH1, PUSH1, PUSH1 + 1, PICK]),
];

#[test]
fn dup_alone_may_have_a_limit_of_its_own() {
    let rules = RuleSet::by_name("report-8000-dup").expect("a name");
    for (opcode, opcodes) in COPIES {
        assert_eq!(with(520, opcodes, &rules), Ok(()), "{opcodes:?}");
        assert_eq!(with(8000, opcodes, &of(8000)), Ok(()), "{opcodes:?}");
        let expected = if opcode == DUP { Err(ScriptError::PushSize) } else { Ok(()) };
        for size in [521, 8000] {
            assert_eq!(with(size, opcodes, &rules), expected, "{opcodes:?}");
        }
    }
}

#[test]
fn eight_opcodes_may_not_copy_large_elements() {
    let rules = RuleSet::by_name("report-8000-copies").expect("a name");
    let mut seen: Vec<u8> = COPIES.iter().map(|(opcode, _)| *opcode).collect();
    seen.dedup();
    assert!(Copies::ALL.iter().all(|opcode| seen.contains(opcode)) && seen.len() == 8);
    for (_, opcodes) in COPIES {
        assert_eq!(with(520, opcodes, &rules), Ok(()), "{opcodes:?}");
        assert_eq!(with(521, opcodes, &rules), Err(ScriptError::PushSize), "{opcodes:?}");
    }
    // Opcodes that copy nothing large, or only move, pass.
    for opcodes in [
        &[PUSH1, DUP][..],
        &[PUSH1, TUCK],
        &[PUSH1, SWAP, OVER],
        &[PUSH1, PUSH1, DUP2],
        &[PUSH1, PUSH1, PUSH1, DUP3],
        &[PUSH1, SWAP],
        &[PUSH1, PUSH1, ROT],
        &[0, ROLL],
        &[TOALTSTACK, FROMALTSTACK],
        &[PUSH1, NIP],
    ] {
        assert_eq!(with(8000, opcodes, &rules), Ok(()), "{opcodes:?}");
    }
    // False elements are not copied by IFDUP.
    let script = [&push(&[0; 600])[..], &[IFDUP, DROP, PUSH1]].concat();
    assert_eq!(verify(&rules, Flags::NONE, &[], &script, &[]), Ok(()));
}

#[test]
fn arguments_are_checked_before_sizes() {
    let rules = RuleSet::by_name("report-8000-copies").expect("a name");
    for opcode in [DUP2, DUP3, OVER, OVER2, TUCK] {
        let verdict = with(600, &[opcode], &rules);
        assert_eq!(verdict, Err(ScriptError::InvalidStackOperation), "{opcode:#x}");
    }
}

#[test]
fn the_cash_family_keeps_its_limit() {
    let script = [&push(&[1; 521])[..], &[REVERSEBYTES]].concat();
    let flags = Flags::BCH | Flags::REVERSEBYTES;
    assert_eq!(verify(&of(8000), flags, &[], &script, &[]), Err(ScriptError::PushSize));
}

#[test]
fn limits_have_a_ceiling() {
    let today = RuleSet::TODAY;
    assert_eq!(today.with_element_bytes_max(520), Some(today));
    let ceiling = RuleSet::ELEMENT_BYTES_CEILING;
    assert!(today.with_element_bytes_max(ceiling).is_some());
    assert_eq!(today.with_element_bytes_max(ceiling + 1), None);
}

#[test]
fn names_are_unique_and_mean_something() {
    assert_eq!(RuleSet::by_name("today"), Some(RuleSet::default()));
    for (index, known) in NAMED_RULES.iter().enumerate() {
        let rules = RuleSet::by_name(known.name).expect("a listed name");
        assert_eq!(rules.name(), Some(known.name));
        for other in &NAMED_RULES[..index] {
            assert_ne!(other.name, known.name);
            assert_ne!(RuleSet::by_name(other.name), Some(rules), "{}", known.name);
        }
        assert!(RuleSet::help().contains(known.name));
        // Once is enough.
        let twice = format!("{0}+{0}", known.name);
        assert_eq!(RuleSet::by_name(&twice), Some(rules), "{}", known.name);
    }
    assert_eq!(RuleSet::by_name("p2mr+cat"), RuleSet::by_name("cat+p2mr"));
    assert_eq!(RuleSet::by_name("templatehash+csfs+internalkey"), RuleSet::by_name("bip448"));
    for unknown in ["", "p2qrh", "today+", "+cat", "cat,csfs"] {
        assert_eq!(RuleSet::by_name(unknown), None, "{unknown}");
    }
    assert!(RuleSet::unknown("cat+dog").starts_with("unknown rule set \"dog\"; known are today, "));
}

/// The PQSIG draft leaves the limit of pushes in scripts.
#[test]
fn pushes_may_have_a_limit_of_their_own() {
    let rules = RuleSet::by_name("pqsig").expect("a name");
    let tapscript = rules.tapscript();
    assert_eq!((tapscript.element_bytes_max, tapscript.push_bytes_max), (8000, 520));
    assert_eq!(rules.base, Language::TODAY);
    assert_eq!(rules.witness_v0, Language::TODAY);
    assert_eq!(rules.element_bytes_max(), 8000);
    for opcode in Copies::ALL {
        assert_eq!(tapscript.copies.bytes_max(opcode), Some(520));
    }
    assert_eq!(tapscript.copies.bytes_max(ROLL), None);
    assert_eq!(RuleSet::TODAY.tapscript().copies.bytes_max(DUP), None);
}
