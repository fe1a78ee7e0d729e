//! What the opcodes of BIP-0441 cost (BIP-0440).
//!
//! A transaction has a budget that grows with its weight, and opcodes spend it by the bytes that they look at and write. The
//! prices are data with a name, since the draft and its implementation go on changing them.

use super::error::ScriptError;
use super::natural::{saturating, shifted_up_len};
use super::opcode::op;
use super::stack::Stack;

/// Prices of work on elements: for each byte, where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostTable {
    /// Where the prices are written, and which version of that.
    pub name: &'static str,
    /// Budget of a transaction for each weight unit.
    pub budget_per_weight: u64,
    /// Elements that are worked on word by word count as a multiple of this.
    pub span: u64,
    /// Comparing two elements, or one with zero; reading a length; clearing.
    pub fast: u64,
    /// Copying.
    pub copy: u64,
    /// Whatever has no price of its own.
    pub other: u64,
    /// Adding and subtracting.
    pub arithmetic: u64,
    /// SHA256, HASH160 and HASH256.
    pub hash: u64,
    /// `OP_ROLL`: each element that moves.
    pub roll: u64,
    /// A signature.
    pub signature: u64,
    /// `OP_MUL`: each byte of the second operand times each word of eight bytes of the first.
    pub multiply: u64,
    /// What `OP_SIZE` and `OP_DEPTH` pay for their result.
    pub length_result: u64,
    /// Whether an `OP_UPSHIFT` by other than whole bytes pays for the bytes before its operand too.
    pub shift_counts_result: bool,
}

impl CostTable {
    /// The texts of BIP-0440 0.2.1 and BIP-0441 0.2.2, of June 2026.
    pub const BIP440_0_2_1: Self = Self {
        name: "BIP440 0.2.1",
        budget_per_weight: 10_000,
        span: 8,
        fast: 2,
        copy: 3,
        other: 4,
        arithmetic: 6,
        hash: 50,
        roll: 48,
        signature: 500_000,
        multiply: 27,
        length_result: 0,
        shift_counts_result: true,
    };

    /// The implementation of the draft's authors before that, at commit 1a3b3af7: bytes are not rounded up to words.
    pub const GSR_1A3B3AF: Self = Self {
        name: "gsr 1a3b3af",
        span: 1,
        length_result: 3,
        shift_counts_result: false,
        ..Self::BIP440_0_2_1
    };

    /// What a transaction of this weight may spend.
    pub const fn budget(&self, weight: usize) -> u64 {
        self.budget_per_weight.saturating_mul(weight as u64)
    }

    /// The last check, that the element which is left is true.
    pub(super) fn of_result(&self, length: usize) -> u64 {
        self.spanned(length) * self.fast
    }

    fn spanned(&self, length: usize) -> u64 {
        (length as u64).next_multiple_of(self.span)
    }

