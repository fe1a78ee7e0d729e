//! Verifying one input: input script, output script, redeem script and witness together.

use assay_wire::Witness;

use super::bch_rules;
use super::checker::SignatureChecker;
use super::context::TxContext;
use super::error::ScriptError;
use super::exec::{Exec, SigScratch, SigVersion, TapState};
use super::flags::Flags;
use super::long::LongMessages;
use super::num;
use super::opcode::{
    MAX_ELEMENT_SIZE, is_p2sh, is_p2sh_32, is_push_only, push_prefix, witness_program,
};
use super::rules::{self, RuleSet};
use super::stack::Stack;

/// The results of verifying an input besides its validity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputStats {
    /// With [`Flags::BCH`] the `SigChecks` of the input (May 2020), which the caller limits per
    /// transaction and block; otherwise how many signatures were checked, where CHECKMULTISIG counts
    /// each of its signatures once, however many keys it is tried against.
    pub sig_checks: u32,
}

/// Verifies inputs one after the other and reuses its memory: after the first few inputs ordinary
/// scripts allocate nothing.
#[derive(Debug, Default)]
pub struct Interpreter {
    stack: Stack,
    scratch: SigScratch,
    rules: RuleSet,
}

/// Verifies one input; see [`Interpreter::verify_input`].
///
/// # Errors
/// The first rule that the scripts break.
pub fn verify_input<C: SignatureChecker + ?Sized>(
    ctx: &TxContext<'_>,
    input: usize,
    flags: Flags,
    checker: &mut C,
) -> Result<InputStats, ScriptError> {
    Interpreter::new().verify_input(ctx, input, flags, checker)
}

