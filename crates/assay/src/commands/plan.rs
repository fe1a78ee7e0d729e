//! `assay plan`.

use anyhow::bail;
use assay_bench::plan::{BenchPlan, StepsPlan};
use assay_lab::admission::MempoolPlan;
use assay_lab::plan::{Plan, PlanFile};

use crate::Outcome;
use crate::cli::{PlanArguments, PlanCommand};
use crate::output;

/// Name, text and title of a built-in plan.
type Builtin = (&'static str, &'static str, String);

pub(crate) fn run(arguments: PlanArguments) -> anyhow::Result<Outcome> {
    let plans = builtin()?;
    match arguments.command {
        PlanCommand::List { json: true } => {
            let names: Vec<&str> = plans.iter().map(|(name, ..)| *name).collect();
            output::print_json(&names)?;
        }
        PlanCommand::List { json: false } => {
            let width = plans.iter().map(|(name, ..)| name.len()).max().unwrap_or_default();
            for (name, _, title) in plans {
                output::print(&format!("{name:<width$}  {title}\n"))?;
            }
        }
        PlanCommand::Show { name } => match plans.iter().find(|(builtin, ..)| *builtin == name) {
            Some((_, text, _)) => output::print(text)?,
            None => bail!("there is no built-in plan {name:?}; `assay plan list` shows them"),
        },
    }
    Ok(Outcome::Good)
}

/// All built-in plans.
pub(crate) fn builtin() -> anyhow::Result<Vec<Builtin>> {
    let kinds = [of::<Plan>()?, of::<MempoolPlan>()?, of::<BenchPlan>()?, of::<StepsPlan>()?];
    Ok(kinds.concat())
}

fn of<P: PlanFile>() -> anyhow::Result<Vec<Builtin>> {
    let plan = |(name, text): &(&'static str, &'static str)| -> anyhow::Result<Builtin> {
        Ok((*name, *text, P::parse(text, name)?.title().to_owned()))
    };
    P::BUILTIN.iter().map(plan).collect()
}
