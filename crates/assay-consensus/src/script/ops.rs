//! Opcodes that only move, compare, add and hash stack elements.

use std::ops::Range;

use assay_hash::{ripemd160, sha1, sha256, sha256d};

use super::bch_rules;
use super::checker::SignatureChecker;
use super::error::ScriptError;
use super::exec::Exec;
use super::flags::Flags;
use super::num;
use super::opcode::op;
use super::rules::Language;
use super::stack::Stack;

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    /// Stack manipulation.
    #[expect(clippy::too_many_lines, reason = "an arm for each opcode")]
    pub(super) fn stack_op(&mut self, opcode: u8) -> Result<(), ScriptError> {
        let language = self.language;
        let stack = &mut *self.stack;
        match opcode {
            op::TOALTSTACK => stack.move_to_alt()?,
            op::FROMALTSTACK => stack.move_from_alt()?,
            op::DROP2 => {
                stack.need(2)?;
                stack.drop_top(2);
            }
            op::DUP2 => {
                stack.need(2)?;
                may_copy(language, opcode, stack, 0..2)?;
                stack.push_again(1);
                stack.push_again(1);
            }
            op::DUP3 => {
                stack.need(3)?;
                may_copy(language, opcode, stack, 0..3)?;
                for _ in 0..3 {
                    stack.push_again(2);
                }
            }
            op::OVER2 => {
                stack.need(4)?;
                may_copy(language, opcode, stack, 2..4)?;
                stack.push_again(3);
                stack.push_again(3);
            }
            op::ROT2 => {
                stack.need(6)?;
                stack.roll(5);
                stack.roll(5);
            }
            op::SWAP2 => {
                stack.need(4)?;
                stack.swap(3, 1);
                stack.swap(2, 0);
            }
            op::IFDUP => {
                stack.need(1)?;
                if num::is_true(stack.peek(0)) {
                    may_copy(language, opcode, stack, 0..1)?;
                    stack.push_again(0);
                }
            }
            op::DEPTH => stack.push_num(stack.len() as i64),
            op::DROP => {
                stack.need(1)?;
                stack.drop_top(1);
            }
            op::DUP => {
                stack.need(1)?;
                may_copy(language, opcode, stack, 0..1)?;
                stack.push_again(0);
            }
            op::NIP => {
                stack.need(2)?;
                stack.remove(1);
            }
            op::OVER => {
                stack.need(2)?;
                may_copy(language, opcode, stack, 1..2)?;
                stack.push_again(1);
            }
            op::PICK | op::ROLL => {
                stack.need(2)?;
                let depth = self.number(0)?;
                self.stack.drop_top(1);
                let depth = usize::try_from(depth)
                    .ok()
                    .filter(|&depth| depth < self.stack.len())
                    .ok_or(ScriptError::InvalidStackOperation)?;
                if opcode == op::PICK {
                    may_copy(language, opcode, self.stack, depth..depth + 1)?;
                    self.stack.push_again(depth);
                } else {
                    self.stack.roll(depth);
                }
            }
            op::ROT => {
                stack.need(3)?;
                stack.roll(2);
            }
            op::SWAP => {
                stack.need(2)?;
                stack.swap(0, 1);
            }
            op::TUCK => {
                stack.need(2)?;
                may_copy(language, opcode, stack, 0..1)?;
                stack.tuck();
            }
            op::SIZE => {
                stack.need(1)?;
                stack.push_num(stack.peek(0).len() as i64);
            }
            _ => return Err(ScriptError::BadOpcode),
        }
        Ok(())
    }

    /// EQUAL and EQUALVERIFY.
    #[inline]
    pub(super) fn equal(&mut self, opcode: u8) -> Result<(), ScriptError> {
        self.stack.need(2)?;
        let equal = self.stack.peek(0) == self.stack.peek(1);
        self.stack.drop_top(2);
        self.finish_check(equal, opcode == op::EQUALVERIFY, ScriptError::EqualVerify)
    }

    /// Everything that reads numbers and gives one.
    pub(super) fn arithmetic(&mut self, opcode: u8) -> Result<(), ScriptError> {
        match opcode {
            op::ADD1..=op::NOTEQUAL0 => self.unary(opcode),
            op::WITHIN => {
                self.stack.need(3)?;
                let value = self.number(2)?;
                let min = self.number(1)?;
                let max = self.number(0)?;
                self.stack.drop_top(3);
                self.stack.push_bool((min..max).contains(&value));
                Ok(())
            }
            _ => self.binary(opcode),
        }
    }

    fn unary(&mut self, opcode: u8) -> Result<(), ScriptError> {
        self.stack.need(1)?;
        let a = self.number(0)?;
        let result = match opcode {
            op::ADD1 => in_range(a.checked_add(1))?,
            op::SUB1 => in_range(a.checked_sub(1))?,
            op::NEGATE => -a,
            op::ABS => a.abs(),
            op::NOT => i64::from(a == 0),
            op::NOTEQUAL0 => i64::from(a != 0),
            _ => return Err(ScriptError::BadOpcode),
        };
        self.stack.drop_top(1);
        self.stack.push_num(result);
        Ok(())
    }

    fn binary(&mut self, opcode: u8) -> Result<(), ScriptError> {
        self.stack.need(2)?;
        let a = self.number(1)?;
        let b = self.number(0)?;
        let result = match opcode {
            op::ADD => in_range(a.checked_add(b))?,
            op::SUB => in_range(a.checked_sub(b))?,
            op::MUL if self.flags.contains(Flags::BCH) => in_range(a.checked_mul(b))?,
            op::BOOLAND => i64::from(a != 0 && b != 0),
            op::BOOLOR => i64::from(a != 0 || b != 0),
            op::NUMEQUAL | op::NUMEQUALVERIFY => i64::from(a == b),
            op::NUMNOTEQUAL => i64::from(a != b),
            op::LESSTHAN => i64::from(a < b),
            op::GREATERTHAN => i64::from(a > b),
            op::LESSTHANOREQUAL => i64::from(a <= b),
            op::GREATERTHANOREQUAL => i64::from(a >= b),
            op::MIN => a.min(b),
            op::MAX => a.max(b),
            op::DIV | op::MOD if self.flags.contains(Flags::BCH) => {
                bch_rules::divide(opcode, a, b)?
            }
            _ => return Err(ScriptError::BadOpcode),
        };
        self.stack.drop_top(2);
        if opcode == op::NUMEQUALVERIFY {
            return if result == 0 { Err(ScriptError::NumEqualVerify) } else { Ok(()) };
        }
        self.stack.push_num(result);
        Ok(())
    }

    /// Replaces the top element by a hash of it. A large one is hashed once however often a script copies it: an opcode costs a
    /// weight unit whatever it hashes.
    #[inline]
    pub(super) fn hash(&mut self, opcode: u8) -> Result<(), ScriptError> {
        self.stack.need(1)?;
        let data = self.stack.peek(0);
        let is_large = data.len() >= LARGE_BYTES && !self.stack.hashes_every_copy;
        if is_large && self.stack.recall_digest(opcode) {
            return Ok(());
        }
        let data = self.stack.peek(0);
        let (short, long);
        let digest: &[u8] = match opcode {
            op::RIPEMD160 => {
                short = ripemd160(data);
                &short
            }
            op::SHA1 => {
                short = sha1(data);
                &short
            }
            op::HASH160 => {
                short = self.ctx.hash160(self.input, data);
                &short
            }
            op::SHA256 => {
                long = sha256(data);
                &long
            }
            _ => {
                long = sha256d(data);
                &long
            }
        };
        if is_large {
            self.stack.keep_digest(opcode, digest);
        } else {
            self.stack.drop_top(1);
            self.stack.push(digest);
        }
        Ok(())
    }
}