    /// What an opcode costs with these operands, which are there. Elements have at most 4,000,000 bytes, so nothing overflows.
    ///
    /// # Errors
    /// A number of operands, or a depth, that the stack does not have.
    pub(super) fn of(&self, opcode: u8, stack: &Stack) -> Result<u64, ScriptError> {
        stack.need(operands(opcode))?;
        let length = |depth: usize| stack.peek(depth).len() as u64;
        let span = |depth: usize| self.spanned(stack.peek(depth).len());
        let value = |depth: usize| saturating(stack.peek(depth));
        let longest = || span(0).max(span(1));
        let &Self { fast, copy, other, .. } = self;
        Ok(match opcode {
            op::VERIFY
            | op::NOT
            | op::NOTEQUAL0
            | op::CHECKLOCKTIMEVERIFY
            | op::CHECKSEQUENCEVERIFY
            | op::LEFT => span(0) * fast,
            op::EQUAL | op::EQUALVERIFY if length(0) == length(1) => length(0) * fast,
            op::DUP | op::TUCK => length(0) * copy,
            op::OVER => length(1) * copy,
            op::DUP2 => (length(0) + length(1)) * copy,
            op::DUP3 => (length(0) + length(1) + length(2)) * copy,
            op::OVER2 => (length(2) + length(3)) * copy,
            op::IFDUP => span(0) * fast + length(0) * copy,
            op::PICK => span(0) * fast + length(1 + depth(stack)?) * copy,
            op::ROLL => span(0) * fast + depth(stack)? as u64 * self.roll,
            op::SIZE => result_length(length(0)) * self.length_result,
            op::DEPTH => result_length(stack.len() as u64) * self.length_result,
            op::BOOLAND | op::BOOLOR | op::AND => (span(0) + span(1)) * fast,
            op::NUMEQUAL..=op::GREATERTHANOREQUAL => longest() * fast,
            op::MIN | op::MAX => longest() * other,
            op::WITHIN => (span(2).max(span(1)) + span(2).max(span(0))) * fast,
            op::SHA256 | op::HASH160 | op::HASH256 => length(0) * self.hash,
            op::CAT => (length(0) + length(1)) * copy,
            op::SUBSTR => {
                let rest = length(2).saturating_sub(value(1));
                (span(0) + span(1)) * fast + value(0).min(rest) * copy
            }
            op::RIGHT => span(0) * fast + value(0).min(length(1)) * copy,
            op::INVERT | op::DIV2 => span(0) * other,
            op::OR | op::XOR => span(0).min(span(1)) * other,
            op::LSHIFT => {
                let bits = value(0);
                // Above the limit the opcode fails, whatever is left.
                let whole = (bits / 8).min(1 << 32);
                let aligned = span(0) * fast + whole * fast + length(1) * copy;
                let moved = if self.shift_counts_result { length(1) + whole } else { length(1) };
                let unaligned = moved.next_multiple_of(self.span) * other;
                aligned + if bits.is_multiple_of(8) { 0 } else { unaligned }
            }
            op::RSHIFT => span(0) * fast + length(1).saturating_sub(value(0) / 8) * copy,
            op::MUL2 => span(0) * (copy + other),
            op::ADD => longest() * (self.arithmetic + copy),
            op::ADD1 => span(0).max(self.spanned(1)) * (self.arithmetic + copy),
            op::SUB => longest() * self.arithmetic,
            op::SUB1 => span(0).max(self.spanned(1)) * self.arithmetic,
            op::MUL => {
                let words = length(1).div_ceil(8);
                (length(0) + length(1)) * copy + words * span(0) * self.multiply
            }
            op::DIV | op::MOD => {
                let (a, b) = (span(1), span(0));
                a * 3 * self.arithmetic + b * other + a * a * 2 / 3
            }
            op::CHECKSIG | op::CHECKSIGVERIFY => self.signature,
            op::CHECKSIGADD => {
                span(1).max(self.spanned(1)) * (self.arithmetic + copy) + self.signature
            }
            _ => 0,
        })
    }
}

fn result_length(value: u64) -> u64 {
    u64::from((64 - value.leading_zeros()).div_ceil(8))
}

/// Which element `OP_PICK` and `OP_ROLL` take, counted below their operand.
pub(super) fn depth(stack: &Stack) -> Result<usize, ScriptError> {
    let depth = usize::try_from(saturating(stack.peek(0))).ok();
    let below = stack.len() - 1;
    depth.filter(|&depth| depth < below).ok_or(ScriptError::InvalidStackOperation)
}

/// How many elements an opcode of BIP-0441 asks for, where that is not asked elsewhere.
const fn operands(opcode: u8) -> usize {
    match opcode {
        op::VERIFY
        | op::IFDUP
        | op::DUP
        | op::SIZE
        | op::INVERT
        | op::ADD1..=op::NOTEQUAL0
        | op::RIPEMD160..=op::HASH256
        | op::CHECKLOCKTIMEVERIFY
        | op::CHECKSEQUENCEVERIFY => 1,
        op::OVER
        | op::TUCK
        | op::DUP2
        | op::PICK
        | op::ROLL
        | op::CAT
        | op::LEFT
        | op::RIGHT
        | op::AND..=op::EQUALVERIFY
        | op::ADD..=op::MAX
        | op::CHECKSIG
        | op::CHECKSIGVERIFY => 2,
        op::DUP3 | op::SUBSTR | op::WITHIN | op::CHECKSIGADD => 3,
        op::OVER2 => 4,
        _ => 0,
    }
}

/// What is left of a transaction's budget, and how much is on the stacks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    pub(super) budget: u64,
    pub(super) spent: u64,
    /// Bytes of all elements.
    pub(super) stack_bytes: usize,
}

impl Meter {
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), ScriptError> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.budget { Err(ScriptError::VaropsBudget) } else { Ok(()) }
    }
}

/// Whether a shift up gives an element that may be.
pub(super) fn shift_fits(length: usize, bits: u64, bytes_max: usize) -> bool {
    shifted_up_len(length, bits) <= bytes_max as u64
}
