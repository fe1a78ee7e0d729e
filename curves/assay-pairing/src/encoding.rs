//! Encodings of points: Zcash's format for BLS12-381 (48 or 96 bytes, uncompressed twice as many),
//! and the formats of the Ethereum virtual machine (EIP-196, EIP-197, EIP-2537).
//!
//! Every decoder rejects coordinates that are not below the prime, unknown flags, points off the
//! curve, and all encodings of infinity but the canonical one.

#[cfg(test)]
mod tests;

use core::fmt;

use crate::curve::{Affine, BlsG1, BlsG2, BnG1, BnG2, Curve};
use crate::field::Field as _;
use crate::tower::Fp2;
use crate::{bls12_381, bn254};

/// Reason why bytes are not a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A coordinate is not below the prime, or its padding is not zero.
    Coordinate,
    /// Invalid flags, or infinity with other bits set.
    Flags,
    /// No point of the curve has these coordinates.
    NotOnCurve,
    /// The point is on the curve and not in the group of prime order.
    NotInGroup,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Coordinate => "a coordinate is not below the prime",
            Self::Flags => "flags do not fit the format",
            Self::NotOnCurve => "the point is not on the curve",
            Self::NotInGroup => "the point is not in the group of prime order",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Coordinates in a fixed-length encoding of `N` bytes in total.