/// From three blocks of a hash function on, looking for a digest is worth while.
const LARGE_BYTES: usize = 120;

/// Fails when a rule keeps this opcode from copying one of the elements at these depths.
#[inline]
fn may_copy(
    language: &Language,
    opcode: u8,
    stack: &Stack,
    depths: Range<usize>,
) -> Result<(), ScriptError> {
    if language.copies.are_limited() {
        return copies_are_small(language, opcode, stack, depths);
    }
    Ok(())
}

#[cold]
fn copies_are_small(
    language: &Language,
    opcode: u8,
    stack: &Stack,
    mut depths: Range<usize>,
) -> Result<(), ScriptError> {
    let Some(bytes_max) = language.copies.bytes_max(opcode) else { return Ok(()) };
    let small = depths.all(|depth| stack.peek(depth).len() <= bytes_max);
    if small { Ok(()) } else { Err(ScriptError::PushSize) }
}

/// A result, which has to fit eight bytes as its operands do: without [`Flags::INTEGERS_64_BIT`] they
/// have four, and every result does. The least number of 64 bits would take nine.
#[inline]
fn in_range(result: Option<i64>) -> Result<i64, ScriptError> {
    result.filter(|&result| result != i64::MIN).ok_or(ScriptError::InvalidNumberRange64Bit)
}
