//! Processes the checks of a batch in groups of eight.

use super::prepare::{Job, prepare};
use super::weighted;
use super::{Check, table};
use crate::backend::Kernels;
use crate::lanes::LANES;
use crate::lanes::Line;
use crate::lanes::group::{Group, Question};
use crate::lanes::msm::Work;
use crate::scalar::Scalar;

/// Checks per round: enough to share inversions, and few enough for the second-level cache.
const CHECKS_AT_ONCE: usize = 1024;

/// Fewer BIP-0340 signatures are faster one by one than as a sum.
const WEIGHTED_MIN: usize = 256;

/// Maximum signatures per sum.
const WEIGHTED_MAX: usize = 8192;

/// Fewer jobs are faster one by one than as a group.
const JOBS_MIN: usize = 2;

const QUESTIONS: [Question; 4] =
    [Question::Ecdsa, Question::Schnorr, Question::SchnorrBch, Question::Tweak];

/// Proves checks true, and ECDSA checks false; all others are unknown.
#[derive(Debug)]
pub(super) struct Prover {
    kernels: Kernels,
    jobs: [Vec<Job>; QUESTIONS.len()],
    octets: Octets,
    /// Prefix products of s over the jobs.
    prefixes: Vec<Scalar>,
    work: Work,
    /// Signatures for one sum.
    weighted: Vec<Job>,
    /// First and last index of the members of successful sums; all proven BIP-0340 signatures in between are members.
    summed: Vec<(usize, usize)>,
    /// Checks of the last batch found false.
    refuted: Vec<bool>,
    /// Number of unproven checks over all batches.
    #[cfg(any(test, feature = "planted"))]
    unproven: u64,
}

impl Prover {
    pub(super) fn new(kernels: Kernels) -> Self {
        Self {
            kernels,
            jobs: Default::default(),
            octets: Octets::default(),
            prefixes: Vec::new(),
            work: Work::default(),
            weighted: Vec::new(),
            summed: Vec::new(),
            refuted: Vec::new(),
            #[cfg(any(test, feature = "planted"))]
            unproven: 0,
        }
    }

