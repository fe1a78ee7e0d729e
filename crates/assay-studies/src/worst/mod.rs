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

use anyhow::{Result, ensure};
use assay_bench::Progress;
use assay_bench::harness::Row;
use assay_bench::plan::WorstSettings;
use assay_bench::published::PublishedFile;
use assay_bench::suite::{Benchmark, Extent, Published, Study, Suite};
use assay_consensus::script::RuleSet;

use self::cell::{Cell, Effort};
use self::classes::{CLASSES, Class};
use self::hashing::Rules;
use self::outside::Timed;
use crate::kernels::{Kernel, Kernels};
use crate::rules;

const FIGURES: &str = include_str!("../../../../plans/published/worst-blocks.toml");

#[derive(Debug)]
pub(crate) struct WorstSuite {
    settings: WorstSettings,
    kernels: Kernels,
}

impl WorstSuite {
    pub(crate) fn new(settings: WorstSettings) -> Self {
        Self { settings, kernels: Kernels::default() }
    }

    fn kernels(&self) -> Result<&[Kernel]> {
        let WorstSettings { kernel, kernel_8000, .. } = &self.settings;
        self.kernels.get(kernel.as_deref(), kernel_8000.as_deref())
    }

    fn rules(&self) -> Result<Vec<(String, RuleSet)>> {
        let all = rules::named(self.settings.rules.iter().map(String::as_str))?;
        ensure!(!all.is_empty(), "rules: give at least one rule set");
        Ok(all)
    }

    fn classes(&self) -> Result<Vec<&'static Class>> {
        let wanted = &self.settings.classes;
        let known: Vec<&str> = CLASSES.iter().map(|class| class.name).collect();
        for name in wanted {
            let is_known = known.contains(&name.as_str());
            let names = known.join(", ");
            ensure!(is_known, "there is no class of worst blocks `{name}`; there are {names}");
        }
        let is_wanted =
            |class: &&Class| wanted.is_empty() || wanted.iter().any(|name| class.name == *name);
        Ok(CLASSES.iter().filter(is_wanted).collect())
    }

    fn cells(&self, extent: Extent, progress: &dyn Progress) -> Result<Measured> {
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
                if let Some(first) = (class.make)(&rules, effort.weight_first()) {
                    let block = cell::identity(&first.block);
                    let same =
                        |cell: &&Cell| cell.class.name == class.name && cell.first_block == block;
                    cells.push(match cells.iter().find(same) {
                        Some(cell) => Cell { rules: name.clone(), is_known: true, ..cell.clone() },
                        None => cell::measure(class, (name, &rules), &first, kernels, &effort)?,
                    });
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

#[derive(Debug)]
struct Measured {
    cells: Vec<Cell>,
    outside: Vec<Timed>,
}

impl Suite for WorstSuite {
    fn benchmarks(&self, _: Extent) -> Result<Vec<Benchmark<'_>>> {
        self.rules()?;
        self.classes()?;
        outside::specs(&self.settings.nodes)?;
        self.kernels()?;
        Ok(Vec::new())
    }

    fn studies(&self, extent: Extent, _: &[Row], progress: &dyn Progress) -> Result<Vec<Study>> {
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
