//! BLS signatures: keys in G1, signatures in G2, the proof-of-possession scheme of
//! draft-irtf-cfrg-bls-signature-05 that Ethereum's consensus uses.
//!
//! Signing performs the same operations on the same addresses for every secret ([`SecretKey`] lists
//! the limits of this); everything else is public and takes variable time.
//!
//! ```
//! use assay_pairing::bls::{PublicKey, Signature, fast_aggregate_verify, verify};
//!
//! # fn hex<const N: usize>(text: &str) -> [u8; N] {
//! #     core::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
//! # }
//! // From Ethereum's tests of BLS signatures.
//! let key = hex("a491d1b0ecd9bb917989f0e74f0dea0422eac4a873e5e2644f368dffb9a6e20fd6e10c1b77654d067c0618f6e5a7f79a");
//! let signature = hex("b6ed936746e01f8ecf281f020953fbf1f01debd5657c4a383940b020b26507f6076334f91e2366c96e9ab279fb5158090352ea1c5b0c9274504f4f0e7053af24802e51e4568d164fe986834f41e55c8e850ce1f98458c0cfc9ab380b55285a55");
//! let key = PublicKey::from_bytes(&key)?;
//! let signature = Signature::from_bytes(&signature)?;
//! assert!(verify(&key, &[0; 32], &signature));
//! // A committee: several keys, and one aggregated signature.
//! assert!(fast_aggregate_verify(&[key], &[0; 32], &Signature::aggregate(&[signature])));
//! # Ok::<_, assay_pairing::encoding::DecodeError>(())
//! ```

#[cfg(test)]
mod tests;

use core::ops::Range;

use assay_hash::Sha256;

use crate::bls12_381::Fp;
use crate::curve::{Affine, BlsG1, BlsG2, Curve, Jacobian, secret};
use crate::encoding::DecodeError;
use crate::hash_to_curve::{HashToCurve, hash_all};
use crate::membership::hash_point;
use crate::msm::Backend;
use crate::pairing::{Bls12381, Pairing};
use crate::tower::Fp12;
use crate::weights::{self, Weight};

/// Domain separation tag of messages.
const MESSAGE_DST: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
/// Domain separation tag of keys in proofs of possession.
const PROOF_DST: &[u8] = b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/// A valid key: a point of the group, not infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(Affine<BlsG1>);

/// A secret key: a number that is not zero and below the order of the groups.
///
/// Operations on it, its products with points, have no branch and no address that depends on it: complete formulas,
/// digits of fixed width, full scans of tables, and inversion by a power. Messages and their hashes are public.
///
/// Memcheck finds no branch and no address that depends on the secret (`constant_time --memcheck`
/// in `curves/peer`, which runs plain Rust, as on CPUs without ADX, compiled by the pinned
/// compiler). Not covered: copies that stay in memory (nothing is wiped), faults and power
/// analysis. There was no audit. For valuable keys use an audited library (blst).
#[derive(Clone)]
pub struct SecretKey([u64; 4]);

/// A signature, or an aggregate of several: a point of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(Affine<BlsG2>);

impl PublicKey {
    /// Decodes and validates a key (`KeyValidate`).
    ///
    /// # Errors
    /// If the bytes are not a point of the group, or infinity ([`DecodeError::NotInGroup`]).
    pub fn from_bytes(bytes: &[u8; 48]) -> Result<Self, DecodeError> {
        let point = Affine::<BlsG1>::from_compressed(bytes)?;
        if point.is_infinity { Err(DecodeError::NotInGroup) } else { Ok(Self(point)) }
    }

    pub fn to_bytes(&self) -> [u8; 48] {
        self.0.to_compressed()
    }

    pub fn point(&self) -> &Affine<BlsG1> {
        &self.0
    }
}

impl SecretKey {
    /// Decodes a big-endian secret; `None` if it is zero or not below the order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let number: [u64; 4] = crate::limbs::from_be_bytes(bytes);
        let is_valid = crate::limbs::less(&number, &BlsG1::ORDER) && number != [0; 4];
        is_valid.then_some(Self(number))
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey(secret::multiply(&BlsG1::GENERATOR, &self.0))
    }

    pub fn sign(&self, message: &[u8]) -> Signature {
        self.sign_point(&BlsG2::hash(message, MESSAGE_DST))
    }

    /// Proves possession of the secret (`PopProve`).
    pub fn prove_possession(&self) -> Signature {
        self.sign_point(&BlsG2::hash(&self.public_key().to_bytes(), PROOF_DST))
    }

    fn sign_point(&self, point: &Affine<BlsG2>) -> Signature {
        // No message with this hash is known.
        assert!(!point.is_infinity, "a message that is hashed to infinity");
        Signature(secret::multiply_g2(point, &self.0))
    }
}

