//! Checker of a repeated run of an input: signatures verified before are not verified again.

use assay_consensus::script::{PqScheme, SignatureChecker};

use super::check::Check;
use crate::checker::ImmediateChecker;

/// Checks of an input with their results, in the order of the first run.
///
/// Scripts need not require a valid signature (`OP_CHECKSIG OP_DROP`), and a transaction may have thousands of checks that fail.
/// The repeated run requests the same checks in the same order up to the end, or up to the point where the first run, which
/// assumed every check to hold, took another branch. A check that is not the next one goes to libsecp256k1.
pub(crate) struct ReplayChecker<'a> {
    checks: &'a [(Check<'a>, bool)],
    /// The check before `checks`, if it was requested; it may be requested again.
    last: Option<(Check<'a>, bool)>,
    immediate: ImmediateChecker,
}

impl<'a> ReplayChecker<'a> {
    pub(super) fn new(checks: &'a [(Check<'a>, bool)]) -> Self {
        Self { checks, last: None, immediate: ImmediateChecker }
    }

    /// Result of this check, if it is the next one, or the last one again: a check repeated at once is recorded once.
    fn next(&mut self, asked: &Check<'_>) -> Option<bool> {
        if let Some((_, answer)) = self.last.filter(|(check, _)| check == asked) {
            return Some(answer);
        }
        let (next, rest) = self.checks.split_first().filter(|(next, _)| next.0 == *asked)?;
        (self.checks, self.last) = (rest, Some(*next));
        Some(next.1)
    }
}

impl SignatureChecker for ReplayChecker<'_> {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        let known = self.next(&Check::Ecdsa { pubkey, der_sig, msg });
        known.unwrap_or_else(|| self.immediate.ecdsa(pubkey, der_sig, msg))
    }

    fn schnorr_of_any_length(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool {
        let known = self.next(&Check::Schnorr { xonly, sig, msg });
        known.unwrap_or_else(|| self.immediate.schnorr_of_any_length(xonly, sig, msg))
    }

    /// A check that holds is rare in a repeated run, because such scripts fail.
    fn post_quantum(&mut self, scheme: PqScheme, key: &[u8], sig: &[u8], msg: &[u8; 32]) -> bool {
        self.immediate.post_quantum(scheme, key, sig, msg)
    }

    fn schnorr_bch(&mut self, pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        let known = self.next(&Check::SchnorrBch { pubkey, sig, msg });
        known.unwrap_or_else(|| self.immediate.schnorr_bch(pubkey, sig, msg))
    }

    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool {
        let known =
            self.next(&Check::TaprootTweak { internal, tweak, output, parity: output_parity });
        known
            .unwrap_or_else(|| self.immediate.taproot_tweak(internal, tweak, output, output_parity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results that differ from libsecp256k1's show the source of each result.
    #[test]
    fn only_the_next_check_is_known() {
        let (key, msg) = ([2; 33], [7; 32]);
        let other = [8; 32];
        let ask = |msg| Check::Ecdsa { pubkey: &key, der_sig: &[1], msg };
        let known = [(ask(&msg), true), (ask(&other), true)];
        let mut checker = ReplayChecker::new(&known);
        assert!(!checker.ecdsa(&key, &[1], &other), "not the next one");
        assert!(checker.ecdsa(&key, &[1], &msg));
        assert!(checker.ecdsa(&key, &[1], &msg), "again");
        assert!(!checker.ecdsa(&key, &[1, 2], &other), "another signature");
        assert!(checker.ecdsa(&key, &[1], &other));
        assert!(!checker.ecdsa(&key, &[1], &msg), "not the last one");
        assert!(!checker.schnorr(&[2; 32], &[0; 64], &msg), "nothing is left");
    }
}
