//! Benchmark server of the reports on pairing curves and on compilers for `assay run`, which measures and reports
//! them: orders on standard input, answers on standard output (`assay_bench::serve`).

mod compilers;
mod pairing;

use std::io::{stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use assay_bench::registry::Section;
use assay_bench::serve::serve;
use assay_bench::suite::Extent;
use signal_hook::consts::SIGINT;

use crate::compilers::CompilersSuite;
use crate::pairing::PairingSuite;

const USAGE: &str = "usage: assay-curves pairing|compilers SETTINGS smoke|quick|full
`assay run pairing-curves` and `assay run compilers` start this program. SETTINGS are those of the plan's section, as JSON.";

#[expect(clippy::print_stderr, reason = "the only place that reports a wrong call")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-curves: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, settings, extent] = &arguments[..] else { bail!("{USAGE}") };
    let section = section(name, settings)?;
    let extent: Extent = serde_json::from_value(extent.as_str().into())
        .with_context(|| format!("no extent {extent}\n{USAGE}"))?;
    // Ctrl-C reaches both programs; the other one ends this one by closing its standard input, after its last order.
    signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))
        .context("cannot ignore interrupts")?;
    serve(&[section], extent, stdin().lock(), stdout().lock())?;
    Ok(())
}

fn section(name: &str, settings: &str) -> anyhow::Result<Section> {
    let fail = || format!("settings of [{name}]");
    Ok(match name {
        "pairing" => {
            let suite = PairingSuite::new(serde_json::from_str(settings).with_context(fail)?);
            Section { name: "pairing", suite: Box::new(suite) }
        }
        "compilers" => {
            let suite = CompilersSuite::new(serde_json::from_str(settings).with_context(fail)?);
            Section { name: "compilers", suite: Box::new(suite) }
        }
        _ => bail!("no suite {name}\n{USAGE}"),
    })
}
