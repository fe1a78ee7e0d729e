//! Record of `assay pr`.

use assay_report::record::{Outcome, Record};

use super::PrResults;

/// Digits of an abbreviated commit hash.
const HASH: usize = 12;

pub(super) fn of(results: &PrResults) -> Record {
    let (base, head) = (&results.base, &results.head);
    let [base_hash, head_hash] =
        [base, head].map(|build| build.commit.get(..HASH).unwrap_or(&build.commit));
    let mut record = Record {
        kind: "pr".to_owned(),
        schema: assay_report::record::SCHEMA,
        created: results.created.clone(),
        machine: results.machine.clone(),
        command: results.rerun.clone(),
        title: format!("{head_hash} against {base_hash}"),
        summary: format!("Head: {}. Base: {}.", head.subject, base.subject),
        headline: format!("Head {head_hash} against base {base_hash}: {}.", results.verdict.text()),
        ..Record::default()
    };
    record.set_all("build | base", base);
    record.set_all("build | head", head);
    if let Some(syncs) = &results.syncs {
        record.set("chain", &syncs.chain);
        record.notes.extend(syncs.comparison.verdicts());
        syncs.comparison.add_to(&mut record);
        let void = format!("{} ended with another state than the chain's", syncs.void_runs);
        let failure = (syncs.void_runs > 0).then_some(void);
        let rows = syncs.comparison.rows().map(|row| row.ratio.pairs as u64).sum();
        record.check("syncs end in the state of the chain", Outcome::of(rows, failure));
        record.notes.push("Curves, phases and single runs: `macro/report.html`.".to_owned());
    }
    if let Some(micro) = &results.micro {
        micro.add_to(&mut record, "head against base");
        record.notes.push("Every sample: `micro/report.html`.".to_owned());
    }
    record
}
