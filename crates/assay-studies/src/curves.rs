//! The suites on pairing curves and on compilers, served by `assay-curves`, a program of the workspace `curves/`,
//! which no crate of this workspace depends on (docs/adr/0053-curves-workspace.md).

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use assay_bench::BenchError;
use assay_bench::plan::BenchPlan;
use assay_bench::registry::Section;
use assay_bench::served::ServedSuite;
use assay_lab::companion::{Companion, listed};
use assay_report::child;
use serde::Serialize;

const PROGRAM: Companion<'static> =
    Companion { variable: "ASSAY_CURVES", folder: "curves", file: "target/release/assay-curves" };

#[derive(Debug, thiserror::Error)]
enum CurvesError {
    #[error(
        "cannot find assay-curves{}; build it with `cd curves && cargo build --release --locked` in a checkout, and name its path in ASSAY_CURVES",
        listed(looked)
    )]
    Absent { looked: Vec<PathBuf> },
    #[error(
        "cannot start cargo, which builds assay-curves (`cd {} && cargo build --release --locked`)",
        workspace.display()
    )]
    Cargo { workspace: PathBuf, source: io::Error },
    #[error("`cd {} && cargo build --release --locked` ended with {status}", workspace.display())]
    Build { workspace: PathBuf, status: ExitStatus },
}

/// The sections of a plan that `assay-curves` serves.
pub(crate) fn sections(plan: &BenchPlan, say: &dyn Fn(&str)) -> Result<Vec<Section>, BenchError> {
    let settings = [
        plan.pairing.as_ref().map(|pairing| ("pairing", json(pairing))),
        plan.compilers.as_ref().map(|compilers| ("compilers", json(compilers))),
    ];
    let mut sections = Vec::new();
    for (name, settings) in settings.into_iter().flatten() {
        let program = program(say).map_err(|error| BenchError::Setting(Box::new(error)))?;
        let suite = ServedSuite::new(program, vec![name.to_owned(), settings]);
        sections.push(Section { name, suite: Box::new(suite) });
    }
    Ok(sections)
}

fn json(settings: &impl Serialize) -> String {
    serde_json::to_string(settings).expect("settings of a plan have text keys and numbers")
}

/// Path of the program; built first if it is missing and the checkout has its sources.
fn program(say: &dyn Fn(&str)) -> Result<PathBuf, CurvesError> {
    let looked = PROGRAM.places(None);
    let is_there = |path: &&PathBuf| path.is_file();
    if let Some(path) = looked.iter().find(is_there) {
        return Ok(path.clone());
    }
    // A path from the environment is never built.
    let is_named = env::var_os(PROGRAM.variable).is_some();
    let workspaces = if is_named { Vec::new() } else { PROGRAM.workspaces() };
    if let Some(workspace) = workspaces.first() {
        say(&format!(
            "assay-curves is not built yet: cd {} && cargo build --release --locked",
            workspace.display()
        ));
        build(workspace)?;
    }
    let built = looked.iter().find(is_there).cloned();
    built.ok_or(CurvesError::Absent { looked })
}

/// Builds the program. Cargo prints its progress on standard error.
fn build(workspace: &Path) -> Result<(), CurvesError> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked"]).current_dir(workspace);
    let status = child::status(cargo.stdout(Stdio::null()));
    let status =
        status.map_err(|source| CurvesError::Cargo { workspace: workspace.to_owned(), source })?;
    if status.success() {
        Ok(())
    } else {
        Err(CurvesError::Build { workspace: workspace.to_owned(), status })
    }
}
