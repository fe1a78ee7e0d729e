//! Whole inputs, by our engine and by the kernels.

use std::rc::Rc;

use anyhow::Result;
use assay_bench::harness::Alternative;
use assay_bench::plan::Wrap;
use assay_bench::suite::{Benchmark, Extent};
use assay_bench::wrong_answer;
use assay_consensus::script::{Interpreter, RuleSet, ScriptError};

use super::template::Template;
use super::{ASSAY, StackSuite};
use crate::kernels::Kernel;
use crate::spend::Spend;

/// A template with data of one size, in one kind of output.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) template: Rc<Template>,
    pub(super) wrap: Wrap,
    pub(super) size: usize,
}

/// A passing script with the rules under which it passes.
#[derive(Clone, Debug)]
pub(super) struct Passing {
    pub(super) spend: Spend,
    pub(super) rules: RuleSet,
    /// Number of `OP_NIP`s appended to leave exactly one element.
    pub(super) nips: usize,
}

const NIPS_MAX: usize = 16;

impl Case {
    /// The input, with `nips` times `OP_NIP` after the script.
    pub(super) fn spend(&self, nips: usize) -> Spend {
        let mut script = self.template.script(self.size);
        script.extend(std::iter::repeat_n(assay_consensus::script::opcode::op::NIP, nips));
        Spend::new(self.wrap, &script, self.template.arguments(self.size))
    }

    /// Runs the case under these rules. Witness scripts must leave exactly one element; for
    /// templates that leave more, such as the report's second one, `OP_NIP`s are appended.
    ///
    /// # Errors
    /// The rule that the script breaks.
    pub(super) fn pass(&self, rules: &RuleSet) -> Result<Passing, ScriptError> {
        for nips in 0..NIPS_MAX {
            let spend = self.spend(nips);
            match spend.verify(rules) {
                Ok(_) => return Ok(Passing { spend, rules: *rules, nips }),
                Err(ScriptError::CleanStack) => {}
                Err(error) => return Err(error),
            }
        }
        Err(ScriptError::CleanStack)
    }

    /// Runs the case under the first rules that accept it.
    pub(super) fn pass_any(&self, all: &[RuleSet]) -> Option<Passing> {
        all.iter().find_map(|rules| self.pass(rules).ok())
    }

    pub(super) fn series(&self) -> String {
        format!("script/{}/{}", self.wrap.name(), self.template.name())
    }
}

impl StackSuite {
    /// Every template in every kind of output, by size.
    pub(super) fn cases(&self, extent: Extent) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        for template in self.templates()?.into_iter().map(Rc::new) {
            for &wrap in &self.settings.wraps {
                if wrap == Wrap::Bare && !template.arguments(1).is_empty() {
                    continue;
                }
                let case = |size| Case { template: Rc::clone(&template), wrap, size };
                cases.extend(self.sizes(extent).into_iter().map(case));
            }
        }
        Ok(cases)
    }

    /// Benchmarks of the cases that pass under some rules.
    pub(super) fn script_benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>> {
        let all = self.rules()?;
        let kernels = self.kernels()?;
        let mut benchmarks = Vec::new();
        for case in self.cases(extent)? {
            let Some(passing) = case.pass_any(&all) else { continue };
            let able: Vec<&Kernel> = kernels
                .iter()
                .filter(|kernel| passing.spend.verify(&kernel.rules).is_ok())
                .collect();
            let (series, size) = (case.series(), case.size as u64);
            let baseline = able.first().map(|kernel| kernel.name.to_owned());
            let make = move |name: &str| alternatives(name, &passing, &able);
            benchmarks.push(Benchmark { baseline, ..Benchmark::of_bytes(&series, size, make) });
        }
        Ok(benchmarks)
    }
}

fn alternatives<'a>(
    name: &str,
    passing: &Passing,
    kernels: &[&'a Kernel],
) -> Result<Vec<Alternative<'a>>> {
    const OTHER_OUTPUT: &str = "passes with another output";
    let Passing { spend, rules, .. } = passing.clone();
    spend.verify(&rules).map_err(|error| wrong_answer(name, ASSAY, error))?;
    let spoiled = spend.spoiled();
    if spoiled.verify(&rules).is_ok() {
        return Err(wrong_answer(name, ASSAY, OTHER_OUTPUT));
    }
    let mut alternatives = Vec::new();
    for &entry in kernels {
        let Kernel { name: kernel, peer, .. } = entry;
        let mut asked = peer.borrow_mut();
        if asked.judge(spoiled.tx.view(), &spoiled.spent(), spoiled.flags, None)? {
            return Err(wrong_answer(name, kernel, OTHER_OUTPUT));
        }
        asked.load_spend(name, spend.tx.view(), &spend.spent(), spend.flags)?;
        asked.verify_input(name, 0, 1)?;
        let name = name.to_owned();
        let run = move |times| peer.borrow_mut().verify_input(&name, 0, times);
        alternatives.push(Alternative::repeated(kernel, run));
    }
    let mut interpreter = Interpreter::with_rules(rules);
    let run = move |times| spend.time(&mut interpreter, times);
    alternatives.push(Alternative::repeated(ASSAY, run));
    Ok(alternatives)
}
