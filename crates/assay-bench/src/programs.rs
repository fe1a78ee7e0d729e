//! The programs of this repository that hold suites and experiments, each found in the folder of this program or built on first use:
//! `assay-bench` with those of the engine, `assay-curves` with those of the workspace `curves/`
//! (docs/adr/0053-suites-are-programs.md).

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use assay_lab::companion::{Companion, listed};
use assay_lab::machine::Software;
use assay_report::child;
use assay_report::record::Record;
use serde::{Deserialize, Serialize};

use crate::plan::{BenchPlan, IbdSettings, StackSettings, WorstSettings};
use crate::registry::Section;
use crate::serve::{Answer, Step};
use crate::served::ServedSuite;
use crate::talk::Talk;
use crate::{BenchError, Progress};

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

/// Reason why a program is unavailable.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error(
        "cannot find {name}{}; build it with `{command}` in a checkout, and name its path in {variable}",
        listed(looked)
    )]
    Absent { name: &'static str, command: String, variable: &'static str, looked: Vec<PathBuf> },
    #[error("cannot start `{command}`, which builds {name}")]
    Cargo { name: &'static str, command: String, source: std::io::Error },
    #[error("`{command}` ended with {status}")]
    Build { command: String, status: ExitStatus },
    #[error("{} is of {found}, this program of {expected}: build both from one commit, with `{command}`", path.display())]
    Version { path: PathBuf, found: String, expected: String, command: String },
}

impl Program {
    /// The shell command that builds it in this workspace.
    fn command(self, workspace: &Path) -> String {
        format!("cd {} && cargo build {}", workspace.display(), self.build.join(" "))
    }

    /// Path of the program; built first if it is missing and a checkout has its sources.
    fn find(self, say: &dyn Fn(&str)) -> Result<PathBuf, ProgramError> {
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
            let status = child::status(&mut cargo).map_err(|source| ProgramError::Cargo {
                name,
                command: command.clone(),
                source,
            })?;
            if !status.success() {
                return Err(ProgramError::Build { command, status });
            }
        }
        let built = looked.iter().find(is_there).cloned();
        built.ok_or_else(|| ProgramError::Absent {
            name,
            command: self.command(Path::new(companion.folder)),
            variable: companion.variable,
            looked,
        })
    }
}

/// Suites of `assay-bench` with their settings; one without is left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Suites {
    pub stack: Option<StackSettings>,
    pub worst: Option<WorstSettings>,
    pub ibd: Option<IbdSettings>,
}

impl Suites {
    /// All, with their default settings.
    pub fn all() -> Self {
        Self {
            stack: Some(StackSettings::default()),
            worst: Some(WorstSettings::default()),
            ibd: Some(IbdSettings::default()),
        }
    }

    /// The suites of a plan.
    pub fn of(plan: &BenchPlan) -> Self {
        let BenchPlan { stack, worst, ibd, .. } = plan.clone();
        Self { stack, worst, ibd }
    }

    /// Each alone, with the name of its section.
    fn each(self) -> Vec<(&'static str, Self)> {
        let Self { stack, worst, ibd } = self;
        let all = [
            stack.map(|stack| ("stack", Self { stack: Some(stack), ..Self::default() })),
            worst.map(|worst| ("worst", Self { worst: Some(worst), ..Self::default() })),
            ibd.map(|ibd| ("ibd", Self { ibd: Some(ibd), ..Self::default() })),
        ];
        all.into_iter().flatten().collect()
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
    pub fn sections(self) -> Result<Vec<Section>, BenchError> {
        let mut sections = self.of_engine(Suites::all())?;
        sections.push(Section::harness());
        Ok(sections)
    }

    /// The suites of a plan.
    ///
    /// # Errors
    /// If the plan needs a program that is missing and cannot be built.
    pub fn sections_of(self, plan: &BenchPlan) -> Result<Vec<Section>, BenchError> {
        let mut sections = self.of_engine(Suites::of(plan))?;
        let settings = [
            plan.pairing.as_ref().map(|pairing| ("pairing", json(pairing))),
            plan.compilers.as_ref().map(|compilers| ("compilers", json(compilers))),
        ];
        for (name, settings) in settings.into_iter().flatten() {
            let program = CURVES.find(self.say).map_err(setting)?;
            sections.push(served(name, program, vec![name.to_owned(), settings]));
        }
        sections.extend(plan.core.clone().map(Section::bench_bitcoin));
        Ok(sections)
    }

    fn of_engine(self, suites: Suites) -> Result<Vec<Section>, BenchError> {
        let suites = suites.each();
        if suites.is_empty() {
            return Ok(Vec::new());
        }
        let program = self.bench()?;
        let section = |(name, suite): (&'static str, Suites)| {
            served(name, program.clone(), vec!["serve".to_owned(), json(&suite)])
        };
        Ok(suites.into_iter().map(section).collect())
    }

    /// Command line of a process that runs an alternative of these suites, or of the harness's, for
    /// [`Counter`](crate::instructions::Counter).
    ///
    /// # Errors
    /// If `assay-bench` is missing and cannot be built.
    pub fn once(self, suites: &Suites) -> Result<Vec<OsString>, BenchError> {
        Ok(vec![self.bench()?.into(), "once".into(), json(suites).into()])
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
    ) -> Result<Record, BenchError> {
        let arguments = ["experiment".to_owned(), name.to_owned(), json(options)];
        let mut talk = Talk::start(&self.bench()?, &arguments)?;
        let answer = talk.hear_with_progress(progress).map_err(|error| match error {
            BenchError::PeerFailed { detail, .. } => BenchError::Setting(detail.into()),
            other => other,
        })?;
        answer.record.ok_or_else(|| talk.failed("it has no record"))
    }

    /// Path of `assay-bench` of this program's commit.
    fn bench(self) -> Result<PathBuf, BenchError> {
        let path = BENCH.find(self.say).map_err(setting)?;
        let peer = |source| BenchError::Peer { program: path.clone(), source };
        let output = child::output(Command::new(&path).arg("--version")).map_err(peer)?;
        let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let commit = self.software.commit.as_deref().unwrap_or_default();
        let expected = version(&self.software.assay, commit);
        if found == expected {
            return Ok(path);
        }
        let command = "cargo build --release --locked --package assay --package assay-studies";
        let command = command.to_owned();
        Err(setting(ProgramError::Version { path, found, expected, command }))
    }
}

/// The answer of `assay-bench --version`. The commit is empty if it is unknown.
pub fn version(assay: &str, commit: &str) -> String {
    format!("{assay} {}", if commit.is_empty() { "of an unknown commit" } else { commit })
}

fn served(name: &'static str, program: PathBuf, arguments: Vec<String>) -> Section {
    Section { name, suite: Box::new(ServedSuite::new(program, arguments)) }
}

fn setting(error: ProgramError) -> BenchError {
    BenchError::Setting(Box::new(error))
}

fn json(settings: &impl Serialize) -> String {
    serde_json::to_string(settings).expect("settings have text keys and numbers")
}

impl Talk {
    /// The next answer; progress before it is passed on.
    pub(crate) fn hear_with_progress(
        &mut self,
        progress: &dyn Progress,
    ) -> Result<Answer, BenchError> {
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
