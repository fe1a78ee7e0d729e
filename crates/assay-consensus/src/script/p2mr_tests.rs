//! P2MR (BIP-0360) against a second reading of the BIP: a tree built from the top and a verdict on a witness, both written
//! from its words without anything of the interpreter.

use assay_hash::sha256;
use assay_testkit::chain::TxBuilder;
use assay_testkit::random::Random;
use assay_wire::{Encoding, Transaction, TxOut};

use super::tests::{Scripted, spend_of_leaf};
use crate::script::opcode::op::*;
use crate::script::{Flags, Interpreter, RuleSet, ScriptError, TxContext};

fn tagged(tag: &str, parts: &[&[u8]]) -> [u8; 32] {
    let tag = sha256(tag.as_bytes());
    sha256(&[&tag[..], &tag, &parts.concat()].concat())
}

fn leaf_hash(version: u8, script: &[u8]) -> [u8; 32] {
    assert!(script.len() < 253, "the length takes one byte");
    tagged("TapLeaf", &[&[version, script.len() as u8], script])
}

fn branch_hash(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    tagged("TapBranch", &[left.min(right), left.max(right)])
}

/// A tree, by its shape.
enum Tree {
    Leaf(u8, Vec<u8>),
    Branch(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn random(dice: &mut Random, depth: usize) -> Self {
        if depth == 0 || dice.below(4) == 0 {
            let version = [0xc0, 0xc0, 0xc0, 0xc2, 0xfa][dice.below(5)];
            return Self::Leaf(version, small_script(dice));
        }
        let [left, right] = [(); 2].map(|()| Box::new(Self::random(dice, depth - 1)));
        Self::Branch(left, right)
    }

    fn root(&self) -> [u8; 32] {
        match self {
            Self::Leaf(version, script) => leaf_hash(*version, script),
            Self::Branch(left, right) => branch_hash(&left.root(), &right.root()),
        }
    }

    /// Version and script of every leaf with the roots of what lies off its path, from the leaf up.
    fn leaves(&self) -> Vec<(u8, Vec<u8>, Vec<[u8; 32]>)> {
        match self {
            Self::Leaf(version, script) => vec![(*version, script.clone(), Vec::new())],
            Self::Branch(left, right) => {
                let mut all = Vec::new();
                for (tree, other) in [(left, right), (right, left)] {
                    let first = all.len();
                    all.extend(tree.leaves());
                    all[first..].iter_mut().for_each(|leaf| leaf.2.push(other.root()));
                }
                all
            }
        }
    }
}

/// Scripts that [`run`] understands.
fn small_script(dice: &mut Random) -> Vec<u8> {
    (0..=dice.below(5)).map(|_| [0, PUSH1, PUSH1, DROP, NOP][dice.below(5)]).collect()
}

/// Returns `true` if a script of nothing but `0`, `1`, DROP and NOP leaves exactly one true element.
fn run(script: &[u8], arguments: &[Vec<u8>]) -> bool {
    let mut stack = arguments.to_vec();
    for opcode in script {
        match *opcode {
            0 => stack.push(vec![]),
            PUSH1 => stack.push(vec![1]),
            DROP if stack.pop().is_none() => return false,
            _ => {}
        }
    }
    // Zero is false, and so is its negative.
    let is_false = |element: &[u8]| {
        element
            .iter()
            .rev()
            .enumerate()
            .all(|(index, byte)| *byte == 0 || index == 0 && *byte == 0x80)
    };
    stack.len() == 1 && !is_false(&stack[0])
}

/// The verdict of BIP-0360 on a witness, in its order.
fn oracle(program: &[u8; 32], witness: &[Vec<u8>]) -> bool {
    let mut items = witness.to_vec();
    if items.len() < 2 {
        return false;
    }
    if items.last().is_some_and(|last| last.first() == Some(&0x50)) {
        if items.len() == 2 {
            return false;
        }
        items.pop();
    }
    let (Some(control), Some(script)) = (items.pop(), items.pop()) else { return false };
    if control.len() % 32 != 1 || control.len() > 1 + 32 * 128 || control[0] % 2 == 0 {
        return false;
    }
    let version = control[0] - 1;
    let mut node = leaf_hash(version, &script);
    for sibling in control[1..].chunks(32) {
        node = branch_hash(&node, sibling.try_into().expect("32 bytes"));
    }
    if node != *program {
        return false;
    }
    control.len() == 1 || version != 0xc0 || run(&script, &items)
}

fn verify(rules: &RuleSet, script_pubkey: &[u8], witness: &[Vec<u8>]) -> Result<(), ScriptError> {
    let items: Vec<&[u8]> = witness.iter().map(Vec::as_slice).collect();
    let mut builder = TxBuilder::new(2).input(7, 0, &[], 0).output(1, &[PUSH1]);
    if !items.is_empty() {
        builder = builder.witness(&items);
    }
    let tx = Transaction::parse(builder.bytes(), Encoding::Segwit).expect("a transaction");
    let spent = [TxOut { value: 2, script_pubkey }];
    let context = TxContext::new(tx.view(), &spent);
    Interpreter::with_rules(*rules)
        .verify_input(&context, 0, Flags::BITCOIN_BLOCK, &mut Scripted::default())
        .map(|_| ())
}

fn p2mr() -> RuleSet {
    RuleSet::by_name("p2mr").expect("a name")
}

fn output(root: &[u8; 32]) -> Vec<u8> {
    [&[PUSH1 + 1, 32][..], root].concat()
}

fn control(version: u8, path: &[[u8; 32]]) -> Vec<u8> {
    [&[version | 1][..], &path.concat()].concat()
}

/// One change to a witness.
fn spoil(dice: &mut Random, witness: &mut Vec<Vec<u8>>) {
    let index = dice.below(witness.len());
    match dice.below(6) {
        0 => drop(witness.remove(index)),
        1 => witness.push([&[0x50][..], &[7; 3][..dice.below(4)]].concat()),
        2 => witness.insert(0, vec![[0, 1][dice.below(2)]]),
        3 => witness[index].push(0x41),
        4 => drop(witness[index].pop()),
        _ if witness[index].is_empty() => {}
        _ => {
            let at = dice.below(witness[index].len());
            witness[index][at] ^= 1 << dice.below(8);
        }
    }
}

#[test]
fn random_trees_and_witnesses_against_the_oracle() {
    let mut dice = Random(360);
    let (mut passed, mut failed) = (0, 0);
    for _ in 0..300 {
        let tree = Tree::random(&mut dice, 6);
        let (root, rules) = (tree.root(), p2mr());
        for (version, script, path) in tree.leaves() {
            let proof = vec![script, control(version, &path)];
            for changes in [0, 0, 1, 1, 2] {
                let mut witness = proof.clone();
                for _ in 0..changes {
                    if !witness.is_empty() {
                        spoil(&mut dice, &mut witness);
                    }
                }
                let expected = oracle(&root, &witness);
                let verdict = verify(&rules, &output(&root), &witness);
                assert_eq!(verdict.is_ok(), expected, "{verdict:?} {witness:02x?}");
                passed += usize::from(expected);
                failed += usize::from(!expected);
            }
        }
    }
    assert!(passed > 500 && failed > 500, "{passed} {failed}");
}

#[test]
fn trees_are_at_most_128_deep() {
    for (depth, expected) in [
        (0, Ok(())),
        (1, Ok(())),
        (127, Ok(())),
        (128, Ok(())),
        (129, Err(ScriptError::TaprootWrongControlSize)),
    ] {
        let path = vec![[depth as u8; 32]; depth];
        let root = path
            .iter()
            .fold(leaf_hash(0xc0, &[PUSH1]), |node, sibling| branch_hash(&node, sibling));
        let witness = [vec![PUSH1], control(0xc0, &path)];
        assert_eq!(verify(&p2mr(), &output(&root), &witness), expected, "{depth}");
    }
}

/// At depth 0 the script is not run; anywhere else it is.
#[test]
fn a_single_leaf_is_anyones() {
    let root = leaf_hash(0xc0, &[RETURN]);
    assert_eq!(verify(&p2mr(), &output(&root), &[vec![RETURN], vec![0xc1]]), Ok(()));
    let root = branch_hash(&root, &[9; 32]);
    let witness = [vec![RETURN], control(0xc0, &[[9; 32]])];
    assert_eq!(verify(&p2mr(), &output(&root), &witness), Err(ScriptError::OpReturn));
}

#[test]
fn other_programs_of_version_2_stay_free() {
    for length in [2, 20, 31, 33, 40] {
        let script_pubkey = [&[PUSH1 + 1, length][..], &vec![7; length as usize]].concat();
        assert_eq!(verify(&p2mr(), &script_pubkey, &[]), Ok(()), "{length}");
    }
    // Today all are, and version 3 under P2MR.
    let root = leaf_hash(0xc0, &[RETURN]);
    assert_eq!(verify(&RuleSet::TODAY, &output(&root), &[vec![1]]), Ok(()));
    let version_3 = [&[PUSH1 + 2, 32][..], &root].concat();
    assert_eq!(verify(&p2mr(), &version_3, &[vec![1]]), Ok(()));
}

/// The same leaf in a P2TR and in a P2MR output: scripts, their limits, opcodes and budget are the same.
#[test]
fn leaves_are_run_as_those_of_p2tr() {
    let mut dice = Random(341);
    let mut kinds = std::collections::HashSet::new();
    for _ in 0..4000 {
        let mut script: Vec<u8> = (0..=dice.below(12))
            .map(|_| match dice.below(6) {
                0 => PUSH1 + dice.below(16) as u8,
                1 => [DUP, DROP, CHECKSIG, CHECKSIGADD, IF, ENDIF][dice.below(6)],
                2 => 0,
                _ => NOP + dice.below(100) as u8,
            })
            .collect();
        script.push(PUSH1);
        let arguments: Vec<Vec<u8>> =
            (0..dice.below(4)).map(|_| vec![1; [0, 1, 32, 64, 521][dice.below(5)]]).collect();
        let (tr_output, tr_control) = spend_of_leaf(&script);
        let tr_witness = [arguments.clone(), vec![script.clone(), tr_control]].concat();
        // A budget of the same size: the control block of P2TR is longer by a key.
        let path = [[5; 32]];
        let root = branch_hash(&leaf_hash(0xc0, &script), &path[0]);
        let mr_witness = [arguments, vec![script.clone(), control(0xc0, &path)]].concat();
        let by_key = verify(&p2mr(), &tr_output, &tr_witness);
        let by_root = verify(&p2mr(), &output(&root), &mr_witness);
        assert_eq!(by_root, by_key, "{script:02x?}");
        kinds.insert(by_key.map_err(ScriptError::name));
    }
    assert!(kinds.len() > 8, "{kinds:?}");
}

/// There is no internal key, so that the opcode which pushes it stays a success opcode.
#[test]
fn no_internal_key() {
    let rules = RuleSet::by_name("p2mr+internalkey").expect("names");
    let script = vec![INTERNALKEY, RETURN];
    let (tr_output, tr_control) = spend_of_leaf(&script);
    let verdict = verify(&rules, &tr_output, &[script.clone(), tr_control]);
    assert_eq!(verdict, Err(ScriptError::OpReturn));
    let root = branch_hash(&leaf_hash(0xc0, &script), &[5; 32]);
    assert_eq!(verify(&rules, &output(&root), &[script, control(0xc0, &[[5; 32]])]), Ok(()));
}
