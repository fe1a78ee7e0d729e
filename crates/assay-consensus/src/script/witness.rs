//! Witness programs: version 0 key and script hashes, and Taproot.

use std::sync::LazyLock;

use assay_hash::{Sha256, TaggedHasher, sha256};
use assay_wire::Witness;

use super::checker::SignatureChecker;
use super::checksig::split_schnorr;
use super::error::ScriptError;
use super::exec::{Exec, Frame, SigVersion};
use super::flags::Flags;
use super::message::update_compact_size;
use super::num;
use super::opcode::{MAX_STACK_SIZE, is_op_success, op, read_instruction};
use super::rules::{Language, Operation, Program};

/// Number of the script a witness program runs, for the sighash cache.
const WITNESS_SCRIPT: u8 = 3;
/// First byte of an annex (BIP-0341).
const ANNEX_TAG: u8 = 0x50;
const CONTROL_BASE: usize = 33;
const CONTROL_NODE: usize = 32;
const CONTROL_NODES_MAX: usize = 128;
/// The budget for signatures that every tapscript has beyond its witness size (BIP-0342).
const WEIGHT_OFFSET: i64 = 50;

/// Opcodes without data that are no `OP_SUCCESSx`.
static NEVER_SUCCESS: [bool; 256] = {
    let mut never = [false; 256];
    let mut opcode = op::PUSHDATA4;
    while opcode < u8::MAX {
        opcode += 1;
        never[opcode as usize] = !is_op_success(opcode);
    }
    never
};

static TAP_LEAF: LazyLock<TaggedHasher> = LazyLock::new(|| TaggedHasher::new("TapLeaf"));
static TAP_BRANCH: LazyLock<TaggedHasher> = LazyLock::new(|| TaggedHasher::new("TapBranch"));
static TAP_TWEAK: LazyLock<TaggedHasher> = LazyLock::new(|| TaggedHasher::new("TapTweak"));

/// Hash of a Taproot leaf (BIP-0341).
pub fn tap_leaf_hash(version: u8, script: &[u8]) -> [u8; 32] {
    let mut hasher = TAP_LEAF.start();
    hasher.update(&[version]);
    update_compact_size(&mut hasher, script.len());
    hasher.update(script);
    hasher.finalize()
}

/// Hash of an inner node of a Taproot tree: the lesser child first.
pub fn tap_branch_hash(a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
    let (first, second) = if a < b { (a, b) } else { (b, a) };
    let mut hasher = TAP_BRANCH.start();
    hasher.update(first);
    hasher.update(second);
    hasher.finalize()
}

/// The number that is added to the internal key, for a tree or (`None`) without one.
pub fn tap_tweak_hash(internal_key: &[u8; 32], merkle_root: Option<&[u8; 32]>) -> [u8; 32] {
    let mut hasher = TAP_TWEAK.start();
    hasher.update(internal_key);
    if let Some(root) = merkle_root {
        hasher.update(root);
    }
    hasher.finalize()
}

/// SHA-256 of an annex with its length, as signatures commit to it.
pub fn annex_hash(annex: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    update_compact_size(&mut hasher, annex.len());
    hasher.update(annex);
    hasher.finalize()
}

