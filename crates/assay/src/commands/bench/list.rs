//! `assay bench list`.

use assay_bench::registry::{Filter, benchmarks};
use assay_bench::suite::Benchmark;
use serde::Serialize;

use crate::Outcome;
use crate::cli::BenchListArguments;
use crate::output;

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    section: &'a str,
    series: &'a str,
    size: Option<u64>,
    unit: &'a str,
}

pub(super) fn run(arguments: &BenchListArguments) -> anyhow::Result<Outcome> {
    let sections = super::caller(&super::software()).sections()?;
    let all =
        benchmarks(&sections, arguments.extent.into(), &Filter::new(arguments.filter.clone()))?;
    if arguments.json {
        let entry = |(section, benchmark): &(&'static str, Benchmark<'_>)| {
            let Benchmark { name, series, size, unit, .. } = benchmark;
            serde_json::json!(Entry { name, section, series, size: *size, unit })
        };
        output::print_json(&all.iter().map(entry).collect::<Vec<_>>())?;
    } else {
        let mut lines = String::new();
        for (_, benchmark) in &all {
            lines.push_str(&benchmark.name);
            lines.push('\n');
        }
        output::print(&lines)?;
    }
    Ok(if all.is_empty() { Outcome::Negative } else { Outcome::Good })
}
