//! Keys from signatures (SEC 1, 4.1.6): `Q = (s / r) R - (m / r) G`, where r is the x coordinate of R.

use super::table::generator_multiples;
use crate::scalar::Scalar;
use crate::words;

/// An ECDSA signature whose key is asked for.
///
/// x of R is r itself, never r plus the group order; a high s is taken as it is.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The hash that was signed, big-endian.
    pub msg: &'a [u8; 32],
    /// Big-endian.
    pub r: &'a [u8; 32],
    /// Big-endian.
    pub s: &'a [u8; 32],
    /// Whether the y coordinate of R is odd.
    pub is_y_odd: bool,
}

impl Signed<'_> {
    /// The coordinates of the key. None where r or s is zero or not below the group order, where no point has
    /// the x coordinate r, or where the key would be infinity.
    pub fn recover(&self) -> Option<[u8; 64]> {
        let [r, s] = [self.r, self.s].map(Scalar::from_bytes);
        let (r, s) = (r.filter(|r| !r.is_zero())?, s.filter(|s| !s.is_zero())?);
        let inverse = words::inverse(r);
        let u1 = Scalar::reduced(self.msg).negate().mul(inverse);
        let table = generator_multiples();
        assert!(!table.is_empty(), "libsecp256k1 makes multiples of the generator");
        // The order is below the prime, so r is a coordinate.
        words::combine(&r.0, self.is_y_odd, u1, s.mul(inverse), table).map(to_bytes)
    }
}

/// Both coordinates, big-endian.
fn to_bytes(coordinates: [[u64; 4]; 2]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (half, words) in bytes.as_chunks_mut::<32>().0.iter_mut().zip(coordinates) {
        *half = Scalar(words).to_bytes();
    }
    bytes
}

#[cfg(test)]
mod tests;
