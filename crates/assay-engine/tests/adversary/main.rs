//! Randomised adversary: threads run random operations of users and peers on an engine, against a model.
//!
//! A run is determined by its seed, except for the order of its threads, which are delayed at marked points
//! (`assay_store::defect`). After every step, when all threads have finished, the tip, the coins and the marks of all blocks must
//! match the model. `docs/testing.md`, "The adversary", describes how to run it for an hour.

mod model;
mod run;
mod snapshot;
mod step;
mod universe;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assay_engine::defect;

use run::{STEPS_DONE, Tally, run};

/// Ends the process on a deadlock.
fn watch(steps: &'static AtomicU64) {
    std::thread::spawn(move || {
        let mut last = (u64::MAX, Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = steps.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() > STEP_MAX {
                defect::stop(&format!("adversary: step {now} does not end"));
            }
        }
    });
}

/// Much more than the time of a step on a loaded machine.
const STEP_MAX: Duration = Duration::from_mins(5);

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: give a number")))
}

#[test]
fn random_operations_of_threads_match_the_model() {
    let default_s = if assay_testkit::is_long() { 60 } else { 5 };
    let limit = Duration::from_secs(setting("ASSAY_ADVERSARY_S").unwrap_or(default_s));
    let fresh = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    // The first seed is always the same.
    let mut next = setting("ASSAY_ADVERSARY_SEED").unwrap_or(0);
    let (start, mut tally, mut runs) = (Instant::now(), Tally::default(), 0u64);
    let mut reported = start;
    println!("adversary: seeds {next}, {fresh} and those after it, for {} s", limit.as_secs());
    watch(&STEPS_DONE);
    while runs == 0 || start.elapsed() < limit {
        let outcome = run(next, &mut tally);
        let elapsed_s = start.elapsed().as_secs_f64();
        if let Err(difference) = outcome {
            panic!("after {elapsed_s:.1} s, {tally:?}\n{difference}");
        }
        runs += 1;
        if reported.elapsed() > Duration::from_mins(1) {
            reported = Instant::now();
            println!("adversary: {elapsed_s:.0} s, seed {next} done, {runs} runs, {tally:?}");
        }
        next = if runs == 1 { fresh } else { next + 1 };
    }
    let elapsed_s = start.elapsed().as_secs_f64();
    let rate = tally.steps as f64 / elapsed_s;
    println!(
        "adversary: 0 differences in {runs} runs, {elapsed_s:.1} s, {tally:?}, {rate:.1} steps/s"
    );
}
