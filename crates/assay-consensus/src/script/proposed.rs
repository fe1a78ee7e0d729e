//! Opcodes that proposals add: BIP-0119, BIP-0347, BIP-0348, BIP-0349 and BIP-0446.

use std::sync::LazyLock;

use assay_hash::{Sha256, TaggedHasher};

use super::checker::SignatureChecker;
use super::context::TxContext;
use super::error::ScriptError;
use super::exec::Exec;
use super::flags::Flags;
use super::rules::Operation;
use super::sighash::update_compact_size;

static TEMPLATE_HASH: LazyLock<TaggedHasher> = LazyLock::new(|| TaggedHasher::new("TemplateHash"));

impl<C: SignatureChecker + ?Sized> Exec<'_, '_, C> {
    /// An opcode that the rule set gives a meaning.
    #[cold]
    pub(super) fn proposed(&mut self, operation: Operation) -> Result<(), ScriptError> {
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
        }
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
    /// What `OP_CHECKTEMPLATEVERIFY` compares with: BIP-0119's hash of the transaction for one of its inputs. A script may
    /// ask often, so all but the index of the input is hashed once.
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

    /// What `OP_TEMPLATEHASH` pushes: BIP-0446's hash of the transaction for one of its inputs. `annex_hash` is the SHA-256 of
    /// the annex with its length.
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
