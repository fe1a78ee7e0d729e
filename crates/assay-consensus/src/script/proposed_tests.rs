//! Opcodes of proposals, one by one; their published vectors are run by `assay-engine`.

use assay_hash::sha256;
use assay_testkit::chain::TxBuilder;
use assay_testkit::random::Random;
use assay_wire::{Encoding, Transaction, TxOut};

use crate::script::opcode::op::*;
use crate::script::witness::tests::{INTERNAL, Scripted, spend_of_leaf};
use crate::script::{Flags, Interpreter, RuleSet, ScriptError, TxContext, asm};

/// Runs a tapscript on these arguments, in a transaction of one input.
fn run(names: &str, script: &[u8], arguments: &[&[u8]]) -> Result<(), ScriptError> {
    run_with(names, script, arguments, Flags::BITCOIN_BLOCK)
}

fn run_with(
    names: &str,
    script: &[u8],
    arguments: &[&[u8]],
    flags: Flags,
) -> Result<(), ScriptError> {
    let (script_pubkey, control) = spend_of_leaf(script);
    let witness = [arguments, &[script, &control]].concat();
    let builder = TxBuilder::new(2).input(7, 0, &[], 0).output(1, &[PUSH1]).witness(&witness);
    verify(names, &builder, &[&script_pubkey], 0, flags)
}

fn verify(
    names: &str,
    builder: &TxBuilder,
    spent: &[&[u8]],
    input: usize,
    flags: Flags,
) -> Result<(), ScriptError> {
    let tx = Transaction::parse(builder.bytes(), Encoding::Segwit).expect("a transaction");
    let spent: Vec<TxOut<'_>> =
        spent.iter().map(|script_pubkey| TxOut { value: 2, script_pubkey }).collect();
    let context = TxContext::new(tx.view(), &spent);
    let rules = RuleSet::by_name(names).expect("names of rule sets");
    Interpreter::with_rules(rules)
        .verify_input(&context, input, flags, &mut Scripted::default())
        .map(|_| ())
}

fn pushes(elements: &[&[u8]], opcodes: &[u8]) -> Vec<u8> {
    let mut script = Vec::new();
    for element in elements {
        asm::push(&mut script, element);
    }
    script.extend(opcodes);
    script
}

#[test]
fn success_opcodes_stay_without_the_proposal() {
    for (opcode, name) in [
        (CAT, "cat"),
        (CHECKSIGFROMSTACK, "csfs"),
        (INTERNALKEY, "internalkey"),
        (TEMPLATEHASH, "templatehash"),
        (CHECKSIG_SLH, "slh"),
        (CHECKSIGADD_SLH, "slh"),
        (CHECKSIG_ML, "ml"),
    ] {
        let script = [opcode, RETURN];
        assert_eq!(run("today", &script, &[]), Ok(()), "{name}");
        assert!(run(name, &script, &[]).is_err(), "{name}");
        // Others are still successes, also behind it.
        assert_eq!(run(name, &[opcode, XOR], &[]), Ok(()), "{name}");
        // Unknown or disabled outside tapscript, whatever the rule set.
        let builder = TxBuilder::new(2).input(7, 0, &[], 0).output(1, &[PUSH1]);
        let bare = verify(name, &builder, &[&[PUSH1, PUSH1, PUSH1, opcode]], 0, Flags::NONE);
        let is_disabled = [CAT, CHECKSIG_SLH, CHECKSIGADD_SLH, CHECKSIG_ML].contains(&opcode);
        let expected =
            if is_disabled { ScriptError::DisabledOpcode } else { ScriptError::BadOpcode };
        assert_eq!(bare, Err(expected), "{name}");
    }
}

