//! `assay compare`: compares results of runs and states verdicts.
//!
//! The runs of two interleaved targets of one plan form pairs by round. Runs of two executions pair by round too; unless they
//! alternated in time, the comparison states that the machine state was not controlled, and its floor is higher. Rounds beyond
//! the initial number of the plan are ignored.

mod floor;
mod machines;
mod pairs;
mod record;
mod same_work;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use assay_report::number::in_percent;
use assay_report::stats::machines::MachineRatios;
use assay_report::stats::paired::{PairedRatio, Spread, holm};
use assay_report::stats::verdict::{FLOOR_MIN, Verdict};
use serde::{Deserialize, Serialize};

use crate::results::{self, LoadError, PhaseResult, Results, Run, TargetResults};

pub use self::floor::{Floor, FloorRow};
pub use self::machines::{MACHINES_MIN, MachineEntry, compare_machines, load_machines};
pub use self::pairs::{LeftOut, PAIRS_MIN, PairCount};
pub use self::same_work::Difference;

const SCHEMA: u32 = 1;
/// Smallest floor of sides that did not alternate.
const FLOOR_MIN_APART: f64 = 0.02;

#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// Target that the others are compared with; the first if not given.
    pub baseline: Option<String>,
    /// Minimum relative difference of medians, for every row.
    pub floor: Option<f64>,
    /// Measured A/A noise floor of this machine.
    pub aa: Option<Floor>,
    /// Relative difference that does not matter.
    pub delta: f64,
    /// Limit of the relative change of the control load.
    pub control_limit: f64,
    /// Settings that may differ, by name or prefix.
    pub vary: Vec<String>,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            baseline: None,
            floor: None,
            aa: None,
            delta: 0.01,
            control_limit: 0.05,
            vary: Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Source {
    pub name: String,
    pub results: Results,
}

impl Source {
    /// Reads a folder of `assay run`, or a `results.json`.
    ///
    /// # Errors
    /// When there is none, or one that cannot be read.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let file = if path.is_dir() { path.join(results::FILE) } else { PathBuf::from(path) };
        Ok(Self { name: path.display().to_string(), results: results::load_file(&file)? })
    }
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    schema: u32,
    kind: String,
    pub delta: f64,
    /// Limit of the relative change of the control load.
    pub control_limit: f64,
    /// One entry per two sides.
    #[serde(rename = "beside")]
    pub comparisons: Vec<PairComparison>,
    pub floor: Option<Floor>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairComparison {
    pub first: String,
    pub second: String,
    /// True if both are the same software, so that every difference is a false positive.
    pub is_aa: bool,
    /// True if their runs alternated.
    pub took_turns: bool,
    /// Pairs per pre-relayed share.
    pub pairs: Vec<PairCount>,
    /// Allowed differences of settings.
    pub varied: Vec<Difference>,
    /// Phases and total per pre-relayed share.
    pub rows: Vec<ComparedRow>,
    /// The machines, if pairs of several were merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineEntry>,
    pub notes: Vec<String>,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedRow {
    pub seen: f64,
    /// `total`, a phase by its name in the ledger, `cpu`, or `node-and-index`.
    pub what: String,
    pub title: String,
    /// True for totals; the other rows explain them.
    pub is_total: bool,
    pub first: Spread,
    pub second: Spread,
    /// Time of the first over time of the second.
    pub ratio: PairedRatio,
    /// Ratios per machine, if pairs of several were merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<MachineRatios>,
    /// p value of the t test, adjusted for the number of totals, or of other rows.
    pub p_adjusted: Option<f64>,
    pub floor: f64,
    pub verdict: Verdict,
}

impl Comparison {
    pub fn is_slower(&self) -> bool {
        self.rows().any(|row| row.verdict == Verdict::Slower)
    }

    pub fn rows(&self) -> impl Iterator<Item = &ComparedRow> {
        self.comparisons.iter().flat_map(|compared| &compared.rows)
    }
}

#[derive(Clone, Copy)]
struct Side<'a> {
    source: usize,
    results: &'a Results,
    target: &'a TargetResults,
}

