//! Locks: output scripts with the data that spends them.

use assay_consensus::script::asm::push;
use assay_consensus::script::{
    SIGHASH_ALL, TapscriptPosition, TxContext, annex_hash, tap_branch_hash, tap_leaf_hash,
    tap_tweak_hash,
};
use assay_hash::{hash160, sha256};
use assay_wire::{Encoding, Transaction, TxOut};
use secp256k1::{Keypair, Message, Parity, Scalar, SecretKey, XOnlyPublicKey, ecdsa};

use super::keys::{KeyForm, encoded_key, keypair, x_only};
use super::script::Writer;
use super::tx::{Output, Tx};

/// Location of the script of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the output itself.
    Bare,
    /// Pay-to-script-hash (BIP16).
    P2sh,
    /// Version 0 key hash (BIP141).
    Wpkh,
    /// Version 0 key hash inside pay-to-script-hash.
    NestedWpkh,
    /// Version 0 script hash.
    Wsh,
    /// Version 0 script hash inside pay-to-script-hash.
    NestedWsh,
    /// Taproot, by key (BIP341).
    TapKey,
    /// Taproot, by script (BIP342).
    TapScript,
}

/// Flaw of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A valid signature.
    None,
    /// A signature of another message.
    OtherMessage,
    /// S is above half of the order (valid by consensus).
    HighS,
    /// A superfluous zero byte, so the encoding is not strict DER.
    Padded,
    /// The last byte is missing.
    Short,
    /// The hash type byte is missing.
    NoHashType,
    /// An extra byte after the hash type.
    Long,
}

impl Flaw {
    pub const ALL: [Self; 7] = {
        use Flaw::{HighS, Long, NoHashType, None, OtherMessage, Padded, Short};
        [None, OtherMessage, HighS, Padded, Short, NoHashType, Long]
    };
}

/// A signature to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sig {
    /// Index of the signing key.
    pub key: usize,
    /// Hash type byte; 0 is the default of Taproot.
    pub hash_type: u8,
    /// Start of the signed part in the script: after the last executed CODESEPARATOR.
    pub code_from: usize,
    /// Position of that CODESEPARATOR in opcodes, for tapscript.
    pub separator: u32,
    pub flaw: Flaw,
}

impl Sig {
    /// A valid signature with hash type `ALL`.
    pub fn all(key: usize) -> Self {
        let hash_type = SIGHASH_ALL as u8;
        Self { key, hash_type, code_from: 0, separator: u32::MAX, flaw: Flaw::None }
    }

    /// The same with another hash type.
    pub fn typed(key: usize, hash_type: u8) -> Self {
        Self { hash_type, ..Self::all(key) }
    }

    /// The same with a flaw.
    pub fn flawed(key: usize, flaw: Flaw) -> Self {
        Self { flaw, ..Self::all(key) }
    }
}

/// An unlocking element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Literal bytes.
    Bytes(Vec<u8>),
    Sig(Sig),
}

/// An output script with the data that spends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Location of the script.
    pub place: Place,
    /// The executed script; unused for key hashes and Taproot keys.
    pub script: Vec<u8>,
    /// Initial stack, bottom first.
    pub items: Vec<Item>,
    /// Key of key hashes, or internal key of Taproot.
    pub key: usize,
    /// Leaf version of a tapscript.
    pub leaf_version: u8,
    /// Merkle path of the leaf, lowest hash first.
    pub path: Vec<[u8; 32]>,
    /// Annex including its first byte 50 (BIP341).
    pub annex: Option<Vec<u8>>,
    /// Required sequence number of the input.
    pub sequence: Option<u32>,
    /// Required lock time of the transaction.
    pub lock_time: Option<u32>,
}

impl Lock {
    /// A lock of a script and its items.
    pub fn new(place: Place, script: Vec<u8>, items: Vec<Item>) -> Self {
        Self {
            place,
            script,
            items,
            key: 0,
            leaf_version: 0xc0,
            path: Vec::new(),
            annex: None,
            sequence: None,
            lock_time: None,
        }
    }

    /// An anyone-can-spend lock.
    pub fn open(place: Place) -> Self {
        Self::new(place, vec![0x51], Vec::new())
    }

    /// Bare pay-to-public-key.
    pub fn p2pk(key: usize, form: KeyForm) -> Self {
        let script = Writer::new().push(&encoded_key(key, form)).op(0xac).done();
        Self::new(Place::Bare, script, vec![Item::Sig(Sig::all(key))])
    }

    /// Bare pay-to-public-key-hash.
    pub fn p2pkh(key: usize, form: KeyForm) -> Self {
        let encoded = encoded_key(key, form);
        let script = Self::p2pkh_script(&encoded);
        Self::new(Place::Bare, script, vec![Item::Sig(Sig::all(key)), Item::Bytes(encoded)])
    }

