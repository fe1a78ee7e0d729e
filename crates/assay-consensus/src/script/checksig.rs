//! CHECKSIG, CHECKSIGADD and CHECKMULTISIG of Bitcoin, and the parts that the Cash family shares with them.

use super::checker::{SignatureChecker, SignedMessage};
use super::encoding;
use super::error::ScriptError;
use super::exec::{Exec, Frame, SigVersion};
use super::flags::Flags;
use super::message::SIGHASH_FORKID;
use super::opcode::{MAX_MULTISIG_KEYS, MAX_OPS};
use super::sighash::{CodeKey, TapscriptPosition};

/// The cost of a passed signature in the tapscript budget (BIP-0342).
const WEIGHT_PER_SIGNATURE: i64 = 50;

/// Positions of the arguments of a CHECKMULTISIG, as depths below the top.
pub(super) struct MultisigArgs {
    pub(super) keys: usize,
    pub(super) sigs: usize,
    /// Depth of the topmost signature; keys begin at depth 1.
    pub(super) sig_at: usize,
    pub(super) dummy_at: usize,
}

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    /// Checks the signature against the key, both given by depth. An error fails the script, the
    /// boolean is the outcome the opcode leaves.
    #[inline]
    pub(super) fn check_sig(
        &mut self,
        frame: &Frame<'_>,
        sig_at: usize,
        key_at: usize,
    ) -> Result<bool, ScriptError> {
        if self.version == SigVersion::Tapscript {
            return self.check_sig_tapscript(frame, sig_at, key_at, |exec, key, position| {
                let (&sig, hash_type) = split_schnorr(exec.stack.peek(sig_at))?;
                exec.verify_schnorr(&sig, hash_type, key, Some(position))
            });
        }
        if self.flags.contains(Flags::BCH) {
            return self.bch_check_sig(frame, sig_at, key_at);
        }
        let mut deleted = false;
        if self.version == SigVersion::Base {
            let (code, sig) = (&frame.script[frame.code_start..], self.stack.peek(sig_at));
            deleted = self.scratch.deletions.delete_one(frame.id, frame.code_start, code, sig);
            if deleted && self.flags.contains(Flags::CONST_SCRIPTCODE) {
                return Err(ScriptError::SigFindAndDelete);
            }
        }
        self.check_encodings(sig_at, key_at)?;
        let valid = self.verify_ecdsa(frame, deleted, sig_at, key_at);
        if !valid && self.flags.contains(Flags::NULLFAIL) && !self.stack.peek(sig_at).is_empty() {
            return Err(ScriptError::SigNullFail);
        }
        Ok(valid)
    }

    /// Deletes a signature from the script code, or from what is left of it if `deleted`, which says whether one was there.
    pub(super) fn delete_signature(
        &mut self,
        frame: &Frame<'_>,
        sig_at: usize,
        deleted: &mut bool,
    ) {
        let code = &frame.script[frame.code_start..];
        self.scratch.deletions.delete(code, self.stack.peek(sig_at), deleted);
    }

    #[inline]
    fn check_encodings(&self, sig_at: usize, key_at: usize) -> Result<(), ScriptError> {
        encoding::check_signature(self.stack.peek(sig_at), self.flags)?;
        let key = self.stack.peek(key_at);
        if self.flags.contains(Flags::STRICTENC) && !encoding::is_plain_key(key) {
            return Err(ScriptError::PubkeyType);
        }
        if self.version == SigVersion::WitnessV0
            && self.flags.contains(Flags::WITNESS_PUBKEYTYPE)
            && !encoding::is_compressed_key(key)
        {
            return Err(ScriptError::WitnessPubkeyType);
        }
        Ok(())
    }

    /// Splits off the hash type, computes the message and asks the checker.
    #[inline]
    pub(super) fn verify_ecdsa(
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
        self.sig_checks += 1;
        let sig = self.stack.peek(sig_at);
        self.checker.ecdsa(self.stack.peek(key_at), &sig[..sig.len() - 1], &message)
    }

    /// The hash type of a signature that is not empty, and whether the key can be one at all.
    #[inline]
    pub(super) fn hash_type_and_key_form(
        &self,
        sig_at: usize,
        key_at: usize,
    ) -> Option<(u32, bool)> {
        let &hash_type = self.stack.peek(sig_at).last()?;
        Some((u32::from(hash_type), encoding::has_key_form(self.stack.peek(key_at))))
    }

    /// The message of a signature outside tapscript.
    #[inline]
    pub(super) fn message(&mut self, frame: &Frame<'_>, deleted: bool, hash_type: u32) -> [u8; 32] {
        let fork = self.flags.contains(Flags::SIGHASH_FORKID) && hash_type & SIGHASH_FORKID != 0;
        let (key, code) = if deleted {
            (self.scratch.deletions.key(fork), self.scratch.deletions.code())
        } else {
            let start = frame.code_start as u32;
            (CodeKey::Plain { script: frame.id, start, fork }, &frame.script[frame.code_start..])
        };
        let (ctx, input) = (self.ctx, self.input);
        let by_bip143 = fork || self.version == SigVersion::WitnessV0;
        let is_long = !by_bip143 && ctx.has_long_messages();
        if is_long && let Some(known) = self.scratch.known.find(key, hash_type) {
            return known;
        }
        let message = self.scratch.cache.hash(key, hash_type, || {
            if by_bip143 {
                Some(ctx.segwit_v0_message(input, code, ctx.spent(input).value, hash_type))
            } else {
                ctx.legacy_message(input, code, hash_type)
            }
        });
        if is_long {
            self.scratch.long.keep(key, hash_type, message);
        }
        message
    }

    /// Takes what one signature costs from the budget (BIP-0342).
    #[inline]
    pub(super) fn spend_signature_weight(&mut self) -> Result<(), ScriptError> {
        self.tap.weight_left -= WEIGHT_PER_SIGNATURE;
        if self.tap.weight_left < 0 {
            return Err(ScriptError::TapscriptValidationWeight);
        }
        Ok(())
    }

    /// BIP-0342's rules for one signature, whatever the scheme that `verify` has; their order is consensus.
    #[inline]
    pub(super) fn check_sig_tapscript(
        &mut self,
        frame: &Frame<'_>,
        sig_at: usize,
        key_at: usize,
        verify: impl FnOnce(&mut Self, &[u8; 32], &TapscriptPosition) -> Result<(), ScriptError>,
    ) -> Result<bool, ScriptError> {
        let given = !self.stack.peek(sig_at).is_empty();
        if given {
            self.spend_signature_weight()?;
        }
        let key = self.stack.peek(key_at);
        if key.is_empty() {
            return Err(ScriptError::TapscriptEmptyPubkey);
        }
        if let Ok(&key) = <&[u8; 32]>::try_from(key) {
            if given {
                let position = TapscriptPosition {
                    leaf_hash: self.tap.leaf_hash,
                    code_separator: frame.code_separator,
                };
                verify(self, &key, &position)?;
            }
        } else if self.flags.contains(Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE) {
            return Err(ScriptError::DiscourageUpgradablePubkeyType);
        }
        Ok(given)
    }

    /// Checks a Taproot signature, which must be valid.
    pub(super) fn verify_schnorr(
        &mut self,
        sig: &[u8; 64],
        hash_type: u8,
        key: &[u8; 32],
        position: Option<&TapscriptPosition>,
    ) -> Result<(), ScriptError> {
        let message = self.taproot_message(hash_type, position)?;
        if self.checker.schnorr(key, sig, &message) { Ok(()) } else { Err(ScriptError::SchnorrSig) }
    }

    /// The message of a check in Taproot, which is counted.
    #[inline]
    pub(super) fn taproot_message(
        &mut self,
        hash_type: u8,
        position: Option<&TapscriptPosition>,
    ) -> Result<[u8; 32], ScriptError> {
        let annex_hash = self.tap.annex_hash.as_ref();
        let output_hash = &mut self.tap.output_hash;
        let message =
            self.ctx.taproot_message(self.input, hash_type, annex_hash, position, output_hash);
        let message = message.ok_or(ScriptError::SchnorrSigHashType)?;
        self.sig_checks += 1;
        Ok(message)
    }

    /// `sig num key CHECKSIGADD` gives `num` plus the outcome; `check` finds the signature at depth 2 and the key on top.
    pub(super) fn check_sig_add(
        &mut self,
        check: impl FnOnce(&mut Self) -> Result<bool, ScriptError>,
    ) -> Result<(), ScriptError> {
        self.stack.need(3)?;
        let count = self.number(1)?;
        let valid = check(self)?;
        self.stack.drop_top(3);
        self.stack.push_num(count + i64::from(valid));
        Ok(())
    }

    /// Reads the counts of a CHECKMULTISIG and makes sure that all arguments are there.
    pub(super) fn multisig_args(&self, frame: &mut Frame<'_>) -> Result<MultisigArgs, ScriptError> {
        self.stack.need(1)?;
        let keys = self.number(0)?;
        if !(0..=MAX_MULTISIG_KEYS).contains(&keys) {
            return Err(ScriptError::PubkeyCount);
        }
        frame.ops += keys as u32;
        if frame.ops > MAX_OPS {
            return Err(ScriptError::OpCount);
        }
        let sigs_at = keys as usize + 1;
        self.stack.need(sigs_at + 1)?;
        let sigs = self.number(sigs_at)?;
        if !(0..=keys).contains(&sigs) {
            return Err(ScriptError::SigCount);
        }
        let sig_at = sigs_at + 1;
        let dummy_at = sig_at + sigs as usize;
        self.stack.need(dummy_at + 1)?;
        Ok(MultisigArgs { keys: keys as usize, sigs: sigs as usize, sig_at, dummy_at })
    }

    /// CHECKMULTISIG up to the outcome; the arguments are gone afterwards.
    pub(super) fn check_multisig(&mut self, frame: &mut Frame<'_>) -> Result<bool, ScriptError> {
        if self.version == SigVersion::Tapscript {
            return Err(ScriptError::TapscriptCheckMultisig);
        }
        let args = self.multisig_args(frame)?;
        let valid = if self.flags.contains(Flags::BCH) {
            self.bch_check_multisig(frame, &args)?
        } else {
            self.check_multisig_ecdsa(frame, &args)?
        };
        self.stack.drop_top(args.dummy_at + 1);
        Ok(valid)
    }

    fn check_multisig_ecdsa(
        &mut self,
        frame: &Frame<'_>,
        args: &MultisigArgs,
    ) -> Result<bool, ScriptError> {
        let mut deleted = false;
        if self.version == SigVersion::Base {
            for index in 0..args.sigs {
                self.delete_signature(frame, args.sig_at + index, &mut deleted);
                if deleted && self.flags.contains(Flags::CONST_SCRIPTCODE) {
                    return Err(ScriptError::SigFindAndDelete);
                }
            }
        }
        let asked_before = self.sig_checks;
        let valid = self.multisig_at_once(frame, deleted, args, Self::check_encodings)
            || self.match_signatures(args, |exec, sig_at, key_at| {
                exec.check_encodings(sig_at, key_at)?;
                Ok(exec.verify_ecdsa(frame, deleted, sig_at, key_at))
            })?;
        // The same for any number of pairs tried.
        self.sig_checks = asked_before + args.sigs as u32;
        if !valid && self.flags.contains(Flags::NULLFAIL) && self.any_signature(args) {
            return Err(ScriptError::SigNullFail);
        }
        if self.flags.contains(Flags::NULLDUMMY) && !self.stack.peek(args.dummy_at).is_empty() {
            return Err(ScriptError::SigNullDummy);
        }
        Ok(valid)
    }

    /// Returns `true` if any signature of a CHECKMULTISIG is not empty.
    pub(super) fn any_signature(&self, args: &MultisigArgs) -> bool {
        (0..args.sigs).any(|index| !self.stack.peek(args.sig_at + index).is_empty())
    }

    /// Asks the checker about all signatures and keys together; `false` when it does not say that
    /// they match.
    ///
    /// [`Self::match_signatures`] gives each signature the first key it finds, so it succeeds
    /// exactly when keys can be given to the signatures in order, in any way. Until then it may meet
    /// a signature or key of bad form, which fails the script; the checker is only asked when there
    /// is none, and then the outcome is all that remains of the pairs tried.
    pub(super) fn multisig_at_once(
        &mut self,
        frame: &Frame<'_>,
        deleted: bool,
        args: &MultisigArgs,
        check_encodings: impl Fn(&Self, usize, usize) -> Result<(), ScriptError>,
    ) -> bool {
        const MAX: usize = MAX_MULTISIG_KEYS as usize;
        if !self.checker.takes_multisig() || args.sigs == 0 || args.sigs == args.keys {
            return false;
        }
        let sig_at = |index: usize| args.sig_at + index;
        let well_formed = (0..args.keys).all(|index| {
            // Fewer signatures than keys: the last serves for the keys beyond.
            let sig_at = sig_at(index.min(args.sigs - 1));
            !self.stack.peek(sig_at).is_empty() && check_encodings(self, sig_at, 1 + index).is_ok()
        });
        if !well_formed {
            return false;
        }
        let mut sigs = [SignedMessage { der_sig: &[], msg: [0; 32] }; MAX];
        let mut last = None;
        for (index, signed) in sigs.iter_mut().enumerate().take(args.sigs) {
            let hash_type = self.stack.peek(sig_at(index)).last().copied().unwrap_or_default();
            // They hardly ever differ.
            signed.msg = match last {
                Some((same, msg)) if same == hash_type => msg,
                _ => self.message(frame, deleted, u32::from(hash_type)),
            };
            last = Some((hash_type, signed.msg));
        }
        for (index, signed) in sigs.iter_mut().enumerate().take(args.sigs) {
            let sig = self.stack.peek(sig_at(index));
            signed.der_sig = &sig[..sig.len() - 1];
        }
        let mut keys: [&[u8]; MAX] = [&[]; MAX];
        let mut count = 0;
        for index in 0..args.keys {
            let key = self.stack.peek(1 + index);
            // Nothing matches what cannot be a key.
            if encoding::has_key_form(key) {
                keys[count] = key;
                count += 1;
            }
        }
        count >= args.sigs && self.checker.multisig(&sigs[..args.sigs], &keys[..count])
    }

    /// Tries each signature against the keys in order, both from the top; stops as soon as there are
    /// more signatures left than keys.
    pub(super) fn match_signatures(
        &mut self,
        args: &MultisigArgs,
        mut check: impl FnMut(&mut Self, usize, usize) -> Result<bool, ScriptError>,
    ) -> Result<bool, ScriptError> {
        let (mut sigs_left, mut keys_left) = (args.sigs, args.keys);
        while sigs_left > 0 {
            let sig_at = args.sig_at + args.sigs - sigs_left;
            let key_at = 1 + args.keys - keys_left;
            if check(self, sig_at, key_at)? {
                sigs_left -= 1;
            }
            keys_left -= 1;
            if sigs_left > keys_left {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Splits a Taproot signature into its 64 bytes and its hash type.
pub(super) fn split_schnorr(sig: &[u8]) -> Result<(&[u8; 64], u8), ScriptError> {
    let (sig, hash_type) = split_hash_type(sig, 64, ScriptError::SchnorrSigSize)?;
    Ok((sig.first_chunk().ok_or(ScriptError::SchnorrSigSize)?, hash_type))
}

/// Splits off the hash type of a signature of `bytes` bytes. The default one is left out and must not be spelt out (BIP-0341).
#[inline]
pub(super) fn split_hash_type(
    sig: &[u8],
    bytes: usize,
    wrong_size: ScriptError,
) -> Result<(&[u8], u8), ScriptError> {
    match sig.split_at_checked(bytes) {
        Some((sig, [])) => Ok((sig, 0)),
        Some((_, [0])) => Err(ScriptError::SchnorrSigHashType),
        Some((sig, [hash_type])) => Ok((sig, *hash_type)),
        _ => Err(wrong_size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schnorr_signature_sizes() {
        assert_eq!(split_schnorr(&[3; 64]), Ok((&[3; 64], 0)));
        assert_eq!(split_schnorr(&[3; 65]), Ok((&[3; 64], 3)));
        assert_eq!(split_schnorr(&[0; 65]), Err(ScriptError::SchnorrSigHashType));
        for length in [0, 1, 63, 66] {
            assert_eq!(split_schnorr(&vec![1; length]), Err(ScriptError::SchnorrSigSize));
        }
    }
}
