//! The programs of this repository that hold suites and experiments, each found in the folder of this program or built on first use:
//! `assay-bench` with those of the engine, `assay-curves` with those of the workspace `curves/`
//! (docs/adr/0053-suites-are-programs.md).

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use assay_lab::companion::{Companion, listed};
use assay_lab::machine::Software;
use assay_report::child;
use assay_report::record::Record;
use serde::{Deserialize, Serialize};

use crate::Progress;
use crate::plan::{BenchPlan, IbdSettings, StackSettings, WorstSettings};
use crate::registry::Section;
use crate::serve::{Answer, Step};
use crate::served::ServedSuite;
use crate::talk::{Failed, Talk};

/// A program and the command that builds it.
#[derive(Clone, Copy, Debug)]
struct Program {
    name: &'static str,
    companion: Companion<'static>,
    /// Words after `cargo build`, in the program's workspace.
    build: &'static [&'static str],
}

const BENCH: Program = Program {
    name: "assay-bench",
    companion: Companion {
        variable: "ASSAY_BENCH",
        folder: "",
        file: if cfg!(debug_assertions) {
            "target/debug/assay-bench"
        } else {
            "target/release/assay-bench"
        },
    },
    build: if cfg!(debug_assertions) {
        &["--locked", "--package", "assay-studies"]
    } else {
        &["--release", "--locked", "--package", "assay-studies"]
    },
};

const CURVES: Program = Program {
    name: "assay-curves",
    companion: Companion {
        variable: "ASSAY_CURVES",
        folder: "curves",
        file: "target/release/assay-curves",
    },
    build: &["--release", "--locked"],
};

impl Program {
    /// The shell command that builds it in this workspace.
    fn command(self, workspace: &Path) -> String {
        format!("cd {} && cargo build {}", workspace.display(), self.build.join(" "))
    }

    /// Path of the program; built first if it is missing and a checkout has its sources.
    fn find(self, say: &dyn Fn(&str)) -> Result<PathBuf> {
        let Self { name, companion, .. } = self;
        let looked = companion.places(None);
        let is_there = |path: &&PathBuf| path.is_file();
        if let Some(path) = looked.iter().find(is_there) {
            return Ok(path.clone());
        }
        // A path from the environment is never built.
        let is_named = env::var_os(companion.variable).is_some();
        let workspaces = if is_named { Vec::new() } else { companion.workspaces() };
        if let Some(workspace) = workspaces.first() {
            let command = self.command(workspace);
            say(&format!("{name} is not built yet: {command}"));
            let mut cargo = Command::new("cargo");
            cargo.arg("build").args(self.build).current_dir(workspace).stdout(Stdio::null());
            let status = child::status(&mut cargo)
                .with_context(|| format!("cannot start `{command}`, which builds {name}"))?;
            ensure!(status.success(), "`{command}` ended with {status}");
        }
        looked.iter().find(is_there).cloned().with_context(|| {
            format!(
                "cannot find {name}{}; build it with `{}` in a checkout, and name its path in {}",
                listed(&looked),
                self.command(Path::new(companion.folder)),
                companion.variable
            )
        })
    }
}

/// A suite of `assay-bench` with its settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuiteSettings {
    Stack(StackSettings),
    Worst(WorstSettings),
    Ibd(IbdSettings),
}

impl SuiteSettings {
    pub fn all() -> Vec<Self> {
        let (stack, worst, ibd) = Default::default();
        vec![Self::Stack(stack), Self::Worst(worst), Self::Ibd(ibd)]
    }

    pub fn of(plan: &BenchPlan) -> Vec<Self> {
        let BenchPlan { stack, worst, ibd, .. } = plan.clone();
        let all = [stack.map(Self::Stack), worst.map(Self::Worst), ibd.map(Self::Ibd)];
        all.into_iter().flatten().collect()
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Stack(_) => "stack",
            Self::Worst(_) => "worst",
            Self::Ibd(_) => "ibd",
        }
    }
}

/// This program, and the reader of its announcements.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub software: &'a Software,
    /// Announces a build.
    pub say: &'a dyn Fn(&str),
}

