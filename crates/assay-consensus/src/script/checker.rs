//! The interface that decides about a signature once its message is known.

/// An ECDSA signature, without its hash type, and the message that it signs.
#[derive(Clone, Copy, Debug)]
pub struct SignedMessage<'a> {
    /// The signature in any "lax" DER.
    pub der_sig: &'a [u8],
    pub msg: [u8; 32],
}

/// A post-quantum signature scheme, which scripts have under rules of proposals alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PqScheme {
    /// SLH-DSA-SHA2-128s (FIPS 205, table 2).
    SlhDsa128s,
    /// ML-DSA-44 (FIPS 204, table 2).
    MlDsa44,
}

impl PqScheme {
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::SlhDsa128s => 32,
            Self::MlDsa44 => 1312,
        }
    }

    pub const fn signature_bytes(self) -> usize {
        match self {
            Self::SlhDsa128s => 7856,
            Self::MlDsa44 => 2420,
        }
    }
}

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
    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        self.schnorr_of_any_length(xonly, sig, msg)
    }

    /// Schnorr by BIP-0340 of a message that need not have 32 bytes (BIP-0348).
    fn schnorr_of_any_length(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool;

    /// A post-quantum signature, of a pure message with an empty context; key and signature have the scheme's lengths.
    fn post_quantum(&mut self, scheme: PqScheme, key: &[u8], sig: &[u8], msg: &[u8; 32]) -> bool;

    /// Schnorr by Bitcoin Cash's specification of May 2019.
    fn schnorr_bch(&mut self, pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool;

    /// Returns `true` if `output` is the x coordinate of `internal + tweak * G`, with that parity of y
    /// (BIP-0341).
    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool;

    /// Returns `true` if [`Self::multisig`] has to be asked before the pairs of a CHECKMULTISIG.
    fn takes_multisig(&self) -> bool {
        false
    }

    /// Returns `true` if a CHECKMULTISIG with fewer signatures than keys is known, or from now on assumed,
    /// to be satisfied: each signature by a key of its own, both in the order given.
    ///
    /// Signatures and keys are well formed, so that the pairs that the opcode would try besides the
    /// satisfying ones have no influence, and the order in which they are tried has none either.
    /// `false` commits to nothing: the pairs are asked one by one.
    fn multisig(&mut self, sigs: &[SignedMessage<'_>], keys: &[&[u8]]) -> bool {
        let _ = (sigs, keys);
        false
    }
}

impl<C: SignatureChecker + ?Sized> SignatureChecker for &mut C {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        (**self).ecdsa(pubkey, der_sig, msg)
    }
    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        (**self).schnorr(xonly, sig, msg)
    }
    fn schnorr_of_any_length(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool {
        (**self).schnorr_of_any_length(xonly, sig, msg)
    }
    fn post_quantum(&mut self, scheme: PqScheme, key: &[u8], sig: &[u8], msg: &[u8; 32]) -> bool {
        (**self).post_quantum(scheme, key, sig, msg)
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
    fn takes_multisig(&self) -> bool {
        (**self).takes_multisig()
    }
    fn multisig(&mut self, sigs: &[SignedMessage<'_>], keys: &[&[u8]]) -> bool {
        (**self).multisig(sigs, keys)
    }
}

/// For tests in which nothing is signed.
#[cfg(test)]
pub(super) struct Unasked;

#[cfg(test)]
impl SignatureChecker for Unasked {
    fn ecdsa(&mut self, _: &[u8], _: &[u8], _: &[u8; 32]) -> bool {
        false
    }
    fn schnorr_of_any_length(&mut self, _: &[u8; 32], _: &[u8; 64], _: &[u8]) -> bool {
        false
    }
    fn post_quantum(&mut self, _: PqScheme, _: &[u8], _: &[u8], _: &[u8; 32]) -> bool {
        false
    }
    fn schnorr_bch(&mut self, _: &[u8], _: &[u8; 64], _: &[u8; 32]) -> bool {
        false
    }
    fn taproot_tweak(&mut self, _: &[u8; 32], _: &[u8; 32], _: &[u8; 32], _: bool) -> bool {
        false
    }
}
