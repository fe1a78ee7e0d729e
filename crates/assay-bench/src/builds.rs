//! Compares builds of this program: the same operation with other compilers or flags.
//!
//! Each build is a process that works on request ([`crate::serve`]) and times itself; epochs are interleaved.

use std::cell::RefCell;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::harness::{Alternative, Rounds, compare};
use crate::plan::Build;
use crate::registry::Filter;
use crate::results::{Measured, comparisons};
use crate::served::prepare;
use crate::suite::{Benchmark, Extent, Watch};
use crate::talk::Talk;

#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildOptions<'a> {
    /// The plan for the builds: a name or a path, and flags that change its keys.
    pub(crate) plan: &'a [String],
    pub(crate) extent: Extent,
    pub(crate) rounds: usize,
    pub(crate) floor: f64,
}

#[derive(Debug)]
pub(crate) struct Builds<'a> {
    peers: Vec<(&'a Build, RefCell<Talk>)>,
    options: BuildOptions<'a>,
}

impl<'a> Builds<'a> {
    pub(crate) fn start(builds: &'a [Build], options: BuildOptions<'a>) -> Result<Self> {
        let start = |build: &'a Build| Ok((build, RefCell::new(start(build, &options)?)));
        Ok(Self { peers: builds.iter().map(start).collect::<Result<_>>()?, options })
    }

    /// True if all of them select the benchmark.
    pub(crate) fn admit(&self, benchmark: &str) -> bool {
        let admits = |build: &Build| Filter::new(build.benchmarks.clone()).admits(benchmark);
        self.peers.iter().all(|(build, _)| admits(build))
    }

    /// Runs a benchmark with all of them. Each alternative of each build is compared with the same one of the first build.
    pub(crate) fn measure(
        &self,
        section: &str,
        benchmark: &Benchmark<'_>,
        watch: &dyn Watch,
    ) -> Result<Measured> {
        let mut names: Vec<String> = Vec::new();
        let mut by_build = Vec::new();
        for (build, peer) in &self.peers {
            let all = prepare(peer, &benchmark.name, |name| at(name, &build.name))?;
            let own: Vec<String> = all.iter().map(|one| plain(one.name()).to_owned()).collect();
            let is_same = by_build.is_empty() || own == names;
            ensure!(is_same, "{} has other alternatives than the first build", build.name);
            names = own;
            by_build.push(all.into_iter());
        }
        // Builds are adjacent in time, not alternatives.
        let mut alternatives: Vec<Alternative<'_>> = Vec::new();
        for _ in &names {
            alternatives.extend(by_build.iter_mut().filter_map(Iterator::next));
        }
        let warm_up = usize::from(self.options.extent != Extent::Smoke);
        let rounds = Rounds { count: self.options.rounds, warm_up };
        watch.begin(&benchmark.name, (rounds.count + rounds.warm_up) as u64);
        let row = compare(&benchmark.name, &mut alternatives, rounds, &mut || watch.step())?;
        let first = &self.peers[0].0.name;
        let baselines: Vec<String> = names.iter().map(|name| at(name, first)).collect();
        let of_first =
            |name: &'_ str| baselines.iter().find(|baseline| **baseline == at(plain(name), first));
        let mut measured = Measured::new(section, benchmark, row, self.options.floor);
        measured.comparisons = comparisons(&measured.row, self.options.floor, |name| {
            of_first(name).map_or(name, String::as_str)
        });
        Ok(measured)
    }
}

/// Name of an alternative of a build.
fn at(name: &str, build: &str) -> String {
    format!("{name} @ {build}")
}

fn plain(name: &str) -> &str {
    name.rsplit_once(" @ ").map_or(name, |(plain, _)| plain)
}

fn start(build: &Build, options: &BuildOptions<'_>) -> Result<Talk> {
    let (program, arguments) = build.command.split_first().unzip();
    let mut arguments = arguments.map_or_else(Vec::new, <[String]>::to_vec);
    let words = ["bench", "serve", "--extent", options.extent.text(), "--plan"];
    arguments.extend(words.map(str::to_owned));
    arguments.extend_from_slice(options.plan);
    Talk::start(Path::new(program.map_or("", String::as_str)), &arguments)
}
