//! Opcodes by which a script reads the transaction that spends it (Bitcoin Cash, May 2022).
//!
//! CHIP-2021-02 "Add Native Introspection Opcodes", in the order of checks of BCHN's
//! `script/interpreter.cpp`. [`TxContext`](super::TxContext) holds all the data: each opcode costs what
//! a push of its result costs.

use super::checker::SignatureChecker;
use super::error::ScriptError;
use super::exec::{Exec, Frame};
use super::opcode::{MAX_ELEMENT_SIZE, op};

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    /// One of the opcodes from INPUTINDEX to OUTPUTBYTECODE.
    pub(super) fn introspect(&mut self, frame: &Frame<'_>, opcode: u8) -> Result<(), ScriptError> {
        let tx = self.ctx.tx();
        match opcode {
            op::INPUTINDEX => self.stack.push_num(self.input as i64),
            op::ACTIVEBYTECODE => return self.push_script(&frame.script[frame.code_start..]),
            op::TXVERSION => self.stack.push_num(i64::from(tx.version())),
            op::TXINPUTCOUNT => self.stack.push_num(tx.input_count() as i64),
            op::TXOUTPUTCOUNT => self.stack.push_num(tx.output_count() as i64),
            op::TXLOCKTIME => self.stack.push_num(i64::from(tx.lock_time())),
            op::OUTPUTVALUE | op::OUTPUTBYTECODE => {
                let index =
                    self.index_below(tx.output_count(), ScriptError::InvalidTxOutputIndex)?;
                let output = tx.output(index);
                if opcode == op::OUTPUTBYTECODE {
                    return self.push_script(output.script_pubkey);
                }
                self.stack.push_num(output.value);
            }
            _ => {
                let index = self.index_below(tx.input_count(), ScriptError::InvalidTxInputIndex)?;
                return self.introspect_input(opcode, index);
            }
        }
        Ok(())
    }

    /// Pushes a field of an input, or of the output it spends.
    fn introspect_input(&mut self, opcode: u8, index: usize) -> Result<(), ScriptError> {
        let input = self.ctx.tx().input(index);
        let spent = self.ctx.spent(index);
        match opcode {
            op::UTXOVALUE => self.stack.push_num(spent.value),
            op::UTXOBYTECODE => return self.push_script(spent.script_pubkey),
            op::OUTPOINTTXHASH => self.stack.push(&input.prevout.txid.0),
            op::OUTPOINTINDEX => self.stack.push_num(i64::from(input.prevout.vout)),
            op::INPUTBYTECODE => return self.push_script(input.script_sig),
            op::INPUTSEQUENCENUMBER => self.stack.push_num(i64::from(input.sequence)),
            _ => return Err(ScriptError::BadOpcode),
        }
        Ok(())
    }

    /// Pops an index, which has to be below `count`.
    fn index_below(&mut self, count: usize, error: ScriptError) -> Result<usize, ScriptError> {
        self.stack.need(1)?;
        let index = self.number(0)?;
        self.stack.drop_top(1);
        usize::try_from(index).ok().filter(|&index| index < count).ok_or(error)
    }

    /// Pushes a script of the transaction, if it is no larger than an element may be.
    fn push_script(&mut self, script: &[u8]) -> Result<(), ScriptError> {
        if script.len() > MAX_ELEMENT_SIZE {
            return Err(ScriptError::PushSize);
        }
        self.stack.push(script);
        Ok(())
    }
}

#[cfg(test)]
#[path = "introspection_tests.rs"]
mod tests;
