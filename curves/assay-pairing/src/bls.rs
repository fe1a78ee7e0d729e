//! BLS signatures: keys in G1, signatures in G2, the proof-of-possession scheme of
//! draft-irtf-cfrg-bls-signature-05 that Ethereum's consensus uses.
//!
//! Signing takes the same operations on the same addresses whatever the secret ([`SecretKey`] says what that does
//! not cover); all else is public and takes variable time.
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
//! // The same of a committee: its keys, and all signatures in one.
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
use crate::hash_to_curve::{HashToCurve, hash_all_with};
use crate::membership::hash_point;
use crate::msm::Backend;
use crate::pairing::{Bls12381, Pairing};
use crate::tower::Fp12;
use crate::weights::{self, Weight};

/// Under which messages are hashed.
const MESSAGE_DST: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
/// Under which keys are hashed for proofs of possession.
const PROOF_DST: &[u8] = b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/// A valid key: a point of the group, not infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(Affine<BlsG1>);

/// The secret of a key: a number that is not zero and below the order of the groups.
///
/// What depends on it, its products with points, has no branch and no address that does: complete formulas, digits of
/// fixed width, tables that are read as a whole, and an inversion by a power. Messages and what they are hashed to are public.
///
/// Memcheck finds no branch and no address that depends on it (`constant_time --memcheck` in `curves/peer`; it runs plain Rust, as CPUs
/// without ADX do, as the compiler pinned here makes it). Not covered: copies that stay in memory (nothing is wiped), faults and power
/// analysis. Nobody has audited it. For keys that are worth something use a library that was (blst).
#[derive(Clone)]
pub struct SecretKey([u64; 4]);

/// A signature, or several that were aggregated: a point of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(Affine<BlsG2>);

impl PublicKey {
    /// The key of these 48 bytes (`KeyValidate`).
    ///
    /// # Errors
    /// Where they are no point of the group, or infinity ([`DecodeError::NotInGroup`]).
    pub fn from_bytes(bytes: &[u8; 48]) -> Result<Self, DecodeError> {
        let point = Affine::<BlsG1>::from_compressed(bytes)?;
        if point.is_infinity { Err(DecodeError::NotInGroup) } else { Ok(Self(point)) }
    }

    /// The key in 48 bytes.
    pub fn to_bytes(&self) -> [u8; 48] {
        self.0.to_compressed()
    }

    /// The point.
    pub fn point(&self) -> &Affine<BlsG1> {
        &self.0
    }
}

impl SecretKey {
    /// The secret of these 32 bytes, big-endian; none where it is zero or not below the order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let number: [u64; 4] = crate::limbs::from_be_bytes(bytes);
        let is_valid = crate::limbs::less(&number, &BlsG1::ORDER) && number != [0; 4];
        is_valid.then_some(Self(number))
    }

    /// The key that belongs to it.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(secret::multiply(&BlsG1::GENERATOR, &self.0))
    }

    /// The signature of a message.
    pub fn sign(&self, message: &[u8]) -> Signature {
        self.sign_point(&BlsG2::hash(message, MESSAGE_DST))
    }

    /// The proof that somebody has the secret (`PopProve`).
    pub fn prove_possession(&self) -> Signature {
        self.sign_point(&BlsG2::hash(&self.public_key().to_bytes(), PROOF_DST))
    }

    fn sign_point(&self, point: &Affine<BlsG2>) -> Signature {
        // No message is known that is hashed to infinity.
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
    /// The signature of these 96 bytes. Infinity is one, the aggregate of none.
    ///
    /// # Errors
    /// Where they are no point of the group.
    pub fn from_bytes(bytes: &[u8; 96]) -> Result<Self, DecodeError> {
        Affine::<BlsG2>::from_compressed(bytes).map(Self)
    }

    /// The signature in 96 bytes.
    pub fn to_bytes(&self) -> [u8; 96] {
        self.0.to_compressed()
    }

    /// All in one.
    #[must_use]
    pub fn aggregate(signatures: &[Self]) -> Self {
        Self(sum(signatures.iter().map(|signature| &signature.0)).to_affine())
    }

    /// The point.
    pub fn point(&self) -> &Affine<BlsG2> {
        &self.0
    }
}

fn sum<'p, C: Curve>(points: impl Iterator<Item = &'p Affine<C>>) -> Jacobian<C> {
    points.fold(Jacobian::INFINITY, |sum, point| sum.add_affine(point))
}

/// Whether the pairs of keys and hashes are those of the signature: their product and that of the negated generator
/// with the signature is one.
fn is_signed(mut pairs: Vec<(Affine<BlsG1>, Affine<BlsG2>)>, signature: &Affine<BlsG2>) -> bool {
    pairs.push((-BlsG1::GENERATOR, *signature));
    Bls12381::product(&pairs) == Fp12::ONE
}

/// Whether a key has signed a message.
pub fn verify(key: &PublicKey, message: &[u8], signature: &Signature) -> bool {
    aggregate_verify(&[(*key, message)], signature)
}

/// Whether each key has signed its message. Nobody has signed nothing: `false`.
pub fn aggregate_verify(signed: &[(PublicKey, &[u8])], signature: &Signature) -> bool {
    let pair = |(key, message): &(PublicKey, &[u8])| (key.0, BlsG2::hash(message, MESSAGE_DST));
    !signed.is_empty() && is_signed(signed.iter().map(pair).collect(), &signature.0)
}

