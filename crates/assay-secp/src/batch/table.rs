//! Odd multiples of the generator.

use std::sync::OnceLock;

use secp256k1::PublicKey;

use crate::bch::generator;
use crate::lanes::Line;
use crate::lanes::group::G_MULTIPLES;
use crate::scalar::words;

/// G, 3G, 5G, up to 8191G; computed by libsecp256k1 in a few milliseconds on first use.
///
/// Empty if the library fails, which only broken hardware can cause; callers must not use it then.
pub(super) fn generator_multiples() -> &'static [Line] {
    static TABLE: OnceLock<Vec<Line>> = OnceLock::new();
    TABLE.get_or_init(|| build().unwrap_or_default())
}

fn build() -> Option<Vec<Line>> {
    let mut point = generator()?;
    let twice = point.combine(&point).ok()?;
    let mut lines = Vec::with_capacity(G_MULTIPLES);
    lines.push(line(&point));
    while lines.len() < G_MULTIPLES {
        point = point.combine(&twice).ok()?;
        lines.push(line(&point));
    }
    Some(lines)
}

fn line(point: &PublicKey) -> Line {
    let (x, y) = coordinates(point);
    Line([x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3]])
}

/// Words of both coordinates.
pub(super) fn coordinates(point: &PublicKey) -> ([u64; 4], [u64; 4]) {
    let bytes = point.serialize_uncompressed();
    let (mut x, mut y) = ([0; 32], [0; 32]);
    x.copy_from_slice(&bytes[1..33]);
    y.copy_from_slice(&bytes[33..]);
    (words(&x), words(&y))
}
