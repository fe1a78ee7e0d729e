//! `assay pr`: two revisions, built, measured, and judged on one page.

pub(crate) mod micro;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use assay_bench::plan::PlanText;
use assay_lab::builds::{Build, Repository};
use assay_lab::compare::{CompareOptions, ComparedRow, Comparison, PAIRS_MIN, Source, compare};
use assay_lab::machine::new_record;
use assay_lab::plan::{BuiltSpec, NodeSpec, TargetSpec, checked};
use assay_lab::progress::Terminal;
use assay_lab::results::{ChainSummary, Results};
use assay_lab::run::{RunOptions, run as run_plan};
use assay_report::atomic_file;
use assay_report::record::{Outcome as Checked, Record};
use assay_report::stats::verdict::Verdict;

use self::micro::{Micro, MicroTask};
use super::bench::software;
use super::builds;
use super::own_programs;
use super::run::put_own_chain;
use super::stop_flag;
use crate::cli::{PartArgument, PrArguments};
use crate::invocation::rerun;
use crate::{Outcome, output};

/// Names of the targets; the base is measured twice to show the noise of the machine.
pub(crate) const BASE: &str = "base";
const AGAIN: &str = "base-again";
const HEAD: &str = "head";

/// Digits of an abbreviated commit hash.
const HASH: usize = 12;

