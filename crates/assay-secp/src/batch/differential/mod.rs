//! Lanes against libsecp256k1.
//!
//! A lane takes a seventh of the library's time per check. Each check is therefore decided by the library once, and then used in
//! many batches at random positions among random others, which could affect a vector. A new set of checks is made for every
//! [`LANES_PER_SET`] lanes.
//!
//! `ASSAY_DIFF_BACKEND` selects one backend, `ASSAY_DIFF_LANES` is the number of lanes (a sixty-fourth of it for portable ones),
//! `ASSAY_DIFF_SEED` the seed and `ASSAY_DIFF_THREADS` the number of threads; the output contains them, and counts by class.

mod operands;

use operands::{Class, Operand, Owned, Random, make};

use crate::{Backend, BatchVerifier, Check, Proof, Sample, SampledVerifier};

const LANES_DEFAULT: usize = 12_000;

const LANES_PER_SET: usize = 1 << 20;

/// Keys per set, in a long run.
const SIGNERS: usize = 1500;

/// Results of one class.
#[derive(Clone, Copy, Default)]
struct Count {
    distinct: usize,
    lanes: usize,
    valid: usize,
    proven: usize,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    classes: [Count; Class::ALL.len()],
    /// Lanes in weighted sums, which are counted in their classes too.
    weighted: usize,
    /// Lanes found false without the library.
    refuted: usize,
    differences: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        for (sum, count) in self.classes.iter_mut().zip(other.classes) {
            sum.distinct += count.distinct;
            sum.lanes += count.lanes;
            sum.valid += count.valid;
            sum.proven += count.proven;
        }
        self.weighted += other.weighted;
        self.refuted += other.refuted;
        self.differences += other.differences;
    }

    fn lanes(&self) -> usize {
        self.classes.iter().map(|count| count.lanes).sum()
    }

    fn print(&self, title: &str) {
        let distinct: usize = self.classes.iter().map(|count| count.distinct).sum();
        println!(
            "{title}: {} lanes of {distinct} distinct checks, {} of them in weighted sums, {} \
             refuted, {} differences",
            self.lanes(),
            self.weighted,
            self.refuted,
            self.differences
        );
        for (class, count) in Class::ALL.into_iter().zip(&self.classes) {
            println!(
                "  {}: {} distinct, {} lanes, {} valid, {} answered true",
                class.name(),
                count.distinct,
                count.lanes,
                count.valid,
                count.proven
            );
        }
    }
}

/// One thread of a run.
struct Worker {
    random: Random,
    verifier: BatchVerifier,
    answers: Vec<bool>,
    counts: Counts,
    seed: usize,
}

impl Worker {
    fn run(&mut self, lanes: usize) {
        while self.counts.lanes() < lanes {
            let end = lanes.min(self.counts.lanes() + LANES_PER_SET);
            let wanted = end - self.counts.lanes();
            let signers = (wanted / 200).clamp(20, SIGNERS);
            let set = make(&mut self.random, signers);
            for operand in &set {
                self.counts.classes[operand.class as usize].distinct += 1;
            }
            while self.counts.lanes() < end {
                if self.random.below(24) == 0 {
                    self.weighted_batch(&set);
                } else {
                    self.batch(&set);
                }
            }
        }
    }

    /// A random batch; its size often leaves the last group partial.
    fn batch(&mut self, set: &[Operand]) {
        let count = 1 + self.random.below(700);
        let operands: Vec<&Operand> =
            (0..count).map(|_| &set[self.random.below(set.len())]).collect();
        let checks: Vec<Check<'_>> = operands.iter().map(|operand| operand.owned.check()).collect();
        self.verifier.prove(&checks, &mut self.answers);
        // The library decides unproven checks, as tested; a proven lane is final.
        self.compare(&operands, |proven, operand| proven && !operand.is_valid);
        for (index, operand) in operands.iter().enumerate() {
            if self.verifier.is_refuted(index) {
                self.counts.refuted += 1;
                assert!(!operand.is_valid, "seed {}: refuted {:?}", self.seed, operand.owned);
            }
        }
        // One check of each kind may be left over after full groups.
        let is_missed =
            |(proven, operand): (&bool, &&Operand)| !proven && operand.class == Class::Signed;
        let missed = self.answers.iter().zip(&operands).filter(|pair| is_missed(*pair)).count();
        assert!(missed <= 4, "seed {}: {missed} of {count} signed by the library", self.seed);
        if count < 40 {
            self.verifier.verify(&checks, &mut self.answers);
            self.compare(&operands, |answer, operand| answer != operand.is_valid);
        }
    }

    /// BIP-0340 signatures for one sum, sometimes with an invalid one.
    fn weighted_batch(&mut self, set: &[Operand]) {
        let is_schnorr = |operand: &&Operand| matches!(operand.owned, Owned::Schnorr { .. });
        let (valid, invalid): (Vec<&Operand>, Vec<&Operand>) =
            set.iter().filter(is_schnorr).partition(|operand| operand.is_valid);
        if valid.len() < 2 || invalid.is_empty() {
            return;
        }
        // No more than once each: equal nonces make the sum exceptional.
        let first = self.random.below(valid.len());
        let count = 1 + self.random.below(valid.len());
        let mut operands: Vec<&Operand> =
            valid.iter().cycle().skip(first).take(count).copied().collect();
        for _ in 0..self.random.below(3) {
            let at = self.random.below(count);
            operands[at] = invalid[self.random.below(invalid.len())];
        }
        let checks: Vec<Check<'_>> = operands.iter().map(|operand| operand.owned.check()).collect();
        self.verifier.verify_weighted(&checks, &mut self.answers);
        self.counts.weighted += count;
        self.compare(&operands, |answer, operand| answer != operand.is_valid);
    }

