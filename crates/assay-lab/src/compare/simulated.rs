//! Simulated machines that measure the error rates of verdicts.

use assay_report::stats::paired::{PairedRatio, holm};
use assay_report::stats::random::SplitMix64;
use assay_report::stats::verdict::{FLOOR_MIN, Verdict};

/// Rows of a typical comparison: two totals with five phases each.
const TOTALS: usize = 2;
const PHASES: usize = 10;
/// Pairs of an acceptance run.
const PAIRS: usize = 6;
const DELTA: f64 = 0.01;

#[derive(Clone, Copy, Debug)]
enum NoiseModel {
    /// Normal noise only.
    Calm,
    /// Each run is slower than the previous one, and the clock frequency oscillates.
    Drift,
    /// One run in eight is disturbed by other load.
    Outliers,
    /// Infinite variance: Student's t with two degrees of freedom.
    Heavy,
    /// One-sided noise with an exponential tail.
    Skewed,
    /// All of these except the heavy tails.
    All,
}

struct Machine {
    random: SplitMix64,
    noise_model: NoiseModel,
    noise: f64,
    runs: f64,
}

impl Machine {
    fn new(seed: u64, noise_model: NoiseModel, noise: f64) -> Self {
        Self { random: SplitMix64::new(seed), noise_model, noise, runs: 0.0 }
    }

