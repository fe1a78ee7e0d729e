//! Taproot and tapscript rules (BIP-0341, BIP-0342) with a checker that follows a script.

use assay_hash::sha256;
use assay_testkit::chain::TxBuilder;
use assay_wire::{Transaction, TxOut};

use super::*;
use crate::script::opcode::Instructions;
use crate::script::opcode::op::*;
use crate::script::{Interpreter, PqScheme, RuleSet, TapscriptPosition, TxContext, verify_input};

/// Accepts Schnorr signatures over the messages in the list, or over any without a list; of other messages than those of
/// transactions, those that begin with the length of the message.
/// Commitments hold when the output key is the hash of internal key and tweak.
#[derive(Default)]
pub(in crate::script) struct Scripted {
    accept: Option<Vec<[u8; 32]>>,
}

impl SignatureChecker for Scripted {
    fn ecdsa(&mut self, _: &[u8], _: &[u8], _: &[u8; 32]) -> bool {
        false
    }
    fn schnorr(&mut self, _: &[u8; 32], _: &[u8; 64], msg: &[u8; 32]) -> bool {
        self.accept.as_ref().is_none_or(|messages| messages.contains(msg))
    }
    fn schnorr_of_any_length(&mut self, _: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool {
        sig[0] as usize == msg.len()
    }
    fn post_quantum(&mut self, _: PqScheme, key: &[u8], sig: &[u8], msg: &[u8; 32]) -> bool {
        sig[..key.len()] == *key && self.accept.as_ref().is_none_or(|accept| accept.contains(msg))
    }
    fn schnorr_bch(&mut self, _: &[u8], _: &[u8; 64], _: &[u8; 32]) -> bool {
        false
    }
    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool {
        !output_parity && *output == sha256(&[*internal, *tweak].concat())
    }
}

pub(in crate::script) const INTERNAL: [u8; 32] = [0x1a; 32];
const SIG: &[u8] = &[3; 64];
const BLOCK: Flags = Flags::BITCOIN_BLOCK;

/// Output script and control block of a tree of one tapscript.
pub(in crate::script) fn spend_of_leaf(script: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let tweak = tap_tweak_hash(&INTERNAL, Some(&tap_leaf_hash(0xc0, script)));
    let output_key = sha256(&[INTERNAL, tweak].concat());
    ([&[PUSH1, 32][..], &output_key].concat(), [&[0xc0][..], &INTERNAL].concat())
}

/// A spend of a Taproot output with this witness.
struct Spend {
    tx: Transaction,
    script_pubkey: Vec<u8>,
}

impl Spend {
    fn new(output_key: [u8; 32], witness: &[&[u8]]) -> Self {
        let tx = TxBuilder::new(2).input(7, 7, &[], 0xffff_fffe).output(5, &[]).witness(witness);
        let tx = tx.build();
        Self { tx, script_pubkey: [&[PUSH1, 32][..], &output_key].concat() }
    }

    /// A spend of the only leaf: arguments, script, control block and what follows.
    fn of_leaf(version: u8, script: &[u8], arguments: &[&[u8]], annex: Option<&[u8]>) -> Self {
        let tweak = tap_tweak_hash(&INTERNAL, Some(&tap_leaf_hash(version, script)));
        let control = [&[version][..], &INTERNAL].concat();
        let mut witness = arguments.to_vec();
        witness.extend([script, &control]);
        witness.extend(annex);
        Self::new(sha256(&[INTERNAL, tweak].concat()), &witness)
    }