#[test]
fn cat_joins_two_elements_up_to_the_limit() {
    let equal = pushes(&[b"ab", b"", b"cde"], &[CAT, CAT]);
    assert_eq!(run("cat", &pushes_then_equal(equal, b"abcde"), &[]), Ok(()));
    let script = [CAT, SIZE, NIP];
    for (left, right, expected) in [
        (0, 520, Ok(())),
        (260, 260, Ok(())),
        (520, 1, Err(ScriptError::PushSize)),
        (261, 260, Err(ScriptError::PushSize)),
    ] {
        let arguments = [&vec![1; left][..], &vec![1; right]];
        assert_eq!(run("cat", &script, &arguments), expected, "{left} {right}");
    }
    assert_eq!(run("cat", &[CAT], &[&[1]]), Err(ScriptError::InvalidStackOperation));
    // A larger limit of elements holds for results.
    let arguments = [&[1; 520][..], &[1; 520]];
    assert_eq!(run("cat+report-8000", &script, &arguments), Ok(()));
    let skipped = [0, IF, CAT, ENDIF, PUSH1];
    assert_eq!(run("cat", &skipped, &[]), Ok(()));
}

fn pushes_then_equal(mut script: Vec<u8>, expected: &[u8]) -> Vec<u8> {
    asm::push(&mut script, expected);
    script.push(EQUAL);
    script
}

/// The checker of these tests accepts signatures that begin with the length of the message.
#[test]
fn signatures_of_elements() {
    let sig = |length: u8| [length; 64];
    let key: &[u8] = &[9; 32];
    let script = [CHECKSIGFROMSTACK];
    let run = |arguments: &[&[u8]]| run("csfs", &script, arguments);
    for length in [0, 1, 32, 33, 200] {
        let message = vec![3; length];
        assert_eq!(run(&[&sig(length as u8), &message, key]), Ok(()), "{length}");
        let wrong = run(&[&sig(length as u8 + 1), &message, key]);
        assert_eq!(wrong, Err(ScriptError::SchnorrSig), "{length}");
    }
    let message: &[u8] = &[3; 7];
    assert_eq!(run(&[&[], message, key]), Err(ScriptError::EvalFalse), "an empty one is false");
    assert_eq!(run(&[message, key]), Err(ScriptError::InvalidStackOperation));
    for length in [1, 63, 65] {
        let verdict = run(&[&vec![7; length], message, key]);
        assert_eq!(verdict, Err(ScriptError::SchnorrSigSize), "{length}");
    }
    for sig in [&[][..], &[1]] {
        assert_eq!(run(&[sig, message, &[]]), Err(ScriptError::TapscriptEmptyPubkey));
    }
    // Keys of other lengths are left for later.
    for length in [1, 31, 33, 65] {
        let key = vec![2; length];
        assert_eq!(run(&[&[1], message, &key]), Ok(()), "{length}");
        assert_eq!(run(&[&[], message, &key]), Err(ScriptError::EvalFalse), "{length}");
    }
    let flags = Flags::BITCOIN_BLOCK | Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE;
    let verdict = run_with("csfs", &script, &[&[1], message, &[2; 33]], flags);
    assert_eq!(verdict, Err(ScriptError::DiscourageUpgradablePubkeyType));
}

#[test]
fn signatures_of_elements_are_paid_from_the_budget() {
    // Each round needs a signature of one byte by a key of unknown type: 50 units for 5 bytes of script.
    let round = [PUSH1, PUSH1, PUSH1, CHECKSIGFROMSTACK, DROP];
    for (name, rounds, expected) in
        [("csfs", 1, Ok(())), ("csfs", 30, Err(ScriptError::TapscriptValidationWeight))]
    {
        let mut script = round.repeat(rounds);
        script.push(PUSH1);
        assert_eq!(run(name, &script, &[]), expected, "{rounds}");
    }
    // Empty signatures are free.
    let mut script = [0, PUSH1, PUSH1, CHECKSIGFROMSTACK, DROP].repeat(30);
    script.push(PUSH1);
    assert_eq!(run("csfs", &script, &[]), Ok(()));
}

#[test]
fn the_internal_key_is_that_of_the_control_block() {
    let script = pushes(&[&INTERNAL], &[INTERNALKEY, EQUAL]);
    assert_eq!(run("internalkey", &script, &[]), Ok(()));
    let script = pushes(&[&[1; 32]], &[INTERNALKEY, EQUAL]);
    assert_eq!(run("internalkey", &script, &[]), Err(ScriptError::EvalFalse));
    // A signature by it, as in BIP-0349's examples.
    let script = [INTERNALKEY, CHECKSIG];
    assert_eq!(run("internalkey", &script, &[&[3; 64]]), Ok(()));
}

