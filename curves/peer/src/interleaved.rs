//! Interleaved timing on one thread: medians of CPU time, and ratios within rounds, so that a common load cancels out.

use crate::session::cpu_ns;

/// Minimum length of a sample, in nanoseconds.
const SAMPLE_NS: u64 = 2_000_000;

/// One side of a comparison.
pub struct Side {
    run: Box<dyn FnMut()>,
    /// Number of operations per call.
    operations: usize,
}

impl Side {
    /// A side whose calls do `operations` operations each.
    pub fn new(operations: usize, run: impl FnMut() + 'static) -> Self {
        Self { run: Box::new(run), operations }
    }

    fn sample_ns(&mut self, calls: u64) -> f64 {
        let start_ns = cpu_ns();
        for _ in 0..calls {
            (self.run)();
        }
        (cpu_ns() - start_ns).max(1) as f64
    }

    /// Number of calls per sample; its own calls warm the caches.
    fn calibrate(&mut self) -> u64 {
        let mut calls = 1;
        loop {
            let ns = self.sample_ns(calls);
            if ns as u64 >= SAMPLE_NS / 2 {
                return (calls as f64 * SAMPLE_NS as f64 / ns).ceil().max(1.0) as u64;
            }
            calls *= 2;
        }
    }
}

/// Figures of one side.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Median nanoseconds per operation.
    pub ns: f64,
    /// Time over that of the first side: lower end of the 95 % interval, median, upper end.
    pub ratio: [f64; 3],
}

/// Measures all sides interleaved, in reverse order in every second round.
pub fn measure(sides: &mut [Side], rounds: usize) -> Vec<Figures> {
    let calls: Vec<u64> = sides.iter_mut().map(Side::calibrate).collect();
    let mut times = vec![Vec::with_capacity(rounds); sides.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for side in order {
            let operations = calls[side] as f64 * sides[side].operations as f64;
            times[side].push(sides[side].sample_ns(calls[side]) / operations);
        }
    }
    let first = times.first().cloned().unwrap_or_default();
    let figures = |times: Vec<f64>| {
        let ratios = times.iter().zip(&first).map(|(ns, first)| ns / first).collect();
        let (ns, ratios) = (sorted(times), sorted(ratios));
        // Interval of a median by ranks, with the normal approximation of the binomial distribution.
        let count = ratios.len() as f64;
        let low = ((count / 2.0 - 0.98 * count.sqrt()).floor().max(0.0)) as usize;
        let ratio = [low, ratios.len() / 2, ratios.len() - 1 - low].map(|rank| ratios[rank]);
        Figures { ns: ns[ns.len() / 2], ratio }
    };
    times.into_iter().map(figures).collect()
}

fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers
}
