//! An output with a script, and the transaction that spends it.

use std::hint::black_box;

use anyhow::Result;
use assay_bench::harness::Sample;
use assay_bench::plan::Wrap;
use assay_bench::wrong_answer;
use assay_consensus::script::{
    Flags, InputStats, Interpreter, RuleSet, ScriptError, TxContext, tap_branch_hash,
    tap_leaf_hash, tap_tweak_hash,
};
use assay_engine::ImmediateChecker;
use assay_hash::sha256;
use assay_wire::{OutPoint, Transaction, TxBuilder, TxOut, Txid, encode};
use secp256k1::{Scalar, XOnlyPublicKey};

/// Verification flags: those of the report, and Taproot if needed.
fn flags_of(wrap: Wrap) -> Flags {
    match wrap {
        Wrap::Bare | Wrap::P2wsh => Flags::P2SH | Flags::WITNESS,
        Wrap::Tapscript => Flags::P2SH | Flags::WITNESS | Flags::TAPROOT,
    }
}

/// Output script and witness that commit to a script in this kind of output.
fn commitment_to(
    wrap: Wrap,
    script: &[u8],
    mut arguments: Vec<Vec<u8>>,
) -> (Vec<u8>, Vec<Vec<u8>>) {
    match wrap {
        Wrap::Bare => (script.to_vec(), Vec::new()),
        Wrap::P2wsh => {
            arguments.push(script.to_vec());
            ([&[0, 32], &sha256(script)[..]].concat(), arguments)
        }
        Wrap::Tapscript => {
            let (control, script_pubkey) = in_tree(Tree::Taproot, script, 0);
            arguments.extend([script.to_vec(), control]);
            (script_pubkey, arguments)
        }
    }
}

/// The internal key of every output: that of secret key 1, as in Core's vectors.
const INTERNAL_KEY: [u8; 32] = secp256k1::constants::GENERATOR_X;

/// Control block and output key for a tree of one leaf.
pub(crate) fn single_leaf(script: &[u8]) -> (Vec<u8>, [u8; 32]) {
    under_key(&tap_leaf_hash(LEAF_TAPSCRIPT, script))
}

const LEAF_TAPSCRIPT: u8 = 0xc0;

/// Output key that commits to a Merkle root, and a control block with an empty path.
fn under_key(root: &[u8; 32]) -> (Vec<u8>, [u8; 32]) {
    let tweak = tap_tweak_hash(&INTERNAL_KEY, Some(root));
    let (output, parity) = XOnlyPublicKey::from_byte_array(INTERNAL_KEY)
        .and_then(|key| {
            key.add_tweak(&Scalar::from_be_bytes(tweak).expect("a hash below the order"))
        })
        .expect("the generator plus a tweak is a point, but once in 2^256");
    let mut control = vec![LEAF_TAPSCRIPT | parity.to_u8()];
    control.extend(INTERNAL_KEY);
    (control, output.to_byte_array())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// Tweaked internal key (BIP-0341).
    Taproot,
    /// Merkle root alone (P2MR, BIP-0360).
    MerkleRoot,
}

impl Tree {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Taproot => "tapscript",
            Self::MerkleRoot => "P2MR",
        }
    }
}

/// Maximum length of a Merkle path (BIP-0341).
pub(crate) const DEPTH_MAX: usize = 128;

/// Control block and output script for a leaf at a depth, with arbitrary siblings.
fn in_tree(tree: Tree, script: &[u8], depth: usize) -> (Vec<u8>, Vec<u8>) {
    let siblings: Vec<[u8; 32]> = (0..depth).map(|level| [level as u8; 32]).collect();
    let leaf = tap_leaf_hash(LEAF_TAPSCRIPT, script);
    let root = siblings.iter().fold(leaf, |node, sibling| tap_branch_hash(&node, sibling));
    let (mut control, version, program) = match tree {
        Tree::Taproot => {
            let (control, key) = under_key(&root);
            (control, 0x51, key)
        }
        Tree::MerkleRoot => (vec![LEAF_TAPSCRIPT | 1], 0x52, root),
    };
    control.extend(siblings.concat());
    (control, [&[version, 32], &program[..]].concat())
}

/// A transaction with one input, and the output that it spends.
#[derive(Clone, Debug)]
pub(crate) struct Spend {
    pub(crate) tx: Transaction,
    pub(crate) script_pubkey: Vec<u8>,
    pub(crate) value: i64,
    pub(crate) flags: Flags,
}

impl Spend {
    /// Spends an output with this script, with these elements as the initial stack.
    pub(crate) fn new(wrap: Wrap, script: &[u8], arguments: Vec<Vec<u8>>) -> Self {
        let (script_pubkey, witness) = commitment_to(wrap, script, arguments);
        Self::raw(&[], script_pubkey, &witness, 1, flags_of(wrap))
    }

