//! Log-uniform random integers, identical on every machine.

use crate::random::Stream;

/// A log-uniform number from `least` to `most`.
///
/// Square roots are rounded correctly everywhere (IEEE 754), not powers and logarithms: the power is made bit by bit from roots.
pub(crate) fn log_uniform(least: f64, most: f64, stream: &mut Stream) -> f64 {
    let drawn = stream.below(1 << BITS);
    let (mut root, mut value) = (most / least, least);
    for bit in (0..BITS).rev() {
        root = root.sqrt();
        if drawn >> bit & 1 == 1 {
            value *= root;
        }
    }
    value
}

/// The same for integers, both ends included.
pub(crate) fn between([least, most]: [u32; 2], stream: &mut Stream) -> u32 {
    (log_uniform(f64::from(least), f64::from(most) + 1.0, stream) as u32).clamp(least, most)
}

/// Bits of the exponent.
const BITS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_doubling_is_equally_likely() {
        let mut stream = Stream::plain(1, 2, 3);
        let mut found = [0u32; 4];
        for _ in 0..8_000 {
            let number = between([8, 127], &mut stream);
            found[(number.ilog2() - 3) as usize] += 1;
        }
        assert!(found.iter().all(|count| (1_850..2_150).contains(count)), "{found:?}");
    }
}
