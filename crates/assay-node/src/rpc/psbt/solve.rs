//! Signs and finalizes inputs (Core `psbt.cpp`, `SignPSBTInput`; `script/sign.cpp`, `ProduceSignature`).
//!
//! Solves standard scripts and single-key tapscripts. Deliberately absent: miniscript and `MuSig2`, whose records
//! are kept.

use assay_consensus::script::opcode::op;
use assay_consensus::script::{
    OutputKind, SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_SINGLE, TapscriptPosition, TxContext,
    tap_leaf_hash, tap_tweak_hash, verify_input,
};
use assay_engine::ImmediateChecker;
use assay_hash::{hash160, ripemd160};
use assay_wire::{Encoding, Transaction, TxOut};
use secp256k1::{Keypair, Message, Scalar, ecdsa, schnorr};

use super::data::{Data, Provider};
use super::fields::{Scope, input};
use super::format::Psbt;
use crate::rpc::lock::pay_to_key_hash_of;
use crate::rpc::sign::{Unlocking, push_all, standard};
use crate::rpc::sign_raw::{Spent, serialise};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsigned {
    /// The PSBT or one of its signatures has another hash type.
    SighashMismatch,
    Incomplete,
}

/// Transaction of a PSBT with its spent outputs.
pub(super) struct Signing {
    pub(super) tx: Transaction,
    /// Blank for unknown outputs.
    spent: Vec<Spent>,
    is_all_known: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Sign with the known keys and this hash type.
    Sign(u8),
    /// Blank signatures of every key, to determine sizes.
    Blank,
    /// No signatures; only gather data of an output.
    Gather,
}

impl Signing {
    /// `None` if the transaction is invalid.
    pub(super) fn new(psbt: &Psbt) -> Option<Self> {
        let tx = psbt.unsigned_tx()?;
        let found: Vec<Option<Spent>> = psbt.inputs.iter().map(super::Input::spent).collect();
        let is_all_known = found.iter().all(Option::is_some);
        let blank = || Spent { value: 0, script: Vec::new() };
        let spent = found.into_iter().map(|spent| spent.unwrap_or_else(blank)).collect();
        Some(Self { tx, spent, is_all_known })
    }

    fn outputs(&self) -> Vec<TxOut<'_>> {
        let spent = self.spent.iter();
        spent.map(|one| TxOut { value: one.value, script_pubkey: &one.script }).collect()
    }

    /// Transaction with this unlocking data of one input.
    fn with(&self, index: usize, unlocking: Unlocking) -> Option<Transaction> {
        let mut all: Vec<Unlocking> = self.spent.iter().map(|_| Unlocking::default()).collect();
        *all.get_mut(index)? = unlocking;
        Transaction::parse(serialise(&self.tx, &all), Encoding::Segwit).ok()
    }

    /// True if this unlocks the input under standardness rules.
    fn unlocks(&self, index: usize, script_sig: &[u8], stack: &[Vec<u8>]) -> bool {
        let Some(spent) = self.spent.get(index) else { return false };
        // Taproot signatures cover all spent outputs.
        let is_taproot = matches!(OutputKind::of(&spent.script, false), OutputKind::Taproot(_));
        if is_taproot && !self.is_all_known {
            return false;
        }
        let unlocking = Unlocking { script_sig: script_sig.to_vec(), witness: stack.to_vec() };
        let Some(signed) = self.with(index, unlocking) else { return false };
        let outputs = self.outputs();
        let context = TxContext::new(signed.view(), &outputs);
        verify_input(&context, index, standard(false), &mut ImmediateChecker).is_ok()
    }
}

/// True if an input has valid unlocking data (Core's `PSBTInputSignedAndVerified`).
pub(super) fn is_signed(psbt: &Psbt, index: usize, signing: &Signing) -> bool {
    let input = &psbt.inputs[index];
    let Some(spent) = input.spent() else { return false };
    // Only nonstandard scripts can be spent with empty unlocking data.
    let may_be_open = matches!(
        OutputKind::of(&spent.script, false),
        OutputKind::NonStandard | OutputKind::Anchor(_) | OutputKind::WitnessUnknown { .. }
    );
    (input.is_final() || may_be_open)
        && signing.unlocks(index, input.final_script_sig(), &input.final_witness())
}

#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) sighash: Option<u8>,
    pub(super) finalize: bool,
    /// Blank signatures in place of real ones.
    pub(super) is_blank: bool,
}

