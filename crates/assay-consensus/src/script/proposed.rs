//! Opcodes that proposals add: BIP-0119, BIP-0347, BIP-0348, BIP-0349, BIP-0446 and the PQSIG draft.

use std::sync::LazyLock;

use assay_hash::{Sha256, TaggedHasher, sha256d};

use super::checker::{PqScheme, SignatureChecker};
use super::checksig::split_hash_type;
use super::context::TxContext;
use super::error::ScriptError;
use super::exec::{Exec, Frame};
use super::flags::Flags;
use super::message::update_compact_size;
use super::rules::Operation;
use super::sighash::TapscriptPosition;

static TEMPLATE_HASH: LazyLock<TaggedHasher> = LazyLock::new(|| TaggedHasher::new("TemplateHash"));

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    /// An opcode that the rule set gives a meaning.
    #[cold]
    pub(super) fn proposed(
        &mut self,
        frame: &Frame<'_>,
        operation: Operation,
    ) -> Result<(), ScriptError> {
        match operation {
            Operation::CheckTemplateVerify => self.check_template_verify(),
            Operation::Cat => self.cat(),
            Operation::CheckSigFromStack => self.check_sig_from_stack(),
            Operation::InternalKey => {
                // Without one the opcode is a success opcode, and the script is not run.
                let key = self.tap.internal_key.ok_or(ScriptError::BadOpcode)?;
                self.stack.push(&key);
                Ok(())
            }
            Operation::TemplateHash => {
                let hash = self.ctx.template_hash(self.input, self.tap.annex_hash.as_ref());
                self.stack.push(&hash);
                Ok(())
            }
            Operation::CheckSigPq(scheme) => {
                self.stack.need(2)?;
                let valid = self.check_sig_pq(frame, scheme, 1)?;
                self.stack.drop_top(2);
                self.stack.push_bool(valid);
                Ok(())
            }
            Operation::CheckSigAddPq(scheme) => {
                self.check_sig_add(|exec| exec.check_sig_pq(frame, scheme, 2))
            }
        }
    }

    /// The PQSIG draft names `sig key CHECKSIG_SLH` and `sig num key CHECKSIGADD_SLH` and leaves the rest open. Here they are what
    /// `CHECKSIG` and `CHECKSIGADD` are in tapscript, hash types, message, budget and unknown keys included, with a signature of
    /// another scheme. A key that is too large for a push is given with the signature, in front of it, and the script has its
    /// HASH256 (`key‖sig hash CHECKSIG_ML`).
    fn check_sig_pq(
        &mut self,
        frame: &Frame<'_>,
        scheme: PqScheme,
        sig_at: usize,
    ) -> Result<bool, ScriptError> {
        self.check_sig_tapscript(frame, sig_at, 0, |exec, key, position| {
            exec.verify_pq(scheme, sig_at, key, position)
        })
    }

    fn verify_pq(
        &mut self,
        scheme: PqScheme,
        sig_at: usize,
        key: &[u8; 32],
        position: &TapscriptPosition,
    ) -> Result<(), ScriptError> {
        let key_bytes = if scheme.key_bytes() > key.len() { scheme.key_bytes() } else { 0 };
        let bytes = key_bytes + scheme.signature_bytes();
        let element = self.stack.peek(sig_at);
        let (element, hash_type) = split_hash_type(element, bytes, ScriptError::PqSigSize)?;
        if key_bytes > 0 && sha256d(&element[..key_bytes]) != *key {
            return Err(ScriptError::PqKeyHash);
        }
        let message = self.taproot_message(hash_type, Some(position))?;
        let (given, sig) = self.stack.peek(sig_at)[..bytes].split_at(key_bytes);
        let key = if key_bytes > 0 { given } else { &key[..] };
        let is_valid = self.checker.post_quantum(scheme, key, sig, &message);
        if is_valid { Ok(()) } else { Err(ScriptError::PqSig) }
    }

    /// BIP-0119: the top element, left there, must be the hash of this transaction and input. Other lengths than 32 bytes are
    /// left for later soft forks.
    fn check_template_verify(&mut self) -> Result<(), ScriptError> {
        self.stack.need(1)?;
        if self.stack.top_length() != 32 {
            return if self.flags.contains(Flags::DISCOURAGE_UPGRADABLE_NOPS) {
                Err(ScriptError::DiscourageUpgradableNops)
            } else {
                Ok(())
            };
        }
        if self.stack.peek(0) == self.ctx.check_template_hash(self.input) {
            Ok(())
        } else {
            Err(ScriptError::TemplateMismatch)
        }
    }

    /// BIP-0347.
    fn cat(&mut self) -> Result<(), ScriptError> {
        self.stack.need(2)?;
        let bytes = self.stack.peek(0).len() + self.stack.peek(1).len();
        if bytes > self.language.element_bytes_max {
            return Err(ScriptError::PushSize);
        }
        self.stack.concat();
        Ok(())
    }

    /// BIP-0348: `sig message key CHECKSIGFROMSTACK`. The order of checks is that of a tapscript `CHECKSIG`; the message is
    /// not hashed before BIP-0340 hashes it.
    fn check_sig_from_stack(&mut self) -> Result<(), ScriptError> {
        self.stack.need(3)?;
        let given = !self.stack.peek(2).is_empty();
        if given {
            self.spend_signature_weight()?;
        }
        let key = self.stack.peek(0);
        if key.is_empty() {
            return Err(ScriptError::TapscriptEmptyPubkey);
        }
        if let Ok(key) = <&[u8; 32]>::try_from(key) {
            if given {
                let sig = self.stack.peek(2);
                let sig = <&[u8; 64]>::try_from(sig).map_err(|_| ScriptError::SchnorrSigSize)?;
                self.sig_checks += 1;
                if !self.checker.schnorr_of_any_length(key, sig, self.stack.peek(1)) {
                    return Err(ScriptError::SchnorrSig);
                }
            }
        } else if self.flags.contains(Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE) {
            return Err(ScriptError::DiscourageUpgradablePubkeyType);
        }
        self.stack.drop_top(3);
        self.stack.push_bool(given);
        Ok(())
    }
}

