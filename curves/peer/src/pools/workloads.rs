//! The eleven workloads of Constantine's thread pool benchmarks, in sizes of some milliseconds.
//!
//! Forks: `fibonacci` (overhead only), `dfs` (a tree), `nqueens` (an unbalanced tree), `matmul` (cache-oblivious),
//! `single-task-producer`, `bouncing-producer-consumer`. Loops: `heat`, `transposition`, `histogram-2d`, `logsumexp`,
//! `black-scholes`. No workload limits its forks to help a pool.

use std::f64::consts::FRAC_1_SQRT_2;
use std::hint::black_box;

use super::{Forks, Pool, Task};
use crate::derive::expand;
use crate::table::{Prepared, Table};

pub(super) const GROUP: &str = "pool";

/// A workload whose answer is its result.
fn repeated(mut work: impl FnMut() -> Vec<u8> + Send + 'static) -> Prepared {
    let answer = work();
    Prepared::repeated(answer, work)
}

/// Adds the workloads with forks.
pub(super) fn forks(table: &mut Table, pool: impl Forks, how: &str) {
    table.add(GROUP, "fibonacci", format!("{how}; the 24th number"), move |_| {
        Ok(repeated(move || pool.run(Fibonacci(black_box(24))).to_be_bytes().to_vec()))
    });
    table.add(GROUP, "dfs", format!("{how}; seven children, six levels"), move |_| {
        Ok(repeated(move || {
            pool.run(black_box(Dfs { depth: 6, breadth: 7 })).to_be_bytes().to_vec()
        }))
    });
    table.add(GROUP, "nqueens", format!("{how}; nine queens"), move |_| {
        Ok(repeated(move || pool.run(Queens::new(black_box(9))).to_be_bytes().to_vec()))
    });
    table.add(GROUP, "matmul", format!("{how}; 256 by 256, single precision"), move |work| {
        let numbers = |label: &str| -> Vec<f32> {
            expand(label, work.seed, 0, MATMUL * MATMUL)
                .iter()
                .map(|byte| f32::from(*byte))
                .collect()
        };
        let (a, b) = (numbers("matmul a"), numbers("matmul b"));
        let mut c = vec![0.0f32; MATMUL * MATMUL];
        Ok(repeated(move || {
            c.fill(0.0);
            pool.run(Matmul { a: &a, b: &b, c: &mut c });
            // Sums of products of bytes are not exact, but the order within an element is the same everywhere.
            c.iter().step_by(997).flat_map(|x| x.to_be_bytes()).collect()
        }))
    });
    let text = format!("{how}; 1,000 tasks of 1,000 steps");
    table.add(GROUP, "single-task-producer", text, move |_| {
        Ok(repeated(move || pool.run(Producer { left: 1_000 }).to_be_bytes().to_vec()))
    });
    let text = format!("{how}; 50 times 20 tasks of 1,000 steps");
    table.add(GROUP, "bouncing-producer-consumer", text, move |_| {
        Ok(repeated(move || pool.run(Bouncing { depth: 50, width: 20 }).to_be_bytes().to_vec()))
    });
}

