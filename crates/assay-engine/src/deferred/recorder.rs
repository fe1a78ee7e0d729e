//! The checker that returns true for every check and records it.

use std::ops::Range;

use assay_consensus::script::{PqScheme, SignatureChecker, SignedMessage};

use super::check::{Answer, Check, Prove};
use super::multisig::{
    KEYS_MAX, Keys, guess, guessed_pairs, learn, matching, other_pairs, try_in_order,
};
use crate::checker::{ImmediateChecker, SLH_DSA, slh_dsa_check};

/// Maximum recorded claims per input; beyond it they are verified in the middle of the input.
const INPUT_CLAIMS_MAX: usize = 4096;

/// Recorded claims, as offsets into one buffer: recording a check copies its bytes.
#[derive(Default)]
pub(super) struct Recorder<P> {
    /// Created at the first use.
    prover: Option<P>,
    bytes: Vec<u8>,
    claims: Vec<Claim>,
    groups: Vec<Group>,
    parts: Vec<Part>,
    /// Start of the claims of the current input.
    input: Mark,
    /// A claim of the current input is wrong.
    is_wrong: bool,
}

/// A position in all lists.
#[derive(Clone, Copy, Default)]
struct Mark {
    bytes: usize,
    claims: usize,
    groups: usize,
    parts: usize,
}

#[derive(Clone, Copy)]
enum Claim {
    /// Message, key and signature, concatenated.
    Ecdsa { at: u32, key_bytes: u32, sig_bytes: u32 },
    /// Key of 32 bytes, signature of 64 bytes, message.
    Schnorr { at: u32, message_bytes: u32 },
    /// Key and message of 32 bytes each, signature of SLH-DSA-SHA2-128s.
    SlhDsa { at: u32 },
    /// Message of 32 bytes, signature of 64 bytes, key.
    SchnorrBch { at: u32, key_bytes: u32 },
    /// Internal key, tweak, output key.
    TaprootTweak { at: u32, parity: bool },
    /// A complete CHECKMULTISIG, by its index in `groups`.
    Multisig { group: u32 },
}

/// Signatures and keys: first the parts of the signatures, each after its message, then those of the keys.
#[derive(Clone, Copy)]
struct Group {
    first_part: u32,
    sigs: u8,
    keys: u8,
    guess: Keys,
}

#[derive(Clone, Copy)]
struct Part {
    at: u32,
    bytes: u32,
}

const MESSAGE: usize = 32;

/// Longer messages (possible only in scripts under future rules) are not copied: their signatures are verified at once.
const MESSAGE_MAX: usize = 520;

impl<P> Recorder<P> {
    fn mark(&self) -> Mark {
        Mark {
            bytes: self.bytes.len(),
            claims: self.claims.len(),
            groups: self.groups.len(),
            parts: self.parts.len(),
        }
    }

    pub(super) fn begin_input(&mut self) {
        self.input = self.mark();
        self.is_wrong = false;
    }

    /// True if a claim of the current input is known to be wrong.
    pub(super) fn is_wrong(&self) -> bool {
        self.is_wrong
    }

    /// Number of unverified claims of the current input.
    pub(super) fn input_claims(&self) -> usize {
        self.claims.len() - self.input.claims
    }

    /// Removes the claims of the current input.
    pub(super) fn forget_input(&mut self) {
        self.bytes.truncate(self.input.bytes);
        self.claims.truncate(self.input.claims);
        self.groups.truncate(self.input.groups);
        self.parts.truncate(self.input.parts);
    }

    pub(super) fn clear(&mut self) {
        self.input = Mark::default();
        self.forget_input();
    }

    pub(super) fn claims(&self) -> usize {
        self.claims.len()
    }

    /// Approximate number of checks that prove all claims.
    pub(super) fn checks_len(&self) -> usize {
        self.claims.len() + self.parts.len() / 2
    }

    fn put(&mut self, data: &[&[u8]]) -> u32 {
        let at = self.bytes.len() as u32;
        for data in data {
            self.bytes.extend_from_slice(data);
        }
        at
    }

    fn slice(&self, at: u32, skip: usize, bytes: u32) -> &[u8] {
        &self.bytes[at as usize + skip..][..bytes as usize]
    }

    fn array<const N: usize>(&self, at: u32, skip: usize) -> &[u8; N] {
        self.bytes[at as usize + skip..].first_chunk().expect("recorded whole")
    }