impl TxContext<'_> {
    /// The value that `OP_CHECKTEMPLATEVERIFY` compares with: BIP-0119's hash of the transaction for one of its inputs. A
    /// script may ask often, so all but the index of the input is hashed once.
    pub fn check_template_hash(&self, input: usize) -> [u8; 32] {
        let mut hasher = self.check_template_start(|| {
            let tx = self.tx();
            let mut hasher = Sha256::new();
            hasher.update(&tx.version().to_le_bytes());
            hasher.update(&tx.lock_time().to_le_bytes());
            if tx.inputs().any(|input| !input.script_sig.is_empty()) {
                let mut scripts = Sha256::new();
                for input in tx.inputs() {
                    update_compact_size(&mut scripts, input.script_sig.len());
                    scripts.update(input.script_sig);
                }
                hasher.update(&scripts.finalize());
            }
            hasher.update(&(tx.input_count() as u32).to_le_bytes());
            hasher.update(self.sequences_hash());
            hasher.update(&(tx.output_count() as u32).to_le_bytes());
            hasher.update(self.outputs_hash());
            hasher
        });
        hasher.update(&(input as u32).to_le_bytes());
        hasher.finalize()
    }

    /// The value that `OP_TEMPLATEHASH` pushes: BIP-0446's hash of the transaction for one of its inputs. `annex_hash` is the
    /// SHA-256 of the annex with its length.
    pub fn template_hash(&self, input: usize, annex_hash: Option<&[u8; 32]>) -> [u8; 32] {
        let mut hasher = TEMPLATE_HASH.start();
        hasher.update(&self.tx().version().to_le_bytes());
        hasher.update(&self.tx().lock_time().to_le_bytes());
        hasher.update(self.sequences_hash());
        hasher.update(self.outputs_hash());
        hasher.update(&[u8::from(annex_hash.is_some())]);
        hasher.update(&(input as u32).to_le_bytes());
        if let Some(annex_hash) = annex_hash {
            hasher.update(annex_hash);
        }
        hasher.finalize()
    }
}

#[cfg(test)]
#[path = "proposed_tests.rs"]
mod tests;
