//! Spot checks: verifies a sample of the lanes' proofs again with libsecp256k1.
//!
//! A proof on paper and tests show that lanes prove no false check, assuming the code as written and a correct CPU. They do not
//! cover a miscompiled kernel, a faulty core or a flipped bit. Therefore libsecp256k1, which shares no arithmetic with the lanes,
//! verifies a secret sample of the proven checks. A single disagreement makes all proofs of this process unreliable.

use core::fmt;

use assay_hash::SipHash13;

use super::{Backend, BatchVerifier, Check, decide_unproven};

/// Selects proven checks for verification: one of each `one_of` consecutive ones.
///
/// Every check is selected with the same probability. The position in a row depends on the secret key and is unpredictable
/// without it; k consecutive false proofs stay undetected with a probability below `(1 - 1 / one_of)^k`, rounding apart.
#[derive(Clone)]
pub struct Sample {
    hash: SipHash13,
    one_of: u32,
    /// Number of rows started.
    rows: u64,
    /// Remaining proven checks of this row.
    left: u32,
    /// Value of `left` at the selected check.
    chosen: u32,
}

impl Sample {
    /// Selects one of every `one_of` checks by a secret key; `None` for 0, no check at all.
    ///
    /// Two samples with the same key select alike, so every verifier needs its own.
    pub fn new(one_of: u32, key: [u64; 2]) -> Option<Self> {
        let hash = SipHash13::new(key[0], key[1]);
        (one_of > 0).then_some(Self { hash, one_of, rows: 0, left: 0, chosen: 0 })
    }

    /// True if the next check is selected.
    #[inline]
    fn takes_next(&mut self) -> bool {
        if self.left == 0 {
            let random = self.hash.hash(&self.rows.to_le_bytes());
            self.rows += 1;
            self.left = self.one_of;
            // A number from 1 to `one_of`, uniform up to a bias of 2^-32.
            self.chosen = 1 + ((u128::from(random) * u128::from(self.one_of)) >> 64) as u32;
        }
        let is_chosen = self.left == self.chosen;
        self.left -= 1;
        is_chosen
    }
}

impl fmt::Debug for Sample {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample").field("one_of", &self.one_of).finish_non_exhaustive()
    }
}

/// Method by which a check was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// In a lane of its own.
    Lane,
    /// As a member of a weighted sum.
    Sum,
    /// Found false in a lane of its own.
    Refuted,
}

impl Proof {
    /// `"lane"`, `"weighted sum"` or `"refuted"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lane => "lane",
            Self::Sum => "weighted sum",
            Self::Refuted => "refuted",
        }
    }
}

/// A disagreement between lanes and libsecp256k1, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Backend of the lanes.
    pub backend: Backend,
    /// Their method.
    pub proof: Proof,
    /// True if they prove it again, alone in a batch; an intermittent fault may not.
    pub is_proven_again: bool,
    /// Result of libsecp256k1 when repeated.
    pub library_again: bool,
    /// `"ecdsa"`, `"schnorr"`, `"schnorr-bch"` or `"taproot-tweak"`.
    pub kind: &'static str,
    /// Names and bytes of the operands.
    pub operands: Vec<(&'static str, Vec<u8>)>,
}

