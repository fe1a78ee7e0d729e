//! The differences of the Bitcoin Cash family: opcodes, signature forms and counted checks.
//!
//! The upgrades up to May 2022, after BCHN's `script/interpreter.cpp` and `script/sigencoding.cpp`;
//! the opcodes that read the transaction are in `introspection.rs`. Later opcodes (tokens, bitwise
//! inversion and shifts, loops) fail as opcodes that are not understood, or disabled.

use assay_hash::sha256;

use super::checker::SignatureChecker;
use super::checksig::MultisigArgs;
use super::encoding;
use super::error::ScriptError;
use super::exec::{Exec, Frame};
use super::flags::Flags;
use super::message::{SIGHASH_ANYONECANPAY, SIGHASH_FORKID};
use super::num;
use super::opcode::{MAX_ELEMENT_SIZE, op};

/// Signatures of this many bytes (without hash type) are Schnorr signatures.
const SCHNORR_SIZE: usize = 64;
/// Hash type bit that later upgrades use; must be clear.
const SIGHASH_UTXOS: u32 = 0x20;

/// The signatures that an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accept {
    Any,
    EcdsaOnly,
    SchnorrOnly,
}

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    /// The opcodes only this family has.
    pub(super) fn bch_op(&mut self, frame: &Frame<'_>, opcode: u8) -> Result<(), ScriptError> {
        match opcode {
            op::CAT => self.concat(),
            op::SPLIT => self.split(),
            op::NUM2BIN => self.num_to_bin(),
            op::BIN2NUM => self.bin_to_num(),
            op::AND | op::OR | op::XOR => self.bitwise(opcode),
            op::CHECKDATASIG | op::CHECKDATASIGVERIFY
                if self.flags.contains(Flags::CHECKDATASIG) =>
            {
                let valid = self.check_data_sig()?;
                self.finish_check(
                    valid,
                    opcode == op::CHECKDATASIGVERIFY,
                    ScriptError::CheckDataSigVerify,
                )
            }
            op::REVERSEBYTES if self.flags.contains(Flags::REVERSEBYTES) => {
                self.stack.need(1)?;
                let mut buffer = [0; MAX_ELEMENT_SIZE];
                let length = self.stack.pop_into(&mut buffer);
                buffer[..length].reverse();
                self.stack.push(&buffer[..length]);
                Ok(())
            }
            op::INPUTINDEX..=op::OUTPUTBYTECODE
                if self.flags.contains(Flags::NATIVE_INTROSPECTION) =>
            {
                self.introspect(frame, opcode)
            }
            _ => Err(ScriptError::BadOpcode),
        }
    }

    fn concat(&mut self) -> Result<(), ScriptError> {
        self.stack.need(2)?;
        if self.stack.peek(0).len() + self.stack.peek(1).len() > MAX_ELEMENT_SIZE {
            return Err(ScriptError::PushSize);
        }
        self.stack.concat();
        Ok(())
    }

    fn split(&mut self) -> Result<(), ScriptError> {
        self.stack.need(2)?;
        let length = self.stack.peek(1).len();
        let at = usize::try_from(self.number(0)?)
            .ok()
            .filter(|&at| at <= length)
            .ok_or(ScriptError::InvalidSplitRange)?;
        self.stack.drop_top(1);
        self.stack.split(at);
        Ok(())
    }

    fn bitwise(&mut self, opcode: u8) -> Result<(), ScriptError> {
        self.stack.need(2)?;
        let (right, left) = (self.stack.peek(0), self.stack.peek(1));
        if right.len() != left.len() {
            return Err(ScriptError::InvalidOperandSize);
        }
        let mut buffer = [0; MAX_ELEMENT_SIZE];
        let length = left.len();
        for ((out, a), b) in buffer.iter_mut().zip(left).zip(right) {
            *out = match opcode {
                op::AND => a & b,
                op::OR => a | b,
                _ => a ^ b,
            };
        }
        self.stack.drop_top(2);
        self.stack.push(&buffer[..length]);
        Ok(())
    }

    fn num_to_bin(&mut self) -> Result<(), ScriptError> {
        self.stack.need(2)?;
        let size = usize::try_from(self.number(0)?)
            .ok()
            .filter(|&size| size <= MAX_ELEMENT_SIZE)
            .ok_or(ScriptError::PushSize)?;
        self.stack.drop_top(1);
        let mut buffer = [0; MAX_ELEMENT_SIZE];
        let given = self.stack.pop_into(&mut buffer);
        let length = minimal_length(&mut buffer[..given]);
        if length > size {
            return Err(ScriptError::ImpossibleEncoding);
        }
        buffer[length..].fill(0);
        if 0 < length && length < size {
            buffer[size - 1] = buffer[length - 1] & 0x80;
            buffer[length - 1] &= 0x7f;
        }
        self.stack.push(&buffer[..size]);
        Ok(())
    }

    fn bin_to_num(&mut self) -> Result<(), ScriptError> {
        self.stack.need(1)?;
        let mut buffer = [0; MAX_ELEMENT_SIZE];
        let given = self.stack.pop_into(&mut buffer);
        let length = minimal_length(&mut buffer[..given]);
        match self.number_bytes_max() {
            8 if length > 8 => return Err(ScriptError::InvalidNumberRange64Bit),
            4 if length > 4 => return Err(ScriptError::InvalidNumberRange),
            _ => {}
        }
        self.stack.push(&buffer[..length]);
        Ok(())
    }

    /// `sig message key CHECKDATASIG`: the message is hashed once and nothing else is signed.
    fn check_data_sig(&mut self) -> Result<bool, ScriptError> {
        self.stack.need(3)?;
        let sig = self.stack.peek(2);
        if !sig.is_empty() {
            self.check_raw_signature(sig, Accept::Any)?;
        }
        self.bch_check_key(0)?;
        let mut valid = false;
        if !sig.is_empty() {
            let length = sig.len();
            let message = sha256(self.stack.peek(1));
            valid = self.bch_verify(2, length, 0, &message);
            self.sig_checks += 1;
            if !valid && self.flags.contains(Flags::NULLFAIL) {
                return Err(ScriptError::SigNullFail);
            }
        }
        self.stack.drop_top(3);
        Ok(valid)
    }

    /// CHECKSIG: form first, then the signature unless it is empty.
    pub(super) fn bch_check_sig(
        &mut self,
        frame: &Frame<'_>,
        sig_at: usize,
        key_at: usize,
    ) -> Result<bool, ScriptError> {
        self.bch_check_encodings(sig_at, key_at, Accept::Any)?;
        if self.stack.peek(sig_at).is_empty() {
            return Ok(false);
        }
        let mut deleted = false;
        self.bch_delete_signature(frame, sig_at, &mut deleted);
        let valid = self.bch_verify_transaction(frame, deleted, sig_at, key_at);
        self.sig_checks += 1;
        if !valid && self.flags.contains(Flags::NULLFAIL) {
            return Err(ScriptError::SigNullFail);
        }
        Ok(valid)
    }

    /// CHECKMULTISIG: a dummy that is not empty selects the Schnorr form (November 2019).
    pub(super) fn bch_check_multisig(
        &mut self,
        frame: &Frame<'_>,
        args: &MultisigArgs,
    ) -> Result<bool, ScriptError> {
        if self.flags.contains(Flags::SCHNORR_MULTISIG)
            && !self.stack.peek(args.dummy_at).is_empty()
        {
            self.check_multisig_schnorr(frame, args)?;
            return Ok(true);
        }
        let mut deleted = false;
        for index in 0..args.sigs {
            self.bch_delete_signature(frame, args.sig_at + index, &mut deleted);
        }
        let check_encodings = |exec: &Self, sig_at: usize, key_at: usize| {
            exec.bch_check_encodings(sig_at, key_at, Accept::EcdsaOnly)
        };
        let valid = self.multisig_at_once(frame, deleted, args, check_encodings)
            || self.match_signatures(args, |exec, sig_at, key_at| {
                check_encodings(exec, sig_at, key_at)?;
                Ok(exec.bch_verify_transaction(frame, deleted, sig_at, key_at))
            })?;
        if self.any_signature(args) {
            if !valid && self.flags.contains(Flags::NULLFAIL) {
                return Err(ScriptError::SigNullFail);
            }
            // An upper bound of the checks made, known without making them.
            self.sig_checks += args.keys as u32;
        }
        Ok(valid)
    }

    /// Schnorr multisig: the dummy says which keys sign, and every signature must be valid.
    fn check_multisig_schnorr(
        &mut self,
        frame: &Frame<'_>,
        args: &MultisigArgs,
    ) -> Result<(), ScriptError> {
        let mut bits = decode_bitfield(self.stack.peek(args.dummy_at), args.keys)?;
        if bits.count_ones() as usize != args.sigs {
            return Err(ScriptError::InvalidBitCount);
        }
        // Bit 0 and the first signature belong to the bottom of the stack.
        let bottom_key = args.keys;
        let bottom_sig = args.sig_at + args.sigs;
        for nth in 1..=args.sigs {
            let key_at = bottom_key - bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let sig_at = bottom_sig - nth;
            self.bch_check_encodings(sig_at, key_at, Accept::SchnorrOnly)?;
            if !self.bch_verify_transaction(frame, false, sig_at, key_at) {
                return Err(ScriptError::SigNullFail);
            }
            self.sig_checks += 1;
        }
        Ok(())
    }

    /// Deletes the signature from the script code unless it signs by the fork's algorithm.
    fn bch_delete_signature(&mut self, frame: &Frame<'_>, sig_at: usize, deleted: &mut bool) {
        let fork_bit = self
            .stack
            .peek(sig_at)
            .last()
            .is_some_and(|&hash_type| u32::from(hash_type) & SIGHASH_FORKID != 0);
        if !(fork_bit && self.flags.contains(Flags::SIGHASH_FORKID)) {
            self.delete_signature(frame, sig_at, deleted);
        }
    }

    /// Verifies a signature of the transaction, of either kind.
    fn bch_verify_transaction(
        &mut self,
        frame: &Frame<'_>,
        deleted: bool,
        sig_at: usize,
        key_at: usize,
    ) -> bool {
        let Some((hash_type, true)) = self.hash_type_and_key_form(sig_at, key_at) else {
            return false;
        };
        let message = self.message(frame, deleted, hash_type);
        let length = self.stack.peek(sig_at).len() - 1;
        self.bch_verify(sig_at, length, key_at, &message)
    }

    /// Asks the checker about the first `length` bytes of the signature.
    fn bch_verify(
        &mut self,
        sig_at: usize,
        length: usize,
        key_at: usize,
        message: &[u8; 32],
    ) -> bool {
        let sig = &self.stack.peek(sig_at)[..length];
        let key = self.stack.peek(key_at);
        if !encoding::has_key_form(key) {
            return false;
        }
        match <&[u8; SCHNORR_SIZE]>::try_from(sig) {
            Ok(sig) if self.flags.contains(Flags::SCHNORR) => {
                self.checker.schnorr_bch(key, sig, message)
            }
            _ => self.checker.ecdsa(key, sig, message),
        }
    }

    fn bch_check_encodings(
        &self,
        sig_at: usize,
        key_at: usize,
        accept: Accept,
    ) -> Result<(), ScriptError> {
        if let Some((&hash_type, raw)) = self.stack.peek(sig_at).split_last() {
            self.check_raw_signature(raw, accept)?;
            check_hash_type(u32::from(hash_type), self.flags)?;
        }
        self.bch_check_key(key_at)
    }

    fn bch_check_key(&self, key_at: usize) -> Result<(), ScriptError> {
        if self.flags.contains(Flags::STRICTENC) && !encoding::is_plain_key(self.stack.peek(key_at))
        {
            return Err(ScriptError::PubkeyType);
        }
        Ok(())
    }

    fn check_raw_signature(&self, raw: &[u8], accept: Accept) -> Result<(), ScriptError> {
        let is_schnorr = raw.len() == SCHNORR_SIZE && self.flags.contains(Flags::SCHNORR);
        match (is_schnorr, accept) {
            (true, Accept::Any | Accept::SchnorrOnly) => Ok(()),
            (true, Accept::EcdsaOnly) => Err(ScriptError::SigBadLength),
            (false, Accept::SchnorrOnly) => Err(ScriptError::SigNonSchnorr),
            (false, _) => encoding::check_der(raw, self.flags),
        }
    }
}

