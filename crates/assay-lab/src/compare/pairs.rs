//! Selects pairs of runs and discards invalid runs.

use assay_report::number::in_percent;
use assay_report::stats::median;
use serde::{Deserialize, Serialize};

use super::Side;
use crate::results::{Run, Status};

/// Minimum number of pairs whose sorted ratios give an interval of 95 %.
pub const PAIRS_MIN: usize = 6;

/// Pairs of one pre-relayed share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairCount {
    pub seen: f64,
    /// Planned pairs before the first run, on the side with fewer.
    pub planned: usize,
    /// Valid pairs.
    pub counted: usize,
    /// Pairs missing on one side.
    pub missing: usize,
    /// Ignored pairs beyond the plan.
    pub added: usize,
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub run: String,
    pub why: String,
}

impl PairCount {
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let seen = in_percent(self.seen);
        for left_out in &self.left_out {
            notes.push(format!("{} discarded: {}", left_out.run, left_out.why));
        }
        if self.missing > 0 {
            notes.push(format!(
                "{seen} % pre-relayed: {} of {} planned pairs are missing",
                self.missing, self.planned
            ));
        }
        if self.added > 0 {
            notes.push(format!(
                "{seen} % pre-relayed: {} pairs beyond the {} planned are ignored: extra runs added after the fact would bias the result",
                self.added, self.planned
            ));
        }
        if self.counted < PAIRS_MIN {
            notes.push(format!(
                "{seen} % pre-relayed: {} pairs cannot show a difference at 95 %, {PAIRS_MIN} can",
                self.counted
            ));
        }
        notes
    }

    /// Sums the counts of several machines of one plan: a pair that one lacks another has.
    pub(super) fn together(counts: &[(&str, Self)]) -> Self {
        if let [("", count)] = counts {
            return count.clone();
        }
        let sum = |of: fn(&Self) -> usize| counts.iter().map(|(_, count)| of(count)).sum::<usize>();
        let planned = counts.first().map_or(0, |(_, count)| count.planned);
        let left_out = counts.iter().flat_map(|(machine, count)| {
            count.left_out.iter().map(move |left| LeftOut {
                run: format!("{} on {machine}", left.run),
                why: left.why.clone(),
            })
        });
        Self {
            seen: counts.first().map_or(0.0, |(_, count)| count.seen),
            planned,
            counted: sum(|count| count.counted),
            missing: planned.saturating_sub(sum(|count| count.planned - count.missing)),
            added: sum(|count| count.added),
            left_out: left_out.collect(),
        }
    }
}

/// Pairs of runs with this share, in order of rounds.
pub(super) fn of<'a>(
    first: Side<'a>,
    second: Side<'a>,
    seen: f64,
    control_limit: f64,
    of_other_machine: bool,
) -> (Vec<(&'a Run, &'a Run)>, PairCount) {
    let wanted = in_percent(seen);
    let runs = |side: Side<'a>| -> Vec<&'a Run> {
        side.target.runs.iter().filter(|run| in_percent(run.seen_requested) == wanted).collect()
    };
    let (firsts, seconds) = (runs(first), runs(second));
    let planned = |side: Side<'_>| {
        side.results
            .pairs_planned
            .unwrap_or(side.results.plan.runs.repeat)
            .min(side.results.plan.runs.repeat)
    };
    let planned = planned(first).min(planned(second)) as usize;
    // One machine has one usual time; explicitly compared machines have one each.
    let usual =
        |runs: &[&Run]| median(&runs.iter().flat_map(|run| controls(run)).collect::<Vec<_>>());
    let both: Vec<&Run> = firsts.iter().chain(&seconds).copied().collect();
    let usual =
        if of_other_machine { [usual(&firsts), usual(&seconds)] } else { [usual(&both); 2] };
    let jitter = jitter(&firsts, usual[0]).max(jitter(&seconds, usual[1]));
    let allowed = Allowed::new(control_limit, jitter);
    let mut count =
        PairCount { seen, planned, counted: 0, missing: 0, added: 0, left_out: Vec::new() };
    let mut pairs = Vec::new();
    let rounds =
        firsts.iter().chain(&seconds).map(|run| run.repeat as usize + 1).max().unwrap_or(0);
    for round in 0..rounds.max(planned) {
        let of_round =
            |runs: &[&'a Run]| runs.iter().find(|run| run.repeat as usize == round).copied();
        let (Some(left), Some(right)) = (of_round(&firsts), of_round(&seconds)) else {
            count.missing += usize::from(round < planned);
            continue;
        };
        if round >= planned {
            count.added += 1;
            continue;
        }
        let faults = [(left, usual[0]), (right, usual[1])].map(|(run, usual)| {
            let why = fault(run, usual, allowed)?;
            Some(LeftOut { run: run.id.clone(), why })
        });
        if faults.iter().all(Option::is_none) {
            pairs.push((left, right));
        }
        count.left_out.extend(faults.into_iter().flatten());
    }
    count.counted = pairs.len();
    (pairs, count)
}

