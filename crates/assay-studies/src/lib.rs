//! Benchmarks of two reports, stack element size and initial block download, and an atlas of worst
//! blocks, on top of the harness of `assay-bench`. The benchmarks on pairing curves and on
//! compilers belong to another program, which this crate finds and builds.
//!
//! A study is a suite of benchmarks for one section of a plan, with an evaluation: tables and findings from the
//! times. Tables of parameters are data next to the plans: published figures (`plans/published/`), claims
//! (`plans/claims/`), and programs and sizes of operations (`plans/studies/`).
//!
//! ```
//! let names: Vec<&str> = assay_studies::sections().iter().map(|section| section.name).collect();
//! assert_eq!(names, ["stack", "worst", "ibd", "harness"]);
//! ```
//!
//! Deliberately absent: timing, comparison and reports, which are in `assay-bench`.

mod curves;
mod heap;
mod ibd;
mod kernels;
mod rules;
mod spend;
pub mod stack;
mod worst;

use assay_bench::BenchError;
use assay_bench::plan::{BenchPlan, IbdSettings, StackSettings, WorstSettings};
use assay_bench::registry::Section;

use crate::ibd::IbdSuite;
use crate::stack::StackSuite;
use crate::worst::WorstSuite;

fn stack(settings: StackSettings) -> Section {
    Section { name: "stack", suite: Box::new(StackSuite::new(settings)) }
}

fn worst(settings: WorstSettings) -> Section {
    Section { name: "worst", suite: Box::new(WorstSuite::new(settings)) }
}

fn ibd(settings: IbdSettings) -> Section {
    Section { name: "ibd", suite: Box::new(IbdSuite::new(settings)) }
}

/// All suites of this program with their default settings, including the harness's own.
pub fn sections() -> Vec<Section> {
    vec![
        stack(StackSettings::default()),
        worst(WorstSettings::default()),
        ibd(IbdSettings::default()),
        Section::harness(),
    ]
}

/// The suites of a plan. `assay-curves` is built first if the plan needs it, which `say` announces.
///
/// # Errors
/// If the plan needs `assay-curves`, which is missing and cannot be built.
pub fn sections_of(plan: &BenchPlan, say: &dyn Fn(&str)) -> Result<Vec<Section>, BenchError> {
    let stack = plan.stack.clone().map(stack);
    let worst = plan.worst.clone().map(worst);
    let ibd = plan.ibd.clone().map(ibd);
    let mut sections: Vec<Section> = [stack, worst, ibd].into_iter().flatten().collect();
    sections.extend(curves::sections(plan, say)?);
    sections.extend(plan.core.clone().map(Section::bench_bitcoin));
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use assay_bench::Silent;
    use assay_bench::registry::Filter;
    use assay_bench::results::BenchResults;
    use assay_bench::run::{RunOptions, run};
    use assay_bench::suite::Extent;
    use assay_lab::machine::Software;

    use super::*;

    /// Every benchmark of every suite at its smallest size: all results are checked.
    #[test]
    fn every_benchmark_gives_correct_results() {
        let options = RunOptions {
            plan: None,
            extent: Extent::Smoke,
            rounds: None,
            filter: Filter::default(),
            out_dir: None,
            resume: false,
            rerun: String::new(),
            software: Software::default(),
            counter: None,
            plan_source: String::new(),
        };
        let results = run(&sections(), &options, &Silent).expect("suites with their defaults");
        assert!(results.failures.is_empty(), "{:#?}", results.failures);
        let text = serde_json::to_string(&results).expect("results are JSON");
        assert_eq!(serde_json::from_str::<BenchResults>(&text).expect("and back"), results);
    }
}