/// Hash types under STRICTENC: one of three outputs types, and the fork bit exactly when it is in
/// force.
fn check_hash_type(hash_type: u32, flags: Flags) -> Result<(), ScriptError> {
    if !flags.contains(Flags::STRICTENC) {
        return Ok(());
    }
    let base = hash_type & !(SIGHASH_FORKID | SIGHASH_ANYONECANPAY | SIGHASH_UTXOS);
    if !(1..=3).contains(&base) {
        return Err(ScriptError::SigHashType);
    }
    match (flags.contains(Flags::SIGHASH_FORKID), hash_type & SIGHASH_FORKID != 0) {
        (false, true) => Err(ScriptError::IllegalForkId),
        (true, false) => Err(ScriptError::MustUseForkId),
        _ if hash_type & SIGHASH_UTXOS != 0 => Err(ScriptError::SigHashType),
        _ => Ok(()),
    }
}

/// Reads the dummy of a Schnorr multisig: one bit per key, in as few bytes as hold them.
fn decode_bitfield(bytes: &[u8], keys: usize) -> Result<u32, ScriptError> {
    if bytes.len() != keys.div_ceil(8) {
        return Err(ScriptError::InvalidBitfieldSize);
    }
    let bits = bytes.iter().rev().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
    if bits >> keys != 0 {
        return Err(ScriptError::InvalidBitRange);
    }
    Ok(bits)
}

/// Brings a number of any length into its shortest form, in place; returns the length of it.
fn minimal_length(bytes: &mut [u8]) -> usize {
    if num::is_minimal(bytes) {
        return bytes.len();
    }
    let Some((&last, rest)) = bytes.split_last() else { return 0 };
    let sign = last & 0x80;
    let length = rest.iter().rposition(|&byte| byte != 0).map_or(0, |index| index + 1);
    if length == 0 {
        return 0;
    }
    if bytes[length - 1] & 0x80 == 0 {
        bytes[length - 1] |= sign;
        length
    } else {
        bytes[length] = sign;
        length + 1
    }
}

#[cfg(test)]
#[path = "bch_tests.rs"]
pub(super) mod tests;