impl Interpreter {
    /// An interpreter without any memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_rules(rules: RuleSet) -> Self {
        Self { rules, ..Self::default() }
    }

    /// The same, except that an element which a script copies and hashes is hashed for each copy, as in other interpreters: for
    /// measurements of what rules let scripts do. Nothing but the time depends on it.
    #[must_use]
    pub fn hashing_every_copy(mut self) -> Self {
        self.stack.hashes_every_copy = true;
        self
    }

    /// Verifies that the scripts and the witness of input number `input` satisfy the output it
    /// spends, under the rules in `flags` (Core `VerifyScript`).
    ///
    /// # Errors
    /// The first rule that is broken, in the order the reference node checks them.
    ///
    /// # Panics
    /// When the transaction has no such input.
    pub fn verify_input<C: SignatureChecker + ?Sized>(
        &mut self,
        ctx: &TxContext<'_>,
        input: usize,
        flags: Flags,
        checker: &mut C,
    ) -> Result<InputStats, ScriptError> {
        self.scratch.known.clear();
        self.run(ctx, input, flags, checker)
    }

    /// As [`Self::verify_input`] of the same input under the same rules as before, of which `messages` are what
    /// [`Self::take_long_messages`] gave. Nothing but the time depends on them.
    ///
    /// # Errors
    /// The first rule that is broken.
    ///
    /// # Panics
    /// When the transaction has no such input.
    pub fn verify_input_again<C: SignatureChecker + ?Sized>(
        &mut self,
        ctx: &TxContext<'_>,
        input: usize,
        flags: Flags,
        checker: &mut C,
        messages: LongMessages,
    ) -> Result<InputStats, ScriptError> {
        self.scratch.known = messages;
        self.run(ctx, input, flags, checker)
    }

    /// The long messages that the scripts of the last input asked for.
    pub fn take_long_messages(&mut self) -> LongMessages {
        std::mem::take(&mut self.scratch.long)
    }

    fn run<C: SignatureChecker + ?Sized>(
        &mut self,
        ctx: &TxContext<'_>,
        input: usize,
        flags: Flags,
        checker: &mut C,
    ) -> Result<InputStats, ScriptError> {
        self.stack.clear();
        self.scratch.cache.clear();
        self.scratch.deletions.clear();
        self.scratch.long.clear();
        let rules = if flags.contains(Flags::BCH) { &rules::TODAY } else { &self.rules };
        let mut exec = Exec {
            stack: &mut self.stack,
            scratch: &mut self.scratch,
            checker,
            ctx,
            input,
            flags: bch_rules::implied(flags),
            rules,
            language: &rules.base,
            version: SigVersion::Base,
            tap: TapState::default(),
            sig_checks: 0,
        };
        let script_sig = ctx.tx().input(input).script_sig;
        exec.verify(script_sig, ctx.spent(input).script_pubkey, ctx.tx().witness(input))?;
        let sig_checks = exec.sig_checks;
        bch_rules::check_input_sig_checks(flags, script_sig.len(), sig_checks)?;
        Ok(InputStats { sig_checks })
    }
}

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    fn verify(
        &mut self,
        script_sig: &[u8],
        script_pubkey: &[u8],
        witness: Witness<'_>,
    ) -> Result<(), ScriptError> {
        if self.flags.contains(Flags::SIGPUSHONLY) && !is_push_only(script_sig) {
            return Err(ScriptError::SigPushOnly);
        }
        let program =
            if self.flags.contains(Flags::WITNESS) { witness_program(script_pubkey) } else { None };
        if let Some((version, program)) = program
            && script_sig.is_empty()
        {
            // Running the output script would only push version and program.
            if !num::is_true(program) {
                return Err(ScriptError::EvalFalse);
            }
            return self.verify_witness_program(witness, version, program, false);
        }
        let p2sh = self.flags.contains(Flags::P2SH)
            && (is_p2sh(script_pubkey)
                || self.flags.contains(Flags::P2SH_32) && is_p2sh_32(script_pubkey));
        // One stack for both, never one script: CVE-2010-5141.
        self.run(script_sig, 0)?;
        if p2sh {
            self.stack.save();
        }
        self.run(script_pubkey, 1)?;
        self.top_must_be_true()?;
        if program.is_some() {
            return Err(ScriptError::WitnessMalleated);
        }
        if p2sh && self.verify_redeem_script(script_sig, script_pubkey, witness)? == Spend::Exempt {
            return Ok(());
        }
        if self.flags.contains(Flags::CLEANSTACK) && self.stack.len() != 1 {
            return Err(ScriptError::CleanStack);
        }
        if self.flags.contains(Flags::WITNESS) && !witness.is_empty() {
            return Err(ScriptError::WitnessUnexpected);
        }
        Ok(())
    }

    fn top_must_be_true(&self) -> Result<(), ScriptError> {
        if self.stack.top().is_some_and(num::is_true) {
            Ok(())
        } else {
            Err(ScriptError::EvalFalse)
        }
    }

    /// BIP-0016: the last push of the input script is a script itself.
    fn verify_redeem_script(
        &mut self,
        script_sig: &[u8],
        script_pubkey: &[u8],
        witness: Witness<'_>,
    ) -> Result<Spend, ScriptError> {
        if !is_push_only(script_sig) {
            return Err(ScriptError::SigPushOnly);
        }
        self.stack.restore();
        let (mut short, mut long);
        let length = self.stack.peek(0).len();
        let buffer = if length <= MAX_ELEMENT_SIZE {
            short = [0; MAX_ELEMENT_SIZE];
            &mut short[..]
        } else {
            long = vec![0; length];
            &mut long[..]
        };
        self.stack.pop_into(buffer);
        let redeem_script = &buffer[..length];
        // Coins were lost to hashes of 20 bytes alone.
        if is_p2sh(script_pubkey)
            && bch_rules::is_segwit_recovery(self.flags, redeem_script, self.stack.len())
        {
            return Ok(Spend::Exempt);
        }
        self.run(redeem_script, 2)?;
        self.top_must_be_true()?;
        if !self.flags.contains(Flags::WITNESS) {
            return Ok(Spend::Ordinary);
        }
        let Some((version, program)) = witness_program(redeem_script) else {
            return Ok(Spend::Ordinary);
        };
        // Anything but exactly one push of the redeem script would be malleable.
        let (prefix, used) = push_prefix(length);
        if script_sig.strip_prefix(&prefix[..used]) != Some(redeem_script) {
            return Err(ScriptError::WitnessMalleatedP2sh);
        }
        self.verify_witness_program(witness, version, program, true)?;
        Ok(Spend::Exempt)
    }
}

/// Selects whether the checks on the remaining stack apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spend {
    Ordinary,
    /// Witness programs have their own, recovered coins none.
    Exempt,
}