/// Adds the workloads with loops.
pub(super) fn loops(table: &mut Table, pool: impl Pool, how: &str) {
    table.add(GROUP, "heat", format!("{how}; 256 by 256, 16 steps, a row each"), move |_| {
        Ok(repeated(move || heat(pool)))
    });
    table.add(GROUP, "transposition", format!("{how}; 1,024 by 1,024 words"), move |work| {
        let bytes = expand("transposition", work.seed, 0, SIDE * SIDE);
        let from: Vec<u64> = bytes.into_iter().map(u64::from).collect();
        let mut to = vec![0u64; SIDE * SIDE];
        Ok(repeated(move || {
            pool.rows(&mut to, SIDE, |row, cells| {
                for (column, cell) in cells.iter_mut().enumerate() {
                    *cell = from[column * SIDE + row];
                }
            });
            to.iter().step_by(911).map(|cell| *cell as u8).collect()
        }))
    });
    table.add(GROUP, "histogram-2d", format!("{how}; 1,024 rows of 1,024 pairs"), move |work| {
        let bytes = expand("histogram", work.seed, 0, 2 * SIDE * SIDE);
        Ok(repeated(move || {
            let counts = pool.reduce(
                SIDE,
                || vec![0u32; BINS * BINS],
                |row| histogram(&bytes[2 * SIDE * row..][..2 * SIDE]),
                |mut sum, other| {
                    sum.iter_mut().zip(other).for_each(|(sum, count)| *sum += count);
                    sum
                },
            );
            counts.iter().flat_map(|count| count.to_be_bytes()).collect()
        }))
    });
    table.add(GROUP, "logsumexp", format!("{how}; 256 rows of 1,024 numbers"), move |work| {
        let bytes = expand("logsumexp", work.seed, 0, 256 * SIDE);
        let numbers: Vec<f64> = bytes.into_iter().map(|byte| f64::from(byte) / 32.0).collect();
        Ok(repeated(move || logsumexp(pool, &numbers)))
    });
    table.add(GROUP, "black-scholes", format!("{how}; 256 rows of 256 options"), move |work| {
        let bytes = expand("black-scholes", work.seed, 0, 3 * OPTIONS);
        let mut prices = vec![0.0f64; OPTIONS];
        Ok(repeated(move || {
            pool.rows(&mut prices, 256, |row, cells| {
                for (column, cell) in cells.iter_mut().enumerate() {
                    let at = 3 * (256 * row + column);
                    let [spot, strike, years] = [0, 1, 2].map(|part| f64::from(bytes[at + part]));
                    *cell = call_price(50.0 + spot, 50.0 + strike, 0.1 + years / 64.0);
                }
            });
            prices.iter().step_by(101).flat_map(|price| price.to_be_bytes()).collect()
        }))
    });
}

struct Fibonacci(u32);

impl Task<u64> for Fibonacci {
    fn run<F: Forks>(self, scope: &mut F::Scope<'_>) -> u64 {
        fn fibonacci<F: Forks>(scope: &mut F::Scope<'_>, n: u32) -> u64 {
            if n < 2 {
                return u64::from(n);
            }
            let (a, b) = F::join(scope, |s| fibonacci::<F>(s, n - 1), |s| fibonacci::<F>(s, n - 2));
            a + b
        }
        fibonacci::<F>(scope, self.0)
    }
}

/// Runs `task` for all numbers of a range as forks, and sums the results.
fn each<F: Forks>(
    scope: &mut F::Scope<'_>,
    (from, to): (u32, u32),
    task: &(impl Fn(&mut F::Scope<'_>, u32) -> u64 + Sync),
) -> u64 {
    match to - from {
        0 => 0,
        1 => task(scope, from),
        _ => {
            let middle = from.midpoint(to);
            let (a, b) = F::join(
                scope,
                |s| each::<F>(s, (from, middle), task),
                |s| each::<F>(s, (middle, to), task),
            );
            a + b
        }
    }
}

/// Counts leaves.
struct Dfs {
    depth: u32,
    breadth: u32,
}

impl Task<u64> for Dfs {
    fn run<F: Forks>(self, scope: &mut F::Scope<'_>) -> u64 {
        fn visit<F: Forks>(scope: &mut F::Scope<'_>, depth: u32, breadth: u32) -> u64 {
            if depth == 0 {
                return 1;
            }
            let below = move |s: &mut F::Scope<'_>, _| visit::<F>(s, depth - 1, breadth);
            each::<F>(scope, (0, breadth), &below)
        }
        visit::<F>(scope, self.depth, self.breadth)
    }
}

/// Counts the solutions of the n-queens problem; sets of columns and diagonals are bits.
#[derive(Clone, Copy)]
struct Queens {
    size: u32,
    row: u32,
    columns: u32,
    falling: u32,
    rising: u32,
}

impl Queens {
    fn new(size: u32) -> Self {
        Self { size, row: 0, columns: 0, falling: 0, rising: 0 }
    }

    fn count<F: Forks>(self, scope: &mut F::Scope<'_>) -> u64 {
        if self.row == self.size {
            return 1;
        }
        each::<F>(scope, (0, self.size), &move |s: &mut F::Scope<'_>, column| {
            let bit = 1 << column;
            if (self.columns | self.falling | self.rising) & bit != 0 {
                return 0;
            }
            let next = Self {
                row: self.row + 1,
                columns: self.columns | bit,
                falling: (self.falling | bit) << 1,
                rising: (self.rising | bit) >> 1,
                ..self
            };
            next.count::<F>(s)
        })
    }
}

impl Task<u64> for Queens {
    fn run<F: Forks>(self, scope: &mut F::Scope<'_>) -> u64 {
        self.count::<F>(scope)
    }
}

const MATMUL: usize = 256;

/// c += a b. Rows fork; the other dimensions are halved alternately until a block fits the L1 cache of any size.
struct Matmul<'a> {
    a: &'a [f32],
    b: &'a [f32],
    c: &'a mut [f32],
}