    /// Version 0 key hash, nested or native.
    pub fn wpkh(key: usize, place: Place) -> Self {
        let encoded = encoded_key(key, KeyForm::Compressed);
        let items = vec![Item::Sig(Sig::all(key)), Item::Bytes(encoded)];
        Self { key, ..Self::new(place, Vec::new(), items) }
    }

    /// Taproot spent by key.
    pub fn tap_key(key: usize, hash_type: u8) -> Self {
        let items = vec![Item::Sig(Sig::typed(key, hash_type))];
        Self { key, ..Self::new(Place::TapKey, Vec::new(), items) }
    }

    /// True without requirements on sequence number and lock time.
    pub fn is_timeless(&self) -> bool {
        self.sequence.is_none() && self.lock_time.is_none()
    }

    #[must_use]
    pub fn with_items(&self, items: Vec<Item>) -> Self {
        Self { items, ..self.clone() }
    }

    /// Merkle root of the script tree, if there is one.
    fn tap_root(&self) -> Option<[u8; 32]> {
        (self.place == Place::TapScript).then(|| {
            let leaf = tap_leaf_hash(self.leaf_version & 0xfe, &self.script);
            self.path.iter().fold(leaf, |node, beside| tap_branch_hash(&node, beside))
        })
    }

    /// The output key of Taproot, with its parity.
    fn tap_output(&self) -> (XOnlyPublicKey, Parity) {
        x_only(self.key).add_tweak(&self.tap_tweak()).expect("no tweak hits the negated key")
    }

    fn tap_tweak(&self) -> Scalar {
        let internal = x_only(self.key).to_byte_array();
        Scalar::from_be_bytes(tap_tweak_hash(&internal, self.tap_root().as_ref()))
            .expect("a hash is below the order but for 2^-127")
    }

    /// The control block that reveals the leaf.
    pub fn control_block(&self) -> Vec<u8> {
        let (_, parity) = self.tap_output();
        let mut block = vec![(self.leaf_version & 0xfe) | u8::from(parity == Parity::Odd)];
        block.extend_from_slice(&x_only(self.key).to_byte_array());
        block.extend(self.path.iter().flatten());
        block
    }

    /// The witness program, for locks that have one.
    fn program(&self) -> Vec<u8> {
        match self.place {
            Place::Wpkh | Place::NestedWpkh => Writer::new()
                .op(0)
                .push(&hash160(&encoded_key(self.key, KeyForm::Compressed)))
                .done(),
            Place::Wsh | Place::NestedWsh => Writer::new().op(0).push(&sha256(&self.script)).done(),
            Place::TapKey | Place::TapScript => {
                Writer::new().op(0x51).push(&self.tap_output().0.to_byte_array()).done()
            }
            Place::Bare | Place::P2sh => Vec::new(),
        }
    }

    pub fn script_pubkey(&self) -> Vec<u8> {
        let pay_to_hash =
            |script: &[u8]| Writer::new().op(0xa9).push(&hash160(script)).op(0x87).done();
        match self.place {
            Place::Bare => self.script.clone(),
            Place::P2sh => pay_to_hash(&self.script),
            Place::NestedWpkh | Place::NestedWsh => pay_to_hash(&self.program()),
            Place::Wpkh | Place::Wsh | Place::TapKey | Place::TapScript => self.program(),
        }
    }

    /// Sets the input script and the witness of input number `index`.
    fn unlock_input(&self, context: &TxContext<'_>, tx: &mut Tx, index: usize, value: i64) {
        let items: Vec<Vec<u8>> = self
            .items
            .iter()
            .map(|item| match item {
                Item::Bytes(bytes) => bytes.clone(),
                Item::Sig(sig) => self.sign(context, index, value, *sig),
            })
            .collect();
        let input = &mut tx.inputs[index];
        input.script_sig.clear();
        input.witness.clear();
        match self.place {
            Place::Bare | Place::P2sh => {
                for item in &items {
                    push(&mut input.script_sig, item);
                }
                if self.place == Place::P2sh {
                    push(&mut input.script_sig, &self.script);
                }
            }
            Place::Wpkh | Place::Wsh | Place::TapKey => input.witness = items,
            Place::NestedWpkh | Place::NestedWsh => {
                push(&mut input.script_sig, &self.program());
                input.witness = items;
            }
            Place::TapScript => {
                input.witness = items;
                input.witness.push(self.script.clone());
                input.witness.push(self.control_block());
            }
        }
        match self.place {
            Place::Wsh | Place::NestedWsh => input.witness.push(self.script.clone()),
            Place::TapKey | Place::TapScript => input.witness.extend(self.annex.clone()),
            _ => {}
        }
    }