trait Coordinate: Sized {
    /// Zcash's encoding: higher coefficients first.
    fn write(&self, bytes: &mut [u8]);
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Coordinate for bls12_381::Fp {
    fn write(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_be_bytes(bytes.try_into().ok()?)
    }
}

impl Coordinate for bn254::Fp {
    fn write(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_be_bytes(bytes.try_into().ok()?)
    }
}

impl<F: Coordinate> Coordinate for Fp2<F> {
    fn write(&self, bytes: &mut [u8]) {
        let (c1, c0) = bytes.split_at_mut(bytes.len() / 2);
        self.c1.write(c1);
        self.c0.write(c0);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (c1, c0) = bytes.split_at(bytes.len() / 2);
        Some(Self { c0: F::read(c0)?, c1: F::read(c1)? })
    }
}

const COMPRESSED: u8 = 0x80;
const INFINITY: u8 = 0x40;
const LARGEST: u8 = 0x20;
const FLAGS: u8 = COMPRESSED | INFINITY | LARGEST;

/// The point with these coordinates, if it is on the curve.
fn on_curve<C: Curve>(x: C::Base, y: C::Base) -> Result<Affine<C>, DecodeError> {
    let point = Affine::new(x, y);
    if point.is_on_curve() { Ok(point) } else { Err(DecodeError::NotOnCurve) }
}

fn in_group<C: Curve>(point: Affine<C>) -> Result<Affine<C>, DecodeError> {
    if C::is_in_group(&point) { Ok(point) } else { Err(DecodeError::NotInGroup) }
}

/// Zcash's format for one group.
macro_rules! zcash {
    ($group:ty, $compressed:literal, $uncompressed:literal) => {
        impl Affine<$group> {
            /// Encodes in Zcash's compressed format: x, and a flag for y.
            pub fn to_compressed(&self) -> [u8; $compressed] {
                let mut bytes = [0; $compressed];
                if self.is_infinity {
                    bytes[0] = COMPRESSED | INFINITY;
                    return bytes;
                }
                self.x.write(&mut bytes);
                bytes[0] |= COMPRESSED | if self.y.is_largest() { LARGEST } else { 0 };
                bytes
            }

            /// Decodes a point of the group from the compressed format.
            ///
            /// # Errors
            /// If the bytes are not the canonical encoding of a point of the group.
            pub fn from_compressed(bytes: &[u8; $compressed]) -> Result<Self, DecodeError> {
                in_group(Self::from_compressed_on_curve(bytes)?)
            }

            /// The same without a subgroup check: the point is on the curve.
            ///
            /// # Errors
            /// If the bytes are not the canonical encoding of a point of the curve.
            pub fn from_compressed_on_curve(
                bytes: &[u8; $compressed],
            ) -> Result<Self, DecodeError> {
                let (flags, mut x) = (bytes[0] & FLAGS, *bytes);
                x[0] &= !FLAGS;
                if flags & COMPRESSED == 0 {
                    return Err(DecodeError::Flags);
                }
                if flags & INFINITY != 0 {
                    let is_plain = flags & LARGEST == 0 && x.iter().all(|byte| *byte == 0);
                    return if is_plain { Ok(Self::INFINITY) } else { Err(DecodeError::Flags) };
                }
                let x = Coordinate::read(&x).ok_or(DecodeError::Coordinate)?;
                Self::from_x(x, flags & LARGEST != 0).ok_or(DecodeError::NotOnCurve)
            }

            /// Encodes in Zcash's uncompressed format: x and y.
            pub fn to_uncompressed(&self) -> [u8; $uncompressed] {
                let mut bytes = [0; $uncompressed];
                if self.is_infinity {
                    bytes[0] = INFINITY;
                    return bytes;
                }
                let (x, y) = bytes.split_at_mut($compressed);
                self.x.write(x);
                self.y.write(y);
                bytes
            }

            /// Decodes a point of the group from the uncompressed format.
            ///
            /// # Errors
            /// If the bytes are not the canonical encoding of a point of the group.
            pub fn from_uncompressed(bytes: &[u8; $uncompressed]) -> Result<Self, DecodeError> {
                let (flags, mut rest) = (bytes[0] & FLAGS, *bytes);
                rest[0] &= !FLAGS;
                if flags == INFINITY {
                    let is_plain = rest.iter().all(|byte| *byte == 0);
                    return if is_plain { Ok(Self::INFINITY) } else { Err(DecodeError::Flags) };
                }
                if flags != 0 {
                    return Err(DecodeError::Flags);
                }
                let (x, y) = rest.split_at($compressed);
                let x = Coordinate::read(x).ok_or(DecodeError::Coordinate)?;
                let y = Coordinate::read(y).ok_or(DecodeError::Coordinate)?;
                in_group(on_curve(x, y)?)
            }
        }
    };
}

zcash!(BlsG1, 48, 96);
zcash!(BlsG2, 96, 192);

/// A format of the Ethereum virtual machine: coefficients of one length in a fixed order, all zero at infinity.
macro_rules! evm {
    (
        $group:ty, $base:ty, $bytes:literal, $word:literal, $padding:literal,
        $coordinate:ident => $coefficients:expr, $words:ident => $build:expr, $doc:literal
    ) => {
        impl Affine<$group> {
            #[doc = $doc]
            pub fn to_evm(&self) -> [u8; $bytes] {
                let mut bytes = [0; $bytes];
                if self.is_infinity {
                    return bytes;
                }
                let coefficients =
                    [self.x, self.y].into_iter().flat_map(|$coordinate| $coefficients);
                for (word, c) in bytes.chunks_exact_mut($word).zip(coefficients) {
                    c.write(&mut word[$padding..]);
                }
                bytes
            }

            /// Decodes a point of the curve from the format of [`Self::to_evm`], without a subgroup check.
            ///
            /// # Errors
            /// If the bytes are not a point of the curve.
            pub fn from_evm(bytes: &[u8; $bytes]) -> Result<Self, DecodeError> {
                if bytes.iter().all(|byte| *byte == 0) {
                    return Ok(Self::INFINITY);
                }
                let read = |bytes: &[u8]| {
                    let mut words = [<$base>::ZERO; $bytes / 2 / $word];
                    for (c, word) in words.iter_mut().zip(bytes.chunks_exact($word)) {
                        let (padding, number) = word.split_at($padding);
                        if padding.iter().any(|byte| *byte != 0) {
                            return Err(DecodeError::Coordinate);
                        }
                        *c = Coordinate::read(number).ok_or(DecodeError::Coordinate)?;
                    }
                    let $words = words;
                    Ok($build)
                };
                let (x, y) = bytes.split_at($bytes / 2);
                on_curve(read(x)?, read(y)?)
            }
        }
    };
}

evm!(BlsG1, bls12_381::Fp, 128, 64, 16, c => [c], words => words[0],
    "EIP-2537: x and y in 64 bytes each; zeros at infinity.");
evm!(BlsG2, bls12_381::Fp, 256, 64, 16, c => [c.c0, c.c1],
    words => Fp2 { c0: words[0], c1: words[1] },
    "EIP-2537: x and y, real part first, in 64 bytes each; zeros at infinity.");
evm!(BnG1, bn254::Fp, 64, 32, 0, c => [c], words => words[0],
    "EIP-196: x and y in 32 bytes each; zeros at infinity.");
evm!(BnG2, bn254::Fp, 128, 32, 0, c => [c.c1, c.c0],
    words => Fp2 { c0: words[1], c1: words[0] },
    "EIP-197: x and y, imaginary part first, in 32 bytes each; zeros at infinity.");
