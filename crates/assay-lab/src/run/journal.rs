//! Journal: one file per run, written atomically, so that a plan can resume after a crash.

use std::path::{Path, PathBuf};
use std::{fs, io};

use assay_report::atomic_file::{self, WriteError};
use assay_report::number::in_percent;
use serde::{Deserialize, Serialize};

use crate::chain::ChainSnapshot;
use crate::machine::Machine;
use crate::plan::{FeedPlan, IndexCheckPlan, IndexKind, IndexPlan, Plan, SyncPlan};
use crate::process::Ports;
use crate::results::{ChainSummary, Run, SCHEMA, Status};
use crate::target::{DeliveryMethod, Family, Fingerprint, SyncLaunch, Target};

/// Settings that must be equal to reuse a finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    chain: ChainSummary,
    feed: FeedPlan,
    family: Family,
    version: String,
    program: Fingerprint,
    args: Vec<String>,
    seen: f64,
    repeat: u32,
    lab: String,
    cpu: Option<String>,
    cores: usize,
    #[serde(default)]
    index: Option<IndexSettings>,
    /// Sync settings that are absent from the command line.
    #[serde(default)]
    sync: SyncPlan,
    #[serde(default)]
    drop_caches: bool,
    #[serde(default)]
    drop_blocks: bool,
    #[serde(default)]
    start_from: Option<PathBuf>,
}

/// The same for an index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct IndexSettings {
    kind: IndexKind,
    version: String,
    program: Fingerprint,
    plan: Option<IndexPlan>,
    check: IndexCheckPlan,
}

/// File next to the runs with the number of planned repeats.
const PLANNED: &str = "planned";

#[derive(Serialize, Deserialize)]
struct RunFile {
    schema: u32,
    settings: Settings,
    run: Run,
}

impl Settings {
    pub(crate) fn new(
        plan: &Plan,
        chain: &ChainSummary,
        machine: &Machine,
        lab: &str,
        target: &Target,
        (seen, repeat): (f64, u32),
    ) -> Self {
        // Ports and folders differ from run to run, so the command uses fixed examples.
        let ports = Ports::default();
        let datadir = Path::new("datadir");
        let launch = match target.method(plan.feed.by) {
            Ok(method) if method != DeliveryMethod::Rpc => {
                let blocks = Path::new("blocks");
                let with = SyncLaunch {
                    chain: &chain.chain,
                    activation: &chain.activation,
                    plan,
                    datadir,
                    ports: &ports,
                    source: 0,
                    blocks,
                    // The settings of the sync define it.
                    assumed: None,
                    is_own: chain.files.is_some(),
                    stop_height: chain.files.as_ref().map(|_| chain.height),
                };
                target.launch_sync(method, &with)
            }
            _ => {
                let launch = target.launch(&chain.chain, datadir, &ports, &plan.target);
                if plan.feed.by.is_relay() { target.with_peers(launch, &ports) } else { launch }
            }
        };
        Self {
            // The location of the files, and their contents above the tip, do not matter.
            chain: ChainSummary {
                forge_s: None,
                ranges: Vec::new(),
                files: None,
                snapshot: chain
                    .snapshot
                    .clone()
                    .map(|snapshot| ChainSnapshot { path: PathBuf::new(), ..snapshot }),
                ..chain.clone()
            },
            // The other shares of the plan do not affect a run.
            feed: FeedPlan { seen: vec![seen], ..plan.feed.clone() },
            family: target.family,
            version: target.version.clone(),
            program: target.fingerprint.clone(),
            args: launch.words(),
            seen,
            repeat,
            lab: lab.to_owned(),
            cpu: machine.cpu.clone(),
            cores: machine.cores,
            sync: plan.sync.clone(),
            index: target.index.as_ref().map(|index| IndexSettings {
                kind: index.kind,
                version: index.version.clone(),
                program: index.fingerprint.clone(),
                plan: index.plan(&plan.target).cloned(),
                check: plan.index.clone(),
            }),
            drop_caches: plan.runs.drop_caches,
            drop_blocks: plan.runs.drop_blocks,
            start_from: plan.runs.start_from.clone(),
        }
    }
}

/// Name of a run: target, share in percent, and the repeat if there are several.
pub(crate) fn run_id(target: &str, seen: f64, repeat: u32, repeats: u32) -> String {
    let id = format!("{target}-{}", in_percent(seen));
    if repeats > 1 { format!("{id}-{}", repeat + 1) } else { id }
}

#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    planned: u32,
}