impl Task<()> for Matmul<'_> {
    fn run<F: Forks>(self, scope: &mut F::Scope<'_>) {
        fn rows<F: Forks>(scope: &mut F::Scope<'_>, a: &[f32], b: &[f32], c: &mut [f32]) {
            let count = c.len() / MATMUL;
            if count <= 16 {
                return block(a, b, c, (0, MATMUL), (0, MATMUL));
            }
            let (upper_a, lower_a) = a.split_at(a.len() / 2);
            let (upper_c, lower_c) = c.split_at_mut(c.len() / 2);
            F::join(
                scope,
                |s| rows::<F>(s, upper_a, b, upper_c),
                |s| rows::<F>(s, lower_a, b, lower_c),
            );
        }
        rows::<F>(scope, self.a, self.b, self.c);
    }
}

fn block(a: &[f32], b: &[f32], c: &mut [f32], inner: (usize, usize), columns: (usize, usize)) {
    let (inner_count, column_count) = (inner.1 - inner.0, columns.1 - columns.0);
    if inner_count > 64 && inner_count >= column_count {
        let middle = inner.0.midpoint(inner.1);
        block(a, b, c, (inner.0, middle), columns);
        return block(a, b, c, (middle, inner.1), columns);
    }
    if column_count > 64 {
        let middle = columns.0.midpoint(columns.1);
        block(a, b, c, inner, (columns.0, middle));
        return block(a, b, c, inner, (middle, columns.1));
    }
    for (row_a, row_c) in a.chunks_exact(MATMUL).zip(c.chunks_exact_mut(MATMUL)) {
        for k in inner.0..inner.1 {
            let (factor, row_b) = (row_a[k], &b[k * MATMUL..][columns.0..columns.1]);
            for (c, b) in row_c[columns.0..columns.1].iter_mut().zip(row_b) {
                *c += factor * b;
            }
        }
    }
}

/// Some microseconds of work that compilers cannot fold.
fn consume(number: u32) -> u64 {
    let mut x = black_box(u64::from(number) + 1);
    for _ in 0..1_000 {
        // The shift prevents folding several steps into one.
        x = (x ^ (x >> 29)).wrapping_mul(0x5851_f42d_4c95_7f2d);
    }
    x >> 32
}

/// One task that spawns all others, one after the other.
struct Producer {
    left: u32,
}

impl Task<u64> for Producer {
    fn run<F: Forks>(self, scope: &mut F::Scope<'_>) -> u64 {
        fn produce<F: Forks>(scope: &mut F::Scope<'_>, left: u32) -> u64 {
            if left == 0 {
                return 0;
            }
            let (rest, one) = F::join(scope, |s| produce::<F>(s, left - 1), |_| consume(left));
            rest + one
        }
        produce::<F>(scope, self.left)
    }
}

