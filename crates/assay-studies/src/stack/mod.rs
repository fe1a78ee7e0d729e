//! Report 1: cost of larger stack elements (published with BIP-0360 in its version of 2025; the
//! limit is now in the PQSIG draft).
//!
//! Scripts with data of several sizes are verified as whole inputs, under today's limit of 520 bytes and under
//! others. The report's benchmark (`src/bench/verify_script.cpp` of its branch of Bitcoin Core) puts the data into
//! the witness of a P2WSH input and applies the rules `P2SH` and `WITNESS`. So does this suite, interleaved with
//! Bitcoin Core's kernel, both unmodified and built with the report's limit.

mod answers;
mod flips;
mod hashes;
mod judged;
mod memory;
mod published;
mod scripts;
mod template;
mod vectors;
mod verdicts;
mod worst;

use std::collections::HashSet;

use anyhow::{Context as _, Result, ensure};
use assay_bench::Progress;
use assay_bench::harness::Row;
use assay_bench::plan::{LimitSettings, StackSettings};
use assay_bench::suite::{Benchmark, Extent, Published, Study, Suite};
use assay_consensus::script::opcode::op;
use assay_consensus::script::{Copies, RuleSet};

use template::Template;

use crate::kernels::{Kernel, Kernels};
use crate::rules;
use crate::worst::hashing::HASHING_OPCODES;

const ASSAY: &str = "assay";

/// The rules of the settings, in every kind of script.
fn limited(settings: LimitSettings) -> Result<RuleSet> {
    let rules = RuleSet::TODAY
        .with_element_bytes_max(settings.element_bytes_max)
        .context("element_bytes_max: give at most 1048576 bytes")?;
    Ok(match settings.dup_bytes_max {
        Some(max) => rules.with_copies(Copies::limited(&[op::DUP], max)),
        None => rules,
    })
}

#[derive(Debug)]
pub(crate) struct StackSuite {
    settings: StackSettings,
    kernels: Kernels,
}

impl StackSuite {
    pub(crate) fn new(settings: StackSettings) -> Self {
        Self { settings, kernels: Kernels::default() }
    }

    fn kernels(&self) -> Result<&[Kernel]> {
        let StackSettings { kernel, kernel_8000, .. } = &self.settings;
        self.kernels.get(kernel.as_deref(), kernel_8000.as_deref())
    }

    /// The templates, with unique names.
    fn templates(&self) -> Result<Vec<Template>> {
        let hashes = if self.settings.hashing_opcodes { &HASHING_OPCODES[..] } else { &[] };
        let more = hashes.iter().map(|name| format!("<data> OP_{name} OP_DROP OP_1"));
        let mut templates: Vec<Template> = Vec::new();
        let (mut texts, mut names) = (HashSet::new(), HashSet::new());
        for text in self.settings.templates.iter().cloned().chain(more) {
            let mut template = Template::parse(&text)?;
            if !texts.insert(template.script(1)) && template.arguments(1).len() == 1 {
                continue;
            }
            if !names.insert(template.name().to_owned()) {
                template.name_in_full();
                names.insert(template.name().to_owned());
            }
            templates.push(template);
        }
        Ok(templates)
    }

    /// The rule sets of the plan without duplicates, named ones first.
    fn rules(&self) -> Result<Vec<RuleSet>> {
        let named = rules::named(self.settings.rule_names())?;
        let mut all: Vec<RuleSet> = named.into_iter().map(|(_, rules)| rules).collect();
        for rules in self.settings.limits.iter().copied().map(limited) {
            let rules = rules?;
            if !all.contains(&rules) {
                all.push(rules);
            }
        }
        ensure!(!all.is_empty(), "rules: give at least one rule set");
        Ok(all)
    }

    fn sizes(&self, extent: Extent) -> Vec<usize> {
        let sizes = &self.settings.sizes;
        match extent {
            Extent::Smoke => [sizes.first(), sizes.last()].into_iter().flatten().copied().collect(),
            Extent::Quick => far_apart(sizes),
            Extent::Full => sizes.clone(),
        }
    }
}

/// The first and the last size, and those between them that are at least twice the previous one.
fn far_apart(sizes: &[usize]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for (index, &size) in sizes.iter().enumerate() {
        let is_last = index + 1 == sizes.len();
        if is_last || kept.last().is_none_or(|&before| size >= 2 * before) {
            kept.push(size);
        }
    }
    kept
}

