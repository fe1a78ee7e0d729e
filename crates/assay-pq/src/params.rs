//! Parameters of FIPS 205, table 2, with SHA2.

/// A parameter set: the size of hash values and the shape of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterSet {
    name: &'static str,
    /// Bytes of a hash value: 16, 24 or 32.
    n: usize,
    /// Height of the hypertree.
    h: usize,
    /// Number of layers of the hypertree, each a tree of height `h / d`.
    d: usize,
    /// Height of a FORS tree.
    a: usize,
    /// Number of FORS trees.
    k: usize,
}

impl ParameterSet {
    /// SLH-DSA-SHA2-128s: signatures of 7,856 bytes.
    pub const SHA2_128S: Self = Self::new("SLH-DSA-SHA2-128s", 16, [63, 7, 12, 14]);
    /// SLH-DSA-SHA2-128f: signatures of 17,088 bytes.
    pub const SHA2_128F: Self = Self::new("SLH-DSA-SHA2-128f", 16, [66, 22, 6, 33]);
    /// SLH-DSA-SHA2-192s: signatures of 16,224 bytes.
    pub const SHA2_192S: Self = Self::new("SLH-DSA-SHA2-192s", 24, [63, 7, 14, 17]);
    /// SLH-DSA-SHA2-192f: signatures of 35,664 bytes.
    pub const SHA2_192F: Self = Self::new("SLH-DSA-SHA2-192f", 24, [66, 22, 8, 33]);
    /// SLH-DSA-SHA2-256s: signatures of 29,792 bytes.
    pub const SHA2_256S: Self = Self::new("SLH-DSA-SHA2-256s", 32, [64, 8, 14, 22]);
    /// SLH-DSA-SHA2-256f: signatures of 49,856 bytes.
    pub const SHA2_256F: Self = Self::new("SLH-DSA-SHA2-256f", 32, [68, 17, 9, 35]);

    /// The stateless part of SHRINCS (draft of August 2026): FIPS 205 with other parameters, for 2^40 signatures per key.
    /// Signatures of 5,776 bytes.
    pub const SHRINCS_STATELESS: Self = Self::new("SHRINCS-stateless", 16, [45, 5, 13, 10]);

    /// All sets of FIPS 205, lower security categories first.
    pub const ALL: [Self; 6] = [
        Self::SHA2_128S,
        Self::SHA2_128F,
        Self::SHA2_192S,
        Self::SHA2_192F,
        Self::SHA2_256S,
        Self::SHA2_256F,
    ];

    /// `h`, `d`, `a` and `k` in the table's order.
    const fn new(name: &'static str, n: usize, [h, d, a, k]: [usize; 4]) -> Self {
        assert!(n == 16 || n == 24 || n == 32, "the SHA2 instantiations have three sizes");
        assert!(h.is_multiple_of(d) && h - h / d <= 64, "tree indices fit 64 bits");
        assert!(h / d < 32 && a < 25 && k * a <= 8 * Self::FORS_BYTES_MAX, "indices fit 32 bits");
        Self { name, n, h, d, a, k }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name == name)
    }

    /// The name, spelled as in FIPS 205.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Size of a public key: `PK.seed`, then `PK.root`.
    pub const fn key_bytes(&self) -> usize {
        2 * self.n
    }

    pub const fn signature_bytes(&self) -> usize {
        self.n * (1 + self.k * (self.a + 1) + self.h + self.d * self.chains())
    }

    pub(crate) const fn n(&self) -> usize {
        self.n
    }

    pub(crate) const fn layers(&self) -> usize {
        self.d
    }

    /// Height of one tree of the hypertree.
    pub(crate) const fn tree_height(&self) -> usize {
        self.h / self.d
    }

    /// Number of bits that select a tree of the lowest layer.
    pub(crate) const fn tree_bits(&self) -> usize {
        self.h - self.tree_height()
    }

    pub(crate) const fn fors_height(&self) -> usize {
        self.a
    }

    pub(crate) const fn fors_trees(&self) -> usize {
        self.k
    }

    /// Number of digest bytes that select the FORS leaves.
    pub(crate) const fn fors_bytes(&self) -> usize {
        (self.k * self.a).div_ceil(8)
    }

    pub(crate) const fn digest_bytes(&self) -> usize {
        self.fors_bytes() + self.tree_bits().div_ceil(8) + self.tree_height().div_ceil(8)
    }

    /// WOTS+ chains per layer: one per digit of four bits, and three for the checksum.
    pub(crate) const fn chains(&self) -> usize {
        2 * self.n + CHECKSUM_DIGITS
    }

    pub(crate) const FORS_BYTES_MAX: usize = 40;
    pub(crate) const DIGEST_BYTES_MAX: usize = 49;
    pub(crate) const CHAINS_MAX: usize = 67;
}

/// Digits of the checksum of WOTS+ for all three sizes, FIPS 205 equation 5.3.
const CHECKSUM_DIGITS: usize = 3;

/// Maximum digit: the end of a chain.
pub(crate) const CHAIN_END: u8 = 15;

/// Digits of a value and its checksum, FIPS 205 algorithm 8 lines 2 to 7: the start steps of the chains of a signature.
pub(crate) fn wots_digits(value: &[u8]) -> [u8; ParameterSet::CHAINS_MAX] {
    let mut digits = [0; ParameterSet::CHAINS_MAX];
    let mut checksum = 0u16;
    for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(value) {
        *pair = [byte >> 4, byte & 15];
        checksum += u16::from(2 * CHAIN_END - pair[0] - pair[1]);
    }
    for (i, digit) in digits[2 * value.len()..].iter_mut().take(CHECKSUM_DIGITS).enumerate() {
        *digit = (checksum >> (8 - 4 * i) & 15) as u8;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 205, table 2.
    #[test]
    fn sizes() {
        let table = [
            ("SLH-DSA-SHA2-128s", 30, 32, 7856),
            ("SLH-DSA-SHA2-128f", 34, 32, 17088),
            ("SLH-DSA-SHA2-192s", 39, 48, 16224),
            ("SLH-DSA-SHA2-192f", 42, 48, 35664),
            ("SLH-DSA-SHA2-256s", 47, 64, 29792),
            ("SLH-DSA-SHA2-256f", 49, 64, 49856),
        ];
        for ((name, digest, key, signature), all) in table.into_iter().zip(ParameterSet::ALL) {
            let set = ParameterSet::by_name(name).expect("all are there");
            assert_eq!(set, all);
            assert_eq!(set.digest_bytes(), digest, "{name}");
            assert_eq!((set.key_bytes(), set.signature_bytes()), (key, signature), "{name}");
            assert!(set.digest_bytes() <= ParameterSet::DIGEST_BYTES_MAX);
            assert!(set.chains() <= ParameterSet::CHAINS_MAX);
        }
        assert_eq!(ParameterSet::by_name("SLH-DSA-SHAKE-128s"), None);
        let shrincs = ParameterSet::SHRINCS_STATELESS;
        assert_eq!((shrincs.key_bytes(), shrincs.signature_bytes()), (32, 5776));
    }

    /// Increasing a digit decreases the checksum: no signature can be advanced along all chains.
    #[test]
    fn digits() {
        let digits = wots_digits(&[0x0f; 16]);
        assert_eq!(digits[..4], [0, 15, 0, 15]);
        assert_eq!(digits[32..36], [0, 15, 0, 0], "16 times 15 is 0xf0");
        assert_eq!(wots_digits(&[0; 32])[64..], [3, 12, 0], "64 times 15 is 0x3c0");
        assert_eq!(wots_digits(&[0xff; 24])[48..51], [0, 0, 0]);
    }
}