    fn sign(&self, context: &TxContext<'_>, input: usize, value: i64, sig: Sig) -> Vec<u8> {
        match self.place {
            Place::TapKey | Place::TapScript => self.sign_schnorr(context, input, sig),
            _ => self.sign_ecdsa(context, input, value, sig),
        }
    }

    fn sign_ecdsa(&self, context: &TxContext<'_>, input: usize, value: i64, sig: Sig) -> Vec<u8> {
        let key_hash_code;
        let code = match self.place {
            Place::Wpkh | Place::NestedWpkh => {
                let encoded = encoded_key(self.key, KeyForm::Compressed);
                key_hash_code = Lock::p2pkh_script(&encoded);
                &key_hash_code[..]
            }
            _ => &self.script[sig.code_from.min(self.script.len())..],
        };
        let hash_type = u32::from(sig.hash_type);
        let mut message = match self.place {
            Place::Bare | Place::P2sh => context.sighash_legacy(input, code, hash_type),
            _ => context.sighash_segwit_v0(input, code, value, hash_type),
        };
        if sig.flaw == Flaw::OtherMessage {
            message[0] ^= 1;
        }
        let made = keypair(sig.key).secret_key().sign_ecdsa(Message::from_digest(message));
        let mut bytes = if sig.flaw == Flaw::HighS {
            high_s(&made).serialize_der().to_vec()
        } else {
            made.serialize_der().to_vec()
        };
        match sig.flaw {
            Flaw::Padded => {
                // A superfluous zero in front of R.
                bytes.insert(4, 0);
                bytes[3] += 1;
                bytes[1] += 1;
            }
            Flaw::Short => {
                bytes.pop();
            }
            Flaw::NoHashType => return bytes,
            Flaw::Long => bytes.push(0),
            Flaw::None | Flaw::OtherMessage | Flaw::HighS => {}
        }
        bytes.push(sig.hash_type);
        bytes
    }

    fn p2pkh_script(encoded: &[u8]) -> Vec<u8> {
        Writer::new().op(0x76).op(0xa9).push(&hash160(encoded)).op(0x88).op(0xac).done()
    }

    fn sign_schnorr(&self, context: &TxContext<'_>, input: usize, sig: Sig) -> Vec<u8> {
        let annex = self.annex.as_deref().map(annex_hash);
        let position = TapscriptPosition {
            leaf_hash: tap_leaf_hash(self.leaf_version & 0xfe, &self.script),
            code_separator: sig.separator,
        };
        let position = (self.place == Place::TapScript).then_some(&position);
        let message = context.sighash_taproot(input, sig.hash_type, annex.as_ref(), position);
        let mut message = message.unwrap_or([0x77; 32]);
        if sig.flaw == Flaw::OtherMessage {
            message[0] ^= 1;
        }
        let mut pair: Keypair = *keypair(sig.key);
        if self.place == Place::TapKey {
            pair = pair.add_xonly_tweak(&self.tap_tweak()).expect("no tweak hits the negated key");
        }
        let mut bytes = pair.sign_schnorr_no_aux_rand(&message).to_byte_array().to_vec();
        match sig.flaw {
            Flaw::Short => {
                bytes.pop();
            }
            Flaw::Long => bytes.extend_from_slice(&[1, 1]),
            Flaw::HighS => bytes[63] ^= 1,
            Flaw::Padded => bytes.push(0),
            Flaw::None | Flaw::OtherMessage | Flaw::NoHashType => {}
        }
        if sig.hash_type != 0 && sig.flaw != Flaw::NoHashType {
            bytes.push(sig.hash_type);
        }
        bytes
    }
}

/// The other valid signature of the same message: S becomes the order minus S.
fn high_s(signature: &ecdsa::Signature) -> ecdsa::Signature {
    let mut compact = signature.serialize_compact();
    let (_, s) = compact.split_last_chunk_mut::<32>().expect("64 bytes");
    let scalar = SecretKey::from_secret_bytes(*s).expect("S is between 1 and the order");
    *s = scalar.negate().to_secret_bytes();
    ecdsa::Signature::from_compact(&compact).expect("order minus S is again between 1 and order")
}

/// Sets the input scripts and witnesses of all inputs; `locks` and `spent` are in order of the inputs.
pub fn unlock(tx: &mut Tx, locks: &[&Lock], spent: &[Output]) {
    let parsed = Transaction::parse(tx.stripped(), Encoding::Segwit)
        .expect("a transaction with inputs parses");
    let spent_views: Vec<TxOut<'_>> = spent.iter().map(Output::view).collect();
    let context = TxContext::new(parsed.view(), &spent_views);
    for (index, lock) in locks.iter().enumerate() {
        lock.unlock_input(&context, tx, index, spent[index].value);
    }
}