/// Whether all keys have signed the same message. Their possession must have been proven ([`verify_possession`]),
/// or a key that was made of others could sign for them. `false` without keys.
pub fn fast_aggregate_verify(keys: &[PublicKey], message: &[u8], signature: &Signature) -> bool {
    let key = sum(keys.iter().map(|key| &key.0)).to_affine();
    // Keys whose sum is infinity prove nothing.
    !key.is_infinity && is_signed(vec![(key, BlsG2::hash(message, MESSAGE_DST))], &signature.0)
}

/// Whether a proof shows that somebody has the secret of a key (`PopVerify`).
pub fn verify_possession(key: &PublicKey, proof: &Signature) -> bool {
    is_signed(vec![(key.0, BlsG2::hash(&key.to_bytes(), PROOF_DST))], &proof.0)
}

/// A key, a message and a signature.
pub type Signed<'m> = (PublicKey, &'m [u8], Signature);

/// Whether all signatures are valid, with one final exponentiation: each is taken with a random weight of 128 bits, so
/// invalid ones cancel each other with a probability of 2^-128 at most.
///
/// Weights are hashes of a digest of the whole batch and of `randomness`; that may be anything that the makers of the
/// signatures did not know, and even if it is known they have to try 2^128 batches. An empty batch is valid.
pub fn verify_batch(signed: &[Signed<'_>], randomness: &[u8; 32]) -> bool {
    verify_batch_with(Backend::detect(), signed, randomness)
}

/// [`verify_batch`] on a certain backend.
///
/// # Panics
/// Where this CPU does not run it.
pub fn verify_batch_with(backend: Backend, signed: &[Signed<'_>], randomness: &[u8; 32]) -> bool {
    assert!(backend.is_available(), "a backend that this CPU runs");
    let batch = Batch::with(backend, signed, randomness);
    batch.is_valid(&[batch.share(0..signed.len())])
}

/// A batch that several threads verify: [`verify_batch`] in shares, each of some of the signatures.
///
/// ```
/// use assay_pairing::bls::{Batch, Signed};
///
/// fn on_two_threads(signed: &[Signed<'_>], randomness: &[u8; 32]) -> bool {
///     let batch = Batch::new(signed, randomness);
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
    /// They follow from the whole batch: shares with weights of their own could be made to cancel each other, with 2^64 trials.
    weights: Vec<Weight>,
}

/// What is known of a share of a batch before the final exponentiation, which is one for all of them.
#[derive(Clone, Debug)]
pub struct BatchShare {
    /// Of its batch.
    digest: [u8; 32],
    signatures: Range<usize>,
    function: Fp12<Fp>,
}

impl<'s, 'm> Batch<'s, 'm> {
    /// A batch and its weights.
    pub fn new(signed: &'s [Signed<'m>], randomness: &[u8; 32]) -> Self {
        Self::with(Backend::detect(), signed, randomness)
    }

    fn with(backend: Backend, signed: &'s [Signed<'m>], randomness: &[u8; 32]) -> Self {
        let digest = digest(signed, randomness);
        Self { backend, signed, digest, weights: weights(signed.len(), &digest) }
    }

    /// The share of these signatures.
    ///
    /// # Panics
    /// Where the batch has fewer.
    pub fn share(&self, signatures: Range<usize>) -> BatchShare {
        let Self { backend, digest, .. } = *self;
        let (signed, weights) =
            (&self.signed[signatures.clone()], &self.weights[signatures.clone()]);
        let keys: Vec<_> = signed.iter().map(|(key, ..)| key.0).collect();
        let points: Vec<_> = signed.iter().map(|(.., signature)| signature.0).collect();
        let messages: Vec<_> = signed.iter().map(|(_, message, _)| *message).collect();
        let keys = Jacobian::all_to_affine(&weights::products(backend, &keys, weights));
        let hashes = hash_all_with(backend, &messages, MESSAGE_DST);
        let points = weights::products(backend, &points, weights);
        let sum = points.into_iter().fold(Jacobian::INFINITY, |sum, product| sum + product);
        let mut pairs: Vec<_> = keys.into_iter().zip(hashes).collect();
        pairs.push((-BlsG1::GENERATOR, sum.to_affine()));
        BatchShare { digest, signatures, function: Bls12381::miller_loop_with(backend, &pairs) }
    }

    /// Whether all signatures are valid; shares are in the order of the batch.
    ///
    /// # Panics
    /// Where a signature is in no share or in two, or a share is of another batch or was made with other randomness: its weights
    /// are not those of this one.
    pub fn is_valid(&self, shares: &[BatchShare]) -> bool {
        let end = shares.iter().fold(0, |end, share| {
            assert_eq!(share.digest, self.digest, "a share of this batch");
            assert_eq!(share.signatures.start, end, "shares follow each other");
            share.signatures.end
        });
        assert_eq!(end, self.signed.len(), "every signature is in a share");
        let product = shares.iter().map(|share| share.function).reduce(|a, b| a * b);
        product.is_none_or(|f| Bls12381::final_exponentiation_with(self.backend, &f) == Fp12::ONE)
    }
}

/// The hash of a batch and its randomness.
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

/// Weights that nobody can choose.
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
