//! `assay plan`.

use anyhow::bail;
use assay_bench::plan::{BenchPlan, StepsPlan};
use assay_lab::admission::MempoolPlan;
use assay_lab::plan::Plan;

use crate::Outcome;
use crate::cli::{PlanArguments, PlanCommand};
use crate::output;

pub(crate) fn run(arguments: PlanArguments) -> anyhow::Result<Outcome> {
    match arguments.command {
        PlanCommand::List { json: true } => {
            let names = Plan::builtin_names().chain(MempoolPlan::builtin_names());
            let names = names.chain(BenchPlan::builtin_names()).chain(StepsPlan::builtin_names());
            output::print_json(&names.collect::<Vec<_>>())?;
        }
        PlanCommand::List { json: false } => {
            let plans = titles()?;
            let width = plans.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
            for (name, title) in plans {
                output::print(&format!("{name:<width$}  {title}\n"))?;
            }
        }
        PlanCommand::Show { name } => {
            let text = Plan::builtin_text(&name).or(MempoolPlan::builtin_text(&name));
            let text = text.or(BenchPlan::builtin_text(&name));
            match text.or(StepsPlan::builtin_text(&name)) {
                Some(text) => output::print(text)?,
                None => bail!("there is no built-in plan {name:?}; `assay plan list` shows them"),
            }
        }
    }
    Ok(Outcome::Good)
}

/// Names and titles of all built-in plans.
fn titles() -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut plans = Vec::new();
    for name in Plan::builtin_names() {
        plans.push((name, Plan::builtin(name)?.title));
    }
    for name in MempoolPlan::builtin_names() {
        let text = MempoolPlan::builtin_text(name).unwrap_or_default();
        plans.push((name, MempoolPlan::parse(text, name)?.title));
    }
    for name in BenchPlan::builtin_names() {
        let text = BenchPlan::builtin_text(name).unwrap_or_default();
        plans.push((name, BenchPlan::parse(text, name)?.title));
    }
    for name in StepsPlan::builtin_names() {
        let text = StepsPlan::builtin_text(name).unwrap_or_default();
        plans.push((name, StepsPlan::parse(text, name)?.title));
    }
    Ok(plans)
}
