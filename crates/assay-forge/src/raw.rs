//! Signing through libsecp256k1's C interface.
//!
//! The safe wrappers of the `secp256k1` crate re-randomise their context after every signature. This costs one more
//! multiplication by the generator, and the forge has no secrets to protect: its keys are public by construction.

#![expect(unsafe_code, reason = "calls libsecp256k1 without re-blinding, see above")]

use std::ptr;

use secp256k1::{All, Keypair, PublicKey, Secp256k1, SecretKey, XOnlyPublicKey, ecdsa, ffi};

/// One context for all threads; signing only reads it.
pub(crate) struct Signer {
    context: Secp256k1<All>,
}

impl Signer {
    pub(crate) fn new() -> Self {
        Self { context: Secp256k1::new() }
    }

    /// Deterministic ECDSA (RFC 6979) without grinding; low S.
    pub(crate) fn ecdsa(&self, message: &[u8; 32], secret: &[u8; 32]) -> ecdsa::Signature {
        // SAFETY: the zeroed value is only a place to write to, and is not read before it was written.
        let mut signature = unsafe { ffi::Signature::new() };
        // SAFETY: the context was built for signing and outlives the call, both pointers are to 32 readable bytes,
        // and `signature` is writable. Nothing is retained.
        let made = unsafe {
            ffi::secp256k1_ecdsa_sign(
                self.context.ctx().as_ptr(),
                &raw mut signature,
                message.as_ptr(),
                secret.as_ptr(),
                ffi::secp256k1_nonce_function_rfc6979,
                ptr::null(),
            )
        };
        assert_eq!(made, 1, "forged secret keys are small non-zero numbers, so signing succeeds");
        ecdsa::Signature::from(signature)
    }

    /// BIP340 without auxiliary randomness.
    pub(crate) fn schnorr(&self, message: &[u8; 32], keypair: &Keypair) -> [u8; 64] {
        use secp256k1::ffi::CPtr as _;
        let mut signature = [0u8; 64];
        // SAFETY: as above; `keypair` is an initialised pair and `signature` has room for 64 bytes.
        let made = unsafe {
            ffi::secp256k1_schnorrsig_sign32(
                self.context.ctx().as_ptr(),
                signature.as_mut_ptr(),
                message.as_ptr(),
                keypair.as_c_ptr(),
                ptr::null(),
            )
        };
        assert_eq!(made, 1, "a valid key pair signs every message");
        signature
    }

    pub(crate) fn public_key(&self, secret: &[u8; 32]) -> PublicKey {
        // SAFETY: as for the signature above.
        let mut key = unsafe { ffi::PublicKey::new() };
        // SAFETY: as above; `key` is writable.
        let made = unsafe {
            ffi::secp256k1_ec_pubkey_create(
                self.context.ctx().as_ptr(),
                &raw mut key,
                secret.as_ptr(),
            )
        };
        assert_eq!(made, 1, "forged secret keys are small non-zero numbers, so they have a point");
        PublicKey::from(key)
    }
}

/// Combines a secret key with its public key, which the caller derived by other means.
///
/// `public` must be the public key of `secret`; otherwise every signature of the test suite fails.
pub(crate) fn keypair(secret: SecretKey, public: &PublicKey) -> Keypair {
    let (x_only, parity): (XOnlyPublicKey, _) = public.x_only_public_key();
    let secret = if parity == secp256k1::Parity::Odd { secret.negate() } else { secret };
    debug_assert_eq!(secret.x_only_public_key(), (x_only, secp256k1::Parity::Even));
    // SAFETY: the secret key was negated when its point has an odd y, so it belongs to `x_only` with even parity.
    unsafe { Keypair::from_key_parts(x_only, &secret) }
}