impl core::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SecretKey")
    }
}

impl Signature {
    /// Decodes a signature. Infinity is valid as the aggregate of none.
    ///
    /// # Errors
    /// If the bytes are not a point of the group.
    pub fn from_bytes(bytes: &[u8; 96]) -> Result<Self, DecodeError> {
        Affine::<BlsG2>::from_compressed(bytes).map(Self)
    }

    pub fn to_bytes(&self) -> [u8; 96] {
        self.0.to_compressed()
    }

    #[must_use]
    pub fn aggregate(signatures: &[Self]) -> Self {
        Self(sum(signatures.iter().map(|signature| &signature.0)).to_affine())
    }

    pub fn point(&self) -> &Affine<BlsG2> {
        &self.0
    }
}

fn sum<'p, C: Curve>(points: impl Iterator<Item = &'p Affine<C>>) -> Jacobian<C> {
    points.fold(Jacobian::INFINITY, |sum, point| sum.add_affine(point))
}

/// True if the product of the pairings of all pairs of keys and hashes, and of the negated
/// generator with the signature, is one.
fn is_signed(mut pairs: Vec<(Affine<BlsG1>, Affine<BlsG2>)>, signature: &Affine<BlsG2>) -> bool {
    pairs.push((-BlsG1::GENERATOR, *signature));
    Bls12381::product(&pairs) == Fp12::ONE
}

pub fn verify(key: &PublicKey, message: &[u8], signature: &Signature) -> bool {
    aggregate_verify(&[(*key, message)], signature)
}

/// Verifies that each key has signed its message. An empty list returns `false`.
pub fn aggregate_verify(signed: &[(PublicKey, &[u8])], signature: &Signature) -> bool {
    let pair = |(key, message): &(PublicKey, &[u8])| (key.0, BlsG2::hash(message, MESSAGE_DST));
    !signed.is_empty() && is_signed(signed.iter().map(pair).collect(), &signature.0)
}

/// Verifies that all keys have signed the same message. Their possession must have been proven
/// ([`verify_possession`]), or a key computed from others could sign for them. An empty list returns `false`.
pub fn fast_aggregate_verify(keys: &[PublicKey], message: &[u8], signature: &Signature) -> bool {
    let key = sum(keys.iter().map(|key| &key.0)).to_affine();
    // Keys whose sum is infinity are rejected.
    !key.is_infinity && is_signed(vec![(key, BlsG2::hash(message, MESSAGE_DST))], &signature.0)
}

/// Verifies a proof of possession of a key's secret (`PopVerify`).
pub fn verify_possession(key: &PublicKey, proof: &Signature) -> bool {
    is_signed(vec![(key.0, BlsG2::hash(&key.to_bytes(), PROOF_DST))], &proof.0)
}

/// A key, a message and a signature.
pub type Signed<'m> = (PublicKey, &'m [u8], Signature);

/// Verifies many signatures with one final exponentiation. Each has a random weight of 128 bits, so
/// that invalid ones cancel each other with a probability of at most 2^-128.
///
/// Weights are hashes of a digest of the whole batch and of `randomness`, which may be any value unknown to the
/// signers; even if it is known they have to try 2^128 batches. An empty batch is valid.
///
/// # Panics
/// If this CPU does not support the backend.
pub fn verify_batch(backend: Backend, signed: &[Signed<'_>], randomness: &[u8; 32]) -> bool {
    let batch = Batch::new(backend, signed, randomness);
    batch.is_valid(&[batch.share(0..signed.len())])
}

/// A batch for several threads: [`verify_batch`] in shares, each of some of the signatures.
///
/// ```
/// use assay_pairing::bls::{Batch, Signed};
/// use assay_pairing::msm::Backend;
///
/// fn on_two_threads(signed: &[Signed<'_>], randomness: &[u8; 32]) -> bool {
///     let batch = Batch::new(Backend::detect(), signed, randomness);
///     let half = signed.len() / 2;
///     let shares = std::thread::scope(|scope| {
///         let first = scope.spawn(|| batch.share(0..half));
///         let second = batch.share(half..signed.len());
///         [first.join().expect("no share panics"), second]
///     });
///     batch.is_valid(&shares)
/// }
/// assert!(on_two_threads(&[], &[7; 32]));
/// ```
#[derive(Clone, Debug)]
pub struct Batch<'s, 'm> {
    backend: Backend,
    signed: &'s [Signed<'m>],
    /// Hash of the whole batch and its randomness.
    digest: [u8; 32],
    /// Weights depend on the whole batch: those of single shares could be made to cancel with 2^64 trials.
    weights: Vec<Weight>,
}

