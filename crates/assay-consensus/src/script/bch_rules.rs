//! Rules of the Bitcoin Cash family that need no running script.

use super::error::ScriptError;
use super::flags::Flags;
use super::opcode::{op, witness_program};

/// Rules that follow from others: signatures with the fork bit must be strictly encoded.
pub(super) fn implied(flags: Flags) -> Flags {
    if flags.contains(Flags::SIGHASH_FORKID) { flags | Flags::STRICTENC } else { flags }
}

/// Opcodes that fail even in a branch not taken.
pub(super) fn is_disabled(opcode: u8, flags: Flags) -> bool {
    match opcode {
        op::INVERT | op::MUL2 | op::DIV2 | op::LSHIFT | op::RSHIFT => true,
        op::MUL => !flags.contains(Flags::INTEGERS_64_BIT),
        op::CAT..=op::BIN2NUM | op::AND..=op::XOR | op::DIV | op::MOD => {
            !flags.contains(Flags::MONOLITH_OPCODES)
        }
        _ => false,
    }
}

/// DIV and MOD: truncated division, the remainder takes the sign of the dividend.
pub(super) fn divide(opcode: u8, a: i64, b: i64) -> Result<i64, ScriptError> {
    // The least number is no operand, so nothing here can overflow.
    if opcode == op::DIV {
        a.checked_div(b).ok_or(ScriptError::DivByZero)
    } else {
        a.checked_rem(b).ok_or(ScriptError::ModByZero)
    }
}

/// Returns `true` if a pay-to-script-hash spend is exempt from everything but the hash: coins sent to
/// the P2SH form of a witness program can be recovered by anyone who shows the program (May 2019).
pub(super) fn is_segwit_recovery(flags: Flags, redeem_script: &[u8], stack_len: usize) -> bool {
    flags.contains(Flags::BCH)
        && !flags.contains(Flags::DISALLOW_SEGWIT_RECOVERY)
        && stack_len == 0
        && witness_program(redeem_script).is_some()
}

/// The policy bound on `SigChecks` by the size of the input script.
pub(super) fn check_input_sig_checks(
    flags: Flags,
    script_sig_size: usize,
    sig_checks: u32,
) -> Result<(), ScriptError> {
    let exceeds = (script_sig_size as i64) < i64::from(sig_checks) * 43 - 60;
    if flags.contains(Flags::INPUT_SIGCHECKS) && exceeds {
        return Err(ScriptError::InputSigChecks);
    }
    Ok(())
}