impl<'e, C: SignatureChecker + ?Sized> Exec<'e, '_, C> {
    /// Checks a witness against a program (Core `VerifyWitnessProgram`).
    pub(super) fn verify_witness_program(
        &mut self,
        witness: Witness<'_>,
        version: u8,
        program: &[u8],
        is_p2sh: bool,
    ) -> Result<(), ScriptError> {
        match (version, program.len()) {
            (0, 20) => self.verify_key_hash(witness, program),
            (0, 32) => {
                let before =
                    witness.len().checked_sub(1).ok_or(ScriptError::WitnessProgramWitnessEmpty)?;
                let script = witness.iter().nth(before).unwrap_or_default();
                if sha256(script) != program {
                    return Err(ScriptError::WitnessProgramMismatch);
                }
                let language = &self.rules.witness_v0;
                self.run_witness_script(witness, before, script, SigVersion::WitnessV0, language)
            }
            (0, _) => Err(ScriptError::WitnessProgramWrongLength),
            (1..=16, 32) if !is_p2sh => match self.rules.programs[usize::from(version)] {
                Program::Taproot => {
                    let Ok(program) = program.try_into() else { return Ok(()) };
                    self.verify_taproot(witness, program)
                }
                Program::MerkleRoot => self.verify_merkle_root(witness, program),
                Program::Unknown => self.unknown_program(),
            },
            // Pay to anchor: anyone may spend, without a warning.
            (1, 2) if !is_p2sh && program == [0x4e, 0x73] => Ok(()),
            _ => self.unknown_program(),
        }
    }

    fn unknown_program(&self) -> Result<(), ScriptError> {
        if self.flags.contains(Flags::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM) {
            return Err(ScriptError::DiscourageUpgradableWitnessProgram);
        }
        Ok(())
    }

    /// P2WPKH: the result of running `DUP HASH160 <program> EQUALVERIFY CHECKSIG`.
    fn verify_key_hash(&mut self, witness: Witness<'_>, program: &[u8]) -> Result<(), ScriptError> {
        let mut items = witness.iter();
        let (Some(sig), Some(key), None) = (items.next(), items.next(), items.next()) else {
            return Err(ScriptError::WitnessProgramMismatch);
        };
        let element_bytes_max = self.rules.witness_v0.element_bytes_max;
        if sig.len() > element_bytes_max || key.len() > element_bytes_max {
            return Err(ScriptError::PushSize);
        }
        if self.ctx.hash160(self.input, key) != program {
            return Err(ScriptError::EqualVerify);
        }
        let mut code = [0; 25];
        code[..3].copy_from_slice(&[op::DUP, op::HASH160, 20]);
        code[3..23].copy_from_slice(program);
        code[23..].copy_from_slice(&[op::EQUALVERIFY, op::CHECKSIG]);
        self.stack.clear_main();
        self.stack.push(sig);
        self.stack.push(key);
        (self.version, self.language) = (SigVersion::WitnessV0, &self.rules.witness_v0);
        if self.check_sig(&Frame::new(&code, WITNESS_SCRIPT), 1, 0)? {
            Ok(())
        } else {
            Err(ScriptError::EvalFalse)
        }
    }

    /// Runs a script on the first `count` items of the witness (Core `ExecuteWitnessScript`).
    fn run_witness_script(
        &mut self,
        witness: Witness<'_>,
        count: usize,
        script: &[u8],
        version: SigVersion,
        language: &'e Language,
    ) -> Result<(), ScriptError> {
        (self.version, self.language) = (version, language);
        if version == SigVersion::Tapscript {
            if self.has_op_success(script)? {
                return Ok(());
            }
            if count > MAX_STACK_SIZE {
                return Err(ScriptError::StackSize);
            }
        }
        self.stack.clear_main();
        for item in witness.iter().take(count) {
            if item.len() > language.element_bytes_max {
                return Err(ScriptError::PushSize);
            }
            self.stack.push(item);
        }
        self.run(script, WITNESS_SCRIPT)?;
        if self.stack.len() != 1 {
            return Err(ScriptError::CleanStack);
        }
        if !num::is_true(self.stack.peek(0)) {
            return Err(ScriptError::EvalFalse);
        }
        Ok(())
    }

    /// Returns `true` if an `OP_SUCCESSx` makes everything else in the tapscript irrelevant (BIP-0342).
    fn has_op_success(&self, script: &[u8]) -> Result<bool, ScriptError> {
        let mut pos = 0;
        let never = |opcode: u8| NEVER_SUCCESS[usize::from(opcode)];
        while let Some(&opcode) = script.get(pos) {
            // Eight at a time: a leaf may have millions.
            if let Some(opcodes) = script[pos..].first_chunk::<8>()
                && opcodes.iter().fold(true, |all, &opcode| all & never(opcode))
            {
                pos += opcodes.len();
                continue;
            }
            if never(opcode) {
                pos += 1;
                continue;
            }
            read_instruction(script, &mut pos).ok_or(ScriptError::BadOpcode)?;
            if is_op_success(opcode) && !self.has_operation(opcode) {
                return if self.flags.contains(Flags::DISCOURAGE_OP_SUCCESS) {
                    Err(ScriptError::DiscourageOpSuccess)
                } else {
                    Ok(true)
                };
            }
        }
        Ok(false)
    }

    /// Returns `true` if a proposal has given a success opcode another meaning.
    fn has_operation(&self, opcode: u8) -> bool {
        match self.language.operations.get(opcode) {
            Some(Operation::InternalKey) => self.tap.internal_key.is_some(),
            operation => operation.is_some(),
        }
    }

    /// BIP-0341.
    fn verify_taproot(
        &mut self,
        witness: Witness<'_>,
        program: &[u8; 32],
    ) -> Result<(), ScriptError> {
        if !self.flags.contains(Flags::TAPROOT) {
            return Ok(());
        }
        let (count, last) = self.without_annex(witness);
        match count {
            0 => return Err(ScriptError::WitnessProgramWitnessEmpty),
            1 => {
                let (&sig, hash_type) = split_schnorr(last[2])?;
                return self.verify_schnorr(&sig, hash_type, program, None);
            }
            _ => {}
        }
        let [_, script, control] = last;
        self.verify_commitment(script, control, program)?;
        self.run_leaf(witness, count - 2, script, control[0] & 0xfe)
    }

    /// Number of items of a witness before its annex, and the last of them: script and control block. Remembers the annex.
    fn without_annex<'w>(&mut self, witness: Witness<'w>) -> (usize, [&'w [u8]; 3]) {
        let count = witness.len();
        // The last three items: script, control block and possibly an annex.
        let mut last: [&[u8]; 3] = [&[]; 3];
        for item in witness {
            last = [last[1], last[2], item];
        }
        if count >= 2 && last[2].first() == Some(&ANNEX_TAG) {
            self.tap.annex_hash = Some(annex_hash(last[2]));
            return (count - 1, [&[], last[0], last[1]]);
        }
        (count, last)
    }

    /// BIP-0360 (P2MR): the program is the root of a tree of scripts, without a key.
    ///
    /// A script at depth 0 succeeds without being run. Core has no names for what fails here, so the names of Taproot stand
    /// for it.
    fn verify_merkle_root(
        &mut self,
        witness: Witness<'_>,
        program: &[u8],
    ) -> Result<(), ScriptError> {
        let (count, [_, script, control]) = self.without_annex(witness);
        // Also where the second of two items looks like an annex.
        if count < 2 {
            return Err(ScriptError::WitnessProgramWitnessEmpty);
        }
        let Some((&first, path)) = control.split_first() else {
            return Err(ScriptError::TaprootWrongControlSize);
        };
        if !is_path(path) || first & 1 == 0 {
            return Err(ScriptError::TaprootWrongControlSize);
        }
        let version = first & 0xfe;
        if self.walk(version, script, path) != program {
            return Err(ScriptError::WitnessProgramMismatch);
        }
        if path.is_empty() {
            return Ok(());
        }
        self.run_leaf(witness, count - 2, script, version)
    }

    /// Runs the script of a leaf on the first `count` items, if its version is one that is run.
    fn run_leaf(
        &mut self,
        witness: Witness<'_>,
        count: usize,
        script: &[u8],
        version: u8,
    ) -> Result<(), ScriptError> {
        let Some(language) = self.rules.leaf(version) else {
            return if self.flags.contains(Flags::DISCOURAGE_UPGRADABLE_TAPROOT_VERSION) {
                Err(ScriptError::DiscourageUpgradableTaprootVersion)
            } else {
                Ok(())
            };
        };
        self.tap.weight_left = witness.serialized_size() as i64 + WEIGHT_OFFSET;
        self.run_witness_script(witness, count, script, SigVersion::Tapscript, language)
    }

    /// Remembers the hash of a leaf and goes from it up to the root.
    fn walk(&mut self, version: u8, script: &[u8], path: &[u8]) -> [u8; 32] {
        self.tap.leaf_hash = tap_leaf_hash(version, script);
        let mut root = self.tap.leaf_hash;
        for node in path.chunks_exact(CONTROL_NODE) {
            let mut sibling = [0; 32];
            sibling.copy_from_slice(node);
            root = tap_branch_hash(&root, &sibling);
        }
        root
    }

    /// Checks that the output key commits to the script by the path in the control block.
    fn verify_commitment(
        &mut self,
        script: &[u8],
        control: &[u8],
        program: &[u8; 32],
    ) -> Result<(), ScriptError> {
        let Some((base, path)) = control.split_first_chunk::<CONTROL_BASE>() else {
            return Err(ScriptError::TaprootWrongControlSize);
        };
        if !is_path(path) {
            return Err(ScriptError::TaprootWrongControlSize);
        }
        let (version, parity) = (base[0] & 0xfe, base[0] & 1 == 1);
        let mut internal_key = [0; 32];
        internal_key.copy_from_slice(&base[1..]);
        self.tap.internal_key = Some(internal_key);
        let root = self.walk(version, script, path);
        let tweak = tap_tweak_hash(&internal_key, Some(&root));
        if self.checker.taproot_tweak(&internal_key, &tweak, program, parity) {
            Ok(())
        } else {
            Err(ScriptError::WitnessProgramMismatch)
        }
    }
}

/// Returns `true` if a control block has whole nodes, and no more than the largest depth of a tree.
fn is_path(nodes: &[u8]) -> bool {
    nodes.len().is_multiple_of(CONTROL_NODE) && nodes.len() <= CONTROL_NODE * CONTROL_NODES_MAX
}

#[cfg(test)]
#[path = "p2mr_tests.rs"]
mod p2mr_tests;
#[cfg(test)]
#[path = "taproot_tests.rs"]
pub(super) mod tests;
