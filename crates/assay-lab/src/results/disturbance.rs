//! Limits of disturbances, fixed before any run and equal for all targets.
//!
//! A disturbed run is discarded because of the machine's behaviour, never because of the target's: discarding slow runs would
//! bias the result. Unequal CPU time for equal work is a caveat only.

use assay_report::number::in_percent;

use super::{Run, Status};
use crate::process::interference::{CoreProbe, Interference};

/// CPU time of other programs, relative to the available CPU time.
pub const FOREIGN_LIMIT: f64 = 0.05;

/// CPU time stolen by the host, relative to the available CPU time.
pub const STEAL_LIMIT: f64 = 0.03;

/// Relative increase of a core's median probe time over the fastest run of the same work.
pub const PROBE_LIMIT: f64 = 0.25;

/// Relative increase of a target's CPU time over the lowest run of the same work, above which there is a caveat.
pub const WORK_LIMIT: f64 = 0.2;

/// Minimum CPU seconds of a disturbance: the system counts in hundredths on every core.
pub const LEAST_S: f64 = 0.15;

/// Reason for which a run is disturbed; `same_work` are all runs of the same target, chain and pre-relayed share.
pub fn disturbance(seen: &Interference, same_work: &[&Interference]) -> Option<String> {
    let capacity_s = seen.capacity_s();
    let exceeds = |seconds: Option<f64>, limit: f64| {
        let seconds = seconds.filter(|seconds| *seconds > LEAST_S && capacity_s > 0.0)?;
        let share = seconds / capacity_s;
        (share > limit).then_some((share * 100.0, limit * 100.0))
    };
    if let Some((share, limit)) = exceeds(seen.foreign_s(), FOREIGN_LIMIT) {
        return Some(format!(
            "other programs used {share:.0} % of the CPU time (limit {limit:.0} %)"
        ));
    }
    if let Some((share, limit)) = exceeds(seen.steal_s, STEAL_LIMIT) {
        return Some(format!(
            "the host gave {share:.0} % of the CPU time to others (limit {limit:.0} %)"
        ));
    }
    let (core, above) = slowest_core(seen, same_work)?;
    (above > PROBE_LIMIT).then(|| {
        format!(
            "core {core} was {:.0} % slower than in another run of the same work (limit {:.0} %)",
            above * 100.0,
            PROBE_LIMIT * 100.0
        )
    })
}