/// Signs an input with the known keys, and finalizes it if requested.
pub(super) fn sign_input(
    provider: &Provider,
    psbt: &mut Psbt,
    index: usize,
    signing: &Signing,
    options: Options,
) -> (Result<(), Unsigned>, Data) {
    if is_signed(psbt, index, signing) {
        return (Ok(()), Data::default());
    }
    let input = &mut psbt.inputs[index];
    let mut data = Data::of_input(input);
    let Some(spent) = input.spent() else { return (Err(Unsigned::Incomplete), Data::default()) };
    let needs_witness = !input.fields.has(input::NON_WITNESS_UTXO);
    let is_taproot = matches!(OutputKind::of(&spent.script, false), OutputKind::Taproot(_));
    let usual = if is_taproot { 0 } else { SIGHASH_ALL as u8 };
    let sighash = options.sighash.unwrap_or(usual);
    if input.sighash().is_some_and(|given| given != i32::from(sighash)) {
        return (Err(Unsigned::SighashMismatch), Data::default());
    }
    let is_usual = sighash == 0 || !is_taproot && u32::from(sighash) == SIGHASH_ALL;
    if !is_usual {
        let value = i32::from(sighash).to_le_bytes().to_vec();
        input.fields.set(Scope::Input, input::SIGHASH, value);
    }
    if !fits(&input.fields, sighash) {
        return (Err(Unsigned::SighashMismatch), Data::default());
    }
    let mode = if options.is_blank { Mode::Blank } else { Mode::Sign(sighash) };
    let is_complete = Solver { provider, signing: Some(signing), index, mode, data: &mut data }
        .produce(&spent.script);
    if needs_witness && !data.witness {
        return (Err(Unsigned::Incomplete), Data::default());
    }
    if !options.finalize {
        data.complete = false;
    }
    let input = &mut psbt.inputs[index];
    data.store_in_input(input);
    if data.witness {
        input.set_witness_utxo(&spent);
    }
    (if is_complete { Ok(()) } else { Err(Unsigned::Incomplete) }, data)
}

/// True if all present signatures have the hash type.
fn fits(fields: &super::fields::Fields, sighash: u8) -> bool {
    let mut taproot =
        fields.of(input::TAP_KEY_SIG).chain(fields.of(input::TAP_SCRIPT_SIG)).map(|(_, sig)| sig);
    if sighash == 0 {
        return taproot.all(|signature| signature.len() == 64);
    }
    let has_type = |signature: &[u8]| signature.last() == Some(&sighash);
    taproot.all(|signature| signature.len() == 65 && has_type(signature))
        && fields.of(input::PARTIAL_SIG).all(|(_, signature)| has_type(signature))
}

/// Adds data from descriptors to an output.
pub(super) fn update_output(provider: &Provider, psbt: &mut Psbt, index: usize) {
    let output = &mut psbt.outputs[index];
    let mut data = Data::of_output(&output.fields);
    Solver { provider, signing: None, index: 0, mode: Mode::Gather, data: &mut data }
        .produce(&output.script);
    data.store_in_output(&mut output.fields);
}

/// Sighash algorithm.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Legacy,
    WitnessV0,
}

struct Solver<'a> {
    provider: &'a Provider,
    /// `None` to sign nothing.
    signing: Option<&'a Signing>,
    index: usize,
    mode: Mode,
    data: &'a mut Data,
}