/// Compares targets of one source, or the targets of the first source with those of the same names in the others.
///
/// # Errors
/// When there are no two sides, or when their work or settings differ.
pub fn compare(sources: &[Source], options: &CompareOptions) -> anyhow::Result<Comparison> {
    let mut comparisons = Vec::new();
    for (first, second) in sides(sources, options)? {
        let label = |side: Side<'_>| match sources {
            [_] => side.target.name.clone(),
            _ => format!("{} of {}", side.target.name, sources[side.source].name),
        };
        let names = [first, second].map(label);
        let varied = match varied(first, second, &options.vary) {
            Ok(varied) => varied,
            Err(why) => bail!("{} and {} cannot be compared, {why}", names[0], names[1]),
        };
        let group = ("", [first, second]);
        comparisons.push(compare_pair(names, &[group], varied, options.control_limit));
    }
    Ok(finish(sources, comparisons, options))
}

fn finish(
    sources: &[Source],
    mut comparisons: Vec<PairComparison>,
    options: &CompareOptions,
) -> Comparison {
    let floor = Floor::measured(sources, &comparisons);
    // A/A pairs within these results set the floor of the other pairs, but not their own.
    for compared in &mut comparisons {
        let measured = if compared.is_aa { None } else { floor.as_ref() };
        judge(compared, options, options.aa.as_ref().or(measured));
    }
    Comparison {
        schema: SCHEMA,
        kind: "comparison".to_owned(),
        delta: options.delta,
        control_limit: options.control_limit,
        comparisons,
        floor,
    }
}

fn sides<'a>(
    sources: &'a [Source],
    options: &CompareOptions,
) -> anyhow::Result<Vec<(Side<'a>, Side<'a>)>> {
    let all = |source: usize| -> Vec<Side<'a>> {
        let results = &sources[source].results;
        results.targets.iter().map(|target| Side { source, results, target }).collect()
    };
    let names = |sides: &[Side<'_>]| {
        sides.iter().map(|side| side.target.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let firsts = if sources.is_empty() { Vec::new() } else { all(0) };
    let mut found = Vec::new();
    if let [source] = sources {
        let is_baseline = |side: &&Side<'_>| match &options.baseline {
            Some(name) => side.target.name == *name,
            None => true,
        };
        let baselines: Vec<Side<'_>> = firsts.iter().filter(is_baseline).copied().collect();
        let name = &source.name;
        if let (Some(wanted), []) = (&options.baseline, &baselines[..]) {
            bail!("{name} has no target {wanted:?}; there are: {}", names(&firsts));
        }
        for side in &firsts {
            // A plan of two chains has a baseline on each.
            let on_chain =
                |other: &&Side<'_>| other.target.distinct_keys == side.target.distinct_keys;
            match baselines.iter().find(on_chain) {
                Some(first) if !std::ptr::eq(first.target, side.target) => {
                    found.push((*first, *side));
                }
                _ => {}
            }
        }
        let why = match firsts.len() {
            0 => "it has no target".to_owned(),
            1 => format!("it has one target, {}", names(&firsts)),
            _ => format!("no chain has a second target ({})", names(&firsts)),
        };
        ensure!(
            !found.is_empty(),
            "nothing to compare in {name}: {why}; name a second result, or run the plan with two targets (--target twice)"
        );
        return Ok(found);
    }
    for (number, source) in sources.iter().enumerate().skip(1) {
        let seconds = all(number);
        let before = found.len();
        if let ([first], [second]) = (&firsts[..], &seconds[..]) {
            found.push((*first, *second));
        } else {
            for second in &seconds {
                let same = firsts.iter().find(|first| first.target.name == second.target.name);
                found.extend(same.map(|first| (*first, *second)));
            }
        }
        ensure!(
            found.len() > before,
            "{} ({}) and {} ({}) have no target in common",
            sources[0].name,
            names(&firsts),
            source.name,
            names(&seconds)
        );
    }
    Ok(found)
}