impl Journal {
    /// Opens `out_dir/runs`. Without `resume`, earlier runs are moved aside, not overwritten. The number of planned repeats is
    /// stored before the first run; an extension does not change it.
    pub(crate) fn open(out_dir: &Path, resume: bool, repeat: u32) -> Result<Self, WriteError> {
        let folder = out_dir.join("runs");
        if !resume && !is_empty(&folder) {
            let aside = (1..).map(|number| out_dir.join(format!("runs.{number}")));
            for place in aside {
                match fs::rename(&folder, &place) {
                    Ok(()) => break,
                    Err(error) if !is_taken(&error) => {
                        return Err(WriteError { path: place, source: error });
                    }
                    Err(_) => {}
                }
            }
        }
        atomic_file::create_folder(&folder)?;
        let path = folder.join(PLANNED);
        let written = || fs::read_to_string(&path).ok()?.trim().parse().ok();
        let planned = if resume { written() } else { None };
        let planned = if let Some(planned) = planned {
            planned
        } else {
            // Runs of a version that did not store it: the plan's number is used.
            atomic_file::write(&path, format!("{repeat}\n").as_bytes())?;
            repeat
        };
        Ok(Self { folder, planned })
    }

    /// Number of repeats planned before the first run.
    pub(crate) const fn planned(&self) -> u32 {
        self.planned
    }

    /// A valid finished run of that name with equal settings. An unreadable file is ignored, and the run is repeated.
    pub(crate) fn finished(&self, id: &str, settings: &Settings) -> Option<Run> {
        let text = fs::read(self.path(id)).ok()?;
        let file: RunFile = serde_json::from_slice(&text).ok()?;
        let same = file.schema == SCHEMA && file.settings == *settings;
        (same && file.run.status == Status::Valid).then_some(file.run)
    }

    pub(crate) fn record(&self, settings: &Settings, run: &Run) -> Result<(), WriteError> {
        let path = self.path(&run.id);
        let file = RunFile { schema: SCHEMA, settings: settings.clone(), run: run.clone() };
        let json = serde_json::to_vec(&file)
            .map_err(|error| WriteError { path: path.clone(), source: error.into() })?;
        atomic_file::write(&path, &json)
    }

    pub(crate) fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }
}

fn is_empty(folder: &Path) -> bool {
    let is_run = |entry: &fs::DirEntry| entry.file_name() != PLANNED;
    fs::read_dir(folder).map_or(true, |entries| !entries.flatten().any(|entry| is_run(&entry)))
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{NodeSpec, TargetSpec};
    use crate::results::fixture;

    fn settings(seen: f64) -> Settings {
        let results = fixture::results();
        let target = Target::detect(&TargetSpec::node(NodeSpec::Assay), &["assay".into()], "0.1.0");
        let target = target.expect("our own node");
        Settings::new(&results.plan, &results.chain, &results.machine, "0.1.0", &target, (seen, 0))
    }

    #[test]
    fn names() {
        assert_eq!(run_id("assay", 0.9, 0, 1), "assay-90");
        assert_eq!(run_id("bchn-28.0.1", 0.0, 2, 3), "bchn-28.0.1-0-3");
    }

    #[test]
    fn only_equal_valid_runs_are_finished() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let journal = Journal::open(folder.path(), false, 2).expect("writable");
        let mut run = fixture::results().targets[0].runs[0].clone();
        let id = run.id.clone();
        assert!(journal.finished(&id, &settings(0.0)).is_none(), "nothing there");
        journal.record(&settings(0.0), &run).expect("writable");
        assert_eq!(journal.finished(&id, &settings(0.0)), Some(run.clone()));
        assert!(journal.finished(&id, &settings(0.5)).is_none(), "other settings");
        run.status = Status::Void;
        journal.record(&settings(0.0), &run).expect("writable");
        assert!(journal.finished(&id, &settings(0.0)).is_none(), "void");
        fs::write(journal.path(&id), b"{\"schema\":1,").expect("writable");
        assert!(journal.finished(&id, &settings(0.0)).is_none(), "torn");
    }

    #[test]
    fn former_runs_are_moved_aside() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = fixture::results().targets[0].runs[0].clone();
        for _ in 0..3 {
            let journal = Journal::open(folder.path(), false, 2).expect("writable");
            assert!(journal.finished(&run.id, &settings(0.0)).is_none());
            journal.record(&settings(0.0), &run).expect("writable");
        }
        assert!(folder.path().join("runs.1").exists() && folder.path().join("runs.2").exists());
        let journal = Journal::open(folder.path(), true, 9).expect("writable");
        assert!(journal.finished(&run.id, &settings(0.0)).is_some());
        assert_eq!(journal.planned(), 2, "what was planned at first stands");
    }
}