    fn uniform(&mut self) -> f64 {
        ((self.random.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Box and Muller 1958.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Logarithm of the slowdown that a whole run shares.
    fn next_run(&mut self) -> f64 {
        self.runs += 1.0;
        let drift = 0.004 * self.runs + 0.02 * (self.runs / 3.0).sin();
        let outlier = if self.uniform() < 0.125 { 0.3 * self.uniform() } else { 0.0 };
        let skew = -0.03 * self.uniform().ln();
        let normal = self.noise * self.normal();
        match self.noise_model {
            NoiseModel::Calm => normal,
            NoiseModel::Drift => normal + drift,
            NoiseModel::Outliers => normal + outlier,
            // A normal over the root of a mean of two squares.
            NoiseModel::Heavy => normal / (-self.uniform().ln()).sqrt(),
            NoiseModel::Skewed => normal + skew,
            NoiseModel::All => normal + drift + outlier + skew,
        }
    }

    /// Times of the rows of one run.
    fn run(&mut self, slowness: f64) -> Vec<f64> {
        let shared = self.next_run();
        let phases: Vec<f64> =
            (0..PHASES).map(|_| slowness * (shared + self.noise * self.normal()).exp()).collect();
        let half = PHASES / TOTALS;
        let total = |number: usize| phases[number * half..][..half].iter().sum();
        (0..TOTALS).map(total).chain(phases.iter().copied()).collect()
    }
}

/// Verdicts of one comparison of two interleaved alternatives.
fn verdicts(machine: &mut Machine, slowness: f64) -> Vec<Verdict> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        if pair % 2 == 0 {
            first.push(machine.run(1.0));
            second.push(machine.run(slowness));
        } else {
            second.push(machine.run(slowness));
            first.push(machine.run(1.0));
        }
    }
    let column =
        |runs: &[Vec<f64>], row: usize| runs.iter().map(|run| run[row]).collect::<Vec<_>>();
    let ratios: Vec<PairedRatio> = (0..TOTALS + PHASES)
        .map(|row| PairedRatio::of(&column(&first, row), &column(&second, row)).expect("times"))
        .collect();
    let probabilities: Vec<_> = ratios.iter().map(|ratio| ratio.p).collect();
    let mut adjusted = holm(&probabilities[..TOTALS]);
    adjusted.extend(holm(&probabilities[TOTALS..]));
    ratios.iter().zip(adjusted).map(|(ratio, p)| ratio.verdict(FLOOR_MIN, DELTA, p)).collect()
}

/// Shares of A/A comparisons in which a total, or any row, is called different.
fn false_shares(noise_model: NoiseModel, noise: f64, comparisons: u64) -> (f64, f64, f64) {
    let (mut totals, mut any, mut rows) = (0u64, 0u64, 0u64);
    for seed in 0..comparisons {
        let found = verdicts(&mut Machine::new(seed, noise_model, noise), 1.0);
        totals += u64::from(found[..TOTALS].iter().any(|verdict| verdict.is_difference()));
        any += u64::from(found.iter().any(|verdict| verdict.is_difference()));
        rows += found.iter().filter(|verdict| verdict.is_difference()).count() as u64;
    }
    let share = |count: u64| count as f64 / comparisons as f64;
    (share(totals), share(any), share(rows) / (TOTALS + PHASES) as f64)
}

#[test]
fn false_positives_are_rare() {
    let (mut all, mut worst) = (0.0, 0.0f64);
    for noise_model in [
        NoiseModel::Calm,
        NoiseModel::Drift,
        NoiseModel::Outliers,
        NoiseModel::Heavy,
        NoiseModel::Skewed,
        NoiseModel::All,
    ] {
        for noise in [0.003, 0.01, 0.03] {
            let (totals, any, rows) = false_shares(noise_model, noise, 400);
            eprintln!(
                "{noise_model:?} {noise}: totals {totals:.4}, any row {any:.4}, rows {rows:.5}"
            );
            assert!(totals <= 0.03, "{noise_model:?}, noise {noise}: {totals} with a false total");
            assert!(rows <= 0.01, "{noise_model:?}, noise {noise}: {rows} of rows");
            all += any;
            worst = worst.max(any);
        }
    }
    assert!(worst <= 0.06, "on the worst machine {worst} of all comparisons have a false verdict");
    assert!(all / 18.0 <= 0.03, "{} of all comparisons have a false verdict", all / 18.0);
}

#[test]
fn detects_five_percent_in_six_pairs() {
    for (noise_model, noise, wanted) in [
        (NoiseModel::Calm, 0.01, 0.95),
        (NoiseModel::Calm, 0.005, 0.99),
        (NoiseModel::Drift, 0.005, 0.7),
    ] {
        for (slowness, expected) in [(1.05, Verdict::Slower), (1.0 / 1.05, Verdict::Faster)] {
            let found = (0..1000u64)
                .filter(|seed| {
                    let verdicts = verdicts(&mut Machine::new(*seed, noise_model, noise), slowness);
                    verdicts[..TOTALS].iter().all(|verdict| *verdict == expected)
                })
                .count() as f64
                / 1000.0;
            eprintln!("{noise_model:?} {noise} {slowness:.3}: found {found:.3}");
            assert!(found >= wanted, "{noise_model:?}, noise {noise}: {found} found");
        }
    }
}

#[test]
fn equivalence_needs_low_noise() {
    let share = |noise: f64, slowness: f64| {
        let is_equal = |seed: &u64| {
            let verdicts = verdicts(&mut Machine::new(*seed, NoiseModel::Calm, noise), slowness);
            verdicts[0] == Verdict::Equivalent
        };
        (0..500u64).filter(is_equal).count() as f64 / 500.0
    };
    assert!(share(0.001, 1.0) >= 0.99);
    // At the margin: two one-sided tests at 5 % each.
    assert!(share(0.003, 1.0 + DELTA) <= 0.05 && share(0.01, 1.0 + DELTA) <= 0.05);
    assert!(share(0.01, 1.05) < 1e-9);
}

/// The interval is a hull, because the bootstrap alone undercovers with six pairs.
#[test]
fn coverage_of_the_intervals() {
    let (mut hull, mut bootstrap) = (0, 0);
    for seed in 0..2000u64 {
        let mut machine = Machine::new(seed, NoiseModel::Calm, 0.01);
        let mut times = || (0..PAIRS).map(|_| machine.next_run().exp()).collect::<Vec<_>>();
        let ratio = PairedRatio::of(&times(), &times()).expect("times");
        hull += u32::from(ratio.interval.low <= 1.0 && ratio.interval.high >= 1.0);
        bootstrap += u32::from(ratio.bootstrap.low <= 1.0 && ratio.bootstrap.high >= 1.0);
    }
    let share = |count: u32| f64::from(count) / 2000.0;
    eprintln!("coverage: hull {}, bootstrap {}", share(hull), share(bootstrap));
    assert!(share(hull) >= 0.95 && share(bootstrap) < 0.93, "{hull} {bootstrap}");
}
