//! Running one script: the instruction loop, control flow and lock times.
//!
//! Follows Bitcoin Core's `EvalScript` (`script/interpreter.cpp`) rule by rule and in its order, so
//! that also the reported error is the same.

use super::bch_rules;
use super::checker::SignatureChecker;
use super::context::TxContext;
use super::deletion::Deletions;
use super::error::ScriptError;
use super::flags::Flags;
use super::long::LongMessages;
use super::num::{self, NumError};
use super::opcode::{
    MAX_OPS, MAX_SCRIPT_SIZE, MAX_STACK_SIZE, is_minimal_push, op, read_instruction,
};
use super::rules::{Language, RuleSet};
use super::sighash::SighashCache;
use super::stack::Stack;

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SigVersion {
    /// Input scripts, output scripts and redeem scripts.
    Base,
    /// Scripts of version 0 witness programs (BIP-0141, BIP-0143).
    WitnessV0,
    /// Leaves of script trees (BIP-0342).
    Tapscript,
}

/// Memory that signature checks reuse.
#[derive(Debug, Default)]
pub(super) struct SigScratch {
    pub(super) deletions: Deletions,
    pub(super) cache: SighashCache,
    /// Long messages of this run.
    pub(super) long: LongMessages,
    /// Long messages of an earlier run of the same input.
    pub(super) known: LongMessages,
}

/// State that the Taproot rules keep during an input.
#[derive(Debug, Default)]
pub(super) struct TapState {
    pub(super) annex_hash: Option<[u8; 32]>,
    pub(super) leaf_hash: [u8; 32],
    /// The key that the output key was made from; none in P2MR.
    pub(super) internal_key: Option<[u8; 32]>,
    /// The rest of the budget for signature checks (BIP-0342).
    pub(super) weight_left: i64,
    pub(super) output_hash: Option<[u8; 32]>,
}

/// One input being verified.
pub(super) struct Exec<'e, 'a, C: ?Sized> {
    pub(super) stack: &'e mut Stack,
    pub(super) scratch: &'e mut SigScratch,
    pub(super) checker: &'e mut C,
    pub(super) ctx: &'e TxContext<'a>,
    pub(super) input: usize,
    pub(super) flags: Flags,
    pub(super) rules: &'e RuleSet,
    /// The rules of the script that is being run.
    pub(super) language: &'e Language,
    pub(super) version: SigVersion,
    pub(super) tap: TapState,
    pub(super) sig_checks: u32,
}

/// One script being run.
pub(super) struct Frame<'s> {
    pub(super) script: &'s [u8],
    /// Number of the script within its input; part of the keys of the sighash cache.
    pub(super) id: u8,
    pos: usize,
    /// The start of the script code: behind the last executed CODESEPARATOR.
    pub(super) code_start: usize,
    /// Position in opcodes of that CODESEPARATOR, all ones before the first (BIP-0342).
    pub(super) code_separator: u32,
    pub(super) ops: u32,
    branches: Branches,
}

impl<'s> Frame<'s> {
    pub(super) fn new(script: &'s [u8], id: u8) -> Self {
        Self {
            script,
            id,
            pos: 0,
            code_start: 0,
            code_separator: u32::MAX,
            ops: 0,
            branches: Branches::default(),
        }
    }
}

/// The stack of IF branches, as its height and the height of the first branch not taken: no rule
/// depends on more, and deep nesting costs nothing (Core `ConditionStack`).
#[derive(Default)]
struct Branches {
    depth: u32,
    first_false: Option<u32>,
}

impl Branches {
    fn push(&mut self, taken: bool) {
        if !taken && self.first_false.is_none() {
            self.first_false = Some(self.depth);
        }
        self.depth += 1;
    }