impl Caller<'_> {
    /// All suites with their default settings, including the harness's own.
    ///
    /// # Errors
    /// If `assay-bench` is missing and cannot be built.
    pub fn sections(self) -> Result<Vec<Section>> {
        let mut sections = self.of_engine(&SuiteSettings::all())?;
        sections.push(Section::harness());
        Ok(sections)
    }

    /// The suites of a plan.
    ///
    /// # Errors
    /// If the plan needs a program that is missing and cannot be built.
    pub fn sections_of(self, plan: &BenchPlan) -> Result<Vec<Section>> {
        let mut sections = self.of_engine(&SuiteSettings::of(plan))?;
        let settings = [
            plan.pairing.as_ref().map(|pairing| ("pairing", json(pairing))),
            plan.compilers.as_ref().map(|compilers| ("compilers", json(compilers))),
        ];
        for (name, settings) in settings.into_iter().flatten() {
            let program = CURVES.find(self.say)?;
            sections.push(served(name, program, vec![name.to_owned(), settings]));
        }
        sections.extend(plan.core.clone().map(Section::bench_bitcoin));
        Ok(sections)
    }

    fn of_engine(self, suites: &[SuiteSettings]) -> Result<Vec<Section>> {
        if suites.is_empty() {
            return Ok(Vec::new());
        }
        let program = self.bench()?;
        let section = |suite: &SuiteSettings| {
            served(suite.name(), program.clone(), vec!["serve".to_owned(), json(&[suite])])
        };
        Ok(suites.iter().map(section).collect())
    }

    /// Command line of a process that runs an alternative of these suites, or of the harness's, for
    /// [`Counter`](crate::instructions::Counter).
    ///
    /// # Errors
    /// If `assay-bench` is missing and cannot be built.
    pub fn once(self, suites: &[SuiteSettings]) -> Result<Vec<OsString>> {
        Ok(vec![self.bench()?.into(), "once".into(), json(&suites).into()])
    }

    /// Runs an experiment of `assay-bench`.
    ///
    /// # Errors
    /// When the experiment fails, or its program is missing and cannot be built.
    pub fn experiment(
        self,
        name: &str,
        options: &impl Serialize,
        progress: &dyn Progress,
    ) -> Result<Record> {
        let arguments = ["experiment".to_owned(), name.to_owned(), json(options)];
        let mut talk = Talk::start(&self.bench()?, &arguments)?;
        let answer = talk
            .hear_with_progress(progress)
            .map_err(|error| error.downcast().map_or_else(|other| other, Failed::detail))?;
        answer.record.with_context(|| format!("{name} has no record"))
    }

    fn bench(self) -> Result<PathBuf> {
        let path = BENCH.find(self.say)?;
        let output = child::output(Command::new(&path).arg("--version"))
            .with_context(|| format!("cannot speak to {}", path.display()))?;
        let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let commit = self.software.commit.as_deref().unwrap_or_default();
        let expected = version(&self.software.assay, commit);
        let command = "cargo build --release --locked --package assay --package assay-studies";
        ensure!(
            found == expected,
            "{} is of {found}, this program of {expected}: build both from one commit, with `{command}`",
            path.display()
        );
        Ok(path)
    }
}

/// The answer of `assay-bench --version`. The commit is empty if it is unknown.
pub fn version(assay: &str, commit: &str) -> String {
    format!("{assay} {}", if commit.is_empty() { "of an unknown commit" } else { commit })
}

fn served(name: &'static str, program: PathBuf, arguments: Vec<String>) -> Section {
    Section { name, suite: Box::new(ServedSuite::new(program, arguments)) }
}

fn json(settings: &impl Serialize) -> String {
    serde_json::to_string(settings).expect("settings have text keys and numbers")
}

impl Talk {
    /// The next answer; progress before it is passed on.
    pub(crate) fn hear_with_progress(&mut self, progress: &dyn Progress) -> Result<Answer> {
        loop {
            let answer: Answer = self.hear()?;
            match answer.progress {
                Some(Step::Begin { part, steps }) => progress.begin(&part, steps),
                Some(Step::Done) => progress.step(),
                None => return Ok(answer),
            }
        }
    }
}