impl Suite for StackSuite {
    fn benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>> {
        let mut benchmarks = self.script_benchmarks(extent)?;
        benchmarks.extend(hashes::benchmarks(&self.sizes(extent)));
        Ok(benchmarks)
    }

    fn studies(&self, extent: Extent, rows: &[Row], progress: &dyn Progress) -> Result<Vec<Study>> {
        let mut studies = vec![
            answers::study(rows),
            self.verdicts(extent, progress)?,
            self.worst(extent, progress)?,
            self.memory(extent, progress)?,
            self.flips(progress)?,
        ];
        studies.extend(self.judged(progress)?);
        Ok(studies)
    }

    fn published(&self) -> Vec<Published> {
        published::rows()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn names_are_unique_and_published_figures_have_a_series() {
        let suite = StackSuite::new(StackSettings::default());
        let benchmarks = suite.benchmarks(Extent::Smoke).expect("benchmarks");
        let mut names: Vec<&str> = benchmarks.iter().map(|it| it.name.as_str()).collect();
        assert!(names.contains(&"script/p2wsh/sha256/8000"), "{names:?}");
        assert!(names.contains(&"script/tapscript/dup-sha256/1"), "{names:?}");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "each name once");
        for row in &suite.published() {
            let (series, _) = row.benchmark.rsplit_once('/').expect("a size");
            assert!(benchmarks.iter().any(|it| it.series == series), "{series}");
        }
    }

    /// Records the parts, and checks that each has as many steps as announced.
    #[derive(Default)]
    struct Noted(RefCell<Vec<(String, u64, u64)>>);

    impl Progress for Noted {
        fn begin(&self, part: &str, steps: u64) {
            self.0.borrow_mut().push((part.to_owned(), steps, 0));
        }

        fn step(&self) {
            self.0.borrow_mut().last_mut().expect("a part").2 += 1;
        }
    }

    #[test]
    fn every_stage_of_the_studies_reports_its_progress() {
        let noted = Noted::default();
        let suite = StackSuite::new(StackSettings::default());
        let studies = suite.studies(Extent::Smoke, &[], &noted).expect("studies");
        assert!(studies.iter().all(|study| !study.prose.is_empty()));
        let parts = noted.0.into_inner();
        for wanted in ["rule sets", "shapes", "heap", "vectors"] {
            assert!(parts.iter().any(|(part, ..)| part.contains(wanted)), "{wanted}: {parts:?}");
        }
        for (part, steps, done) in &parts {
            assert_eq!(steps, done, "{part}");
        }
    }

    #[test]
    fn quick_leaves_out_sizes_near_each_other() {
        assert_eq!(far_apart(&[1, 64, 65, 100, 520, 8000]), [1, 64, 520, 8000]);
        assert_eq!(far_apart(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(far_apart(&[]), [0usize; 0]);
        let suite = StackSuite::new(StackSettings::default());
        let [quick, full] = [Extent::Quick, Extent::Full]
            .map(|extent| suite.benchmarks(extent).expect("a list").len());
        assert!(quick * 3 <= full * 2 + 3, "{quick} of {full}");
    }

    #[test]
    fn settings_are_checked() {
        let bad = |settings: StackSettings| {
            StackSuite::new(settings).benchmarks(Extent::Smoke).err().map(|error| error.to_string())
        };
        let defaults = StackSettings::default;
        let templates = vec!["<data> OP_SHA257".to_owned()];
        assert!(
            bad(StackSettings { templates, ..defaults() }).is_some_and(|it| it.contains("257"))
        );
        assert!(bad(StackSettings { rules: Some(vec![]), ..defaults() }).is_some());
        let rules = vec!["p2qrh".to_owned()];
        let unknown = bad(StackSettings { rules: Some(rules), ..defaults() });
        assert!(unknown.is_some_and(|it| it.contains("known are today, bip54")));
        let huge = LimitSettings { element_bytes_max: 1 << 30, dup_bytes_max: None };
        assert!(bad(StackSettings { limits: vec![huge], ..defaults() }).is_some());
        let missing = Some(PathBuf::from("/nonexistent/kernel"));
        assert!(bad(StackSettings { kernel: missing.clone(), ..defaults() }).is_some());
        assert!(bad(StackSettings { kernel_8000: missing, ..defaults() }).is_some());
    }
}