    /// Spends a leaf at a depth of a script tree.
    pub(crate) fn of_leaf(tree: Tree, script: &[u8], depth: usize) -> Self {
        let (control, script_pubkey) = in_tree(tree, script, depth);
        let witness = [script.to_vec(), control];
        Self::raw(&[], script_pubkey, &witness, 1, flags_of(Wrap::Tapscript))
    }

    /// Spends this output with this input script and witness, in a transaction like those of Core's `transaction_utils.cpp`.
    pub(crate) fn raw(
        script_sig: &[u8],
        script_pubkey: Vec<u8>,
        witness: &[Vec<u8>],
        value: i64,
        flags: Flags,
    ) -> Self {
        let credit = transaction(OutPoint::NULL, &[0, 0], &[], value, &script_pubkey);
        let prevout = OutPoint { txid: Txid(credit.view().txid().0), vout: 0 };
        let tx = transaction(prevout, script_sig, witness, value, &[]);
        Self { tx, script_pubkey, value, flags }
    }

    pub(crate) fn spent(&self) -> [TxOut<'_>; 1] {
        [TxOut { value: self.value, script_pubkey: &self.script_pubkey }]
    }

    pub(crate) fn verify(&self, rules: &RuleSet) -> Result<InputStats, ScriptError> {
        let spent = self.spent();
        let context = TxContext::new(self.tx.view(), &spent);
        Interpreter::with_rules(*rules).verify_input(&context, 0, self.flags, &mut ImmediateChecker)
    }

    /// Verifies the input `times` times and returns the total time. Data shared by all inputs of a
    /// transaction and the memory of the interpreter are prepared before, as in a block.
    pub(crate) fn time(&self, interpreter: &mut Interpreter, times: u64) -> Result<Sample> {
        let spent = self.spent();
        let context = TxContext::new(self.tx.view(), &spent);
        let mut failed = None;
        let sample = Sample::of(times, || {
            for _ in 0..times {
                let context = black_box(&context);
                let verdict =
                    interpreter.verify_input(context, 0, self.flags, &mut ImmediateChecker);
                if let Err(error) = black_box(verdict) {
                    failed = Some(error);
                }
            }
        });
        match failed {
            None => Ok(sample),
            Some(error) => Err(wrong_answer("script", "assay", error)),
        }
    }

    /// The same input with one bit of the spent output flipped: it must fail.
    pub(crate) fn spoiled(&self) -> Self {
        let mut spoiled = self.clone();
        if let Some(byte) = spoiled.script_pubkey.last_mut() {
            *byte ^= 1;
        }
        spoiled
    }

    /// Weight of the input without the rest of the transaction.
    pub(crate) fn input_weight(&self) -> u64 {
        let tx = self.tx.view();
        let input = tx.input(0);
        let script_sig = input.script_sig.len();
        let base = 40 + encode::compact_size_len(script_sig as u64) + script_sig;
        let witness = if tx.has_witness() { tx.witness(0).serialized_size() } else { 0 };
        (4 * base + witness) as u64
    }
}

fn transaction(
    prevout: OutPoint,
    script_sig: &[u8],
    witness: &[Vec<u8>],
    value: i64,
    script_pubkey: &[u8],
) -> Transaction {
    TxBuilder::new(1)
        .spend(prevout, &[], u32::MAX)
        .unlock(0, script_sig, witness)
        .output(value, script_pubkey)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrap_can_be_spent_and_is_not_when_spoiled() {
        for wrap in [Wrap::P2wsh, Wrap::Tapscript] {
            let spend = Spend::new(wrap, &[0x75, 0x51], vec![vec![7; 520]]);
            assert_eq!(spend.verify(&RuleSet::TODAY).map(|stats| stats.sig_checks), Ok(0));
            assert_eq!(
                spend.spoiled().verify(&RuleSet::TODAY),
                Err(ScriptError::WitnessProgramMismatch)
            );
            let all = spend.tx.view().weight() as u64;
            // Subtracts version, marker and flag, counts, an empty output and lock time.
            assert_eq!(spend.input_weight(), all - 4 * (4 + 1 + 1 + 9 + 4) - 2);
        }
        let rules = RuleSet::by_name("p2mr").expect("a name");
        for (tree, depth) in [Tree::Taproot, Tree::MerkleRoot].into_iter().zip([128, 1]) {
            let spend = Spend::of_leaf(tree, &[0x51], depth);
            assert!(spend.verify(&rules).is_ok(), "{tree:?}");
            let error = Err(ScriptError::WitnessProgramMismatch);
            assert_eq!(spend.spoiled().verify(&rules), error, "{tree:?}");
        }
        let bare = Spend::new(Wrap::Bare, &[0x51], vec![]);
        assert!(bare.verify(&RuleSet::TODAY).is_ok() && bare.input_weight() == 164);
    }
}
