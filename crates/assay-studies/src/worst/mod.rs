//! An atlas of worst blocks: for each rule set and class of work a block is built and verified as a
//! whole, by our engine and by Bitcoin Core's kernel.
//!
//! The blocks are no weapon: they are regtest's, exist in memory only, and their classes are
//! published (BIP-0054, Delving Bitcoin 710 and 2367).

pub(crate) mod block;
mod cell;
mod checks;
mod classes;
pub(crate) mod hashing;
mod memory;
mod outside;
mod post_quantum;
mod preparation;
mod proposals;
mod report;

use std::cell::OnceCell;

use assay_bench::harness::Row;
use assay_bench::plan::WorstSettings;
use assay_bench::published::PublishedFile;
use assay_bench::suite::{Benchmark, Extent, Published, Study, Suite};
use assay_bench::{BenchError, Progress};
use assay_consensus::script::RuleSet;

use self::cell::{Cell, Effort};
use self::classes::{CLASSES, Class};
use self::hashing::Rules;
use self::outside::Timed;
use crate::kernels::{self, Kernel};
use crate::rules;

const FIGURES: &str = include_str!("../../../../plans/published/worst-blocks.toml");

/// The suite of section `[worst]`.
#[derive(Debug)]
pub(crate) struct WorstSuite {
    settings: WorstSettings,
    kernels: OnceCell<Vec<Kernel>>,
}

impl WorstSuite {
    pub(crate) fn new(settings: WorstSettings) -> Self {
        Self { settings, kernels: OnceCell::new() }
    }

    fn kernels(&self) -> Result<&[Kernel], BenchError> {
        if let Some(kernels) = self.kernels.get() {
            return Ok(kernels);
        }
        let settings = &self.settings;
        let kernels = kernels::start(settings.kernel.as_deref(), settings.kernel_8000.as_deref())?;
        Ok(self.kernels.get_or_init(|| kernels))
    }

    fn rules(&self) -> Result<Vec<(String, RuleSet)>, BenchError> {
        let all = rules::named(self.settings.rules.iter().map(String::as_str))?;
        if all.is_empty() {
            return Err(BenchError::Parameter { what: "rules", wanted: "at least one rule set" });
        }
        Ok(all)
    }

    fn classes(&self) -> Result<Vec<&'static Class>, BenchError> {
        let wanted = &self.settings.classes;
        if let Some(unknown) =
            wanted.iter().find(|name| CLASSES.iter().all(|class| class.name != **name))
        {
            let known = CLASSES.iter().map(|class| class.name.to_owned()).collect();
            return Err(BenchError::UnknownName {
                what: "class of worst blocks",
                name: unknown.clone(),
                known,
            });
        }
        let is_wanted =
            |class: &&Class| wanted.is_empty() || wanted.iter().any(|name| class.name == *name);
        Ok(CLASSES.iter().filter(is_wanted).collect())
    }

    fn cells(&self, extent: Extent, progress: &dyn Progress) -> Result<Measured, BenchError> {
        let (mut sets, classes) = (self.rules()?, self.classes()?);
        if extent == Extent::Smoke {
            sets.truncate(1);
        }
        let effort = Effort::of(extent, self.settings.seconds_max)?;
        let nodes = outside::specs(&self.settings.nodes)?;
        let rules: Vec<RuleSet> = sets.iter().map(|(_, set)| *set).collect();
        let (costs, _) = hashing::search(&rules, extent, progress)?;
        let kernels = self.kernels()?;
        let mut cells: Vec<Cell> = Vec::new();
        let total = sets.len() * classes.len();
        for ((name, set), costs) in sets.iter().zip(&costs) {
            let rules = Rules { set, costs };
            for class in &classes {
                let number = cells.len() + 1;
                let what = format!("{} under {name}, {number} of {total} at most", class.name);
                progress.begin(&what, 1);
                // Equal blocks of several rule sets are measured once.
                let made = (class.make)(&rules, effort.weight_first());
                let known = made.as_ref().and_then(|made| {
                    let same = |cell: &&Cell| {
                        cell.class.name == class.name
                            && cell.first_block == cell::identity(&made.block)
                    };
                    cells.iter().find(same)
                });
                if let Some(cell) = known {
                    let cell = Cell { rules: name.clone(), is_known: true, ..cell.clone() };
                    cells.push(cell);
                } else if made.is_some() {
                    cells.push(cell::measure(class, (name, &rules), kernels, &effort)?);
                }
                progress.step();
            }
        }
        let of_today = rules.iter().position(|set| *set == RuleSet::TODAY);
        let costs = of_today.map_or(&[][..], |at| &costs[at]);
        let rules = Rules { set: &RuleSet::TODAY, costs };
        let outside = outside::measure(&nodes, &classes, &rules, (extent, &effort), progress)?;
        Ok(Measured { cells, outside })
    }
}

/// Data of the atlas.
#[derive(Debug)]
struct Measured {
    cells: Vec<Cell>,
    outside: Vec<Timed>,
}

impl Suite for WorstSuite {
    fn benchmarks(&self, _: Extent) -> Result<Vec<Benchmark<'_>>, BenchError> {
        self.rules()?;
        self.classes()?;
        outside::specs(&self.settings.nodes)?;
        self.kernels()?;
        Ok(Vec::new())
    }

    fn studies(
        &self,
        extent: Extent,
        _: &[Row],
        progress: &dyn Progress,
    ) -> Result<Vec<Study>, BenchError> {
        Ok(report::studies(&self.cells(extent, progress)?, self.kernels()?))
    }

    fn published(&self) -> Vec<Published> {
        PublishedFile::built_in(FIGURES).figures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_bench::Silent;

    #[test]
    fn every_class_is_measured_under_todays_rules_or_names_its_requirement() {
        let suite = WorstSuite::new(WorstSettings::default());
        let measured = suite.cells(Extent::Smoke, &Silent).expect("cells");
        let cells = &measured.cells;
        for class in CLASSES {
            let is_there = cells.iter().any(|cell| cell.class.name == class.name);
            assert_eq!(is_there, !class.is_proposed, "{}", class.name);
        }
        let studies = report::studies(&measured, &[]);
        assert!(studies[0].lead.as_ref().is_some_and(|lead| lead.contains("under today")));
        let weights = studies.iter().find(|study| study.id == "check-weights").expect("a study");
        let rows = &weights.tables[0].rows;
        let reference = rows.iter().find(|row| row[0] == "tapscript-checks").expect("a row");
        assert_eq!(reference[4], "50", "what BIP342 charges for BIP340");
    }

    #[test]
    fn settings_are_checked() {
        let bad = |settings: WorstSettings| {
            let error = WorstSuite::new(settings).benchmarks(Extent::Smoke).err();
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        let defaults = WorstSettings::default;
        let error = bad(WorstSettings { classes: vec!["worst".to_owned()], ..defaults() });
        assert!(error.contains("legacy-hashing"), "{error}");
        let error = bad(WorstSettings { rules: vec!["p2qrh".to_owned()], ..defaults() });
        assert!(error.contains("known are today"), "{error}");
        assert!(!bad(WorstSettings { rules: Vec::new(), ..defaults() }).is_empty());
    }
}