/// A transaction of two inputs, of which number 1 is a tapscript or another output.
fn two_inputs(script_sig: &[u8], witness: &[&[u8]]) -> TxBuilder {
    let builder = TxBuilder::new(-3)
        .input(7, 1, script_sig, 5)
        .input(8, 2, &[], 0xffff_fffe)
        .output(1, &[PUSH1])
        .output(2, &[RETURN, 1, 7])
        .lock_time(77);
    if witness.is_empty() { builder } else { builder.witness(&[]).witness(witness) }
}

fn sequences_and_outputs() -> ([u8; 32], [u8; 32]) {
    let sequences = sha256(&[&5u32.to_le_bytes()[..], &0xffff_fffe_u32.to_le_bytes()].concat());
    let first = [&1i64.to_le_bytes()[..], &[1, PUSH1]].concat();
    let second = [&2i64.to_le_bytes()[..], &[3, RETURN, 1, 7]].concat();
    (sequences, sha256(&[first, second].concat()))
}

/// BIP-0119, with the message put together in one piece, in every kind of script.
#[test]
fn templates_are_checked_in_every_kind_of_script() {
    let (sequences, outputs) = sequences_and_outputs();
    for script_sig in [&[][..], &[PUSH1]] {
        let mut message = [(-3i32).to_le_bytes(), 77i32.to_le_bytes()].concat();
        if !script_sig.is_empty() {
            // Both input scripts with their lengths.
            message.extend(sha256(&[1, PUSH1, 0]));
        }
        message.extend(2u32.to_le_bytes());
        message.extend(sequences);
        message.extend(2u32.to_le_bytes());
        message.extend(outputs);
        message.extend(1u32.to_le_bytes());
        let script = pushes(&[&sha256(&message)], &[NOP4]);
        let (taproot, control) = spend_of_leaf(&script);
        let p2wsh = [&[0, 32][..], &sha256(&script)].concat();
        let wrong = pushes(&[&[1; 32]], &[NOP4]);
        for (script_pubkey, witness, expected) in [
            (&script[..], vec![], Ok(())),
            (&p2wsh[..], vec![&script[..]], Ok(())),
            (&taproot[..], vec![&script[..], &control[..]], Ok(())),
            (&wrong[..], vec![], Err(ScriptError::TemplateMismatch)),
        ] {
            let builder = two_inputs(script_sig, &witness);
            let spent: [&[u8]; 2] = [&[PUSH1], script_pubkey];
            let flags = Flags::BITCOIN_BLOCK;
            assert_eq!(verify("ctv", &builder, &spent, 1, flags), expected);
            assert_eq!(verify("today", &builder, &spent, 1, flags), Ok(()));
        }
    }
    // Other lengths are left for later, nothing at all is an error.
    assert_eq!(run("ctv", &pushes(&[&[1; 31]], &[NOP4]), &[]), Ok(()));
    assert_eq!(run("ctv", &[NOP4, PUSH1], &[]), Err(ScriptError::InvalidStackOperation));
    let flags = Flags::BITCOIN_BLOCK | Flags::DISCOURAGE_UPGRADABLE_NOPS;
    let verdict = run_with("ctv", &pushes(&[&[1; 31]], &[NOP4]), &[], flags);
    assert_eq!(verdict, Err(ScriptError::DiscourageUpgradableNops));
}

