//! Who decides about a signature once its message is known.

/// Verifies signatures whose messages the interpreter has computed.
///
/// Implementations decide at once (for exactness), record and answer "true" (to verify many at a
/// time later), or follow a test's script. Everything about encodings and hash types that depends on
/// rules has been checked before.
pub trait SignatureChecker {
    /// ECDSA. `der_sig` is without its hash type and any "lax" DER; a high S counts as its
    /// negation; keys may be compressed, uncompressed or hybrid (33 or 65 bytes).
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool;

    /// Schnorr by BIP-0340.
    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool;

    /// Schnorr by Bitcoin Cash's specification of May 2019.
    fn schnorr_bch(&mut self, pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool;

    /// Whether `output` is the x coordinate of `internal + tweak * G`, with that parity of y
    /// (BIP-0341).
    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool;
}

impl<C: SignatureChecker + ?Sized> SignatureChecker for &mut C {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        (**self).ecdsa(pubkey, der_sig, msg)
    }
    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        (**self).schnorr(xonly, sig, msg)
    }
    fn schnorr_bch(&mut self, pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        (**self).schnorr_bch(pubkey, sig, msg)
    }
    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool {
        (**self).taproot_tweak(internal, tweak, output, output_parity)
    }
}
