//! Key derivation: every secret key is computed from public properties of its output.
//!
//! Keys are sums of small numbers times powers of two, so their points are sums of points from short tables. This costs a quarter
//! of a multiplication by the generator.

use secp256k1::PublicKey;

use crate::raw::Signer;

/// Inputs of the key derivation for one output.
///
/// A secret key is a public function of its output, big endian:
///
/// ```text
/// byte  0           1..4  4..12              12..16            16..24           24..32
///       key number  zero  transaction index  output index      height of the    amount in satoshi
///       u8                u64                u32               output, u64      u64
/// ```
///
/// Without `distinct_keys` both indices are zero, and this is the published formula of the BCH scaling chain: 16 zero bytes,
/// height, amount. With it, the transaction's index in generation order (coinbase: 0) and the output's index are added, so that
/// no key repeats. The key number is 0, except for further keys of one script: 1 and 2 for the other keys of a 2-of-3, and 1 for
/// the leaf key of a taproot script.
///
/// Exceptions, as published, without `distinct_keys` on the BCH chain: the outputs of the transaction that splits a coinbase for
/// a fan-out block and the change (last) outputs of that block's transactions pay the key of that coinbase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyId {
    pub(crate) height: u32,
    /// In satoshi.
    pub(crate) amount: u64,
    /// Index of its transaction in generation order; 0 unless keys are distinct.
    pub(crate) index: u32,
    /// Index of the output in its transaction; 0 unless keys are distinct.
    pub(crate) vout: u32,
}

impl KeyId {
    /// The published derivation, from height and amount alone.
    pub(crate) fn published(height: u32, amount: u64) -> Self {
        Self { height, amount, index: 0, vout: 0 }
    }

    /// Secret key `number` (0, 1 or 2) of this output, big endian.
    pub(crate) fn secret(&self, number: u8) -> [u8; 32] {
        let mut key = [0u8; 32];
        key[0] = number;
        key[4..12].copy_from_slice(&u64::from(self.index).to_be_bytes());
        key[12..16].copy_from_slice(&self.vout.to_be_bytes());
        key[16..24].copy_from_slice(&u64::from(self.height).to_be_bytes());
        key[24..32].copy_from_slice(&self.amount.to_be_bytes());
        key
    }
}

/// Point tables; public keys are sums of their entries.
pub(crate) struct Points {
    signer: Signer,
    /// For each digit of a key: height, amount (three), key number, index (two), output.
    digits: [Digits; 8],
}

impl Points {
    /// Builds the tables; those for distinct keys only on request.
    pub(crate) fn new(height_max: u32, distinct: bool) -> Self {
        let signer = Signer::new();
        let many = |count: usize| if distinct { count } else { 0 };
        let digits = [
            (23, 0, height_max as usize),
            (31, 0, (1 << AMOUNT_BITS) - 1),
            (30, AMOUNT_BITS - 8, 255),
            (29, AMOUNT_BITS + 8 - 16, many(4095)),
            (0, 0, 2),
            (11, 0, many((1 << INDEX_BITS) - 1)),
            (10, INDEX_BITS - 8, many(4095)),
            (15, 0, many(255)),
        ];
        let digits = digits.map(|(byte, shift, count)| Digits::new(&signer, byte, shift, count));
        Self { signer, digits }
    }

    pub(crate) fn signer(&self) -> &Signer {
        &self.signer
    }

    pub(crate) fn public_key(&self, id: &KeyId, number: u8) -> PublicKey {
        self.sum(id, number).unwrap_or_else(|| self.signer.public_key(&id.secret(number)))
    }

    /// `None` if a part is beyond its table.
    fn sum(&self, id: &KeyId, number: u8) -> Option<PublicKey> {
        let (amount, index) = (id.amount, u64::from(id.index));
        let values = [
            u64::from(id.height),
            amount & ((1 << AMOUNT_BITS) - 1),
            amount >> AMOUNT_BITS & 0xff,
            amount >> (AMOUNT_BITS + 8),
            u64::from(number),
            index & ((1 << INDEX_BITS) - 1),
            index >> INDEX_BITS,
            u64::from(id.vout),
        ];
        let mut summands = [&self.digits[0].multiples[0]; 8];
        let mut count = 0;
        for (digits, value) in self.digits.iter().zip(values) {
            for point in digits.get(value)? {
                summands[count] = point;
                count += 1;
            }
        }
        PublicKey::combine_keys(&summands[..count]).ok()
    }
}

/// The multiples 1, 2, 3, … of a power of two times the generator.
struct Digits {
    multiples: Vec<PublicKey>,
}

impl Digits {
    /// `byte` and `shift` define the unit: bit `shift` of big-endian byte `byte`.
    fn new(signer: &Signer, byte: usize, shift: u32, count: usize) -> Self {
        let mut unit = [0u8; 32];
        unit[byte] = 1 << shift;
        let unit = signer.public_key(&unit);
        let mut multiples = Vec::with_capacity(count);
        let mut point = unit;
        for _ in 0..count {
            multiples.push(point);
            point =
                point.combine(&unit).expect("small multiples of a point are never its negation");
        }
        Self { multiples }
    }

    /// The point of a digit: empty for zero. `None` beyond the table.
    fn get(&self, digit: u64) -> Option<&[PublicKey]> {
        match digit as usize {
            0 => Some(&[]),
            n => self.multiples.get(n - 1..n),
        }
    }
}

/// Low bits of an amount, covered by the first table; the second covers the next 8, and the third, for distinct keys only, 12 more.
const AMOUNT_BITS: u32 = 12;
/// Low bits of a transaction index, covered by one table; the other covers the next 12.
const INDEX_BITS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summed_points_equal_multiplied_ones() {
        let points = Points::new(150, true);
        let amounts = [
            1,
            546,
            1612,
            4095,
            4096,
            4097,
            850_000,
            1_048_575,
            1_048_576,
            4_294_967_295,
            4_294_967_296,
            5_000_000_000,
            0,
        ];
        for (i, amount) in amounts.into_iter().enumerate() {
            for (height, index, vout) in
                [(1, 0, 0), (101, 1, 25), (132, 1024, 1), (150, 1_200_000, 199)]
            {
                let id = KeyId { height, amount, index, vout };
                let number = (i % 3) as u8;
                let expected = points.signer().public_key(&id.secret(number));
                assert_eq!(points.public_key(&id, number), expected, "{id:?} key {number}");
            }
        }
    }

    #[test]
    fn published_formula() {
        let secret = KeyId::published(101, 546).secret(0);
        assert_eq!(secret[..16], [0; 16]);
        assert_eq!(secret[16..24], 101u64.to_be_bytes());
        assert_eq!(secret[24..], 546u64.to_be_bytes());
    }
}
