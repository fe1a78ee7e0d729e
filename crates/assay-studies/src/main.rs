//! `assay-bench`: the suites and experiments that `assay bench` and `assay run` measure and report.

use std::io::{stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use assay_bench::instructions::{Once, once};
use assay_bench::programs::{SuiteSettings, version};
use assay_bench::registry::Section;
use assay_bench::serve::{perform, serve};
use assay_bench::suite::Extent;
use assay_engine::defect;
use assay_studies::{experiment, sections_of};
use signal_hook::consts::SIGINT;

const USAGE: &str = "usage: assay-bench serve SUITES smoke|quick|full
       assay-bench once SUITES ORDER
       assay-bench experiment NAME OPTIONS
       assay-bench --version
`assay bench` and `assay run` start this program; SUITES, ORDER and OPTIONS are JSON.";

#[expect(clippy::print_stderr, reason = "the only place that reports a wrong call")]
fn main() -> ExitCode {
    defect::stop_on_panic();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stdout, reason = "answers of single calls")]
fn run() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Ctrl-C reaches both programs; the other one ends this one, after its last order or at once.
    signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))
        .context("cannot ignore interrupts")?;
    match words[..] {
        ["--version"] => {
            println!("{}", version(env!("CARGO_PKG_VERSION"), env!("ASSAY_COMMIT")));
        }
        ["serve", suites, extent] => {
            let extent: Extent = serde_json::from_value(extent.into())
                .with_context(|| format!("no extent {extent}\n{USAGE}"))?;
            serve(&sections_of(parse(suites)?), extent, stdin().lock(), stdout().lock())?;
        }
        ["once", suites, order] => {
            let order: Once = serde_json::from_str(order).with_context(|| order.to_owned())?;
            let mut sections = sections_of(parse(suites)?);
            sections.push(Section::harness());
            let done = once(&sections, &order, code_paths())?;
            println!("{}", serde_json::to_string(&done)?);
        }
        ["experiment", name, options] => {
            perform(|progress| experiment(name, options, progress), stdout().lock())?;
        }
        _ => bail!("{USAGE}"),
    }
    Ok(())
}

fn parse(suites: &str) -> anyhow::Result<Vec<SuiteSettings>> {
    serde_json::from_str(suites).with_context(|| format!("no suites: {suites}"))
}

fn code_paths() -> String {
    let signatures = assay_secp::BatchVerifier::new().backend().name();
    format!("hashes {}, batches of signatures {signatures}", assay_hash::backend())
}
