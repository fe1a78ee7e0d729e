//! `assay publish`.

mod folder;
mod readme;

use std::fs;

use anyhow::{Context, ensure};
use assay_report::atomic_file;

use self::folder::{Stored, entries, store};
use crate::cli::PublishArguments;
use crate::{Outcome, output};

pub(crate) fn run(arguments: &PublishArguments) -> anyhow::Result<Outcome> {
    let into = &arguments.into;
    for dir in &arguments.dirs {
        let results = Stored::of_run(dir)?;
        let stored = store(&results, into, arguments.machine.as_deref())?;
        output::complain(&format!("stored: {}", stored.display()));
    }
    let all = entries(into)?;
    ensure!(
        !all.is_empty(),
        "{} holds no results: give folders of `assay run` to publish there",
        into.display()
    );
    if arguments.json {
        output::print_json(&readme::rows(&all))?;
    }
    let path = into.join(readme::FILE);
    let text = readme::text(&all);
    if arguments.check {
        let there =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if there == text {
            return Ok(Outcome::Good);
        }
        output::complain(&format!(
            "{} differs from the results next to it: run `assay publish`",
            path.display()
        ));
        return Ok(Outcome::Negative);
    }
    if arguments.dirs.is_empty() {
        for entry in &all {
            entry.results.write(&into.join(&entry.machine).join(&entry.plan))?;
        }
    }
    atomic_file::write(&path, text.as_bytes())?;
    output::complain(&format!("page: {}", path.display()));
    Ok(Outcome::Good)
}