impl Disagreement {
    fn new(verifier: &mut BatchVerifier, check: &Check<'_>, proof: Proof) -> Self {
        let mut again = Vec::new();
        verifier.prove(&[*check, *check], &mut again);
        let operands: Vec<(&'static str, &[u8])> = match *check {
            Check::Ecdsa { pubkey, der_sig, msg } => {
                vec![("pubkey", pubkey), ("signature", der_sig), ("message", msg)]
            }
            Check::Schnorr { xonly, sig, msg } => {
                vec![("pubkey", xonly), ("signature", sig), ("message", msg)]
            }
            Check::SchnorrBch { pubkey, sig, msg } => {
                vec![("pubkey", pubkey), ("signature", sig), ("message", msg)]
            }
            Check::TaprootTweak { internal, tweak, output, parity } => vec![
                ("internal", internal),
                ("tweak", tweak),
                ("output", output),
                ("parity", if parity { &[1] } else { &[0] }),
            ],
        };
        Self {
            backend: verifier.backend(),
            proof,
            is_proven_again: again.contains(&true),
            library_again: check.verify(),
            kind: check.kind(),
            operands: operands.into_iter().map(|(name, bytes)| (name, bytes.to_vec())).collect(),
        }
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, proof, kind, .. } = self;
        let is_refuted = &(*proof == Proof::Refuted);
        let (backend, proof) = (backend.name(), proof.name());
        let (did, finds) = if *is_refuted { ("refuted", "true") } else { ("proved", "false") };
        write!(f, "{backend} {did} a {kind} check ({proof}) that libsecp256k1 finds {finds}")
    }
}

impl std::error::Error for Disagreement {}

/// A [`BatchVerifier`] with spot checks.
#[derive(Debug)]
pub struct SampledVerifier {
    verifier: BatchVerifier,
    sample: Option<Sample>,
}

impl SampledVerifier {
    /// Without a sample nothing is verified again.
    pub fn new(verifier: BatchVerifier, sample: Option<Sample>) -> Self {
        Self { verifier, sample }
    }

    /// The verifier without spot checks.
    pub fn verifier(&mut self) -> &mut BatchVerifier {
        &mut self.verifier
    }

    /// As [`BatchVerifier::is_refuted`]; refutations are sampled too.
    pub fn is_refuted(&self, index: usize) -> bool {
        self.verifier.is_refuted(index)
    }

    /// The current backend.
    pub fn backend(&self) -> Backend {
        self.verifier.backend()
    }

