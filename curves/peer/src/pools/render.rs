//! A loop whose rows differ in cost, recorded row by row: an image of the Mandelbrot set.
//!
//! Fixed-point arithmetic makes the image the same on every machine. Points of the upper rows
//! escape after a few steps, the lower rows cross the set: the costliest rows take two hundred
//! times as long as the cheapest, and the lower half is five sixths of the work.

use std::time::Instant;

use anyhow::ensure;

use super::Pool;
use super::workloads::GROUP;
use crate::table::{Prepared, Table};
use crate::trace::{Record, Trace};

/// Pixels per row.
const COLUMNS: usize = 256;

/// Default and maximum number of rows.
const ROWS: usize = 512;
const ROWS_MAX: usize = 4_096;

/// Number of steps after which a point counts as inside the set.
const STEPS_MAX: u16 = 500;

/// Fraction bits. Numbers stay below 8 until they escape, so squares fit.
const FRACTION: u32 = 28;

/// Left and upper edge, width and height, in tenths.
const LEFT: i64 = -20;
const TOP: i64 = 12;
const WIDTH: i64 = 26;
const HEIGHT: i64 = 16;

/// Adds the workload.
pub(super) fn render(table: &mut Table, pool: impl Pool, how: &str) {
    let text = format!("{how}; {ROWS} rows of {COLUMNS} points of the Mandelbrot set, a row each");
    table.add_traced(GROUP, "render", text, move |work| {
        let rows = if work.size == 0 { ROWS } else { work.size };
        ensure!(rows <= ROWS_MAX, "an image has at most {ROWS_MAX} rows");
        let (mut timed, mut traced) = (Image::new(rows), Image::new(rows));
        timed.draw(pool);
        let run = move |iterations| (0..iterations).for_each(|_| timed.draw(pool));
        traced.draw(pool);
        Ok(Prepared::new(traced.bytes(), run).with_trace(move || traced.trace(pool)))
    });
}

struct Image {
    rows: Vec<Row>,
}

struct Row {
    steps: [u16; COLUMNS],
    record: Record,
}

impl Image {
    fn new(rows: usize) -> Self {
        let empty = || Row { steps: [0; COLUMNS], record: Record::default() };
        Self { rows: (0..rows).map(|_| empty()).collect() }
    }

    fn draw(&mut self, pool: impl Pool) {
        let (start, count) = (Instant::now(), self.rows.len() as i64);
        pool.rows(&mut self.rows, 1, |number, rows| {
            for Row { steps, record } in rows {
                *record = Record::of(start, || draw_row(number as i64, count, steps));
            }
        });
    }

    fn trace(&mut self, pool: impl Pool) -> Trace {
        let start = Instant::now();
        self.draw(pool);
        let wall_ns = start.elapsed().as_nanos() as u64;
        Trace::new(wall_ns, self.rows.iter().map(|row| row.record), self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        self.rows.iter().flat_map(|row| row.steps).flat_map(u16::to_be_bytes).collect()
    }
}

fn draw_row(number: i64, count: i64, steps: &mut [u16; COLUMNS]) {
    let fixed = |tenths: i64| (tenths << FRACTION) / 10;
    let im = fixed(TOP) - fixed(HEIGHT) * number / count;
    for (column, steps) in steps.iter_mut().enumerate() {
        let re = fixed(LEFT) + fixed(WIDTH) * column as i64 / COLUMNS as i64;
        *steps = steps_inside(re, im);
    }
}

/// Number of steps of z ↦ z² + c, from 0, within the circle of radius 2.
fn steps_inside(re: i64, im: i64) -> u16 {
    let (mut x, mut y) = (0i64, 0i64);
    for step in 0..STEPS_MAX {
        let (xx, yy) = ((x * x) >> FRACTION, (y * y) >> FRACTION);
        if xx + yy > 4 << FRACTION {
            return step;
        }
        y = ((x * y) >> (FRACTION - 1)) + im;
        x = xx - yy + re;
    }
    STEPS_MAX
}

#[cfg(test)]
mod tests {
    use super::super::{NAMES, table};
    use super::*;
    use crate::table::Work;

    #[test]
    fn points_of_the_set_and_around_it() {
        let one = 1 << FRACTION;
        // 0 and -1 have periods of one and two, -2 maps to the fixed point 2, 1 to 1, 2, 5; 2 + 2i escapes at once.
        for (re, im, steps) in
            [(0, 0, STEPS_MAX), (-1, 0, STEPS_MAX), (-2, 0, STEPS_MAX), (1, 0, 3), (2, 2, 1)]
        {
            assert_eq!(steps_inside(re * one, im * one), steps, "{re} {im}");
        }
    }

    #[test]
    fn rows_differ_in_cost() {
        let cost = |number| {
            let mut steps = [0; COLUMNS];
            draw_row(number, ROWS as i64, &mut steps);
            steps.into_iter().map(u64::from).sum::<u64>()
        };
        let costs: Vec<u64> = (0..ROWS as i64).map(cost).collect();
        let least = costs.iter().min().expect("rows");
        let most = costs.iter().max().expect("rows");
        assert!(*most > 100 * least, "{least} to {most}");
        let (upper, lower) = costs.split_at(ROWS / 2);
        assert!(lower.iter().sum::<u64>() > 3 * upper.iter().sum::<u64>(), "equal parts would do");
    }

    #[test]
    fn spans_cover_all_rows_without_overlap_within_a_thread() {
        for name in NAMES {
            let (_, table) = table(name).expect("a pool");
            let work = Work {
                curve: GROUP.to_owned(),
                operation: "render".to_owned(),
                size: 64,
                seed: 7,
                ..Work::default()
            };
            let found = table.find(GROUP, "render").expect("every pool has loops");
            let mut prepared = (found.prepare)(&work).expect("64 rows");
            let trace = prepared.trace.as_mut().expect("it is for traces")();
            assert_eq!(trace.answer, prepared.answer, "{name}");
            let rows: usize = trace.threads.iter().map(|thread| thread.rows).sum();
            assert_eq!(rows, 64, "{name}");
            for thread in &trace.threads {
                assert!(thread.spans.iter().all(|span| span.start_ns <= span.end_ns), "{name}");
                let pairs = || thread.spans.windows(2);
                assert!(pairs().all(|pair| pair[0].end_ns < pair[1].start_ns), "{name}");
                let covered: u64 =
                    thread.spans.iter().map(|span| span.end_ns - span.start_ns).sum();
                assert!(covered >= thread.busy_ns, "{name}: rows outside of spans");
                assert!(thread.spans.last().is_some_and(|span| span.end_ns <= trace.wall_ns));
            }
        }
    }

    #[test]
    fn an_image_too_large_is_an_error() {
        let (_, table) = table("sequential").expect("a pool");
        let work: Work = serde_json::from_str(
            r#"{"curve":"pool","operation":"render","size":1000000,"seed":7}"#,
        )
        .expect("an order");
        let found = table.find(GROUP, "render").expect("it is there");
        let error = (found.prepare)(&work).err().expect("too many rows").to_string();
        assert!(error.contains("4096"), "{error}");
    }
}
