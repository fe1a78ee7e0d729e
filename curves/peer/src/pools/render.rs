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
pub const COLUMNS: usize = 256;

/// Default and maximum number of rows.
pub const ROWS: usize = 512;
const ROWS_MAX: usize = 4_096;

/// Number of steps after which a point counts as inside the set.
pub const STEPS_MAX: u16 = 500;

/// Fraction bits. Numbers stay below 8 until they escape, so squares fit.
pub const FRACTION: u32 = 28;

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

/// Number of steps of each point of a row.
pub fn draw_row(number: i64, count: i64, steps: &mut [u16; COLUMNS]) {
    let fixed = |tenths: i64| (tenths << FRACTION) / 10;
    let im = fixed(TOP) - fixed(HEIGHT) * number / count;
    for (column, steps) in steps.iter_mut().enumerate() {
        let re = fixed(LEFT) + fixed(WIDTH) * column as i64 / COLUMNS as i64;
        *steps = steps_inside(re, im);
    }
}

/// Number of steps of z ↦ z² + c, from 0, within the circle of radius 2.
pub fn steps_inside(re: i64, im: i64) -> u16 {
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