    fn with_context<T>(&self, run: impl FnOnce(&TxContext<'_>) -> T) -> T {
        let spent = [TxOut { value: 99, script_pubkey: &self.script_pubkey }];
        run(&TxContext::new(self.tx.view(), &spent))
    }

    fn verify(&self, flags: Flags, accept: Option<Vec<[u8; 32]>>) -> Result<u32, ScriptError> {
        let mut checker = Scripted { accept };
        self.with_context(|ctx| verify_input(ctx, 0, flags, &mut checker).map(|s| s.sig_checks))
    }
}

/// Runs a tapscript where every signature that is given is valid.
fn run(script: &[u8], arguments: &[&[u8]], flags: Flags) -> Result<u32, ScriptError> {
    Spend::of_leaf(0xc0, script, arguments, None).verify(flags, None)
}

/// A push of a key, with opcodes behind it.
fn key_then(opcodes: &[u8]) -> Vec<u8> {
    [&[32][..], &[0x2b; 32], opcodes].concat()
}

#[test]
fn key_path_signs_with_and_without_annex() {
    for annex in [None, Some(&[0x50u8, 9][..])] {
        for hash_type in [0u8, 1, 0x82] {
            let mut sig = SIG.to_vec();
            if hash_type != 0 {
                sig.push(hash_type);
            }
            let mut witness = vec![&sig[..]];
            witness.extend(annex);
            let spend = Spend::new([4; 32], &witness);
            let annexed = annex.map(annex_hash);
            let message = spend
                .with_context(|ctx| ctx.sighash_taproot(0, hash_type, annexed.as_ref(), None))
                .expect("a message");
            assert_eq!(spend.verify(BLOCK, Some(vec![message])), Ok(1));
            assert_eq!(spend.verify(BLOCK, Some(vec![])), Err(ScriptError::SchnorrSig));
        }
    }
    let spend = |witness: &[&[u8]]| Spend::new([4; 32], witness).verify(BLOCK, None);
    assert_eq!(spend(&[&[]]), Err(ScriptError::SchnorrSigSize));
    assert_eq!(spend(&[&[0; 65]]), Err(ScriptError::SchnorrSigHashType));
    assert_eq!(spend(&[&[9; 65]]), Err(ScriptError::SchnorrSigHashType));
    // A lone item is never an annex.
    assert_eq!(spend(&[&[0x50; 64]]), Ok(1));
    let without = Spend::new([4; 32], &[SIG]);
    assert_eq!(without.verify(BLOCK.without(Flags::TAPROOT), Some(vec![])), Ok(0));
}

#[test]
fn control_blocks() {
    let script = [PUSH1];
    let leaf = tap_leaf_hash(0xc0, &script);
    let siblings = [[9; 32], [0xee; 32]];
    let root = siblings.iter().fold(leaf, |node, sibling| tap_branch_hash(&node, sibling));
    let output = sha256(&[INTERNAL, tap_tweak_hash(&INTERNAL, Some(&root))].concat());
    let good = [&[0xc0][..], &INTERNAL, siblings.as_flattened()].concat();
    let verify = |control: &[u8]| Spend::new(output, &[&script, control]).verify(BLOCK, None);
    assert_eq!(verify(&good), Ok(0));
    let mut odd = good.clone();
    odd[0] |= 1;
    assert_eq!(verify(&odd), Err(ScriptError::WitnessProgramMismatch));
    assert_eq!(verify(&good[..65]), Err(ScriptError::WitnessProgramMismatch));
    let oversized = vec![0xc0; 33 + 129 * 32];
    for wrong in [&[][..], &good[..32], &good[..34], &good[..96], &oversized] {
        assert_eq!(verify(wrong), Err(ScriptError::TaprootWrongControlSize), "{}", wrong.len());
    }
    let unknown = Spend::of_leaf(0xc2, &[RETURN], &[], None);
    assert_eq!(unknown.verify(BLOCK, None), Ok(0));
    assert_eq!(
        unknown.verify(Flags::BITCOIN_STANDARD, None),
        Err(ScriptError::DiscourageUpgradableTaprootVersion)
    );
}

#[test]
fn a_rule_set_may_give_a_leaf_version_a_language() {
    let rules = RuleSet::by_name("shrincs-6000").expect("a name");
    let run = |opcode: u8, bytes: usize| {
        let spend = Spend::of_leaf(0xc2, &[opcode], &[&vec![1; bytes]], None);
        spend.with_context(|context| {
            let mut interpreter = Interpreter::with_rules(rules);
            interpreter.verify_input(context, 0, BLOCK, &mut Scripted::default()).map(drop)
        })
    };
    assert_eq!(run(NOP, 6_000), Ok(()));
    assert_eq!(run(NOP, 6_001), Err(ScriptError::PushSize));
    assert_eq!(run(RETURN, 1), Err(ScriptError::OpReturn));
}

#[test]
fn messages_cover_leaf_and_code_separator() {
    let script = key_then(&[CODESEPARATOR, CHECKSIG]);
    let spend = Spend::of_leaf(0xc0, &script, &[SIG], None);
    let message = |code_separator| {
        let position =
            TapscriptPosition { leaf_hash: tap_leaf_hash(0xc0, &script), code_separator };
        spend.with_context(|ctx| ctx.sighash_taproot(0, 0, None, Some(&position)))
    };
    let at_one = message(1).expect("a message");
    let none = message(u32::MAX).expect("a message");
    assert_eq!(spend.verify(BLOCK, Some(vec![at_one])), Ok(1));
    assert_eq!(spend.verify(BLOCK, Some(vec![none])), Err(ScriptError::SchnorrSig));
}

/// A separator's position counts the opcodes of branches that are not taken, whatever they are.
#[test]
fn positions_count_skipped_opcodes() {
    let branch = [PUSH1, PUSH16, 1, RESERVED, NOP, PUSH16, IF, PUSH1, PUSH1, ENDIF, 2, IF, IF];
    for repeats in 0..20 {
        let branch = [&branch.repeat(repeats / 2)[..], &vec![PUSH1; repeats]].concat();
        let begin = [&[0, IF][..], &branch, &[ENDIF, CODESEPARATOR]].concat();
        let position = Instructions::new(&begin).count() as u32 - 1;
        let script = [begin, key_then(&[CHECKSIG])].concat();
        let spend = Spend::of_leaf(0xc0, &script, &[SIG], None);
        let leaf_hash = tap_leaf_hash(0xc0, &script);
        let message = |code_separator| {
            let position = TapscriptPosition { leaf_hash, code_separator };
            spend.with_context(|ctx| ctx.sighash_taproot(0, 0, None, Some(&position)))
        };
        let accept = |position| Some(vec![message(position).expect("a message")]);
        assert_eq!(spend.verify(BLOCK, accept(position)), Ok(1), "{repeats}");
        let wrong = spend.verify(BLOCK, accept(position + 1));
        assert_eq!(wrong, Err(ScriptError::SchnorrSig), "{repeats}");
    }
}

#[test]
fn checksig_family() {
    let add = key_then(&[CHECKSIGADD, PUSH1 + 5, EQUAL]);
    assert_eq!(run(&add, &[SIG, &[5]], BLOCK), Ok(1));
    assert_eq!(run(&add, &[&[], &[6]], BLOCK), Ok(0));
    assert_eq!(run(&add, &[&[5]], BLOCK), Err(ScriptError::InvalidStackOperation));
    assert_eq!(run(&add, &[SIG, &[1; 5]], BLOCK), Err(ScriptError::ScriptNum));
    assert_eq!(run(&key_then(&[CHECKSIG, NOT]), &[&[]], BLOCK), Ok(0));
    assert_eq!(
        run(&key_then(&[CHECKSIGVERIFY, PUSH1]), &[&[]], BLOCK),
        Err(ScriptError::CheckSigVerify)
    );
    assert_eq!(run(&[0, CHECKSIG], &[SIG], BLOCK), Err(ScriptError::TapscriptEmptyPubkey));
    assert_eq!(run(&[0, CHECKSIG], &[&[]], BLOCK), Err(ScriptError::TapscriptEmptyPubkey));
    // Keys of other sizes are left to the future and count as signed.
    assert_eq!(run(&[1, 42, CHECKSIG], &[b"anything"], BLOCK), Ok(0));
    assert_eq!(
        run(&[1, 42, CHECKSIG], &[b"anything"], Flags::BITCOIN_STANDARD),
        Err(ScriptError::DiscourageUpgradablePubkeyType)
    );
    for opcode in [CHECKMULTISIG, CHECKMULTISIGVERIFY] {
        assert_eq!(run(&[0, 0, 0, opcode], &[], BLOCK), Err(ScriptError::TapscriptCheckMultisig));
    }
}

#[test]
fn signatures_cost_fifty_of_the_witness_weight() {
    // Each check duplicates the one signature: key and opcodes are all that pays.
    let script = |checks: usize| {
        let mut script = vec![32];
        script.extend([0x2b; 32]);
        for _ in 0..checks {
            script.extend([DUP2, CHECKSIGVERIFY]);
        }
        script.extend([DROP2, PUSH1]);
        script
    };
    // Witness: 1 + (1 + 64) + (1 + 35 + 2n) + (1 + 33), and 50 for free.
    for checks in 1..6 {
        let weight = 1 + 65 + (36 + 2 * checks) + 34 + 50;
        let expected = if checks * 50 <= weight {
            Ok(checks as u32)
        } else {
            Err(ScriptError::TapscriptValidationWeight)
        };
        assert_eq!(run(&script(checks), &[SIG], BLOCK), expected, "{checks}");
    }
}

#[test]
fn success_opcodes_override_everything() {
    for opcode in (0..=255u8).filter(|&opcode| is_op_success(opcode)) {
        let script = [RETURN, opcode, PUSHDATA4];
        assert_eq!(run(&script, &[&[0; 600]], BLOCK), Ok(0), "{opcode:#x}");
        assert_eq!(
            run(&script, &[], Flags::BITCOIN_STANDARD),
            Err(ScriptError::DiscourageOpSuccess)
        );
        for before in 0..18 {
            let script = [&vec![RETURN; before][..], &[opcode], &[RETURN; 9]].concat();
            assert_eq!(run(&script, &[], BLOCK), Ok(0), "{opcode:#x} after {before}");
            // As data it means nothing.
            let script = [&vec![RETURN; before][..], &[1, opcode], &[RETURN; 9]].concat();
            assert_eq!(run(&script, &[], BLOCK), Err(ScriptError::OpReturn), "{opcode:#x}");
        }
    }
    assert_eq!(run(&[PUSHDATA1, 5, 80], &[], BLOCK), Err(ScriptError::BadOpcode));
}

#[test]
fn limits() {
    assert_eq!(run(&[DROP, PUSH1], &[&[0; 521]], BLOCK), Err(ScriptError::PushSize));
    assert_eq!(run(&[DROP, PUSH1], &[&[0; 520]], BLOCK), Ok(0));
    let many = vec![&[][..]; 1001];
    assert_eq!(run(&[PUSH1], &many, BLOCK), Err(ScriptError::StackSize));
    assert_eq!(run(&[PUSH1], &many[..1000], BLOCK), Err(ScriptError::StackSize));
    assert_eq!(run(&[PUSH1], &many[..1], BLOCK), Err(ScriptError::CleanStack));
    assert_eq!(run(&[0], &[], BLOCK), Err(ScriptError::EvalFalse));
    // Neither size nor number of operations is limited.
    let mut long = vec![NOP; 20_000];
    long.push(PUSH1);
    assert_eq!(run(&long, &[], BLOCK), Ok(0));
    for (condition, expected) in [
        (&[1][..], Ok(0)),
        (&[2], Err(ScriptError::TapscriptMinimalIf)),
        (&[0], Err(ScriptError::TapscriptMinimalIf)),
        (&[1, 0], Err(ScriptError::TapscriptMinimalIf)),
        (&[], Err(ScriptError::CleanStack)),
    ] {
        assert_eq!(run(&[IF, PUSH1, ENDIF], &[condition], BLOCK), expected, "{condition:?}");
    }
}

/// Hashing in a loop leaves the arena far behind; reclaiming must not lose anything.
#[test]
fn long_tapscripts_reclaim_memory() {
    let mut script = vec![SHA256; 300_000];
    script.extend([SIZE, 1, 32, EQUALVERIFY, EQUAL]);
    let mut digest = sha256(b"seed");
    for _ in 1..300_000 {
        digest = sha256(&digest);
    }
    assert_eq!(run(&script, &[&digest, b"seed"], BLOCK), Ok(0));
}