/// The core with the largest relative increase over its shortest median, and the increase.
fn slowest_core(seen: &Interference, same_work: &[&Interference]) -> Option<(usize, f64)> {
    let shortest = |core: usize| {
        let probes = same_work.iter().flat_map(|other| &other.probes);
        let medians = probes.filter(|probe| probe.core == core).map(|probe| probe.median_us);
        medians.min_by(f64::total_cmp).filter(|shortest| *shortest > 0.0)
    };
    let above =
        |probe: &CoreProbe| Some((probe.core, probe.median_us / shortest(probe.core)? - 1.0));
    seen.probes.iter().filter_map(above).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Marks the disturbed runs of a target with one chain, sorted by pre-relayed share.
pub(crate) fn mark_runs(runs: &mut [Run]) {
    for same_work in
        runs.chunk_by_mut(|a, b| in_percent(a.seen_requested) == in_percent(b.seen_requested))
    {
        mark(same_work);
    }
}

/// Marks the disturbed ones of the valid runs of the same target, chain and pre-relayed share. If all were disturbed they stay
/// valid and keep the reason, because no better run exists.
fn mark(same_work: &mut [Run]) {
    let reasons: Vec<Option<String>> = {
        let valid = same_work.iter().filter(|run| run.status == Status::Valid);
        let all: Vec<&Interference> = valid.filter_map(|run| run.surroundings.as_ref()).collect();
        let of_run = |run: &Run| {
            let seen = run.surroundings.as_ref().filter(|_| run.status == Status::Valid)?;
            disturbance(seen, &all)
        };
        same_work.iter().map(of_run).collect()
    };
    let is_quiet =
        |(run, reason): (&Run, &Option<String>)| run.status == Status::Valid && reason.is_none();
    let any_quiet = same_work.iter().zip(&reasons).any(is_quiet);
    for (run, reason) in same_work.iter_mut().zip(reasons) {
        if reason.is_some() && any_quiet {
            run.status = Status::Disturbed;
        }
        run.disturbance = reason;
    }
}

/// Caveat for unequal CPU time for equal work. Runs that hashed their UTXO set at the end are left out if others did not.
pub(crate) fn unequal_work(name: &str, same_work: &[&Run]) -> Option<String> {
    let all_hashed = same_work.iter().all(|run| run.utxo_muhash.is_some());
    let alike = same_work.iter().filter(|run| all_hashed || run.utxo_muhash.is_none());
    let times = alike.filter_map(|run| run.samples.cpu_s.iter().copied().flatten().next_back());
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    for time in times {
        (least, most) = (least.min(time), most.max(time));
    }
    (most - least > LEAST_S && most > least * (1.0 + WORK_LIMIT)).then(|| {
        format!(
            "{name}: equal work took {least:.1} s of CPU in one run and {most:.1} s in another; the machine did not run at the same \
             speed throughout"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Interference {
        let probe =
            |core| CoreProbe { core, count: 100, low_us: 40.0, median_us: 42.0, high_us: 50.0 };
        Interference {
            wall_s: 10.0,
            cores: 2,
            busy_s: Some(15.3),
            own_s: Some(15.0),
            steal_s: Some(0.1),
            pressure_s: Some(3.0),
            probes: vec![probe(0), probe(1)],
        }
    }

    #[test]
    fn quiet_runs_raise_no_alarm() {
        let (a, mut b) = (quiet(), quiet());
        b.probes[0].median_us = 46.0;
        assert_eq!(disturbance(&a, &[&a, &b]), None);
        assert_eq!(disturbance(&b, &[&a, &b]), None);
        assert_eq!(disturbance(&Interference::default(), &[]), None);
        let short = Interference { wall_s: 0.5, busy_s: Some(0.62), own_s: Some(0.5), ..quiet() };
        assert_eq!(disturbance(&short, &[]), None, "0.12 s may be the clock's resolution");
    }

    #[test]
    fn each_kind_is_found() {
        let quiet = quiet();
        let neighbour = Interference { busy_s: Some(18.0), ..quiet.clone() };
        let text = disturbance(&neighbour, &[&quiet]).expect("15 %");
        assert_eq!(text, "other programs used 15 % of the CPU time (limit 5 %)");
        let stolen = Interference { steal_s: Some(2.0), ..quiet.clone() };
        assert!(disturbance(&stolen, &[&quiet]).expect("10 %").starts_with("the host gave 10 %"));
        let mut slow = quiet.clone();
        slow.probes[1].median_us *= 1.6;
        let text = disturbance(&slow, &[&quiet, &slow]).expect("a slower core");
        assert!(text.starts_with("core 1 was 60 % slower"), "{text}");
        assert_eq!(disturbance(&slow, &[&slow]), None, "nothing to compare with");
    }

    #[test]
    fn runs_that_alone_hashed_their_coins_are_not_compared() {
        let results = crate::results::fixture::syncs();
        let run = |cpu_s: f64, is_hashed: bool| {
            let mut run = results.targets[0].runs[0].clone();
            run.samples.cpu_s = vec![Some(cpu_s)];
            run.utxo_muhash = is_hashed.then(|| "bb".repeat(32));
            run
        };
        let found = |runs: &[Run]| unequal_work("a", &runs.iter().collect::<Vec<_>>()).is_some();
        assert!(!found(&[run(900.0, true), run(600.0, false), run(605.0, false)]));
        assert!(found(&[run(900.0, true), run(900.0, false), run(600.0, false)]));
        assert!(found(&[run(900.0, true), run(600.0, true)]));
        assert!(found(&[run(900.0, false), run(600.0, false)]));
    }
}