    /// Sets the entries of `proven`, one per check, for the checks that it proves. With `is_weighted`, BIP-0340 signatures are
    /// proven by weighted sums if there are enough.
    pub(super) fn prove(&mut self, checks: &[Check<'_>], is_weighted: bool, proven: &mut [bool]) {
        self.summed.clear();
        self.refuted.clear();
        self.refuted.resize(checks.len(), false);
        let table = table::generator_multiples();
        if table.is_empty() {
            return;
        }
        self.weighted.clear();
        for (number, chunk) in checks.chunks(CHECKS_AT_ONCE).enumerate() {
            self.jobs.iter_mut().for_each(Vec::clear);
            for (index, check) in chunk.iter().enumerate() {
                match prepare(number * CHECKS_AT_ONCE + index, check) {
                    Some((Question::Schnorr, job)) if is_weighted => self.weighted.push(job),
                    Some((question, job)) => self.jobs[question as usize].push(job),
                    None => {}
                }
            }
            divide_by_s(&mut self.jobs[Question::Ecdsa as usize], &mut self.prefixes);
            for question in QUESTIONS {
                self.run(question, table, proven);
            }
        }
        let jobs = std::mem::take(&mut self.weighted);
        for jobs in jobs.chunks(WEIGHTED_MAX) {
            self.prove_sum(jobs, proven);
        }
        for chunk in jobs.chunks(CHECKS_AT_ONCE) {
            let rest = &mut self.jobs[Question::Schnorr as usize];
            rest.clear();
            rest.extend(chunk.iter().filter(|job| !proven[job.index]));
            self.run(Question::Schnorr, table, proven);
        }
        self.weighted = jobs;
    }

    /// Proves signatures by sums. A failed sum is split, down to the size below which single proofs are cheaper.
    fn prove_sum(&mut self, jobs: &[Job], proven: &mut [bool]) {
        if jobs.len() < WEIGHTED_MIN {
            return;
        }
        match weighted::all_valid(jobs, self.kernels.weighted_sum, &mut self.work) {
            Some(true) => {
                for job in jobs {
                    proven[job.index] = true;
                }
                self.summed.push((jobs[0].index, jobs[jobs.len() - 1].index));
            }
            Some(false) => {
                let (first, second) = jobs.split_at(jobs.len() / 2);
                self.prove_sum(first, proven);
                self.prove_sum(second, proven);
            }
            // The cause of an exceptional sum would affect the others too.
            None => {}
        }
    }

    /// True if a proven BIP-0340 signature of the last batch was proven by a sum.
    pub(super) fn is_summed(&self, index: usize) -> bool {
        self.summed.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// True if the check of this index was found false in the last batch.
    pub(super) fn is_refuted(&self, index: usize) -> bool {
        self.refuted.get(index).is_some_and(|refuted| *refuted)
    }

    /// Sets one of this many entries that are unset.
    #[cfg(any(test, feature = "planted"))]
    pub(super) fn plant_wrong_proofs(&mut self, one_of: u32, proven: &mut [bool]) {
        if one_of == 0 {
            return;
        }
        for proven in proven.iter_mut().filter(|proven| !**proven) {
            self.unproven += 1;
            *proven = self.unproven.is_multiple_of(one_of.into());
        }
    }

    /// Processes all jobs of one question.
    fn run(&mut self, question: Question, table: &[Line], proven: &mut [bool]) {
        let jobs = &self.jobs[question as usize];
        for (job, group, lane) in self.octets.answer(&self.kernels, question, jobs, table) {
            proven[job.index] = group.proven >> lane & 1 == 1;
            self.refuted[job.index] = group.refuted >> lane & 1 == 1;
        }
    }
}

/// Groups for the jobs; reuses their memory.
#[derive(Debug, Default)]
pub(super) struct Octets(Vec<Group>);

impl Octets {
    /// Processes jobs; returns each with its group and lane. A last job that would be alone in a group is skipped.
    pub(super) fn answer<'a>(
        &'a mut self,
        kernels: &Kernels,
        question: Question,
        jobs: &'a [Job],
        table: &[Line],
    ) -> impl Iterator<Item = (&'a Job, &'a Group, usize)> {
        let (octets, rest) = jobs.as_chunks::<LANES>();
        let is_rest_worth_it = rest.len() >= JOBS_MIN;
        let count = octets.len() + usize::from(is_rest_worth_it);
        if self.0.len() < count {
            self.0.resize_with(count, Group::new);
        }
        let groups = &mut self.0[..count];
        for (group, jobs) in groups.iter_mut().zip(jobs.chunks(LANES)) {
            fill(question, group, jobs);
        }
        (kernels.answer)(question, groups, table);
        let by_group = groups.iter().zip(jobs.chunks(LANES));
        by_group.flat_map(|(group, jobs)| {
            jobs.iter().enumerate().map(move |(lane, job)| (job, group, lane))
        })
    }
}

/// Sets every lane of a group; unused lanes repeat the last job.
pub(super) fn fill(question: Question, group: &mut Group, jobs: &[Job]) {
    let Some(last) = jobs.last() else { return };
    for lane in 0..LANES {
        let job = jobs.get(lane).unwrap_or(last);
        group.set_points(lane, &job.key, &job.r, job.is_r_odd);
        group.set_generator_digits(lane, &job.u1.split());
        if question != Question::Tweak {
            group.set_key_digits(lane, &job.u2.split());
        }
    }
}

/// Converts message and s to `u1 = m / s` and `u2 = r / s`, with one inversion (Montgomery's trick). No s may be zero.
pub(super) fn divide_by_s(jobs: &mut [Job], prefixes: &mut Vec<Scalar>) {
    prefixes.clear();
    let mut product = Scalar::ONE;
    for job in &*jobs {
        prefixes.push(product);
        product = product.mul(job.u2);
    }
    let mut suffix = product.inverse();
    for (job, prefix) in jobs.iter_mut().zip(&*prefixes).rev() {
        let inverse = suffix.mul(*prefix);
        suffix = suffix.mul(job.u2);
        // `prepare` ensures that r is below the order.
        job.u1 = job.u1.mul(inverse);
        job.u2 = Scalar(job.r).mul(inverse);
    }
}