    fn pair(&self, group: Group, (sig, key): (usize, usize)) -> Check<'_> {
        let parts = &self.parts[group.first_part as usize..];
        let (sig, key) = (parts[sig], parts[usize::from(group.sigs) + key]);
        Check::Ecdsa {
            pubkey: self.slice(key.at, 0, key.bytes),
            der_sig: self.slice(sig.at, MESSAGE, sig.bytes),
            msg: self.array(sig.at, 0),
        }
    }

    /// The check of a claim; `None` for a group, which has several, and for SLH-DSA, which has separate verifiers.
    fn check(&self, claim: Claim) -> Option<Check<'_>> {
        Some(match claim {
            Claim::Ecdsa { at, key_bytes, sig_bytes } => Check::Ecdsa {
                msg: self.array(at, 0),
                pubkey: self.slice(at, MESSAGE, key_bytes),
                der_sig: self.slice(at, MESSAGE + key_bytes as usize, sig_bytes),
            },
            Claim::Schnorr { at, message_bytes } => Check::Schnorr {
                xonly: self.array(at, 0),
                sig: self.array(at, 32),
                msg: self.slice(at, 32 + 64, message_bytes),
            },
            Claim::SchnorrBch { at, key_bytes } => Check::SchnorrBch {
                msg: self.array(at, 0),
                sig: self.array(at, MESSAGE),
                pubkey: self.slice(at, MESSAGE + 64, key_bytes),
            },
            Claim::TaprootTweak { at, parity } => Check::TaprootTweak {
                internal: self.array(at, 0),
                tweak: self.array(at, 32),
                output: self.array(at, 64),
                parity,
            },
            Claim::Multisig { .. } | Claim::SlhDsa { .. } => return None,
        })
    }

    fn slh_dsa_bytes(&self, at: u32) -> &[u8] {
        self.slice(at, 0, (SLH_DSA.key_bytes() + MESSAGE + SLH_DSA.signature_bytes()) as u32)
    }

    /// The checks of these claims with their results. Excludes groups, whose pairs are checked one by one, and SLH-DSA.
    pub(super) fn answered(&self, claims: Range<usize>, holds: &[bool]) -> Vec<(Check<'_>, bool)> {
        let claimed = self.claims[claims.clone()].iter().zip(&holds[claims]);
        claimed.filter_map(|(claim, &holds)| Some((self.check(*claim)?, holds))).collect()
    }

    /// True if the last claim of this input is the same check: a script may repeat a check as often as it has opcodes.
    fn is_last(&self, asked: &Check<'_>) -> bool {
        let last = self.claims[self.input.claims..].last();
        last.and_then(|claim| self.check(*claim)).is_some_and(|check| check == *asked)
    }

    /// The checks to prove for the claims from number `first` on: one per claim, for a group those of its guess.
    fn checks_from(&self, first: usize) -> Vec<Check<'_>> {
        let mut checks = Vec::with_capacity(self.claims.len() - first + self.parts.len() / 2);
        for claim in &self.claims[first..] {
            if let Claim::Multisig { group } = *claim {
                let group = self.groups[group as usize];
                checks.extend(guessed_pairs(group.guess).map(|pair| self.pair(group, pair)));
            } else {
                checks.extend(self.check(*claim));
            }
        }
        checks
    }

    /// [`Self::checks_from`] the first claim.
    pub(super) fn checks(&self) -> Vec<Check<'_>> {
        self.checks_from(0)
    }
}

impl<P: Prove> Recorder<P> {
    /// Decides all claims: `holds` receives one result each.
    ///
    /// `proven` are the results of [`Self::checks`], if already known.
    pub(super) fn decide(&mut self, proven: Option<&[Answer]>, holds: &mut Vec<bool>) {
        self.decide_from(0, proven, holds);
    }