struct Syncs {
    /// Runs whose end state is not that of the chain.
    void_runs: usize,
    /// Size of the chain, its blocks and inputs.
    chain: String,
    comparison: Comparison,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overall {
    Faster,
    Slower,
    /// Faster in some results, slower in others.
    Mixed,
    /// No difference shown, with too few pairs of syncs to show one.
    Undecided,
    NotShown,
}

impl Overall {
    fn of(verdicts: impl Iterator<Item = Verdict>) -> Self {
        let (mut is_faster, mut is_slower) = (false, false);
        for verdict in verdicts {
            is_faster |= verdict == Verdict::Faster;
            is_slower |= verdict == Verdict::Slower;
        }
        match (is_faster, is_slower) {
            (true, true) => Self::Mixed,
            (true, false) => Self::Faster,
            (false, true) => Self::Slower,
            (false, false) => Self::NotShown,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Mixed => "faster in some figures and slower in others",
            Self::Undecided => "undecided, too few pairs of syncs count",
            Self::NotShown => "no difference shown",
        }
    }
}

pub(crate) fn run(arguments: &PrArguments) -> anyhow::Result<Outcome> {
    let repository = Repository::open(&arguments.repo)?;
    let (base, head) = revisions(&repository, arguments)?;
    let wants = |part| arguments.part.is_none_or(|wanted| wanted == part);
    // Fails before an hour of building.
    let plan = PlanText::find(&arguments.plan)?.chain()?;
    let stop = stop_flag();
    let terminal = Terminal::stopped_by(Arc::clone(&stop));
    let Some((base, head)) = built(repository, [base, head], arguments, &terminal)? else {
        let is_stopped = stop.load(Ordering::Relaxed);
        return Ok(if is_stopped { Outcome::Interrupted } else { Outcome::Negative });
    };
    atomic_file::create_folder(&arguments.out)?;
    let micro = if wants(PartArgument::Micro) {
        let task = MicroTask {
            base: &base,
            head: &head,
            benchmarks: arguments.filter.clone(),
            rounds: arguments.rounds,
            min_time_ms: u64::try_from(arguments.min_time.as_millis()).unwrap_or(u64::MAX),
            out_dir: arguments.out.join("micro"),
            resume: arguments.resume,
            rerun: rerun(),
        };
        Some(micro::measure(&task, Arc::clone(&stop))?)
    } else {
        None
    };
    if stop.load(Ordering::Relaxed) {
        return Ok(Outcome::Interrupted);
    }
    let syncs = if wants(PartArgument::Macro) {
        Some(syncs(plan, arguments, &base, &head, stop)?)
    } else {
        None
    };
    let mut record = new_record("pr", &software(), &rerun(), &arguments.out);
    let verdict = overall(syncs.as_ref(), micro.as_ref());
    describe(&base, &head, verdict, &mut record);
    if let Some(syncs) = &syncs {
        syncs.add_to(&mut record);
    }
    if let Some(micro) = &micro {
        micro.add_to(&mut record, "head against base");
        record.notes.push("Every sample: `micro/report.html`.".to_owned());
    }
    record.write(&arguments.out.join("pr.json"))?;
    record.page().write(&arguments.out)?;
    output::print_as(arguments.json, &record, || record.text())?;
    output::complain(&format!("report: {}", arguments.out.join("report.html").display()));
    let is_slower = matches!(verdict, Overall::Slower | Overall::Mixed);
    Ok(if is_slower || !record.has_passed() { Outcome::Negative } else { Outcome::Good })
}

fn describe(base: &Build, head: &Build, verdict: Overall, record: &mut Record) {
    let [base_hash, head_hash] =
        [base, head].map(|build| build.commit.get(..HASH).unwrap_or(&build.commit));
    record.title = format!("{head_hash} against {base_hash}");
    record.summary = format!("Head: {}. Base: {}.", head.subject, base.subject);
    record.set("verdict", verdict.text());
    record.headline = format!("Head {head_hash} against base {base_hash}: {}.", verdict.text());
    record.set_all("build | base", base);
    record.set_all("build | head", head);
}

impl Syncs {
    fn add_to(&self, record: &mut Record) {
        record.set("chain", &self.chain);
        record.notes.extend(self.comparison.verdicts());
        self.comparison.add_to(record);
        let void = format!("{} ended with another state than the chain's", self.void_runs);
        let failure = (self.void_runs > 0).then_some(void);
        let rows = self.comparison.rows().map(|row| row.ratio.pairs as u64).sum();
        record.check("syncs end in the state of the chain", Checked::of(rows, failure));
        record.notes.push("Curves, phases and single runs: `macro/report.html`.".to_owned());
    }
}

/// Base and head as git names them. The default base is the merge base of head.
fn revisions(repository: &Repository, arguments: &PrArguments) -> anyhow::Result<(String, String)> {
    match &arguments.revisions[..] {
        [base, head] => Ok((base.clone(), head.clone())),
        [head] => {
            let onto = &arguments.onto;
            let base = repository.merge_base(head, onto).with_context(|| {
                format!("cannot find where {head} left {onto} (--onto names another branch)")
            })?;
            if base == repository.commit(head)? {
                bail!("{head} is a part of {onto}: give BASE and HEAD");
            }
            Ok((base, head.clone()))
        }
        _ => bail!("give BASE and HEAD, or a branch alone"),
    }
}

/// Builds both revisions; `None` after a reported build failure.
fn built(
    repository: Repository,
    revisions: [String; 2],
    arguments: &PrArguments,
    terminal: &Terminal,
) -> anyhow::Result<Option<(Build, Build)>> {
    let cache = builds::cache()?;
    let (preset, how) = (&arguments.preset, &arguments.how);
    let made = builds::build(&cache, repository, revisions.into(), preset, how, terminal)?;
    let mut found: Vec<Build> = made.iter().filter_map(|made| made.build().cloned()).collect();
    let (Some(head), Some(base)) = (found.pop(), found.pop()) else { return Ok(None) };
    Ok(Some((base, head)))
}

/// Target specification of a build, unambiguous by its full key.
pub(crate) fn spec(build: &Build) -> BuiltSpec {
    BuiltSpec { revision: build.commit.clone(), with: vec![build.digest().to_owned()] }
}

/// Syncs of both builds, with the base measured twice, in a fixed number of rounds.
fn syncs(
    mut plan: assay_lab::plan::Plan,
    arguments: &PrArguments,
    base: &Build,
    head: &Build,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<Syncs> {
    plan.runs.repeat = arguments.pairs;
    plan.chain.scale = arguments.scale.unwrap_or(plan.chain.scale);
    if arguments.own_chain.blocks.is_none() {
        plan.chain.stop_height = arguments.own_chain.stop_height.or(plan.chain.stop_height);
    }
    checked(plan.check(), "command line")?;
    let mut options = RunOptions {
        out_dir: arguments.out.join("macro"),
        targets: vec![target(BASE, base), target(AGAIN, base), target(HEAD, head)],
        resume: arguments.resume,
        rerun: rerun(),
        ..own_programs()?
    };
    put_own_chain(&arguments.own_chain, &mut options)?;
    let results = run_plan(plan, &options, &Terminal::stopped_by(stop))?;
    judged(results)
}

/// A build as a target of syncs.
pub(crate) fn target(name: &str, build: &Build) -> TargetSpec {
    TargetSpec { name: Some(name.to_owned()), ..TargetSpec::node(NodeSpec::Built(spec(build))) }
}

/// Summary of a chain on one line.
pub(crate) fn chain_text(chain: &ChainSummary) -> String {
    let from = chain.snapshot.as_ref().map_or(0, |snapshot| snapshot.height);
    let what = match (&chain.files, from) {
        (Some(_), 0) => format!("{} from block files", chain.chain),
        (Some(_), from) => {
            format!("{} from block files, after a UTXO snapshot of height {from}", chain.chain)
        }
        (None, _) => format!("{}, seed {}, scale {}", chain.recipe, chain.seed, chain.scale),
    };
    let blocks = chain.height.saturating_sub(from);
    format!("{what}: {blocks} blocks, {} inputs, {} bytes", chain.inputs, chain.bytes)
}

fn judged(results: Results) -> anyhow::Result<Syncs> {
    let void_runs = results.void_runs().count();
    let chain = chain_text(&results.chain);
    let source = Source { name: "macro".to_owned(), results };
    let options = CompareOptions { baseline: Some(BASE.to_owned()), ..CompareOptions::default() };
    Ok(Syncs { void_runs, chain, comparison: compare(&[source], &options)? })
}

/// Verdicts that decide the overall one: the totals of the syncs of the head, and every benchmark.
fn verdicts(syncs: Option<&Syncs>, micro: Option<&Micro>) -> impl Iterator<Item = Verdict> {
    let sides = syncs.into_iter().flat_map(|syncs| &syncs.comparison.comparisons);
    let totals = sides.filter(|side| !side.is_aa).flat_map(|side| &side.rows);
    let totals = totals.filter(|row| row.is_total).map(|row| row.verdict);
    let rows = micro.into_iter().flat_map(|micro| &micro.rows).map(|row| row.verdict);
    totals.chain(rows)
}

fn overall(syncs: Option<&Syncs>, micro: Option<&Micro>) -> Overall {
    let is_short = |syncs: &Syncs| {
        let mut sides = syncs.comparison.comparisons.iter().filter(|side| !side.is_aa);
        let is_decided = |row: &ComparedRow| row.is_total && row.ratio.pairs >= PAIRS_MIN;
        sides.any(|side| !side.rows.iter().any(is_decided))
    };
    match Overall::of(verdicts(syncs, micro)) {
        Overall::NotShown if syncs.is_some_and(is_short) => Overall::Undecided,
        overall => overall,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_of_the_page() {
        use Verdict::{Equivalent, Faster, NotShown, Slower};
        for (verdicts, overall) in [
            (vec![], Overall::NotShown),
            (vec![NotShown, Equivalent], Overall::NotShown),
            (vec![NotShown, Faster], Overall::Faster),
            (vec![Equivalent, Slower], Overall::Slower),
            (vec![Slower, Faster], Overall::Mixed),
        ] {
            assert_eq!(Overall::of(verdicts.into_iter()), overall);
        }
    }
}