    /// As [`BatchVerifier::prove`].
    ///
    /// # Errors
    /// When libsecp256k1 finds a sampled proof false. `out` is empty then.
    pub fn prove(
        &mut self,
        checks: &[Check<'_>],
        out: &mut Vec<bool>,
    ) -> Result<(), Box<Disagreement>> {
        self.verifier.prove(checks, out);
        self.ask_again(checks, out)
    }

    /// As [`BatchVerifier::prove_weighted`]. Members of sums are sampled like others.
    ///
    /// # Errors
    /// As [`SampledVerifier::prove`].
    pub fn prove_weighted(
        &mut self,
        checks: &[Check<'_>],
        out: &mut Vec<bool>,
    ) -> Result<(), Box<Disagreement>> {
        self.verifier.prove_weighted(checks, out);
        self.ask_again(checks, out)
    }

    /// As [`BatchVerifier::verify`], with a sample of the lanes' proofs verified again.
    ///
    /// # Errors
    /// As [`SampledVerifier::prove`].
    pub fn verify(
        &mut self,
        checks: &[Check<'_>],
        out: &mut Vec<bool>,
    ) -> Result<(), Box<Disagreement>> {
        self.prove(checks, out)?;
        decide_unproven(checks, out);
        Ok(())
    }

    /// As [`BatchVerifier::verify_weighted`], with spot checks.
    ///
    /// # Errors
    /// As [`SampledVerifier::prove`].
    pub fn verify_weighted(
        &mut self,
        checks: &[Check<'_>],
        out: &mut Vec<bool>,
    ) -> Result<(), Box<Disagreement>> {
        self.prove_weighted(checks, out)?;
        decide_unproven(checks, out);
        Ok(())
    }

    /// Verifies a sample of the latest proofs.
    fn ask_again(
        &mut self,
        checks: &[Check<'_>],
        out: &mut Vec<bool>,
    ) -> Result<(), Box<Disagreement>> {
        let Some(sample) = &mut self.sample else { return Ok(()) };
        for (index, check) in checks.iter().enumerate() {
            let is_decided = out[index] || self.verifier.is_refuted(index);
            if is_decided && sample.takes_next() && check.verify() != out[index] {
                let is_refuted = !out[index];
                out.clear();
                let proof =
                    if is_refuted { Proof::Refuted } else { self.verifier.proof(index, check) };
                let found = Disagreement::new(&mut self.verifier, check, proof);
                return Err(Box::new(found));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(one_of: u32, key: [u64; 2]) -> Sample {
        Sample::new(one_of, key).expect("not 0")
    }

    /// Exactly one of each row, with all positions equally frequent.
    #[test]
    fn sampling_rate_is_exact() {
        for one_of in [1, 2, 3, 256] {
            let rows = 40_000;
            let mut sample = sample(one_of, [1, 2]);
            let mut places = vec![0u32; one_of as usize];
            for _ in 0..rows {
                let chosen: Vec<usize> =
                    (0..one_of as usize).filter(|_| sample.takes_next()).collect();
                assert_eq!(chosen.len(), 1, "one of {one_of}");
                places[chosen[0]] += 1;
            }
            // Pearson's statistic has the mean f and the variance 2 f; the key is fixed.
            let expected = f64::from(rows) / f64::from(one_of);
            let squares: f64 =
                places.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            let freedom = f64::from(one_of - 1);
            assert!(
                squares <= freedom + 5.0 * (2.0 * freedom).sqrt(),
                "one of {one_of}: {squares}"
            );
        }
    }

    /// Two verifiers select the same position as often as by chance.
    #[test]
    fn verifiers_choose_differently() {
        let (one_of, rows) = (256, 4096);
        let choice = |key| {
            let mut sample = sample(one_of, key);
            (0..one_of * rows).filter(|_| sample.takes_next()).collect::<Vec<u32>>()
        };
        let first = choice([7, 7]);
        assert_eq!(first, choice([7, 7]));
        for key in [[7, 8], [8, 7], [0, 0]] {
            let other = choice(key);
            let same = first.iter().zip(&other).filter(|(a, b)| a == b).count();
            // The expected number is 16.
            assert!(same < 45, "{same} of {rows}");
        }
    }

    #[test]
    fn zero_selects_none_and_one_selects_all() {
        assert!(Sample::new(0, [1, 2]).is_none());
        let mut all = sample(1, [3, 4]);
        assert!((0..100).all(|_| all.takes_next()));
        let debug = format!("{:?}", sample(256, [0x1234_5678, 0x9abc_def0]));
        assert_eq!(debug, "Sample { one_of: 256, .. }");
    }

    /// A wrong proof is detected with probability 1 in `one_of`, so detection takes `one_of` wrong proofs on average and at most
    /// twice as many.
    #[test]
    fn planted_wrong_proofs_are_found() {
        let msg = [3; 32];
        let pubkey = crate::bch::generator().expect("on the curve").serialize();
        let der_sig = [0x30, 6, 2, 1, 9, 2, 1, 9];
        let wrong = Check::Ecdsa { pubkey: &pubkey, der_sig: &der_sig, msg: &msg };
        assert!(!wrong.verify());
        let (one_of, runs) = (8, 50);
        let mut proofs = 0;
        for run in 0..runs {
            let mut verifier = BatchVerifier::with_backend(Backend::Portable);
            verifier.plant_wrong_proofs(1);
            let mut verifier = SampledVerifier::new(verifier, Sample::new(one_of, [run, 1]));
            let mut out = Vec::new();
            let found = (1..=2 * one_of).find_map(|count| {
                let found = verifier.prove(&[wrong; 2], &mut out).err()?;
                assert!(out.is_empty());
                Some((count, found))
            });
            let (count, found) = found.expect("within two rows");
            proofs += 2 * count;
            assert_eq!((found.backend, found.proof), (Backend::Portable, Proof::Lane));
            assert_eq!((found.is_proven_again, found.library_again), (true, false));
            assert_eq!(found.kind, "ecdsa");
            assert_eq!(found.operands[0], ("pubkey", pubkey.to_vec()));
            assert!(found.to_string().contains("libsecp256k1 finds false"));
        }
        let mean = f64::from(proofs) / runs as f64;
        assert!((3.0..7.0).contains(&mean), "found after {mean} proofs");
    }
}