    fn flip(&mut self) -> Result<(), ScriptError> {
        let top = self.depth.checked_sub(1).ok_or(ScriptError::UnbalancedConditional)?;
        match self.first_false {
            None => self.first_false = Some(top),
            Some(first) if first == top => self.first_false = None,
            Some(_) => {}
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<(), ScriptError> {
        self.depth = self.depth.checked_sub(1).ok_or(ScriptError::UnbalancedConditional)?;
        if self.first_false == Some(self.depth) {
            self.first_false = None;
        }
        Ok(())
    }
}

/// Number of opcodes from here on that mean nothing in a branch that is not taken, and are not counted: numbers, and
/// `OP_RESERVED`.
#[inline]
fn passed_over(script: &[u8]) -> usize {
    script.iter().take_while(|&opcode| (op::RESERVED..=op::PUSH16).contains(opcode)).count()
}

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    /// Runs `script` on the current stack.
    pub(super) fn run(&mut self, script: &[u8], id: u8) -> Result<(), ScriptError> {
        let limited = self.version != SigVersion::Tapscript;
        if limited && script.len() > MAX_SCRIPT_SIZE {
            return Err(ScriptError::ScriptSize);
        }
        let minimal = self.flags.contains(Flags::MINIMALDATA);
        let const_code = self.version == SigVersion::Base
            && self.flags.contains(Flags::CONST_SCRIPTCODE)
            && !self.flags.contains(Flags::BCH);
        let push_bytes_max = self.language.push_bytes_max;
        let mut frame = Frame::new(script, id);
        let mut position = 0u32;
        while let Some(&opcode) = script.get(frame.pos) {
            let executing = frame.branches.first_false.is_none();
            if opcode <= op::PUSHDATA4 {
                let push =
                    read_instruction(script, &mut frame.pos).ok_or(ScriptError::BadOpcode)?;
                if push.data.len() > push_bytes_max {
                    return Err(ScriptError::PushSize);
                }
                if executing {
                    if minimal && !is_minimal_push(opcode, push.data) {
                        return Err(ScriptError::MinimalData);
                    }
                    self.stack.push(push.data);
                }
            } else {
                frame.pos += 1;
                if limited && opcode > op::PUSH16 {
                    frame.ops += 1;
                    if frame.ops > MAX_OPS {
                        return Err(ScriptError::OpCount);
                    }
                }
                if self.is_disabled(opcode) {
                    return Err(ScriptError::DisabledOpcode);
                }
                if const_code && opcode == op::CODESEPARATOR {
                    return Err(ScriptError::OpCodeSeparator);
                }
                if executing {
                    self.execute(&mut frame, opcode, position)?;
                } else if (op::IF..=op::ENDIF).contains(&opcode) {
                    skip(&mut frame, opcode)?;
                } else {
                    let more = passed_over(&script[frame.pos..]);
                    frame.pos += more;
                    position = position.wrapping_add(more as u32);
                }
            }
            if self.stack.total() > MAX_STACK_SIZE {
                return Err(ScriptError::StackSize);
            }
            position = position.wrapping_add(1);
        }
        self.stack.end_script();
        if frame.branches.depth != 0 {
            return Err(ScriptError::UnbalancedConditional);
        }
        Ok(())
    }

    /// Opcodes that fail the script even in a branch not taken (CVE-2010-5137).
    #[inline]
    fn is_disabled(&self, opcode: u8) -> bool {
        if !matches!(opcode, op::CAT..=op::RSHIFT) {
            return false;
        }
        if self.flags.contains(Flags::BCH) {
            return bch_rules::is_disabled(opcode, self.flags);
        }
        matches!(
            opcode,
            op::CAT..=op::RIGHT
                | op::INVERT..=op::XOR
                | op::MUL2
                | op::DIV2
                | op::MUL..=op::RSHIFT
        ) && self.language.operations.get(opcode).is_none()
    }

    #[inline(always)]
    fn execute(
        &mut self,
        frame: &mut Frame<'_>,
        opcode: u8,
        position: u32,
    ) -> Result<(), ScriptError> {
        match opcode {
            op::NEGATE1 => {
                self.stack.push_num(-1);
                Ok(())
            }
            op::PUSH1..=op::PUSH16 => {
                self.stack.push_byte(opcode - op::RESERVED);
                Ok(())
            }
            op::NOP => Ok(()),
            op::CHECKLOCKTIMEVERIFY => self.check_lock_time(),
            op::CHECKSEQUENCEVERIFY => self.check_sequence(),
            op::NOP1 | op::NOP4..=op::NOP10 => {
                if let Some(operation) = self.language.operations.get(opcode) {
                    return self.proposed(frame, operation);
                }
                if self.flags.contains(Flags::DISCOURAGE_UPGRADABLE_NOPS) {
                    return Err(ScriptError::DiscourageUpgradableNops);
                }
                Ok(())
            }
            op::IF | op::NOTIF => self.enter_branch(frame, opcode == op::NOTIF),
            op::ELSE => frame.branches.flip(),
            op::ENDIF => frame.branches.pop(),
            op::VERIFY => self.verify_top(),
            op::RETURN => Err(ScriptError::OpReturn),
            op::TOALTSTACK..=op::TUCK | op::SIZE => self.stack_op(opcode),
            op::EQUAL | op::EQUALVERIFY => self.equal(opcode),
            op::ADD1..=op::WITHIN => self.arithmetic(opcode),
            op::RIPEMD160..=op::HASH256 => self.hash(opcode),
            op::CODESEPARATOR => {
                frame.code_start = frame.pos;
                frame.code_separator = position;
                Ok(())
            }
            op::CHECKSIG | op::CHECKSIGVERIFY => {
                self.stack.need(2)?;
                let valid = self.check_sig(frame, 1, 0)?;
                self.stack.drop_top(2);
                self.finish_check(valid, opcode == op::CHECKSIGVERIFY, ScriptError::CheckSigVerify)
            }
            op::CHECKMULTISIG | op::CHECKMULTISIGVERIFY => {
                let valid = self.check_multisig(frame)?;
                self.finish_check(
                    valid,
                    opcode == op::CHECKMULTISIGVERIFY,
                    ScriptError::CheckMultisigVerify,
                )
            }
            op::CHECKSIGADD if self.version == SigVersion::Tapscript => {
                self.check_sig_add(|exec| exec.check_sig(frame, 2, 0))
            }
            _ if self.flags.contains(Flags::BCH) => self.bch_op(frame, opcode),
            _ => match self.language.operations.get(opcode) {
                Some(operation) => self.proposed(frame, operation),
                None => Err(ScriptError::BadOpcode),
            },
        }
    }

    /// Pushes the outcome of a check, or fails when it had to be true.
    #[inline]
    pub(super) fn finish_check(
        &mut self,
        valid: bool,
        verify: bool,
        error: ScriptError,
    ) -> Result<(), ScriptError> {
        if !verify {
            self.stack.push_bool(valid);
        } else if !valid {
            return Err(error);
        }
        Ok(())
    }

    /// Pops the top element, which must be true.
    fn verify_top(&mut self) -> Result<(), ScriptError> {
        self.stack.need(1)?;
        if !num::is_true(self.stack.peek(0)) {
            return Err(ScriptError::Verify);
        }
        self.stack.drop_top(1);
        Ok(())
    }

    fn enter_branch(&mut self, frame: &mut Frame<'_>, invert: bool) -> Result<(), ScriptError> {
        let family = self.flags.contains(Flags::BCH);
        let condition = self.stack.top().ok_or(if family {
            ScriptError::UnbalancedConditional
        } else {
            ScriptError::InvalidStackOperation
        })?;
        if !matches!(condition, [] | [1]) {
            if self.version == SigVersion::Tapscript {
                return Err(ScriptError::TapscriptMinimalIf);
            }
            // Core applies the flag to witness scripts only, BCHN to all it has.
            if self.flags.contains(Flags::MINIMALIF)
                && (self.version == SigVersion::WitnessV0 || family)
            {
                return Err(ScriptError::MinimalIf);
            }
        }
        let taken = num::is_true(condition) != invert;
        self.stack.drop_top(1);
        frame.branches.push(taken);
        Ok(())
    }

    /// Reads the number `depth` below the top, which is an operand of anything but a lock time.
    #[inline]
    pub(super) fn number(&self, depth: usize) -> Result<i64, ScriptError> {
        self.number_of(depth, self.number_bytes_max())
    }

    /// Most bytes of an operand.
    #[inline]
    pub(super) fn number_bytes_max(&self) -> usize {
        if self.flags.contains(Flags::INTEGERS_64_BIT) { 8 } else { 4 }
    }

    #[inline]
    fn number_of(&self, depth: usize, size_max: usize) -> Result<i64, ScriptError> {
        let minimal = self.flags.contains(Flags::MINIMALDATA);
        num::decode(self.stack.peek(depth), minimal, size_max).map_err(|error| {
            match (self.flags.contains(Flags::BCH), error) {
                (false, _) => ScriptError::ScriptNum,
                (true, NumError::TooLong) if size_max == 8 => ScriptError::InvalidNumberRange64Bit,
                (true, NumError::TooLong) => ScriptError::InvalidNumberRange,
                (true, NumError::NotMinimal) => ScriptError::MinimalNum,
            }
        })
    }

    /// A lock time operand: five bytes, because four end in 2038.
    fn lock_operand(&self) -> Result<i64, ScriptError> {
        self.stack.need(1)?;
        let operand = self.number_of(0, 5)?;
        if operand < 0 { Err(ScriptError::NegativeLocktime) } else { Ok(operand) }
    }

    /// BIP-0065.
    fn check_lock_time(&self) -> Result<(), ScriptError> {
        const THRESHOLD: i64 = 500_000_000;
        if !self.flags.contains(Flags::CHECKLOCKTIMEVERIFY) {
            return Ok(());
        }
        let operand = self.lock_operand()?;
        let lock_time = i64::from(self.ctx.tx().lock_time());
        let same_kind = (lock_time < THRESHOLD) == (operand < THRESHOLD);
        let is_final = self.ctx.tx().input(self.input).sequence == u32::MAX;
        if !same_kind || operand > lock_time || is_final {
            return Err(ScriptError::UnsatisfiedLocktime);
        }
        Ok(())
    }

    /// BIP-0112.
    fn check_sequence(&self) -> Result<(), ScriptError> {
        const DISABLE: i64 = 1 << 31;
        const IS_TIME: i64 = 1 << 22;
        const MASK: i64 = IS_TIME | 0xffff;
        if !self.flags.contains(Flags::CHECKSEQUENCEVERIFY) {
            return Ok(());
        }
        let operand = self.lock_operand()?;
        if operand & DISABLE != 0 {
            return Ok(());
        }
        let sequence = i64::from(self.ctx.tx().input(self.input).sequence);
        let old_version = (self.ctx.tx().version() as u32) < 2;
        let (operand, masked) = (operand & MASK, sequence & MASK);
        let same_kind = (operand < IS_TIME) == (masked < IS_TIME);
        if old_version || sequence & DISABLE != 0 || !same_kind || operand > masked {
            return Err(ScriptError::UnsatisfiedLocktime);
        }
        Ok(())
    }
}

/// Control flow inside a branch not taken.
fn skip(frame: &mut Frame<'_>, opcode: u8) -> Result<(), ScriptError> {
    match opcode {
        op::IF | op::NOTIF => {
            frame.branches.push(false);
            Ok(())
        }
        op::ELSE => frame.branches.flip(),
        op::ENDIF => frame.branches.pop(),
        // VERIF and VERNOTIF fail wherever they stand.
        _ => Err(ScriptError::BadOpcode),
    }
}
