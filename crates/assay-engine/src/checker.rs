//! The immediate signature checker. It verifies every signature at once: with libsecp256k1, for SLH-DSA per the text of the
//! standard, for ML-DSA with the library of `assay-pq`.

use assay_consensus::script::{PqScheme, SignatureChecker};
use assay_pq::{Check, Message, ParameterSet, ml_dsa, serial};

/// Parameter set of scripts, under rules with SLH-DSA.
pub(crate) const SLH_DSA: ParameterSet = ParameterSet::SHA2_128S;

const _: () = assert!(
    SLH_DSA.signature_bytes() == PqScheme::SlhDsa128s.signature_bytes()
        && SLH_DSA.key_bytes() == PqScheme::SlhDsa128s.key_bytes()
        && ml_dsa::SIGNATURE_BYTES == PqScheme::MlDsa44.signature_bytes()
        && ml_dsa::KEY_BYTES == PqScheme::MlDsa44.key_bytes()
);

/// A script's check: the FIPS 205 message with an empty context.
pub(crate) fn slh_dsa_check<'a>(
    key: &'a [u8],
    signature: &'a [u8],
    message: &'a [u8],
) -> Check<'a> {
    Check { key, message: Message::Pure { context: &[], message }, signature }
}

/// Verifies each signature at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImmediateChecker;

impl SignatureChecker for ImmediateChecker {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        assay_secp::verify_ecdsa(pubkey, der_sig, msg)
    }

    fn schnorr_of_any_length(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool {
        assay_secp::verify_schnorr(xonly, sig, msg)
    }

    fn post_quantum(&mut self, scheme: PqScheme, key: &[u8], sig: &[u8], msg: &[u8; 32]) -> bool {
        match scheme {
            PqScheme::SlhDsa128s => serial::verify(&SLH_DSA, &slh_dsa_check(key, sig, msg)),
            PqScheme::MlDsa44 => ml_dsa::verify(key, msg, &[], sig),
        }
    }

    fn schnorr_bch(&mut self, pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        assay_secp::verify_schnorr_bch(pubkey, sig, msg)
    }

    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool {
        assay_secp::taproot_tweak_ok(internal, tweak, output, output_parity)
    }
}