    fn decide_from(&mut self, first: usize, proven: Option<&[Answer]>, holds: &mut Vec<bool>) {
        let mut answers = Vec::new();
        let mut prover = self.prover.take().unwrap_or_default();
        let proven = proven.unwrap_or_else(|| {
            prover.prove(&self.checks_from(first), &mut answers);
            &answers
        });
        holds.clear();
        let mut next = 0;
        let mut missed = Vec::new();
        let mut slh_dsa = Vec::new();
        for claim in &self.claims[first..] {
            if let Claim::Multisig { group } = *claim {
                let Group { sigs, keys, guess, .. } = self.groups[group as usize];
                let sigs = usize::from(sigs);
                let is_guessed =
                    proven[next..next + sigs].iter().all(|answer| *answer == Answer::Proven);
                if is_guessed {
                    learn(sigs, keys.into(), guess);
                } else {
                    missed.push(Missed { group, claim: holds.len(), first_answer: next });
                }
                holds.push(is_guessed);
                next += sigs;
            } else if let Claim::SlhDsa { at } = *claim {
                slh_dsa.push((holds.len(), at));
                holds.push(false);
            } else {
                holds.push(match proven[next] {
                    Answer::Proven => true,
                    Answer::Refuted => false,
                    // A prover may skip checks that are slower in a batch. One such check must not make an input with thousands
                    // run again.
                    Answer::Unknown => self.check(*claim).is_some_and(|check| check.verify()),
                });
                next += 1;
            }
        }
        if !missed.is_empty() {
            self.try_others(&missed, proven, &mut prover, holds);
        }
        self.prover = Some(prover);
        self.decide_slh_dsa(&slh_dsa, holds);
    }

    /// Decides these claims in batches; each has its number. If one fails, the input runs again with the immediate checker.
    fn decide_slh_dsa(&self, claims: &[(usize, u32)], holds: &mut [bool]) {
        let check = |&(_, at): &(usize, u32)| {
            let (key, rest) = self.slh_dsa_bytes(at).split_at(SLH_DSA.key_bytes());
            let (message, signature) = rest.split_at(MESSAGE);
            slh_dsa_check(key, signature, message)
        };
        let checks: Vec<_> = claims.iter().map(check).collect();
        for ((claim, _), valid) in claims.iter().zip(assay_pq::verify_many(&SLH_DSA, &checks)) {
            holds[*claim] = valid;
        }
    }

    /// Tries the remaining pairs of the groups with a wrong guess.
    fn try_others(
        &mut self,
        missed: &[Missed],
        guessed: &[Answer],
        prover: &mut P,
        holds: &mut [bool],
    ) {
        let mut checks = Vec::new();
        for missed in missed {
            let group = self.groups[missed.group as usize];
            let pairs = other_pairs(group.sigs.into(), group.keys.into(), group.guess);
            checks.extend(pairs.map(|pair| self.pair(group, pair)));
        }
        let mut proven = Vec::new();
        prover.prove(&checks, &mut proven);
        let mut proven = proven.into_iter();
        for missed in missed {
            let group = self.groups[missed.group as usize];
            let Group { sigs, keys, guess, .. } = group;
            let (sigs, keys) = (usize::from(sigs), usize::from(keys));
            let mut fits = [0; KEYS_MAX];
            let guessed = &guessed[missed.first_answer..];
            let pairs = guessed_pairs(guess)
                .zip(guessed.iter().copied())
                .chain(other_pairs(sigs, keys, guess).zip(proven.by_ref()));
            for ((sig, key), answer) in pairs {
                fits[sig] |= Keys::from(answer == Answer::Proven) << key;
            }
            let matched = matching(&fits[..sigs]).or_else(|| {
                try_in_order(&fits[..sigs], keys, |pair| self.pair(group, pair).verify())
            });
            if let Some(matched) = matched {
                learn(sigs, keys, matched);
                holds[missed.claim] = true;
            }
        }
    }

    /// Limits the recorded claims in the middle of an input: verifies and removes them.
    fn bound(&mut self) {
        if self.input_claims() < INPUT_CLAIMS_MAX {
            return;
        }
        let mut holds = Vec::new();
        self.decide_from(self.input.claims, None, &mut holds);
        self.is_wrong |= holds.contains(&false);
        self.forget_input();
    }

    fn claim(&mut self, claim: Claim) -> bool {
        self.claims.push(claim);
        self.bound();
        // After a wrong claim the input runs again, whatever this returns.
        true
    }
}

/// A group with a wrong guess.
struct Missed {
    group: u32,
    /// Index of its result.
    claim: usize,
    /// Index of the result of the first pair of its guess.
    first_answer: usize,
}

