//! Record of a plan of steps.

use assay_bench::plan::StepBenchmark;
use assay_lab::compare::{ComparedRow, PAIRS_MIN, PairComparison};
use assay_report::record::{Outcome, Record, Unit};

use super::results::StepsResults;
use crate::commands::pr::BASE;

impl StepsResults {
    /// The record. Ratios are times without a step over times with it: above 1, it is faster.
    pub(crate) fn record(&self) -> Record {
        let mut record = Record {
            kind: "steps".to_owned(),
            schema: assay_report::record::SCHEMA,
            created: self.created.clone(),
            machine: self.machine.clone(),
            command: self.rerun.clone(),
            title: self.plan.title.clone(),
            summary: self.plan.summary.clone(),
            headline: answer(self),
            notes: caveats(self),
            ..Record::default()
        };
        record.set("published by", &self.plan.source);
        record.set_all("build | base", &self.base);
        for step in &self.steps {
            record.set(&format!("step {}", step.name), &step.title);
            record.set_all(&format!("build | {}", step.name), &step.build);
        }
        for (planned, found) in self.plan.related.iter().zip(&self.related) {
            record.set(&format!("related | {}", planned.name), &planned.title);
            record.set_all(&format!("related | {}, published", planned.name), &planned.published);
            record.set_all(&format!("build | {}", planned.name), &found.build);
        }
        self.add_syncs(&mut record);
        for (step, planned) in self.steps.iter().zip(&self.plan.steps) {
            let Some(micro) = &step.micro else { continue };
            micro.add_to(&mut record, &step.name);
            for benchmark in &planned.benchmarks {
                let published = StepBenchmark::published(benchmark);
                let figure = ("benchmark | published", Unit::Ratio, published);
                record.add((&step.name, &benchmark.name, None), &[figure]);
            }
        }
        let absent = self.steps.iter().flat_map(|step| &step.absent).next();
        let outcome = match absent {
            Some(absent) => Outcome::NotRun(format!("{} is absent", absent.revision)),
            None => Outcome::of(self.steps.len() as u64, None),
        };
        record.check("all steps are built", outcome);
        record
    }

    /// Each step alone, since the base, and changes outside of the branch.
    fn add_syncs(&self, record: &mut Record) {
        let published = |published| [("published", Unit::Ratio, published)];
        for step in &self.steps {
            let place = ("step alone", step.name.as_str());
            if let Some(row) = &step.alone {
                row.add_to(record, place);
            }
            record.add((place.0, place.1, None), &published(step.published));
        }
        for (name, row) in
            self.related.iter().filter_map(|one| Some((&one.name, one.syncs.as_ref()?)))
        {
            row.add_to(record, ("related change", name));
        }
        let first = self.syncs.as_ref().map_or(BASE, |syncs| &syncs.first);
        for step in &self.steps {
            let target = format!("{} against {first}", step.name);
            record.add((&target, "total", None), &published(step.published_since_base));
        }
        if let Some(syncs) = &self.syncs {
            record.set("chain", &syncs.chain);
            syncs.since_first.add_to(record);
            for pair in &syncs.alone {
                let sides = format!("{} and {}", pair.first, pair.second);
                record.notes.extend(pair.notes.iter().map(|note| format!("{sides}: {note}")));
            }
            let failure = (syncs.void_runs > 0).then(|| format!("{} are void", syncs.void_runs));
            let rows = syncs.since_first.rows().count() as u64;
            record.check("syncs end in the state of the chain", Outcome::of(rows, failure));
        }
    }
}

fn answer(results: &StepsResults) -> String {
    let built = results.steps.iter().filter(|step| step.build.is_some()).count();
    let published =
        results.sum.published.map_or_else(String::new, |ratio| format!("; published: {ratio:.3}"));
    let is_last = results.steps.last().is_some_and(|step| step.name == results.sum.up_to);
    let what = if is_last {
        "All steps".to_owned()
    } else {
        format!("The steps up to {}", results.sum.up_to)
    };
    let found = results.sum.syncs.as_ref().map_or_else(
        || "not measured".to_owned(),
        |row| format!("{}, ratio {:.3}", verdict(row), row.ratio.median),
    );
    format!(
        "{built} of {} steps are built. {what} against the base: {found}{published}.",
        results.steps.len()
    )
}

/// A verdict, or that there were too few pairs for one.
pub(super) fn verdict(row: &ComparedRow) -> &'static str {
    if row.ratio.pairs < PAIRS_MIN && !row.verdict.is_difference() {
        "undecided, too few pairs count"
    } else {
        row.verdict.text()
    }
}

/// A ratio with its interval and its number of pairs.
pub(super) fn ratio_text(row: &ComparedRow) -> String {
    let ratio = &row.ratio;
    let interval = ratio.interval;
    let pairs = ratio.pairs;
    format!("{:.3} ({:.3} to {:.3}, {pairs} pairs)", ratio.median, interval.low, interval.high)
}

fn caveats(results: &StepsResults) -> Vec<String> {
    let mut caveats = Vec::new();
    if results.base.is_none() {
        caveats.push(format!(
            "The base, {}, is absent: no ratio against it.",
            results.plan.base.revision
        ));
    }
    for step in &results.steps {
        for absent in &step.absent {
            caveats.push(format!(
                "{}: {} is absent; build it: `{}`.",
                step.name, absent.revision, absent.command
            ));
        }
    }
    caveats.extend(absent_related(results));
    if let Some(syncs) = &results.syncs {
        let is_sum = |pair: &&PairComparison| pair.second == results.sum.up_to;
        let sum = syncs.since_first.comparisons.iter().filter(is_sum);
        caveats.extend(sum.flat_map(|pair| pair.notes.clone()));
    }
    for step in &results.steps {
        let rows = [("alone", &step.alone), ("since the base", &step.since_base)];
        for (what, row) in rows.into_iter().filter_map(|(what, row)| Some((what, row.as_ref()?))) {
            caveats.push(format!("{}, {what}: {}, {}", step.name, verdict(row), ratio_text(row)));
        }
    }
    if !results.is_complete {
        caveats.push("Not everything was measured: continue with --resume.".to_owned());
    }
    caveats
}

/// Changes outside of the branch that cannot be measured, and the command that builds them.
fn absent_related(results: &StepsResults) -> Option<String> {
    let absent = results.plan.related.iter().zip(&results.related);
    let absent = absent.filter(|(_, found)| found.build.is_none() || found.before.is_none());
    let revisions: Vec<String> = absent
        .filter_map(|(planned, _)| planned.revisions())
        .flatten()
        .map(|revision| format!("--rev {revision}"))
        .collect();
    let plan = &results.plan;
    let compiler = plan.compiler.as_ref().map_or_else(String::new, |c| format!(" --compiler {c}"));
    (!revisions.is_empty()).then(|| {
        format!(
            "Related changes are absent, all of them or some; build them: `assay builds make --repo PATH --preset {}{compiler} {}`.",
            plan.preset,
            revisions.join(" ")
        )
    })
}