/// The allowed differences of two sides. Others are an error.
fn varied(first: Side<'_>, second: Side<'_>, vary: &[String]) -> Result<Vec<Difference>, String> {
    let found = same_work::differences(first, second);
    let is_meant = |difference: &Difference| difference.is_named_by(vary);
    let (varied, differences): (Vec<_>, Vec<_>) = found.into_iter().partition(is_meant);
    if differences.is_empty() {
        return Ok(varied);
    }
    let hint = if differences.iter().all(|difference| difference.is_setting) {
        " (a setting that is what you compare may be named with --vary)"
    } else {
        ""
    };
    Err(format!("they differ in {}{hint}", list(&differences)))
}

/// The sides of a comparison on one machine, with its name; the name is empty if there is only one.
type Group<'a> = (&'a str, [Side<'a>; 2]);

/// Compares two sides, which are those of the first group, by the pairs of all groups.
fn compare_pair(
    [first_name, second_name]: [String; 2],
    groups: &[Group<'_>],
    varied: Vec<Difference>,
    control_limit: f64,
) -> PairComparison {
    let [first, second] = groups[0].1;
    let of_other_machine = varied.iter().any(|difference| difference.field.starts_with("machine"));
    let entry = |(name, [side, _]): &Group<'_>| MachineEntry {
        name: (*name).to_owned(),
        machine: side.results.machine.clone(),
        pairs: 0,
    };
    let mut entries: Vec<MachineEntry> = groups.iter().map(entry).collect();
    let (mut rows, mut counts, mut took_turns) = (Vec::new(), Vec::new(), true);
    for seen in first.target.seen_shares().into_iter().filter(is_shared_by(second)) {
        let (mut of_groups, mut of_share) = (Vec::new(), Vec::new());
        for ((name, [left, right]), entry) in groups.iter().zip(&mut entries) {
            let (pairs, count) = pairs::of(*left, *right, seen, control_limit, of_other_machine);
            took_turns &= pairs::took_turns(&pairs);
            entry.pairs += pairs.len();
            of_groups.push(pairs);
            of_share.push((*name, count));
        }
        counts.push(PairCount::together(&of_share));
        rows.extend(rows_of(first.results, seen, &of_groups, !groups[0].0.is_empty()));
    }
    let is_aa =
        first.source == second.source && same_work::is_same_software(first.target, second.target);
    let machines = entries.into_iter().filter(|entry| !entry.name.is_empty()).collect();
    let mut compared = PairComparison {
        first: first_name,
        second: second_name,
        is_aa,
        took_turns,
        pairs: counts,
        varied,
        rows,
        machines,
        notes: Vec::new(),
    };
    compared.notes = notes(&compared);
    compared.notes.extend(unlike_ways(first, second));
    compared
}

/// True if the other side has this pre-relayed share too.
fn is_shared_by(second: Side<'_>) -> impl Fn(&f64) -> bool {
    let shares: Vec<_> = second.target.seen_shares().into_iter().map(in_percent).collect();
    move |seen| shares.contains(&in_percent(*seen))
}

fn notes(compared: &PairComparison) -> Vec<String> {
    let mut notes = Vec::new();
    if compared.is_aa {
        notes.push(
            "the same software on both sides (A/A): any difference shown is false".to_owned(),
        );
    }
    if !compared.took_turns {
        notes.push(format!(
            "the runs were not interleaved: changes of the machine between them look like a difference of the software; \
             the floor is at least {:.0} %",
            FLOOR_MIN_APART * 100.0
        ));
    }
    notes.extend(
        compared.varied.iter().map(|difference| format!("not the same, on purpose: {difference}")),
    );
    notes.extend(compared.pairs.iter().flat_map(PairCount::notes));
    notes
}

/// Targets of one plan may receive blocks by different methods: no setting and no reason to reject, but it affects every ratio.
fn unlike_ways(first: Side<'_>, second: Side<'_>) -> Option<String> {
    let way = |side: Side<'_>| {
        let by = side.results.plan.feed.by.as_str().to_owned();
        side.target.delivery.clone().unwrap_or(by)
    };
    let (one, other) = (way(first), way(second));
    (one != other).then(|| {
        let (first, second) = (&first.target.name, &second.target.name);
        format!(
            "blocks arrived by different paths, {one} to {first} and {other} to {second}: the ratio includes what these cost \
             (docs/METHODOLOGY.md, Syncs)"
        )
    })
}

