//! Benchmarks of two reports, above the harness that times them: stack element size and initial block download; and an atlas of worst
//! blocks. The benchmarks on pairing curves and on compilers are those of another program, which is found, and built, here.
//!
//! A study is a suite of benchmarks for one section of a plan, and what their figures say: tables and answers behind the times.
//! What is a table of parameters is data, next to the plans: published figures (`plans/published/`) and claims
//! (`plans/claims/`), and programs and sizes of operations (`plans/studies/`).
//!
//! ```
//! let names: Vec<&str> = assay_studies::sections().iter().map(|section| section.name).collect();
//! assert_eq!(names, ["stack", "worst", "ibd", "harness"]);
//! ```
//!
//! Deliberately absent: how anything is timed, compared and reported. That is `assay-bench`.

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

/// All suites of this program with their default settings, the harness's own among them.
pub fn sections() -> Vec<Section> {
    vec![
        stack(StackSettings::default()),
        worst(WorstSettings::default()),
        ibd(IbdSettings::default()),
        Section::harness(),
    ]
}

/// The suites that a plan asks for. Those of `assay-curves` are built first where that is needed, which `say` announces.
///
/// # Errors
/// When the plan asks for suites of `assay-curves`, which is not there and cannot be built.
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

    /// Every benchmark of every suite, as small as it can be: all answers are checked.
    #[test]
    fn every_benchmark_answers_rightly() {
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
