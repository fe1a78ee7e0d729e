//! Leaves of BIP-0441: tapscript with the opcodes of the first Bitcoin, natural numbers of any length, and a budget (BIP-0440)
//! in place of limits.

use super::checker::SignatureChecker;
use super::error::ScriptError;
use super::exec::{Exec, Frame};
use super::flags::Flags;
use super::natural;
use super::opcode::{MAX_ELEMENT_SIZE, is_op_success, op};
use super::varops::{CostTable, depth, shift_fits};

/// No opcode but `OP_PICK` and `OP_ROLL` looks deeper.
const OPERANDS_MAX: usize = 6;

/// Whether an opcode makes everything else in a script of BIP-0441 irrelevant.
pub(super) const fn is_success(opcode: u8) -> bool {
    match opcode {
        op::NEGATE1 | op::NEGATE | op::ABS => true,
        op::CAT..=op::RIGHT | op::INVERT..=op::XOR | op::MUL2 | op::DIV2 | op::MUL..=op::RSHIFT => {
            false
        }
        _ => is_op_success(opcode),
    }
}

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    /// Charges for an opcode, executes it and asks for the limit of bytes on the stacks.
    pub(super) fn execute_metered(
        &mut self,
        frame: &mut Frame<'_>,
        opcode: u8,
        position: u32,
        costs: &CostTable,
    ) -> Result<(), ScriptError> {
        self.meter.charge(costs.of(opcode, self.stack)?)?;
        let before = self.stack.len();
        let seen = before.min(OPERANDS_MAX);
        let bytes = self.stack.top_bytes(seen);
        let operand = if before > 0 { self.stack.top_length() } else { 0 };
        self.operate(frame, opcode, position)?;
        match opcode {
            op::TOALTSTACK | op::FROMALTSTACK => {}
            op::ROLL => self.meter.stack_bytes -= operand,
            _ => {
                // What lies deeper is as before.
                let now = self.stack.top_bytes(seen + self.stack.len() - before);
                self.meter.stack_bytes = self.meter.stack_bytes + now - bytes;
            }
        }
        self.check_stack_bytes()
    }

    /// A push, which costs nothing.
    pub(super) fn meter_push(&mut self, length: usize) -> Result<(), ScriptError> {
        self.meter.stack_bytes += length;
        self.check_stack_bytes()
    }

    fn check_stack_bytes(&self) -> Result<(), ScriptError> {
        debug_assert_eq!(self.meter.stack_bytes, self.stack.all_bytes());
        if self.meter.stack_bytes > self.language.stack_bytes_max {
            return Err(ScriptError::TotalStackSize);
        }
        Ok(())
    }

    /// Counts what a script starts with.
    pub(super) fn meter_start(
        &mut self,
        mut lengths: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), ScriptError> {
        let bytes = lengths.clone().sum();
        if lengths.any(|length| length > self.language.element_bytes_max) {
            return Err(ScriptError::StackElementSize);
        }
        self.meter.stack_bytes = bytes;
        if bytes > self.language.stack_bytes_max {
            Err(ScriptError::TotalStackSize)
        } else {
            Ok(())
        }
    }

    /// BIP-0441's success: one element that is not zero.
    pub(super) fn check_metered_result(&mut self, costs: &CostTable) -> Result<(), ScriptError> {
        self.meter.charge(costs.of_result(self.stack.top_length()))?;
        if natural::is_true(self.stack.peek(0)) { Ok(()) } else { Err(ScriptError::EvalFalse) }
    }

    fn operate(
        &mut self,
        frame: &mut Frame<'_>,
        opcode: u8,
        position: u32,
    ) -> Result<(), ScriptError> {
        match opcode {
            op::VERIFY => {
                let is_true = natural::is_true(self.stack.peek(0));
                self.stack.drop_top(1);
                if is_true { Ok(()) } else { Err(ScriptError::Verify) }
            }
            op::IFDUP => {
                if natural::is_true(self.stack.peek(0)) {
                    self.stack.share(0);
                    self.stack.push_again(0);
                }
                Ok(())
            }
            op::PICK | op::ROLL => {
                let depth = depth(self.stack)?;
                self.stack.drop_top(1);
                if opcode == op::PICK {
                    self.stack.share(depth);
                    self.stack.push_again(depth);
                } else {
                    self.stack.roll(depth);
                }
                Ok(())
            }
            op::DUP | op::TUCK | op::OVER | op::DUP2 | op::DUP3 | op::OVER2 => {
                for depth in copied(opcode) {
                    self.stack.share(depth);
                }
                self.stack_op(opcode)
            }
            op::DEPTH => {
                self.push_length(self.stack.len());
                Ok(())
            }
            op::SIZE => {
                self.push_length(self.stack.top_length());
                Ok(())
            }
            op::CAT..=op::RIGHT => self.splice(opcode),
            op::OR => {
                self.stack.combine(|a, b| a | b);
                Ok(())
            }
            op::XOR => {
                self.stack.combine(|a, b| a ^ b);
                Ok(())
            }
            op::NOT | op::NOTEQUAL0 => {
                let is_true = natural::is_true(self.stack.peek(0));
                self.stack.drop_top(1);
                self.stack.push_bool(is_true == (opcode == op::NOTEQUAL0));
                Ok(())
            }
            op::BOOLAND..=op::GREATERTHANOREQUAL => self.compare(opcode),
            op::MIN | op::MAX => {
                self.choose(opcode);
                Ok(())
            }
            op::WITHIN => {
                let [max, min, value] = [0, 1, 2].map(|depth| self.stack.peek(depth));
                let is_within =
                    natural::compare(min, value).is_le() && natural::compare(value, max).is_lt();
                self.stack.drop_top(3);
                self.stack.push_bool(is_within);
                Ok(())
            }
            op::INVERT | op::AND | op::ADD1..=op::DIV2 | op::ADD..=op::RSHIFT => {
                self.compute(opcode)
            }
            op::RIPEMD160 | op::SHA1 if self.stack.top_length() > MAX_ELEMENT_SIZE => {
                Err(ScriptError::HashOperandSize)
            }
            op::CHECKSIGADD => self.check_sig_add_natural(frame),
            op::CHECKLOCKTIMEVERIFY if self.flags.contains(Flags::CHECKLOCKTIMEVERIFY) => {
                let operand = self.natural_lock_operand()?;
                self.check_lock_time_of(operand)
            }
            op::CHECKSEQUENCEVERIFY if self.flags.contains(Flags::CHECKSEQUENCEVERIFY) => {
                let operand = self.natural_lock_operand()?;
                self.check_sequence_of(operand)
            }
            _ => self.execute(frame, opcode, position),
        }
    }

    fn push_length(&mut self, length: usize) {
        let (buffer, used) = natural::encode(length as u64);
        self.stack.push(&buffer[..used]);
    }

    /// An operand that has to fit 32 bits.
    fn natural_lock_operand(&self) -> Result<i64, ScriptError> {
        let operand = u32::try_from(natural::saturating(self.stack.peek(0)));
        operand.map(i64::from).map_err(|_| ScriptError::UnsatisfiedLocktime)
    }

    /// Parts of elements, which stay where they are, and concatenation.
    fn splice(&mut self, opcode: u8) -> Result<(), ScriptError> {
        let bounded = |depth: usize, length: usize| {
            let value = natural::saturating(self.stack.peek(depth));
            usize::try_from(value).unwrap_or(usize::MAX).min(length)
        };
        let length = self.stack.peek(1).len();
        match opcode {
            op::CAT => {
                if length + self.stack.top_length() > self.language.element_bytes_max {
                    return Err(ScriptError::StackElementSize);
                }
                self.stack.concat();
            }
            op::SUBSTR => {
                let length = self.stack.peek(2).len();
                let begin = bounded(1, length);
                let taken = bounded(0, length - begin);
                self.stack.drop_top(2);
                self.stack.narrow(begin, taken);
            }
            _ => {
                let taken = bounded(0, length);
                self.stack.drop_top(1);
                self.stack.narrow(if opcode == op::LEFT { 0 } else { length - taken }, taken);
            }
        }
        Ok(())
    }

    fn compare(&mut self, opcode: u8) -> Result<(), ScriptError> {
        let (a, b) = (self.stack.peek(1), self.stack.peek(0));
        let holds = match opcode {
            op::BOOLAND => natural::is_true(a) && natural::is_true(b),
            op::BOOLOR => natural::is_true(a) || natural::is_true(b),
            _ => {
                let ordering = natural::compare(a, b);
                match opcode {
                    op::NUMEQUAL | op::NUMEQUALVERIFY => ordering.is_eq(),
                    op::NUMNOTEQUAL => ordering.is_ne(),
                    op::LESSTHAN => ordering.is_lt(),
                    op::GREATERTHAN => ordering.is_gt(),
                    op::LESSTHANOREQUAL => ordering.is_le(),
                    _ => ordering.is_ge(),
                }
            }
        };
        self.stack.drop_top(2);
        self.finish_check(holds, opcode == op::NUMEQUALVERIFY, ScriptError::NumEqualVerify)
    }

    /// The lesser or greater of two numbers.
    fn choose(&mut self, opcode: u8) {
        let first_is_less = natural::compare(self.stack.peek(1), self.stack.peek(0)).is_lt();
        if first_is_less == (opcode == op::MIN) {
            self.stack.drop_top(1);
        } else {
            self.stack.remove(1);
        }
        let length = natural::significant(self.stack.peek(0)).len();
        self.stack.narrow(0, length);
    }

    /// Replaces one or two operands by a new element.
    fn compute(&mut self, opcode: u8) -> Result<(), ScriptError> {
        let bytes_max = self.language.element_bytes_max;
        let out = &mut self.scratch.element;
        let b = self.stack.peek(0);
        let unary = matches!(opcode, op::INVERT | op::ADD1..=op::DIV2);
        let a = if unary { b } else { self.stack.peek(1) };
        match opcode {
            op::INVERT => natural::invert(a, out),
            op::AND => natural::and(a, b, out),
            op::ADD1 => natural::add(a, &[1], out),
            op::ADD => natural::add(a, b, out),
            op::SUB1 | op::SUB => {
                let b = if opcode == op::SUB1 { &[1] } else { b };
                if !natural::subtract(a, b, out) {
                    return Err(ScriptError::SubUnderflow);
                }
            }
            op::MUL2 => natural::double(a, out),
            op::DIV2 => natural::halve(a, out),
            op::MUL => natural::multiply(a, b, out),
            op::DIV | op::MOD => {
                if !natural::is_true(b) {
                    return Err(ScriptError::DivideByZero);
                }
                if opcode == op::DIV {
                    natural::divide(a, b, out);
                } else {
                    natural::remainder(a, b, out);
                }
            }
            op::LSHIFT => {
                let bits = natural::saturating(b);
                if !shift_fits(a.len(), bits, bytes_max) {
                    return Err(ScriptError::StackElementSize);
                }
                natural::shift_up(a, bits, out);
            }
            _ => natural::shift_down(a, natural::saturating(b), out),
        }
        if out.len() > bytes_max {
            return Err(ScriptError::StackElementSize);
        }
        self.stack.drop_top(if unary { 1 } else { 2 });
        self.stack.push(out);
        Ok(())
    }

    fn check_sig_add_natural(&mut self, frame: &mut Frame<'_>) -> Result<(), ScriptError> {
        let valid = self.check_sig(frame, 2, 0)?;
        let out = &mut self.scratch.element;
        natural::add(self.stack.peek(1), &[u8::from(valid)], out);
        if out.len() > self.language.element_bytes_max {
            return Err(ScriptError::StackElementSize);
        }
        self.stack.drop_top(3);
        self.stack.push(out);
        Ok(())
    }
}

/// Depths of the elements that an opcode copies.
fn copied(opcode: u8) -> std::ops::Range<usize> {
    match opcode {
        op::OVER => 1..2,
        op::DUP2 => 0..2,
        op::DUP3 => 0..3,
        op::OVER2 => 2..4,
        _ => 0..1,
    }
}

#[cfg(test)]
#[path = "restored_tests.rs"]
mod tests;
