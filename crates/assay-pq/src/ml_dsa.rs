//! ML-DSA-44 (FIPS 204) through the library `libcrux-ml-dsa`: with AVX2 if the processor has it, otherwise in portable code.

use libcrux_ml_dsa::ml_dsa_44::{
    MLDSA44KeyPair, MLDSA44Signature, MLDSA44VerificationKey, generate_key_pair, sign,
    verify as verify_44,
};

pub const KEY_BYTES: usize = 1312;
pub const SIGNATURE_BYTES: usize = 2420;

/// True if the signature is valid for the message and a context of at most 255 bytes: `ML-DSA.Verify`, FIPS 204 algorithm 3. A
/// wrong length yields false.
///
/// ```
/// use assay_pq::ml_dsa::{TestKey, verify};
///
/// let key = TestKey::new([1; 32]);
/// let signature = key.sign(b"a transaction", b"");
/// assert!(verify(key.public(), b"a transaction", b"", &signature));
/// assert!(!verify(key.public(), b"another", b"", &signature));
/// ```
pub fn verify(key: &[u8], message: &[u8], context: &[u8], signature: &[u8]) -> bool {
    let (Ok(key), Ok(signature)) = (key.try_into(), signature.try_into()) else { return false };
    let (key, signature) = (MLDSA44VerificationKey::new(key), MLDSA44Signature::new(signature));
    verify_44(&key, message, context, &signature).is_ok()
}

/// A key for tests and benchmarks; it is not protected.
pub struct TestKey(MLDSA44KeyPair);

impl TestKey {
    pub fn new(seed: [u8; 32]) -> Self {
        Self(generate_key_pair(seed))
    }

    pub fn public(&self) -> &[u8] {
        self.0.verification_key.as_slice()
    }

    /// The deterministic signature of a message.
    ///
    /// # Panics
    /// If the context has more than 255 bytes.
    pub fn sign(&self, message: &[u8], context: &[u8]) -> Vec<u8> {
        let signature = sign(&self.0.signing_key, message, context, [0; 32]);
        signature.expect("a context of at most 255 bytes").as_slice().to_vec()
    }
}
