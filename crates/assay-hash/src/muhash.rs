//! `MuHash3072`: a hash of a set with incremental insertion and removal.

use crate::backend::Backend;
use crate::many::hash_many;
use crate::num3072::Num3072;
use crate::sha256::Sha256;

/// A multiset hash: the product of its elements modulo 2^3072 - 1103717.
///
/// Elements may be inserted and removed in any order, and hashes of disjoint parts combined; the result depends only on the final
/// multiset. Element derivation and encoding are those of Bitcoin Core (`crypto/muhash.h`), so [`finalize`](Self::finalize) over
/// the coins equals the output of `gettxoutsetinfo muhash` in reversed byte order.
#[derive(Clone, Debug)]
pub struct MuHash3072 {
    /// Product of the inserted elements.
    numerator: Num3072,
    /// Product of the removed elements; a single division is done at the end.
    denominator: Num3072,
    backend: Backend,
}

impl Default for MuHash3072 {
    fn default() -> Self {
        Self::new()
    }
}

impl MuHash3072 {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const SIZE: usize = 2 * Num3072::SIZE;

    /// The hash of the empty set, on the fastest backend of this machine.
    pub fn new() -> Self {
        Self::with_backend(Backend::detect())
    }

    /// The hash of the empty set on a given backend.
    pub fn with_backend(backend: Backend) -> Self {
        Self { numerator: Num3072::ONE, denominator: Num3072::ONE, backend }
    }

    /// Adds the element `data`.
    pub fn insert(&mut self, data: &[u8]) {
        let element = self.element(data);
        self.numerator = self.backend.mul(&self.numerator, &element);
    }

    /// Adds many elements; with vector multiplication faster than one by one, from 32 elements on.
    pub fn insert_many(&mut self, elements: &[&[u8]]) {
        let at_once = self.backend.elements_at_once();
        let mut one_by_one = elements;
        // Fewer elements do not justify the batch kernel.
        if at_once > 1 && elements.len() >= 2 * at_once {
            let (many, rest) = elements.split_at(elements.len() - elements.len() % at_once);
            let mut keys = vec![[0; 32]; many.len()];
            hash_many::<false>(self.backend, many, &mut keys);
            self.backend.multiply_elements(&mut self.numerator, &keys);
            one_by_one = rest;
        }
        for element in one_by_one {
            self.insert(element);
        }
    }

    /// Removes the element `data`; the removal may precede the insertion.
    pub fn remove(&mut self, data: &[u8]) {
        let element = self.element(data);
        self.denominator = self.backend.mul(&self.denominator, &element);
    }

    /// Applies all insertions and removals of `other`.
    pub fn combine(&mut self, other: &Self) {
        self.numerator = self.backend.mul(&self.numerator, &other.numerator);
        self.denominator = self.backend.mul(&self.denominator, &other.denominator);
    }

    /// The SHA-256 of the quotient, written as 384 little-endian bytes.
    pub fn finalize(self) -> [u8; 32] {
        let quotient = self.backend.mul(&self.numerator, &self.denominator.inverse());
        let mut hasher = Sha256::with_backend(self.backend);
        hasher.update(&quotient.normalised().to_bytes());
        hasher.finalize()
    }

    /// The running state for later continuation: numerator then denominator, each 384 bytes little endian, as in Bitcoin Core's
    /// serialisation.
    ///
    /// Equal sets may have different states; only [`finalize`](Self::finalize) is canonical.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut out = [0u8; Self::SIZE];
        let (numerator, denominator) = out.split_at_mut(Num3072::SIZE);
        numerator.copy_from_slice(&self.numerator.to_bytes());
        denominator.copy_from_slice(&self.denominator.to_bytes());
        out
    }

    /// Continues from a state written by [`to_bytes`](Self::to_bytes).
    ///
    /// Any bytes are accepted; numbers above the modulus are reduced.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        Self::from_bytes_with(Backend::detect(), bytes)
    }

    /// [`from_bytes`](Self::from_bytes) on a given backend.
    pub fn from_bytes_with(backend: Backend, bytes: &[u8; Self::SIZE]) -> Self {
        let halves = bytes.as_chunks::<{ Num3072::SIZE }>().0;
        Self {
            numerator: Num3072::from_bytes(&halves[0]),
            denominator: Num3072::from_bytes(&halves[1]),
            backend,
        }
    }

    /// The group element of `data`: the `ChaCha20` key stream under its SHA-256.
    fn element(&self, data: &[u8]) -> Num3072 {
        let mut hasher = Sha256::with_backend(self.backend);
        hasher.update(data);
        Num3072::from_bytes(&self.backend.keystream(&hasher.finalize()))
    }
}
