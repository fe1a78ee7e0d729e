//! `assay history`.

use anyhow::ensure;
use assay_lab::history::{HistoryOptions, history};
use assay_report::atomic_file;

use crate::Outcome;
use crate::cli::HistoryArguments;
use crate::output;

pub(crate) fn run(arguments: &HistoryArguments) -> anyhow::Result<Outcome> {
    let p_max = arguments.p_max;
    ensure!(p_max > 0.0 && p_max < 1.0, "--p-max {p_max}: a probability lies between 0 and 1");
    let options = HistoryOptions { p_max, size_min: arguments.size_min, phases: arguments.phases };
    let history = history(&arguments.dir, options)?;
    if let Some(path) = &arguments.html {
        atomic_file::write(path, history.html().as_bytes())?;
        output::complain(&format!("page: {}", path.display()));
    }
    if arguments.json {
        output::print_json(&history)?;
    } else if arguments.csv {
        output::print(&history.csv())?;
    } else if arguments.markdown {
        output::print(&history.markdown())?;
    } else {
        output::print(&history.text())?;
    }
    Ok(if history.is_slower() { Outcome::Negative } else { Outcome::Good })
}