/// A producer that spawns consumers and another producer, which may run on another thread.
struct Bouncing {
    depth: u32,
    width: u32,
}

impl Task<u64> for Bouncing {
    fn run<F: Forks>(self, scope: &mut F::Scope<'_>) -> u64 {
        fn bounce<F: Forks>(scope: &mut F::Scope<'_>, depth: u32, width: u32) -> u64 {
            if depth == 0 {
                return 0;
            }
            let (consumed, rest) = F::join(
                scope,
                |s| {
                    each::<F>(s, (0, width), &|_: &mut F::Scope<'_>, number| {
                        consume(number + depth)
                    })
                },
                |s| bounce::<F>(s, depth - 1, width),
            );
            consumed + rest
        }
        bounce::<F>(scope, self.depth, self.width)
    }
}

const HEAT: usize = 256;

/// Diffusion on a square with a warm upper edge: each cell becomes the mean of its neighbours.
fn heat(pool: impl Pool) -> Vec<u8> {
    let mut now = vec![0.0f64; HEAT * HEAT];
    now[..HEAT].fill(100.0);
    let mut next = now.clone();
    for _ in 0..16 {
        let before = &now;
        pool.rows(&mut next, HEAT, |row, cells| {
            if row == 0 || row == HEAT - 1 {
                return;
            }
            for (column, cell) in cells.iter_mut().enumerate().take(HEAT - 1).skip(1) {
                let at = row * HEAT + column;
                *cell =
                    (before[at - HEAT] + before[at + HEAT] + before[at - 1] + before[at + 1]) / 4.0;
            }
        });
        std::mem::swap(&mut now, &mut next);
    }
    now.iter().step_by(103).flat_map(|cell| cell.to_be_bytes()).collect()
}

const SIDE: usize = 1024;

const BINS: usize = 16;

fn histogram(pairs: &[u8]) -> Vec<u32> {
    let mut counts = vec![0; BINS * BINS];
    for pair in pairs.chunks_exact(2) {
        counts[usize::from(pair[0]) * BINS / 256 * BINS + usize::from(pair[1]) * BINS / 256] += 1;
    }
    counts
}

/// The logarithm of a sum of exponentials, relative to the maximum. The last digits of sums depend
/// on their order, so the answer has six digits after the point.
fn logsumexp(pool: impl Pool, numbers: &[f64]) -> Vec<u8> {
    let row = |row: usize| &numbers[row * SIDE..][..SIDE];
    let rows = numbers.len() / SIDE;
    let most = |row_numbers: &[f64]| row_numbers.iter().copied().fold(f64::MIN, f64::max);
    let max = pool.reduce(rows, || f64::MIN, |number| most(row(number)), f64::max);
    let exponentials = |number| row(number).iter().map(|x| (x - max).exp()).sum::<f64>();
    let sum = pool.reduce(rows, || 0.0, exponentials, |a, b| a + b);
    (((max + sum.ln()) * 1e6).round() as i64).to_be_bytes().to_vec()
}

const OPTIONS: usize = 256 * 256;

/// Price of a European call at a rate of 2 % and a volatility of 30 % (Black and Scholes, 1973).
pub fn call_price(spot: f64, strike: f64, years: f64) -> f64 {
    const RATE: f64 = 0.02;
    const VOLATILITY: f64 = 0.3;
    let spread = VOLATILITY * years.sqrt();
    let d1 = ((spot / strike).ln() + (RATE + VOLATILITY * VOLATILITY / 2.0) * years) / spread;
    let discount = (-RATE * years).exp();
    spot * normal(d1) - strike * discount * normal(d1 - spread)
}

/// The cumulative normal distribution (Abramowitz and Stegun, 7.1.26).
pub fn normal(x: f64) -> f64 {
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let polynomial = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let error = 1.0 - polynomial * (-z * z).exp();
    0.5 * (1.0 + if x < 0.0 { -error } else { error })
}
