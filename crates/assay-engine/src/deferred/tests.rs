//! Deferred against immediate verification: the same outcome, error and count, for any prover.

use assay_consensus::script::opcode::op;
use assay_consensus::script::{
    Flags, InputStats, Interpreter, SIGHASH_ALL, ScriptError, TxContext, tap_leaf_hash,
    tap_tweak_hash,
};
use assay_testkit::chain::unlocked;
use assay_wire::{Transaction, TxOut};
use proptest::prelude::*;
use secp256k1::{Keypair, Message, PublicKey, Scalar, SecretKey, XOnlyPublicKey, ecdsa, schnorr};

use super::*;

#[path = "post_quantum_tests.rs"]
mod post_quantum;

type Verdict = Result<InputStats, ScriptError>;

/// Proves checks, but skips every third one.
#[derive(Default)]
struct Forgetful(usize);

impl Prove for Forgetful {
    fn prove(&mut self, checks: &[Check<'_>], answers: &mut Vec<Answer>) {
        answers.clear();
        answers.extend(checks.iter().map(|check| {
            self.0 += 1;
            if self.0.is_multiple_of(3) {
                Answer::Unknown
            } else {
                Answer::of_library(check.verify())
            }
        }));
    }
}

/// A transaction with an input for each (input script, witness), and its spent coins.
struct Spend {
    tx: Transaction,
    scripts: Vec<Vec<u8>>,
}

const VALUE: i64 = 100_000;

impl Spend {
    fn new(inputs: &[(Vec<u8>, Vec<Vec<u8>>)], scripts: Vec<Vec<u8>>) -> Self {
        let tx = unlocked(7, inputs).output(VALUE, &[op::PUSH1]).build();
        Self { tx, scripts }
    }

    /// Result of `run` for the unsigned transaction that spends outputs of these scripts.
    fn unsigned<T>(
        scripts: &[Vec<u8>],
        has_witness: bool,
        run: impl FnOnce(&TxContext<'_>) -> T,
    ) -> T {
        let witness = if has_witness { vec![vec![]] } else { vec![] };
        let blank = Self::new(&vec![(vec![], witness); scripts.len()], scripts.to_vec());
        run(&TxContext::new(blank.tx.view(), &blank.spent()))
    }

    fn spent(&self) -> Vec<TxOut<'_>> {
        let output = |script_pubkey| TxOut { value: VALUE, script_pubkey };
        self.scripts.iter().map(|script| output(script)).collect()
    }

    /// Runs all inputs in batches that `P` proves, and compares with the immediate checker.
    fn check<P: Prove>(&self, flags: Flags) -> Vec<Verdict> {
        self.check_under::<P>(&RuleSet::TODAY, flags)
    }