/// Function from a run to the figure of a row.
type Figure<'a> = Box<dyn Fn(&Run) -> Option<f64> + 'a>;

/// Name, title, total flag and figure of each row.
fn figures(results: &Results) -> Vec<(String, String, bool, Figure<'_>)> {
    let mut figures: Vec<(String, String, bool, Figure<'_>)> = vec![(
        "total".to_owned(),
        "total".to_owned(),
        true,
        Box::new(|run| Some(run.total.seconds)),
    )];
    for phase in results.plan.phases.iter().filter(|phase| phase.measured) {
        let of = move |run: &Run| {
            let named = |result: &&PhaseResult| result.name == phase.name;
            run.phases.iter().find(named).map(|result| result.seconds)
        };
        figures.push((phase.name.clone(), phase.title.clone(), false, Box::new(of)));
    }
    let (cpu, index) = ("cpu".to_owned(), "node-and-index".to_owned());
    figures.push((cpu, "CPU time of the total".to_owned(), false, Box::new(|run| run.total.cpu_s)));
    let with_index = |run: &Run| run.index.as_ref().map(|index| index.total.pair_s);
    figures.push((index, "node and index together".to_owned(), false, Box::new(with_index)));
    figures
}

/// Rows of the pairs of one share; a group holds the pairs of one machine.
fn rows_of(
    results: &Results,
    seen: f64,
    groups: &[Vec<(&Run, &Run)>],
    are_machines: bool,
) -> Vec<ComparedRow> {
    let mut rows = Vec::new();
    for (what, title, is_total, figure) in figures(results) {
        let times = |pairs: &Vec<(&Run, &Run)>| -> Option<(Vec<f64>, Vec<f64>)> {
            pairs.iter().map(|(left, right)| Some((figure(left)?, figure(right)?))).collect()
        };
        let Some(times) = groups.iter().map(times).collect::<Option<Vec<_>>>() else { continue };
        let Some((ratio, machines)) = PairedRatio::of_machines(&times) else { continue };
        let (first, second): (Vec<_>, Vec<_>) = times.into_iter().unzip();
        rows.push(ComparedRow {
            seen,
            what,
            title,
            is_total,
            first: Spread::of(&first.concat()),
            second: Spread::of(&second.concat()),
            ratio,
            machines: are_machines.then_some(machines),
            p_adjusted: None,
            floor: 0.0,
            verdict: Verdict::NotShown,
        });
    }
    rows
}

fn judge(compared: &mut PairComparison, options: &CompareOptions, aa: Option<&Floor>) {
    for is_total in [true, false] {
        let chosen: Vec<usize> = (0..compared.rows.len())
            .filter(|index| compared.rows[*index].is_total == is_total)
            .collect();
        let probabilities: Vec<_> =
            chosen.iter().map(|index| compared.rows[*index].ratio.p).collect();
        for (index, p) in chosen.into_iter().zip(holm(&probabilities)) {
            compared.rows[index].p_adjusted = p;
        }
    }
    let least = if compared.took_turns { FLOOR_MIN } else { FLOOR_MIN_APART };
    for row in &mut compared.rows {
        let measured = aa.map_or(0.0, |floor| floor.of(row.seen, &row.what));
        row.floor = options.floor.unwrap_or_else(|| measured.max(least));
        row.verdict = row.ratio.verdict(row.floor, options.delta, row.p_adjusted);
    }
    if options.floor.is_none() && aa.is_none() && !compared.is_aa {
        compared.notes.push(format!(
            "no A/A runs (--aa): the noise floor is the minimum, {:.0} %",
            least * 100.0
        ));
    }
}
