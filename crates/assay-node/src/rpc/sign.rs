//! Signs standard scripts and single-key tapscripts with known keys (Core `script/sign.cpp`, `ProduceSignature`).

use assay_consensus::amount::money_range;
use assay_consensus::script::opcode::{Instructions, op};
use assay_consensus::script::{
    Flags, OutputKind, SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_FORKID, SIGHASH_NONE,
    SIGHASH_SINGLE, SignatureChecker as _, TapscriptPosition, TxContext, tap_leaf_hash,
    tap_tweak_hash,
};
use assay_engine::ImmediateChecker;
use assay_hash::{hash160, ripemd160};
use secp256k1::{Keypair, Message, Scalar, ecdsa, schnorr};

use super::lock::{pay_to_key_hash_of, push};
use super::signing_data::{Data, Provider, stack_bytes};

/// Core's sighash types, or the default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct HashType(u8);

impl HashType {
    /// Taproot's default; `ALL` elsewhere.
    pub(super) const DEFAULT: Self = Self(0);

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, any) = match text.strip_suffix("|ANYONECANPAY") {
            Some(name) => (name, SIGHASH_ANYONECANPAY),
            None => (text, 0),
        };
        let base = match name {
            "DEFAULT" if any == 0 => 0,
            "ALL" => SIGHASH_ALL,
            "NONE" => SIGHASH_NONE,
            "SINGLE" => SIGHASH_SINGLE,
            _ => return None,
        };
        Some(Self((base | any) as u8))
    }

    /// True if it covers only the output of the same index.
    pub(super) fn is_single(self) -> bool {
        u32::from(self.0) & !SIGHASH_ANYONECANPAY == SIGHASH_SINGLE
    }

    pub(super) const fn number(self) -> u8 {
        self.0
    }

    fn ecdsa(self, is_cash: bool) -> u8 {
        let base = if self.0 == 0 { SIGHASH_ALL } else { u32::from(self.0) };
        (if is_cash { base | SIGHASH_FORKID } else { base }) as u8
    }
}

/// Script sig and witness of an input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unlocking {
    pub(super) script_sig: Vec<u8>,
    pub(super) witness: Vec<Vec<u8>>,
}

/// Unlocks an input as far as keys and scripts allow; `before` is its present unlocking data.
pub(super) fn unlock(
    provider: &Provider,
    context: &TxContext<'_>,
    knows_all_spent: bool,
    index: usize,
    hash_type: HashType,
    is_cash: bool,
    before: &Unlocking,
) -> Unlocking {
    let pushes = Instructions::new(&before.script_sig).map_while(|push| push);
    let items = pushes.map(|push| push.data.to_vec()).chain(before.witness.iter().cloned());
    let mut data = Data { items: items.collect(), ..Data::default() };
    let mode = Mode::Sign(hash_type.number());
    let script = context.spent(index).script_pubkey;
    let context = Some(context);
    Solver { provider, context, knows_all_spent, index, is_cash, mode, data: &mut data }
        .produce(script);
    Unlocking { script_sig: data.script_sig, witness: data.stack }
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

/// Sighash algorithm.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Legacy,
    WitnessV0,
}

/// Signs an input, or gathers what signing needs.
pub(super) struct Solver<'a, 'c> {
    pub(super) provider: &'a Provider,
    /// Transaction with its spent outputs; `None` to sign nothing.
    pub(super) context: Option<&'a TxContext<'c>>,
    /// True if all spent outputs are known: taproot signatures cover them.
    pub(super) knows_all_spent: bool,
    pub(super) index: usize,
    pub(super) is_cash: bool,
    pub(super) mode: Mode,
    pub(super) data: &'a mut Data,
}

