//! Encodings: round trips, and every kind of invalid input.

use super::DecodeError;
use crate::curve::{Affine, BlsG1, BlsG2, BnG1, BnG2, Curve as _};
use crate::testing::{Point as _, Rng, hex};

/// The generator as printed in the BLS signature draft and Zcash's specification.
const BLS_G1: &str = "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb";
const BLS_G2: &str = "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8";

#[test]
fn generators_as_published() {
    assert_eq!(hex(&BlsG1::GENERATOR.to_compressed()), BLS_G1);
    assert_eq!(hex(&BlsG2::GENERATOR.to_compressed()), BLS_G2);
}

macro_rules! zcash_tests {
    ($name:ident, $group:ty, $compressed:literal) => {
        #[test]
        fn $name() {
            let mut rng = Rng::new(8);
            let generator = <$group>::GENERATOR;
            for _ in 0..50 {
                let point = generator.multiply(&core::array::from_fn(|_| rng.word())).to_affine();
                let compressed = point.to_compressed();
                assert_eq!(Affine::<$group>::from_compressed(&compressed), Ok(point));
                assert_eq!(
                    Affine::<$group>::from_uncompressed(&point.to_uncompressed()),
                    Ok(point)
                );
                let mut other = compressed;
                other[0] ^= 0x20;
                assert_eq!(Affine::<$group>::from_compressed(&other), Ok(-point));
                assert_eq!(Affine::<$group>::from_evm(&point.to_evm()), Ok(point));
                // On the curve, but outside of the group.
                let outside = rng.point_of_curve::<$group>();
                let bytes = outside.to_compressed();
                assert_eq!(Affine::<$group>::from_compressed(&bytes), Err(DecodeError::NotInGroup));
                assert_eq!(Affine::<$group>::from_compressed_on_curve(&bytes), Ok(outside));
                let bytes = outside.to_uncompressed();
                assert_eq!(
                    Affine::<$group>::from_uncompressed(&bytes),
                    Err(DecodeError::NotInGroup)
                );
                let mut bytes = point.to_uncompressed();
                bytes[2 * $compressed - 1] ^= 1;
                assert_eq!(
                    Affine::<$group>::from_uncompressed(&bytes),
                    Err(DecodeError::NotOnCurve)
                );
            }
            let infinity = Affine::<$group>::INFINITY;
            let compressed = infinity.to_compressed();
            assert_eq!(Affine::<$group>::from_compressed(&compressed), Ok(infinity));
            assert_eq!(
                Affine::<$group>::from_uncompressed(&infinity.to_uncompressed()),
                Ok(infinity)
            );
            assert_eq!(Affine::<$group>::from_evm(&infinity.to_evm()), Ok(infinity));
            let check = |change: &dyn Fn(&mut [u8; $compressed]), error| {
                let mut bytes = compressed;
                change(&mut bytes);
                assert_eq!(Affine::<$group>::from_compressed(&bytes), Err(error), "{bytes:x?}");
            };
            check(&|bytes| bytes[0] |= 0x20, DecodeError::Flags);
            check(&|bytes| bytes[0] &= 0x7f, DecodeError::Flags);
            check(&|bytes| bytes[$compressed - 1] = 1, DecodeError::Flags);
            check(&|bytes| *bytes = [0xbf; $compressed], DecodeError::Coordinate);
            let check = |change: &dyn Fn(&mut [u8; 2 * $compressed]), error| {
                let mut bytes = infinity.to_uncompressed();
                change(&mut bytes);
                assert_eq!(Affine::<$group>::from_uncompressed(&bytes), Err(error), "{bytes:x?}");
            };
            check(&|bytes| bytes[0] |= 0x20, DecodeError::Flags);
            check(&|bytes| bytes[0] |= 0x80, DecodeError::Flags);
            check(&|bytes| bytes[0] = 0x20, DecodeError::Flags);
            check(&|bytes| bytes[2 * $compressed - 1] = 1, DecodeError::Flags);
            check(&|bytes| bytes[0] = 0, DecodeError::NotOnCurve);
            check(&|bytes| *bytes = [0x1f; 2 * $compressed], DecodeError::Coordinate);
        }
    };
}

zcash_tests!(zcash_g1, BlsG1, 48);
zcash_tests!(zcash_g2, BlsG2, 96);

#[test]
fn formats_of_the_virtual_machine() {
    let mut bytes = BnG1::GENERATOR.to_evm();
    assert_eq!(bytes[31], 1);
    assert_eq!(bytes[63], 2);
    assert_eq!(Affine::<BnG1>::from_evm(&bytes), Ok(BnG1::GENERATOR));
    bytes[63] = 3;
    assert_eq!(Affine::<BnG1>::from_evm(&bytes), Err(DecodeError::NotOnCurve));
    assert_eq!(Affine::<BnG1>::from_evm(&[0xff; 64]), Err(DecodeError::Coordinate));
    // EIP-197 prints the generator, imaginary part first.
    let bytes = BnG2::GENERATOR.to_evm();
    assert_eq!(hex(&bytes[..4]), "198e9393");
    assert_eq!(Affine::<BnG2>::from_evm(&bytes), Ok(BnG2::GENERATOR));
    let mut bytes = BlsG1::GENERATOR.to_evm();
    bytes[0] = 1;
    assert_eq!(Affine::<BlsG1>::from_evm(&bytes), Err(DecodeError::Coordinate));
    let outside = Rng::new(9).point_of_curve::<BlsG2>();
    assert_eq!(Affine::<BlsG2>::from_evm(&outside.to_evm()), Ok(outside));
}