fn controls(run: &Run) -> Vec<f64> {
    run.control_ns.iter().map(|ns| *ns as f64).filter(|ns| *ns > 0.0).collect()
}

/// Allowed relative deviation of the control load from its usual time.
#[derive(Clone, Copy)]
struct Allowed {
    /// Of a single measurement.
    away: f64,
    /// Between the two measurements of a run.
    moved: f64,
}

impl Allowed {
    /// The requested limit, or a larger one if the load jitters more on this machine. Only unusual runs are then discarded, and
    /// the usual jitter widens the intervals.
    fn new(limit: f64, jitter: f64) -> Self {
        let away = limit.max(SIGMAS * jitter);
        Self { away, moved: limit.max(SIGMAS * jitter * std::f64::consts::SQRT_2) }
    }
}

/// Number of standard deviations from which a time of the control load is unusual.
const SIGMAS: f64 = 3.0;
/// Factor from the median of absolute deviations to the standard deviation of normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Robust standard deviation of the control load; up to half of the times may be outliers.
fn jitter(runs: &[&Run], usual_ns: f64) -> f64 {
    let off = |ns: f64| (ns / usual_ns).ln().abs();
    let offs: Vec<f64> = runs.iter().flat_map(|run| controls(run)).map(off).collect();
    if offs.is_empty() { 0.0 } else { MAD_TO_SIGMA * median(&offs) }
}

/// Reason to discard a run, if any.
fn fault(run: &Run, usual_ns: f64, allowed: Allowed) -> Option<String> {
    if run.status == Status::Void {
        let reason = run.void_reason.as_deref().unwrap_or("it is void");
        return Some(reason.to_owned());
    }
    if run.status == Status::Disturbed {
        return run.disturbance.clone().or_else(|| Some("disturbed".to_owned()));
    }
    let controls = controls(run);
    let longest = controls.iter().copied().fold(0.0, f64::max);
    let shortest = controls.iter().copied().fold(f64::MAX, f64::min);
    let share = |above: f64, below: f64| (above / below - 1.0) * 100.0;
    if controls.len() > 1 && longest / shortest > 1.0 + allowed.moved {
        return Some(format!(
            "the control load moved by {:.1} % during the run, {:.1} % are allowed",
            share(longest, shortest),
            allowed.moved * 100.0
        ));
    }
    let away = (longest / usual_ns).max(usual_ns / shortest);
    if !controls.is_empty() && usual_ns > 0.0 && away > 1.0 + allowed.away {
        return Some(format!(
            "the control load was {:.1} % away from its median over all runs, {:.1} % are allowed",
            (away - 1.0) * 100.0,
            allowed.away * 100.0
        ));
    }
    None
}

/// True if the two sides alternated: in order of time, no two pairs overlap.
pub(super) fn took_turns(pairs: &[(&Run, &Run)]) -> bool {
    let mut ranges: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(left, right)| {
            let (a, b) = (left.started.as_str(), right.started.as_str());
            (a.min(b), a.max(b))
        })
        .collect();
    // Times in ISO 8601 sort as text.
    ranges.sort_unstable();
    ranges.windows(2).all(|two| two[0].1 <= two[1].0)
}
