//! `assay compare`.

use std::path::Path;

use anyhow::{Context, bail};
use assay_lab::compare::{
    CompareOptions, Comparison, Floor, Source, compare, compare_machines, load_machines,
};
use assay_report::atomic_file;

use crate::Outcome;
use crate::cli::CompareArguments;
use crate::output;

pub(crate) fn run(arguments: &CompareArguments) -> anyhow::Result<Outcome> {
    let load = |path: &std::path::PathBuf| Source::load(path);
    let sources = match &arguments.machines {
        Some(dir) => load_machines(dir)?,
        None => arguments.results.iter().map(load).collect::<Result<Vec<_>, _>>()?,
    };
    let aa = arguments.aa.as_deref().map(read_floor).transpose()?;
    if let (Some(floor), Some(source)) = (&aa, sources.first())
        && !floor.is_of(&source.results.machine)
    {
        output::complain("assay: the floor was measured on another machine than the results");
    }
    let options = CompareOptions {
        baseline: arguments.baseline.clone(),
        floor: arguments.floor,
        aa,
        delta: arguments.delta,
        control_limit: arguments.control_limit,
        vary: arguments.vary.clone(),
    };
    let comparison = match &arguments.machines {
        Some(_) => compare_machines(&sources, &options)?,
        None => compare(&sources, &options)?,
    };
    if arguments.json {
        output::print_json(&comparison)?;
    } else if arguments.csv {
        output::print(&comparison.csv())?;
    } else if arguments.markdown {
        output::print(&comparison.markdown())?;
    } else {
        output::print(&comparison.text())?;
    }
    if let Some(path) = &arguments.save_floor {
        save_floor(&comparison, path)?;
    }
    Ok(if comparison.is_slower() { Outcome::Negative } else { Outcome::Good })
}

/// Reads a stored noise floor, or derives one from results with the same software twice.
fn read_floor(path: &Path) -> anyhow::Result<Floor> {
    if let Some(floor) = Floor::load(path)? {
        return Ok(floor);
    }
    let source = Source::load(path)?;
    let found = compare(&[source], &CompareOptions::default())?.floor;
    found.with_context(|| {
        format!("{}: no valid pairs of the same software with itself there", path.display())
    })
}

fn save_floor(comparison: &Comparison, path: &Path) -> anyhow::Result<()> {
    let Some(floor) = &comparison.floor else {
        bail!("no valid pairs of the same software with itself here, so there is no floor to save");
    };
    let json = serde_json::to_vec_pretty(floor).context("cannot write JSON")?;
    atomic_file::write(path, &json)?;
    output::complain(&format!("floor: {}", path.display()));
    Ok(())
}
