//! A few fixed key pairs, since only the signed data matters.

use std::sync::LazyLock;

use assay_hash::sha256;
use secp256k1::{Keypair, XOnlyPublicKey};

/// Number of key pairs.
pub const KEY_COUNT: usize = 8;

static KEYS: LazyLock<Vec<Keypair>> = LazyLock::new(|| {
    (0..KEY_COUNT)
        .map(|index| {
            let secret = sha256(format!("assay peer kernel key {index}").as_bytes());
            Keypair::from_secret_bytes(secret).expect("a hash is a secret key but for 2^-127")
        })
        .collect()
});

/// Encoding of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// 33 bytes.
    Compressed,
    /// 65 bytes beginning with 04.
    Uncompressed,
    /// 65 bytes beginning with 06 or 07.
    Hybrid,
}

/// Key pair number `index`, modulo [`KEY_COUNT`].
pub fn keypair(index: usize) -> &'static Keypair {
    &KEYS[index % KEY_COUNT]
}

/// Public key of a pair in an encoding.
pub fn encoded_key(index: usize, form: KeyForm) -> Vec<u8> {
    let key = keypair(index).public_key();
    match form {
        KeyForm::Compressed => key.serialize().to_vec(),
        KeyForm::Uncompressed => key.serialize_uncompressed().to_vec(),
        KeyForm::Hybrid => {
            let mut bytes = key.serialize_uncompressed().to_vec();
            bytes[0] = 6 | (bytes[64] & 1);
            bytes
        }
    }
}

/// Public key of a pair in the encoding of BIP340.
pub fn x_only(index: usize) -> XOnlyPublicKey {
    keypair(index).x_only_public_key().0
}