    /// [`Self::check`] under these rules.
    fn check_under<P: Prove>(&self, rules: &RuleSet, flags: Flags) -> Vec<Verdict> {
        let spent = self.spent();
        let context = TxContext::new(self.tx.view(), &spent);
        let mut interpreter = Interpreter::with_rules(*rules);
        let expected: Vec<Verdict> = (0..spent.len())
            .map(|input| interpreter.verify_input(&context, input, flags, &mut ImmediateChecker))
            .collect();
        let mut deferred = DeferredScripts::<usize, P>::with_rules(*rules);
        let mut verdicts: Vec<Verdict> = (0..spent.len())
            .map(|input| deferred.verify_input(&context, input, flags, input))
            .collect();
        deferred.settle(|input, claimed, again| {
            assert_eq!(verdicts[input], Ok(claimed));
            verdicts[input] = again.verify_input(&context, input, flags);
        });
        assert_eq!(verdicts, expected, "{flags:?} {:?}", self.scripts);
        expected
    }
}

fn secret(number: usize) -> SecretKey {
    SecretKey::from_secret_bytes(assay_hash::sha256(&[number as u8])).unwrap()
}

fn public(number: usize) -> Vec<u8> {
    PublicKey::from_secret_key(&secret(number)).serialize().to_vec()
}

fn sign(number: usize, msg: [u8; 32]) -> Vec<u8> {
    let mut sig = ecdsa::sign(Message::from_digest(msg), &secret(number)).serialize_der().to_vec();
    sig.push(SIGHASH_ALL as u8);
    sig
}

fn push(script: &mut Vec<u8>, data: &[u8]) {
    match data {
        [] => script.push(0),
        _ if data.len() < 76 => {
            script.push(data.len() as u8);
            script.extend(data);
        }
        _ => {
            script.extend([op::PUSHDATA1, data.len() as u8]);
            script.extend(data);
        }
    }
}

fn multisig(sigs: usize, keys: &[usize]) -> Vec<u8> {
    let mut script = vec![op::PUSH1 - 1 + sigs as u8];
    for key in keys {
        push(&mut script, &public(*key));
    }
    script.extend([op::PUSH1 - 1 + keys.len() as u8, op::CHECKMULTISIG]);
    script
}

/// Every list of signatures, each by one of the keys, by another key, or empty, for a script with these keys.
fn all_signature_lists(sigs: usize, keys: &[usize], with_empty: bool, with_not: bool) {
    const STRANGER: usize = 99;
    let mut script = multisig(sigs, keys);
    if with_not {
        script.push(op::NOT);
    }
    let choices = keys.len() + 1 + usize::from(with_empty);
    let count = choices.pow(sigs as u32);
    // Every input signs, and the messages depend on the number and the index of the inputs.
    let group = 32.min(count);
    let signed: Vec<Vec<Vec<u8>>> =
        Spend::unsigned(&vec![script.clone(); group], false, |context| {
            let sign_all = |input| {
                let msg = context.sighash_legacy(input, &script, SIGHASH_ALL);
                let signers = keys.iter().copied().chain([STRANGER]);
                signers.map(|key| sign(key, msg)).chain([vec![]]).collect()
            };
            (0..group).map(sign_all).collect()
        });
    for first in (0..count).step_by(group) {
        let inputs: Vec<_> = (0..group)
            .map(|input| {
                let mut number = first + input;
                let mut script_sig = vec![0];
                for _ in 0..sigs {
                    push(&mut script_sig, &signed[input][number % choices]);
                    number /= choices;
                }
                (script_sig, vec![])
            })
            .collect();
        let spend = Spend::new(&inputs, vec![script.clone(); group]);
        spend.check::<Batches>(Flags::NONE);
        if sigs < 4 {
            spend.check::<Forgetful>(Flags::P2SH | Flags::DERSIG);
            spend.check::<Batches>(Flags::NULLFAIL | Flags::STRICTENC);
        }
    }
}

#[test]
fn every_multisig_up_to_five_keys() {
    (1..=5usize).into_par_iter().for_each(|count| {
        let keys: Vec<usize> = (0..count).collect();
        for sigs in 1..=count {
            all_signature_lists(sigs, &keys, sigs < 4, false);
            if sigs < 4 {
                all_signature_lists(sigs, &keys, sigs < 3, true);
            }
        }
    });
}

#[test]
fn multisig_with_the_same_key_twice_and_with_no_key() {
    for keys in [[0, 0, 0], [0, 1, 0], [1, 0, 0]] {
        for sigs in 1..=3 {
            all_signature_lists(sigs, &keys, true, false);
        }
    }
    for bad in [vec![], vec![5; 33], vec![2; 33], vec![4; 65], vec![2; 32]] {
        for at in 0..3 {
            for sigs in 1..=2 {
                let mut script = vec![op::PUSH1 - 1 + sigs];
                for key in 0..3 {
                    push(&mut script, if key == at { &bad } else { &[] });
                    if key != at {
                        script.pop();
                        push(&mut script, &public(key));
                    }
                }
                script.extend([op::PUSH1 + 2, op::CHECKMULTISIG]);
                let scripts = vec![script.clone(); 9];
                let inputs: Vec<_> = Spend::unsigned(&scripts, false, |context| {
                    let sign = |input| {
                        let msg = context.sighash_legacy(input, &script, SIGHASH_ALL);
                        let mut script_sig = vec![0];
                        for signer in [input % 3, input / 3].into_iter().take(sigs.into()) {
                            push(&mut script_sig, &sign(signer, msg));
                        }
                        (script_sig, vec![])
                    };
                    (0..9).map(sign).collect()
                });
                let spend = Spend::new(&inputs, scripts);
                for flags in [Flags::NONE, Flags::STRICTENC, Flags::NULLFAIL | Flags::DERSIG] {
                    spend.check::<Batches>(flags);
                    spend.check::<Forgetful>(flags);
                }
            }
        }
    }
}

/// More claims in one input than the recorder keeps.
#[test]
fn one_input_with_very_many_signatures() {
    for wrong in [None, Some(10), Some(4500), Some(8999)] {
        let key = Keypair::from_secret_key(&secret(1)).x_only_public_key().0.to_byte_array();
        let mut leaf = Vec::new();
        for number in 0..9000usize {
            leaf.extend([op::DUP, 32]);
            leaf.extend(key);
            leaf.push(op::CHECKSIG);
            if Some(number) == wrong {
                leaf.push(op::NOT);
            }
            leaf.push(op::VERIFY);
        }
        leaf.extend([op::DROP, op::PUSH1]);
        // The annex increases the signature budget.
        let annex = vec![0x50; 9000 * 50];
        let spend = tapscript_spend(&leaf, |sign| vec![sign(1)], Some(annex));
        let verdict = spend.check::<Batches>(taproot_flags());
        assert_eq!(verdict[0].is_ok(), wrong.is_none(), "{wrong:?} {verdict:?}");
    }
}

fn taproot_flags() -> Flags {
    Flags::P2SH | Flags::WITNESS | Flags::TAPROOT
}

/// One input that spends a Taproot output by its only leaf; `stack` builds the stack from a signing function.
fn tapscript_spend(
    leaf: &[u8],
    stack: impl Fn(&dyn Fn(usize) -> Vec<u8>) -> Vec<Vec<u8>>,
    annex: Option<Vec<u8>>,
) -> Spend {
    let stack = |message: &dyn Fn(u8) -> [u8; 32]| {
        let sign = |number: usize| {
            let pair = Keypair::from_secret_key(&secret(number));
            schnorr::sign_no_aux_rand(&message(0), &pair).to_byte_array().to_vec()
        };
        stack(&sign)
    };
    tapscript_spend_of_messages(leaf, stack, annex)
}

/// [`tapscript_spend`] with a stack built from the messages by hash type.
fn tapscript_spend_of_messages(
    leaf: &[u8],
    stack: impl Fn(&dyn Fn(u8) -> [u8; 32]) -> Vec<Vec<u8>>,
    annex: Option<Vec<u8>>,
) -> Spend {
    let internal = Keypair::from_secret_key(&secret(50)).x_only_public_key().0;
    let leaf_hash = tap_leaf_hash(0xc0, leaf);
    let tweak = tap_tweak_hash(&internal.to_byte_array(), Some(&leaf_hash));
    let (output, parity) = XOnlyPublicKey::from_byte_array(internal.to_byte_array())
        .and_then(|key| key.add_tweak(&Scalar::from_be_bytes(tweak).unwrap()))
        .unwrap();
    let mut control = vec![0xc0 | parity.to_u8()];
    control.extend(internal.to_byte_array());
    let script = [&[op::PUSH1, 32][..], &output.to_byte_array()].concat();
    let annex_hash = annex.as_deref().map(assay_consensus::script::annex_hash);
    let position =
        assay_consensus::script::TapscriptPosition { leaf_hash, code_separator: u32::MAX };
    let scripts = vec![script];
    let mut witness = Spend::unsigned(&scripts, true, |context| {
        stack(&|hash_type| {
            context.sighash_taproot(0, hash_type, annex_hash.as_ref(), Some(&position)).unwrap()
        })
    });
    witness.extend([leaf.to_vec(), control]);
    witness.extend(annex);
    Spend::new(&[(vec![], witness)], scripts)
}

/// Enough signatures for a weighted sum, by several keys, some of them invalid.
#[test]
fn many_key_path_spends() {
    const INPUTS: usize = 300;
    let pairs: Vec<Keypair> =
        (0..INPUTS).map(|input| Keypair::from_secret_key(&secret(input % 200))).collect();
    let script = |pair: &Keypair| {
        [&[op::PUSH1, 32][..], &pair.x_only_public_key().0.to_byte_array()].concat()
    };
    let scripts: Vec<Vec<u8>> = pairs.iter().map(script).collect();
    let messages: Vec<[u8; 32]> = Spend::unsigned(&scripts, true, |context| {
        (0..INPUTS).map(|input| context.sighash_taproot(input, 0, None, None).unwrap()).collect()
    });
    for wrong in [&[][..], &[INPUTS - 1], &[3, 150, 151]] {
        let witness = |(input, pair): (usize, &Keypair)| {
            let msg = messages[input];
            let mut sig = schnorr::sign_no_aux_rand(&msg, pair).to_byte_array().to_vec();
            sig[40] ^= u8::from(wrong.contains(&input));
            (vec![], vec![sig])
        };
        let inputs: Vec<_> = pairs.iter().enumerate().map(witness).collect();
        let verdicts = Spend::new(&inputs, scripts.clone()).check::<Batches>(taproot_flags());
        for (input, verdict) in verdicts.iter().enumerate() {
            assert_eq!(verdict.is_ok(), !wrong.contains(&input), "input {input}");
        }
    }
}

/// An element at the start of a random script.
#[derive(Clone, Debug)]
enum Item {
    Empty,
    Number(u8),
    Signature(usize),
    /// By this key, with one bit changed.
    BadSignature(usize),
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        2 => Just(Item::Empty),
        1 => (1u8..4).prop_map(Item::Number),
        5 => (0usize..3).prop_map(Item::Signature),
        2 => (0usize..3).prop_map(Item::BadSignature),
    ]
}