impl Solver<'_> {
    /// Builds the unlocking data of a script as far as known; true if complete.
    fn produce(&mut self, script: &[u8]) -> bool {
        if self.data.complete {
            return true;
        }
        let mut script = script.to_vec();
        let mut redeem = None;
        let mut is_solved = true;
        let mut items = Vec::new();
        if let OutputKind::ScriptHash(hash) = OutputKind::of(&script, false) {
            let hash = hash.try_into().unwrap_or_default();
            let Some(found) = self.data.script(self.provider, &hash) else {
                self.data.missing.redeem_script = Some(hash);
                return false;
            };
            self.data.redeem_script.clone_from(&found);
            script.clone_from(&found);
            redeem = Some(found);
        }
        match OutputKind::of(&script, false) {
            OutputKind::WitnessKeyHash(hash) => {
                let step = self.step(&pay_to_key_hash_of(hash), Version::WitnessV0);
                (is_solved, self.data.stack) = step;
                self.data.witness = true;
            }
            OutputKind::WitnessScriptHash(hash) => {
                let hash: [u8; 32] = hash.try_into().unwrap_or_default();
                if let Some(inner) = self.data.script(self.provider, &ripemd160(&hash)) {
                    self.data.witness_script.clone_from(&inner);
                    (is_solved, self.data.stack) = self.step(&inner, Version::WitnessV0);
                    self.data.stack.push(inner);
                    self.data.witness = true;
                } else {
                    self.data.missing.witness_script = Some(hash);
                    is_solved = false;
                }
            }
            OutputKind::Taproot(key) if redeem.is_none() => {
                let key = key.try_into().unwrap_or_default();
                let stack = self.taproot(&key);
                self.data.witness = true;
                is_solved = stack.is_some();
                self.data.stack = stack.unwrap_or_default();
            }
            OutputKind::ScriptHash(_) => is_solved = false,
            OutputKind::Anchor(_) => {}
            _ => (is_solved, items) = self.step(&script, Version::Legacy),
        }
        items.extend(redeem);
        self.data.script_sig = push_all(&items);
        self.data.complete = is_solved
            && match (self.mode, self.signing) {
                (Mode::Sign(_), Some(signing)) => {
                    signing.unlocks(self.index, &self.data.script_sig, &self.data.stack)
                }
                (mode, _) => mode == Mode::Blank,
            };
        self.data.complete
    }

    /// Stack items of a script, and whether they are complete (Core's `SignStep`).
    fn step(&mut self, script: &[u8], version: Version) -> (bool, Vec<Vec<u8>>) {
        match OutputKind::of(script, false) {
            OutputKind::PubKey(key) => match self.signature(key, script, version) {
                Some(signature) => (true, vec![signature]),
                None => (false, Vec::new()),
            },
            OutputKind::PubKeyHash(hash) => {
                let id = hash.try_into().unwrap_or_default();
                let Some(key) = self.data.public_key(self.provider, &id) else {
                    self.data.missing.pubkeys.push(id);
                    return (false, Vec::new());
                };
                match self.signature(&key, script, version) {
                    Some(signature) => (true, vec![signature, key]),
                    None => (false, Vec::new()),
                }
            }
            OutputKind::Multisig { required, keys } => {
                let needed = usize::from(required) + 1;
                // Dummy element of CHECKMULTISIG.
                let mut items = vec![Vec::new()];
                // Sign with every key, even if fewer are needed: other signers may lack keys.
                for key in keys {
                    let signature = self.signature(key, script, version);
                    items.extend(signature.filter(|_| items.len() < needed));
                }
                let is_solved = items.len() == needed;
                // Half of the missing ones, as in Core.
                items.resize(items.len() + (needed - items.len()).div_ceil(2), Vec::new());
                (is_solved, items)
            }
            _ => (false, Vec::new()),
        }
    }

    /// Existing or new signature of a key.
    fn signature(&mut self, key: &[u8], script: &[u8], version: Version) -> Option<Vec<u8>> {
        let id = hash160(key);
        if let Some((_, known)) = self.data.signatures.get(&id) {
            return Some(known.clone());
        }
        if let Some((_, origin)) = self.provider.origin(&id) {
            self.data.origins.entry(id).or_insert_with(|| (key.to_vec(), origin.clone()));
        }
        let made = match self.mode {
            Mode::Blank => Some(vec![0; BLANK_ECDSA_BYTES]),
            Mode::Gather => None,
            Mode::Sign(hash_type) => self.sign(&id, script, version, hash_type),
        };
        match &made {
            Some(signature) => {
                self.data.signatures.insert(id, (key.to_vec(), signature.clone()));
            }
            None => self.data.missing.signatures.push(id),
        }
        made
    }

    fn sign(
        &self,
        id: &[u8; 20],
        script: &[u8],
        version: Version,
        hash_type: u8,
    ) -> Option<Vec<u8>> {
        let secret = self.provider.keys.get(id)?;
        let signing = self.signing?;
        let value = signing.spent[self.index].value;
        let is_witness = version == Version::WitnessV0;
        if is_witness && !(secret.is_compressed && assay_consensus::amount::money_range(value)) {
            return None;
        }
        let hash_type = if hash_type == 0 { SIGHASH_ALL as u8 } else { hash_type };
        let outputs = signing.outputs();
        let context = TxContext::new(signing.tx.view(), &outputs);
        let message = match version {
            Version::Legacy => context.sighash_legacy(self.index, script, hash_type.into()),
            Version::WitnessV0 => {
                context.sighash_segwit_v0(self.index, script, value, hash_type.into())
            }
        };
        let message = Message::from_digest(message);
        let mut signature = ecdsa::sign_low_r(message, &secret.key).serialize_der().to_vec();
        signature.push(hash_type);
        Some(signature)
    }

    /// Witness of a taproot output: by key path, otherwise by a single-key leaf.
    fn taproot(&mut self, output: &[u8; 32]) -> Option<Vec<Vec<u8>>> {
        if let Some(internal) = self.provider.taproot.get(output) {
            self.data.tap_internal.get_or_insert(*internal);
        }
        for key in self.data.tap_internal.into_iter().chain([*output]) {
            self.data.note_tap_origin(self.provider, &key, None);
        }
        if self.data.tap_key_sig.is_empty() {
            let internal = self.data.tap_internal;
            let root = self.data.tap_root;
            let tweak = |key: &[u8; 32]| Some(tap_tweak_hash(key, root.as_ref()));
            let by_internal = internal.and_then(|key| self.schnorr(&key, tweak(&key), None));
            let made = by_internal.or_else(|| self.schnorr(output, None, None));
            self.data.tap_key_sig = made.unwrap_or_default();
        }
        if !self.data.tap_key_sig.is_empty() {
            return Some(vec![self.data.tap_key_sig.clone()]);
        }
        let mut best: Option<Vec<Vec<u8>>> = None;
        let mut last = None;
        for (script, version, control) in self.data.tap_leaves.clone() {
            // Control blocks of a leaf are consecutive, the shortest first.
            if last.replace((script.clone(), version)) == Some((script.clone(), version)) {
                continue;
            }
            let Some(signature) = self.leaf_signature(&script, version) else { continue };
            let stack = vec![signature, script, control];
            let bytes = |stack: &[Vec<u8>]| super::data::stack_bytes(stack).len();
            if best.as_ref().is_none_or(|best| bytes(&stack) < bytes(best)) {
                best = Some(stack);
            }
        }
        best
    }

    fn leaf_signature(&mut self, script: &[u8], version: u8) -> Option<Vec<u8>> {
        let [32, key @ .., op::CHECKSIG] = script else { return None };
        let key: [u8; 32] = key.try_into().ok().filter(|_| version == TAPSCRIPT)?;
        let leaf = tap_leaf_hash(version, script);
        self.data.note_tap_origin(self.provider, &key, Some(leaf));
        if let Some(known) = self.data.tap_script_sigs.get(&(key, leaf)) {
            return Some(known.clone());
        }
        let made = self.schnorr(&key, None, Some(leaf))?;
        self.data.tap_script_sigs.insert((key, leaf), made.clone());
        Some(made)
    }

    fn schnorr(
        &self,
        key: &[u8; 32],
        tweak: Option<[u8; 32]>,
        leaf_hash: Option<[u8; 32]>,
    ) -> Option<Vec<u8>> {
        let hash_type = match self.mode {
            Mode::Blank => return Some(vec![0; 64]),
            Mode::Gather => return None,
            Mode::Sign(hash_type) => hash_type,
        };
        let signing = self.signing.filter(|signing| signing.is_all_known)?;
        let is_single = u32::from(hash_type) & !SIGHASH_ANYONECANPAY == SIGHASH_SINGLE;
        if is_single && self.index >= signing.tx.view().output_count() {
            return None;
        }
        let secret = self.provider.secret_by_x(key)?;
        let mut keypair = Keypair::from_secret_key(&secret.key);
        if let Some(tweak) = tweak {
            keypair = keypair.add_xonly_tweak(&Scalar::from_be_bytes(tweak).ok()?).ok()?;
        }
        let outputs = signing.outputs();
        let context = TxContext::new(signing.tx.view(), &outputs);
        let position =
            leaf_hash.map(|leaf_hash| TapscriptPosition { leaf_hash, code_separator: u32::MAX });
        let message = context.sighash_taproot(self.index, hash_type, None, position.as_ref())?;
        let signature = schnorr::sign_with_aux_rand(&message, &keypair, &[0; 32]);
        let mut bytes = signature.to_byte_array().to_vec();
        bytes.extend((hash_type != 0).then_some(hash_type));
        Some(bytes)
    }
}

/// Core's `DUMMY_SIGNATURE_CREATOR`: two 32-byte numbers and the hash type.
const BLANK_ECDSA_BYTES: usize = 71;
/// Leaf version of tapscript (BIP342).
const TAPSCRIPT: u8 = 0xc0;