/// Result of a share of a batch before the final exponentiation, which is common to all shares.
#[derive(Clone, Debug)]
pub struct BatchShare {
    digest: [u8; 32],
    signatures: Range<usize>,
    function: Fp12<Fp>,
}

impl<'s, 'm> Batch<'s, 'm> {
    /// A batch with its weights.
    ///
    /// # Panics
    /// If this CPU does not support the backend.
    pub fn new(backend: Backend, signed: &'s [Signed<'m>], randomness: &[u8; 32]) -> Self {
        assert!(backend.is_available(), "a backend that this CPU runs");
        let digest = digest(signed, randomness);
        Self { backend, signed, digest, weights: weights(signed.len(), &digest) }
    }

    /// Computes the share of these signatures.
    ///
    /// # Panics
    /// If the batch has fewer.
    pub fn share(&self, signatures: Range<usize>) -> BatchShare {
        let Self { backend, digest, .. } = *self;
        let (signed, weights) =
            (&self.signed[signatures.clone()], &self.weights[signatures.clone()]);
        let keys: Vec<_> = signed.iter().map(|(key, ..)| key.0).collect();
        let points: Vec<_> = signed.iter().map(|(.., signature)| signature.0).collect();
        let messages: Vec<_> = signed.iter().map(|(_, message, _)| *message).collect();
        let keys = Jacobian::all_to_affine(&weights::products(backend, &keys, weights));
        let hashes = hash_all(backend, &messages, MESSAGE_DST);
        let points = weights::products(backend, &points, weights);
        let sum = points.into_iter().fold(Jacobian::INFINITY, |sum, product| sum + product);
        let mut pairs: Vec<_> = keys.into_iter().zip(hashes).collect();
        pairs.push((-BlsG1::GENERATOR, sum.to_affine()));
        BatchShare { digest, signatures, function: Bls12381::miller_loop(backend, &pairs) }
    }

    /// True if all signatures are valid; shares must be in the order of the batch.
    ///
    /// # Panics
    /// If a signature is in no share or in two, or a share is of another batch or randomness, and so has other weights.
    pub fn is_valid(&self, shares: &[BatchShare]) -> bool {
        let end = shares.iter().fold(0, |end, share| {
            assert_eq!(share.digest, self.digest, "a share of this batch");
            assert_eq!(share.signatures.start, end, "shares follow each other");
            share.signatures.end
        });
        assert_eq!(end, self.signed.len(), "every signature is in a share");
        let product = shares.iter().map(|share| share.function).reduce(|a, b| a * b);
        product.is_none_or(|f| Bls12381::final_exponentiation(self.backend, &f) == Fp12::ONE)
    }
}

/// Hash of a batch and its randomness.
fn digest(signed: &[Signed<'_>], randomness: &[u8; 32]) -> [u8; 32] {
    let mut batch = Sha256::new();
    batch.update(randomness);
    for (key, message, signature) in signed {
        hash_point(&key.0, &mut batch);
        batch.update(&(message.len() as u64).to_be_bytes());
        batch.update(message);
        hash_point(&signature.0, &mut batch);
    }
    batch.finalize()
}

/// Weights derived from a digest.
fn weights(count: usize, digest: &[u8; 32]) -> Vec<Weight> {
    let weight = |index: u64| {
        let mut hash = Sha256::new();
        hash.update(digest);
        hash.update(&index.to_be_bytes());
        let bytes = hash.finalize();
        let [a, b, ..] = crate::limbs::from_be_bytes::<4>(&bytes);
        Weight { a, b }
    };
    (0..count as u64).map(weight).collect()
}