/// A check in a script, and the elements that it pops, some of them wrong.
fn statement(tapscript: bool) -> impl Strategy<Value = (Vec<Item>, Vec<u8>)> {
    let key = move |script: &mut Vec<u8>, number: usize| {
        let key = public(number % 3);
        push(script, if tapscript { &key[1..] } else { &key });
    };
    let single = (item(), 0usize..3).prop_map(move |(item, number)| {
        let mut script = Vec::new();
        key(&mut script, number);
        script.push(op::CHECKSIG);
        (vec![item], script)
    });
    let right = (0usize..3).prop_map(move |number| {
        let mut script = Vec::new();
        key(&mut script, number);
        script.push(op::CHECKSIG);
        (vec![Item::Signature(number)], script)
    });
    // The same check repeatedly, as in useless scripts.
    let again = (item(), 0usize..3).prop_map(move |(item, number)| {
        let mut script = Vec::new();
        key(&mut script, number);
        script.extend([op::DUP2, op::CHECKSIG, op::DROP].repeat(2));
        script.push(op::CHECKSIG);
        (vec![item], script)
    });
    let several = (prop::collection::vec(item(), 3), 1usize..4, 1usize..4, 0usize..3).prop_map(
        move |(mut items, sigs, keys, from)| {
            let (sigs, mut script) = (sigs.min(keys), Vec::new());
            if tapscript {
                items.truncate(keys);
                script.push(0);
                for number in 0..keys {
                    key(&mut script, from + number);
                    script.push(op::CHECKSIGADD);
                }
            } else {
                items.truncate(sigs);
                items.insert(0, Item::Empty);
                script.push(op::PUSH1 - 1 + sigs as u8);
                (0..keys).for_each(|number| key(&mut script, from + number));
                script.extend([op::PUSH1 - 1 + keys as u8, op::CHECKMULTISIG]);
            }
            (items, script)
        },
    );
    // Uses of the result.
    let ends = vec![
        vec![op::VERIFY],
        vec![op::VERIFY],
        vec![op::NOT, op::VERIFY],
        vec![op::DROP],
        vec![op::NOT, op::NOT, op::DROP],
        vec![op::NOT, op::NOT, op::IF, op::NOP, op::ELSE, op::NOP, op::ENDIF],
        vec![op::NOT, op::IF, op::RETURN, op::ENDIF],
        vec![op::DUP, op::BOOLAND, op::IF, op::RETURN, op::ENDIF],
    ];
    let check = prop_oneof![2 => single, 2 => right, 1 => again, 3 => several];
    (check, prop::sample::select(ends)).prop_map(|((items, mut script), end)| {
        script.extend(end);
        (items, script)
    })
}