impl<P: Prove> SignatureChecker for Recorder<P> {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        if self.is_last(&Check::Ecdsa { pubkey, der_sig, msg }) {
            return true;
        }
        let at = self.put(&[msg, pubkey, der_sig]);
        let (key_bytes, sig_bytes) = (pubkey.len() as u32, der_sig.len() as u32);
        self.claim(Claim::Ecdsa { at, key_bytes, sig_bytes })
    }

    fn schnorr_of_any_length(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool {
        if msg.len() > MESSAGE_MAX {
            return assay_secp::verify_schnorr(xonly, sig, msg);
        }
        if self.is_last(&Check::Schnorr { xonly, sig, msg }) {
            return true;
        }
        let at = self.put(&[xonly, sig, msg]);
        self.claim(Claim::Schnorr { at, message_bytes: msg.len() as u32 })
    }

    fn post_quantum(&mut self, scheme: PqScheme, key: &[u8], sig: &[u8], msg: &[u8; 32]) -> bool {
        if scheme == PqScheme::MlDsa44 {
            // A batch takes as long as single checks.
            return ImmediateChecker.post_quantum(scheme, key, sig, msg);
        }
        let last = self.claims[self.input.claims..].last();
        if let Some(&Claim::SlhDsa { at }) = last
            && let Some(known) = self.slh_dsa_bytes(at).strip_prefix(key)
            && known.strip_prefix(msg) == Some(sig)
        {
            return true;
        }
        let at = self.put(&[key, msg, sig]);
        self.claim(Claim::SlhDsa { at })
    }

    fn schnorr_bch(&mut self, pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        let at = self.put(&[msg, sig, pubkey]);
        self.claim(Claim::SchnorrBch { at, key_bytes: pubkey.len() as u32 })
    }

    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool {
        let at = self.put(&[internal, tweak, output]);
        self.claim(Claim::TaprootTweak { at, parity: output_parity })
    }

    fn takes_multisig(&self) -> bool {
        true
    }

    fn multisig(&mut self, sigs: &[SignedMessage<'_>], keys: &[&[u8]]) -> bool {
        let first_part = self.parts.len() as u32;
        for signed in sigs {
            let at = self.put(&[&signed.msg, signed.der_sig]);
            self.parts.push(Part { at, bytes: signed.der_sig.len() as u32 });
        }
        for key in keys {
            let at = self.put(&[key]);
            self.parts.push(Part { at, bytes: key.len() as u32 });
        }
        let guess = guess(sigs.len(), keys.len());
        let group = self.groups.len() as u32;
        let (sigs, keys) = (sigs.len() as u8, keys.len() as u8);
        self.groups.push(Group { first_part, sigs, keys, guess });
        self.claim(Claim::Multisig { group })
    }
}

#[cfg(test)]
mod tests {
    use assay_secp::verify_schnorr;
    use secp256k1::{Keypair, SecretKey, schnorr};

    use super::super::check::Batches;
    use super::*;

    #[test]
    fn messages_of_any_length_are_decided_as_by_the_library() {
        let secret = SecretKey::from_secret_bytes([5; 32]).expect("a key");
        let keypair = Keypair::from_secret_key(&secret);
        let xonly = keypair.x_only_public_key().0.to_byte_array();
        let mut recorder: Recorder<Batches> = Recorder::default();
        recorder.begin_input();
        let mut expected = Vec::new();
        for length in [0, 1, 31, 32, 33, 64, 519, 520, 521, 8_000] {
            let msg = vec![length as u8; length];
            let sig = schnorr::sign_no_aux_rand(&msg, &keypair).to_byte_array();
            let mut wrong = sig;
            wrong[40] ^= 1;
            for sig in [sig, wrong] {
                let valid = verify_schnorr(&xonly, &sig, &msg);
                let said = recorder.schnorr_of_any_length(&xonly, &sig, &msg);
                if length > MESSAGE_MAX {
                    assert_eq!(said, valid, "{length} bytes are not deferred");
                } else {
                    assert!(said, "{length} bytes are claimed");
                    expected.push(valid);
                }
            }
        }
        assert_eq!(recorder.claims(), expected.len());
        let mut holds = Vec::new();
        recorder.decide(None, &mut holds);
        assert_eq!(holds, expected);
        let checks = recorder.checks();
        let is_whole =
            |check: &Check<'_>| matches!(check, Check::Schnorr { msg, .. } if *msg == [8; 520]);
        assert!(is_whole(&checks[14]), "520 bytes are kept whole");
    }
}
