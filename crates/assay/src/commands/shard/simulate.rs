//! Parts with the times that they took, on any number of simulated machines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parts in the order in which they are given out, and what is done once.
#[derive(Debug)]
pub(super) struct Work {
    /// Number of each part, and seconds it took on one machine.
    pub(super) parts: Vec<(usize, f64)>,
    /// Seconds that merging takes, on one machine after all parts.
    pub(super) merge_s: f64,
}

/// What so many machines would take.
#[derive(Debug, PartialEq)]
pub(super) struct Run {
    pub(super) machines: usize,
    pub(super) elapsed_s: f64,
    /// Against one machine.
    pub(super) speed_up: f64,
    /// Share of the machines' time that they work on parts.
    pub(super) busy: f64,
    pub(super) limit: Limit,
}

/// What keeps a run from being faster.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Machines are busy nearly all the time: more machines help.
    Machines,
    /// One part takes longer than an even share of the work.
    Part(usize),
    /// There are fewer parts than machines.
    PartCount,
    /// Machines wait at the end for those that work on the last parts.
    LastParts,
    /// Merging takes a tenth or more.
    Merge,
}

impl Work {
    /// Each machine takes the next part when it is done with one, as `run --all` and a cluster give them out.
    pub(super) fn run(&self, machines: usize) -> Run {
        let machines = machines.max(1);
        let mut ends: BinaryHeap<Reverse<Seconds>> =
            (0..machines).map(|_| Reverse(Seconds(0.0))).collect();
        let mut last_s = 0.0f64;
        for (_, part_s) in &self.parts {
            let Reverse(Seconds(start_s)) = ends.pop().expect("there is a machine");
            let end_s = start_s + part_s;
            last_s = last_s.max(end_s);
            ends.push(Reverse(Seconds(end_s)));
        }
        let total_s: f64 = self.parts.iter().map(|(_, part_s)| part_s).sum();
        let elapsed_s = last_s + self.merge_s;
        let busy = ratio(total_s, elapsed_s * machines as f64);
        Run {
            machines,
            elapsed_s,
            speed_up: ratio(total_s + self.merge_s, elapsed_s),
            busy,
            limit: self.limit(machines, (total_s, elapsed_s), busy),
        }
    }

    fn limit(&self, machines: usize, (total_s, elapsed_s): (f64, f64), busy: f64) -> Limit {
        let longest = self.parts.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let share_s = total_s / machines as f64;
        match longest {
            _ if machines == 1 || busy >= 0.9 => Limit::Machines,
            _ if self.merge_s >= elapsed_s / 10.0 => Limit::Merge,
            Some((number, longest_s)) if *longest_s > share_s => {
                if self.parts.len() < machines {
                    Limit::PartCount
                } else {
                    Limit::Part(*number)
                }
            }
            _ => Limit::LastParts,
        }
    }
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 1.0 }
}

/// Seconds, ordered.
#[derive(PartialEq)]
struct Seconds(f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(parts: &[f64], merge_s: f64, machines: usize, (elapsed_s, limit): (f64, Limit)) {
        let work = Work { parts: parts.iter().copied().enumerate().collect(), merge_s };
        let run = work.run(machines);
        assert!((run.elapsed_s - elapsed_s).abs() < 1e-9, "{run:?}");
        assert_eq!(run.limit, limit, "{run:?}");
        let total_s = parts.iter().sum::<f64>() + merge_s;
        assert!((run.speed_up * run.elapsed_s - total_s).abs() < 1e-9);
        assert!(run.speed_up <= machines as f64 + 1e-9 && run.busy <= 1.0 + 1e-9);
    }

    #[test]
    fn what_limits_is_named() {
        check(&[1.0; 16], 0.0, 1, (16.0, Limit::Machines));
        check(&[1.0; 16], 0.0, 4, (4.0, Limit::Machines));
        check(&[1.0; 16], 0.0, 64, (1.0, Limit::PartCount));
        check(&[1.0, 1.0, 9.0, 1.0], 0.0, 4, (9.0, Limit::Part(2)));
        check(&[1.0; 9], 0.0, 8, (2.0, Limit::LastParts));
        check(&[1.0; 8], 1.0, 8, (2.0, Limit::Merge));
        check(&[], 0.0, 3, (0.0, Limit::Machines));
        // The order in which parts are given out matters.
        check(&[1.0, 1.0, 1.0, 3.0], 0.0, 2, (4.0, Limit::LastParts));
    }
}