/// Elements and script of some statements.
fn program(tapscript: bool) -> impl Strategy<Value = (Vec<Item>, Vec<u8>)> {
    prop::collection::vec(statement(tapscript), 1..5).prop_map(|statements| {
        let mut script: Vec<u8> = statements.iter().flat_map(|(_, part)| part.clone()).collect();
        script.push(op::PUSH1);
        // The first statement pops from the top.
        let items = statements.into_iter().rev().flat_map(|(items, _)| items).collect();
        (items, script)
    })
}

fn flags() -> impl Strategy<Value = Flags> {
    let some = [
        Flags::NULLFAIL,
        Flags::DERSIG,
        Flags::STRICTENC,
        Flags::NULLDUMMY,
        Flags::LOW_S,
        Flags::CONST_SCRIPTCODE,
        Flags::WITNESS_PUBKEYTYPE,
    ];
    any::<u8>().prop_map(move |bits| {
        let chosen = some.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
        chosen.fold(taproot_flags(), |all, (_, &flag)| all | flag)
    })
}

fn fill(items: &[Item], sign: &dyn Fn(usize) -> Vec<u8>) -> Vec<Vec<u8>> {
    let make = |item: &Item| match *item {
        Item::Empty => vec![],
        Item::Number(number) => vec![number],
        Item::Signature(key) => sign(key),
        Item::BadSignature(key) => {
            let mut sig = sign(key);
            sig[12] ^= 4;
            sig
        }
    };
    items.iter().map(make).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn random_legacy_scripts(
        (items, script) in program(false),
        flags in flags(),
    ) {
        let scripts = vec![script.clone()];
        let msg = Spend::unsigned(&scripts, false, |context| {
            context.sighash_legacy(0, &script, SIGHASH_ALL)
        });
        let mut script_sig = Vec::new();
        for item in fill(&items, &|key| sign(key, msg)) {
            push(&mut script_sig, &item);
        }
        let spend = Spend::new(&[(script_sig, vec![])], scripts);
        spend.check::<Batches>(flags);
        spend.check::<Forgetful>(flags);
    }

    #[test]
    fn random_witness_scripts(
        (items, script) in program(false),
        flags in flags(),
    ) {
        let program = [&[0, 32][..], &assay_hash::sha256(&script)].concat();
        let scripts = vec![program];
        let msg = Spend::unsigned(&scripts, true, |context| {
            context.sighash_segwit_v0(0, &script, VALUE, SIGHASH_ALL)
        });
        let mut witness = fill(&items, &|key| sign(key, msg));
        witness.push(script);
        let spend = Spend::new(&[(vec![], witness)], scripts);
        spend.check::<Batches>(flags);
        spend.check::<Forgetful>(flags);
    }

    #[test]
    fn random_tapscripts(
        (items, script) in program(true),
        flags in flags(),
    ) {
        let spend = tapscript_spend(&script, |sign| fill(&items, sign), None);
        spend.check::<Batches>(flags);
        spend.check::<Forgetful>(flags);
    }
}
