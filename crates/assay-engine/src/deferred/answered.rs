//! The checker of an input that runs again: what was decided about its signatures is not decided twice.

use assay_consensus::script::{PqScheme, SignatureChecker};

use super::check::Check;
use crate::checker::ImmediateChecker;

/// Checks of an input with their answers, in the order in which the first run asked.
///
/// Scripts may do without a signature (`OP_CHECKSIG OP_DROP`), and a transaction may have thousands of checks that do not hold.
/// A run that knows the answers asks the same questions in the same order up to the end, or to where the first run, which took
/// every answer for true, took another way. A question that is not the next one is asked of libsecp256k1.
pub(crate) struct Answered<'a> {
    checks: &'a [(Check<'a>, bool)],
    /// Whether the one before `checks` was asked for: then it may be asked for again.
    last: Option<(Check<'a>, bool)>,
    immediate: ImmediateChecker,
}

impl<'a> Answered<'a> {
    pub(super) fn new(checks: &'a [(Check<'a>, bool)]) -> Self {
        Self { checks, last: None, immediate: ImmediateChecker }
    }

    /// The answer to this check, if it is the next one, or the last one again: what is asked for twice in a row is claimed once.
    fn next(&mut self, asked: &Check<'_>) -> Option<bool> {
        if let Some((_, answer)) = self.last.filter(|(check, _)| check == asked) {
            return Some(answer);
        }
        let (next, rest) = self.checks.split_first().filter(|(next, _)| next.0 == *asked)?;
        (self.checks, self.last) = (rest, Some(*next));
        Some(next.1)
    }
}

impl SignatureChecker for Answered<'_> {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        let known = self.next(&Check::Ecdsa { pubkey, der_sig, msg });
        known.unwrap_or_else(|| self.immediate.ecdsa(pubkey, der_sig, msg))
    }

    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        let known = self.next(&Check::Schnorr { xonly, sig, msg });
        known.unwrap_or_else(|| self.immediate.schnorr(xonly, sig, msg))
    }

    fn schnorr_of_any_length(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool {
        let known = self.next(&Check::Schnorr { xonly, sig, msg });
        known.unwrap_or_else(|| self.immediate.schnorr_of_any_length(xonly, sig, msg))
    }

    /// One that holds is rare where an input runs again: such scripts fail.
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

    /// Answers that libsecp256k1 would not give show who was asked.
    #[test]
    fn only_the_next_question_is_known() {
        let (key, msg) = ([2; 33], [7; 32]);
        let other = [8; 32];
        let ask = |msg| Check::Ecdsa { pubkey: &key, der_sig: &[1], msg };
        let known = [(ask(&msg), true), (ask(&other), true)];
        let mut checker = Answered::new(&known);
        assert!(!checker.ecdsa(&key, &[1], &other), "not the next one");
        assert!(checker.ecdsa(&key, &[1], &msg));
        assert!(checker.ecdsa(&key, &[1], &msg), "again");
        assert!(!checker.ecdsa(&key, &[1, 2], &other), "another signature");
        assert!(checker.ecdsa(&key, &[1], &other));
        assert!(!checker.ecdsa(&key, &[1], &msg), "not the last one");
        assert!(!checker.schnorr(&[2; 32], &[0; 64], &msg), "nothing is left");
    }
}