    fn compare(&mut self, operands: &[&Operand], is_wrong: impl Fn(bool, &Operand) -> bool) {
        assert_eq!(self.answers.len(), operands.len());
        for (&answer, operand) in self.answers.iter().zip(operands) {
            let count = &mut self.counts.classes[operand.class as usize];
            count.lanes += 1;
            count.valid += usize::from(operand.is_valid);
            count.proven += usize::from(answer);
            if is_wrong(answer, operand) {
                self.counts.differences += 1;
                let Operand { owned, class, is_valid } = operand;
                let (seed, backend) = (self.seed, self.verifier.backend());
                println!("seed {seed}, {backend:?}, {class:?}: {answer} for {is_valid}: {owned:?}");
            }
        }
    }
}

fn number_from(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run(backend: Backend, lanes: usize) {
    if !backend.available() {
        println!("skipped: this CPU does not run {}", backend.name());
        return;
    }
    let seed = number_from("ASSAY_DIFF_SEED", 20_261_121);
    let threads = number_from("ASSAY_DIFF_THREADS", 1).max(1);
    let worker = |thread: usize| {
        let mut worker = Worker {
            random: Random((seed + (thread << 32)) as u64),
            verifier: BatchVerifier::with_backend(backend),
            answers: Vec::new(),
            counts: Counts::default(),
            seed,
        };
        assert_eq!(worker.verifier.backend(), backend);
        worker.run(lanes.div_ceil(threads));
        worker.counts
    };
    let mut counts = Counts::default();
    std::thread::scope(|scope| {
        let handles: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || worker(thread))).collect();
        for handle in handles {
            counts.add(&handle.join().expect("no panic"));
        }
    });
    counts.print(&format!("{}: seed {seed}, {threads} threads", backend.name()));
    assert_eq!(counts.differences, 0);
    let valid: usize = counts.classes.iter().map(|count| count.valid).sum();
    assert!(valid > lanes / 3 && valid < counts.lanes(), "a mixture");
    assert!(counts.refuted > lanes / 100, "{} refuted", counts.refuted);
}

#[test]
fn lanes_agree_with_the_library() {
    let lanes = number_from("ASSAY_DIFF_LANES", LANES_DEFAULT);
    let wanted = std::env::var("ASSAY_DIFF_BACKEND").ok();
    for backend in Backend::all().filter(|backend| *backend != Backend::Libsecp) {
        let is_portable = matches!(backend, Backend::Portable | Backend::PortableRounded);
        if wanted.as_ref().is_none_or(|name| name == backend.name()) {
            run(backend, if is_portable { (lanes / 64).min(LANES_DEFAULT) } else { lanes });
        }
    }
}

/// Spot checks of every proof: no disagreement if all checks hold; an invalid member of a sum is detected and reported as a sum.
fn check_samples(backend: Backend, valid: &[&Operand], invalid: &[&Operand]) {
    let mut checks: Vec<Check<'_>> = valid[..300].iter().map(|one| one.owned.check()).collect();
    let mut out = Vec::new();
    let all = || Sample::new(1, [1, 2]);
    let mut verifier = SampledVerifier::new(BatchVerifier::with_backend(backend), all());
    assert_eq!(verifier.prove_weighted(&checks, &mut out), Ok(()));
    assert_eq!(verifier.verify_weighted(&checks, &mut out), Ok(()));
    assert_eq!(out, vec![true; 300]);
    if verifier.backend() == Backend::Libsecp {
        return;
    }
    for index in [0, 150, 299] {
        assert_eq!(verifier.verifier().proof(index, &checks[index]), Proof::Sum);
    }
    checks[150] = invalid[0].owned.check();
    verifier.verifier().plant_wrong_proofs(1);
    let found = verifier.prove_weighted(&checks, &mut out).expect_err("it was planted");
    assert!(out.is_empty());
    assert_eq!((found.kind, found.proof), ("schnorr", Proof::Lane));
    let (_, signature) = &found.operands[1];
    assert!(matches!(&checks[150], Check::Schnorr { sig, .. } if signature[..] == sig[..]));
}

#[test]
fn weighted_sums_agree_with_single_checks() {
    let mut random = Random(77);
    let set = make(&mut random, 600);
    let schnorr = |operand: &&Operand| matches!(operand.owned, Owned::Schnorr { .. });
    let (valid, invalid): (Vec<&Operand>, Vec<&Operand>) =
        set.iter().filter(schnorr).partition(|operand| operand.is_valid);
    let mut answers = Vec::new();
    for backend in Backend::all() {
        let mut verifier = BatchVerifier::with_backend(backend);
        for (count, damaged) in [(300, 0), (600, 0), (600, 1), (599, 2), (600, 40), (257, 1)] {
            let mut operands = valid[..count].to_vec();
            for _ in 0..damaged {
                let at = random.below(count);
                operands[at] = invalid[random.below(invalid.len())];
            }
            let checks: Vec<Check<'_>> = operands.iter().map(|one| one.owned.check()).collect();
            verifier.verify_weighted(&checks, &mut answers);
            for (operand, answer) in operands.iter().zip(&answers) {
                assert_eq!(*answer, operand.is_valid, "{}: {:?}", backend.name(), operand.owned);
            }
        }
        check_samples(backend, &valid, &invalid);
        // The same nonces repeatedly.
        let checks: Vec<Check<'_>> = (0..520).map(|k| valid[k % 3].owned.check()).collect();
        verifier.verify_weighted(&checks, &mut answers);
        assert_eq!(answers, vec![true; 520]);
    }
}