impl Solver<'_, '_> {
    /// Builds the unlocking data of a script as far as known; true if complete. Signatures are not verified.
    pub(super) fn produce(&mut self, script: &[u8]) -> bool {
        if self.data.complete {
            return true;
        }
        let mut script = script.to_vec();
        let mut redeem = None;
        let mut is_solved = true;
        let mut items = Vec::new();
        if let OutputKind::ScriptHash(hash) = OutputKind::of(&script, self.is_cash) {
            let hash = hash.try_into().unwrap_or_default();
            let Some(found) = self.data.script(self.provider, &hash) else {
                self.data.missing.redeem_script = Some(hash);
                return false;
            };
            self.data.redeem_script.clone_from(&found);
            script.clone_from(&found);
            redeem = Some(found);
        }
        match OutputKind::of(&script, self.is_cash) {
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
        is_solved
    }

    /// Stack items of a script, and whether they are complete (Core's `SignStep`).
    fn step(&mut self, script: &[u8], version: Version) -> (bool, Vec<Vec<u8>>) {
        match OutputKind::of(script, self.is_cash) {
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
        if let Some(known) = self.present_signature(key, script, version) {
            return Some(known);
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
        let context = self.context?;
        let is_in_range = || money_range(context.spent(self.index).value);
        if version == Version::WitnessV0 && !(secret.is_compressed && is_in_range()) {
            return None;
        }
        let hash_type = HashType(hash_type).ecdsa(self.is_cash);
        let message = Message::from_digest(self.message(context, script, hash_type, version));
        let mut signature = ecdsa::sign_low_r(message, &secret.key).serialize_der().to_vec();
        signature.push(hash_type);
        Some(signature)
    }

    /// Signature of this key in the present unlocking data.
    fn present_signature(&self, key: &[u8], script: &[u8], version: Version) -> Option<Vec<u8>> {
        let context = self.context?;
        let is_valid = |item: &&Vec<u8>| {
            let Some((hash_type, der)) = item.split_last() else { return false };
            let message = || self.message(context, script, *hash_type, version);
            // Other data may look similar; a DER signature has at least eight bytes.
            (8..=72).contains(&der.len())
                && der[0] == 0x30
                && ImmediateChecker.ecdsa(key, der, &message())
        };
        self.data.items.iter().find(is_valid).cloned()
    }

    fn message(
        &self,
        context: &TxContext<'_>,
        script: &[u8],
        hash_type: u8,
        version: Version,
    ) -> [u8; 32] {
        let hash_type = u32::from(hash_type);
        let is_forked = self.is_cash && hash_type & SIGHASH_FORKID != 0;
        if version == Version::WitnessV0 || is_forked {
            let value = context.spent(self.index).value;
            context.sighash_segwit_v0(self.index, script, value, hash_type)
        } else {
            context.sighash_legacy(self.index, script, hash_type)
        }
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
            let bytes = |stack: &[Vec<u8>]| stack_bytes(stack).len();
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
        let context = self.context.filter(|_| self.knows_all_spent)?;
        if HashType(hash_type).is_single() && self.index >= context.tx().output_count() {
            return None;
        }
        let secret = self.provider.secret_by_x(key)?;
        let mut keypair = Keypair::from_secret_key(&secret.key);
        if let Some(tweak) = tweak {
            keypair = keypair.add_xonly_tweak(&Scalar::from_be_bytes(tweak).ok()?).ok()?;
        }
        let position =
            leaf_hash.map(|leaf_hash| TapscriptPosition { leaf_hash, code_separator: u32::MAX });
        let message = context.sighash_taproot(self.index, hash_type, None, position.as_ref())?;
        let signature = schnorr::sign_with_aux_rand(&message, &keypair, &[0; 32]);
        let mut bytes = signature.to_byte_array().to_vec();
        bytes.extend((hash_type != 0).then_some(hash_type));
        Some(bytes)
    }
}

/// Minimal pushes of items (Core's `PushAll`).
pub(super) fn push_all(items: &[Vec<u8>]) -> Vec<u8> {
    let mut script = Vec::new();
    for item in items {
        match item[..] {
            [number @ 1..=16] => script.push(op::PUSH1 + number - 1),
            [0x81] => script.push(op::NEGATE1),
            _ => push(item, &mut script),
        }
    }
    script
}

/// Standardness flags under which a result counts as complete.
pub(super) const fn standard(is_cash: bool) -> Flags {
    if is_cash { Flags::BCH_STANDARD } else { Flags::BITCOIN_STANDARD }
}

/// Core's `DUMMY_SIGNATURE_CREATOR`: two 32-byte numbers and the hash type.
const BLANK_ECDSA_BYTES: usize = 71;
/// Leaf version of tapscript (BIP342).
const TAPSCRIPT: u8 = 0xc0;
