//! The immediate signature checker: every question is answered on the spot by libsecp256k1.

use assay_consensus::script::SignatureChecker;

/// Answers each check as it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImmediateChecker;

impl SignatureChecker for ImmediateChecker {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        assay_secp::verify_ecdsa(pubkey, der_sig, msg)
    }

    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        assay_secp::verify_schnorr(xonly, sig, msg)
    }

    fn schnorr_of_any_length(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool {
        assay_secp::verify_schnorr(xonly, sig, msg)
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