/// Today's rules allow everything that the proposals allow: on random scripts, bare, in P2WSH, as leaves and as P2MR.
#[test]
fn proposals_are_soft_forks() {
    const NAMES: [&str; 8] = [
        "p2mr",
        "ctv",
        "cat",
        "csfs",
        "internalkey",
        "templatehash",
        "bip448",
        "p2mr+ctv+cat+bip448",
    ];
    let mut dice = Random(54);
    let mut verdicts = [[0, 0]; NAMES.len()];
    for _ in 0..3000 {
        let script: Vec<u8> = (0..=dice.below(8))
            .map(|_| match dice.below(4) {
                0 => [CAT, CHECKSIGFROMSTACK, INTERNALKEY, TEMPLATEHASH, NOP4][dice.below(5)],
                1 => [DROP, DUP, EQUAL, SIZE, NIP, CHECKSIG][dice.below(6)],
                _ => [0, PUSH1, PUSH1 + 1][dice.below(3)],
            })
            .collect();
        let argument = vec![[0, 1, 3][dice.below(3)]; [0, 1, 32, 64, 520][dice.below(5)]];
        let leaf = crate::script::tap_leaf_hash(0xc0, &script);
        let root = crate::script::tap_branch_hash(&leaf, &[7; 32]);
        let (taproot, control) = spend_of_leaf(&script);
        let path = [&[0xc1][..], &[7; 32]].concat();
        for (script_pubkey, witness) in [
            (script.clone(), vec![]),
            ([&[0, 32][..], &sha256(&script)].concat(), vec![&argument[..], &script]),
            (taproot, vec![&argument[..], &script, &control]),
            ([&[PUSH1 + 1, 32][..], &root].concat(), vec![&argument[..], &script, &path]),
        ] {
            let builder = two_inputs(&[], &witness);
            let spent: [&[u8]; 2] = [&[PUSH1], &script_pubkey];
            let is_ok = |names| verify(names, &builder, &spent, 1, Flags::BITCOIN_BLOCK).is_ok();
            let today = is_ok("today");
            for (names, count) in NAMES.into_iter().zip(&mut verdicts) {
                let proposed = is_ok(names);
                assert!(today || !proposed, "{names}: {script:02x?} {script_pubkey:02x?}");
                count[0] += usize::from(proposed);
                count[1] += usize::from(today && !proposed);
            }
        }
    }
    // Each of them forbids something and allows something.
    assert!(
        verdicts.iter().all(|[allowed, forbidden]| *allowed > 20 && *forbidden > 20),
        "{verdicts:?}"
    );
}

/// Scripts that copy, move and hash large elements; what was hashed before is compared with its hash now.
#[test]
fn kept_digests_change_no_verdict() {
    const HASHES: [u8; 5] = [RIPEMD160, SHA1, SHA256, HASH160, HASH256];
    let mut dice = Random(48);
    for round in 0..300 {
        let mut script = Vec::new();
        for _ in 0..100 + dice.below(150) {
            let hash = HASHES[dice.below(5)];
            match dice.below(6) {
                0 => script.extend([DUP, hash, DROP]),
                1 => script.extend([OVER, hash, TOALTSTACK]),
                2 => script.extend([SWAP, TUCK, hash, DROP]),
                3 => script.extend([DUP2, CAT, hash, DROP]),
                4 => script.extend([DUP, hash, TOALTSTACK, DUP, hash, FROMALTSTACK, EQUALVERIFY]),
                _ => script.extend([DUP3, hash, ROT, hash]),
            }
        }
        let arguments = [&[round as u8; 130][..], &[2; 200], &[3; 119], &[4; 260]];
        let (script_pubkey, control) = spend_of_leaf(&script);
        let witness = [&arguments[..], &[&script, &control]].concat();
        let builder = TxBuilder::new(2).input(7, 0, &[], 0).output(1, &[PUSH1]).witness(&witness);
        let tx = Transaction::parse(builder.bytes(), Encoding::Segwit).expect("a transaction");
        let spent = [TxOut { value: 2, script_pubkey: &script_pubkey }];
        let context = TxContext::new(tx.view(), &spent);
        let rules = RuleSet::by_name("cat").expect("a name");
        for mut interpreter in
            [Interpreter::with_rules(rules), Interpreter::with_rules(rules).hashing_every_copy()]
        {
            let flags = Flags::BITCOIN_BLOCK;
            let verdict = interpreter.verify_input(&context, 0, flags, &mut Scripted::default());
            assert_eq!(verdict, Err(ScriptError::CleanStack), "{round}: runs to its end");
        }
    }
}
