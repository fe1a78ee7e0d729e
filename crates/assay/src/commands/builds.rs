//! `assay builds`.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use assay_lab::builds::{
    Cache, Cleaned, Compiler, Entry, Made, MakeOptions, Preset, Repository, State, make,
};
use assay_lab::plan::PlanError;
use assay_lab::progress::{Reporter as _, Terminal};
use assay_report::{Table, number};
use serde::Serialize;
use serde_json::{Value, json};

use super::{print_builtin, print_names, stop_flag};
use crate::cli::{
    BuildsArguments, BuildsCleanArguments, BuildsCommand, BuildsMakeArguments, HowArguments,
};
use crate::{Outcome, output};

pub(crate) fn run(arguments: &BuildsArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        BuildsCommand::Make(arguments) => make_all(arguments),
        BuildsCommand::List(arguments) => list(arguments.json),
        BuildsCommand::Clean(arguments) => clean(arguments),
        BuildsCommand::Presets { json } => presets(*json),
        BuildsCommand::Preset { name } => {
            print_builtin(Preset::builtin_text(name), "preset", name, "builds presets")
        }
    }
}

pub(crate) fn cache() -> anyhow::Result<Cache> {
    Cache::of_user().context("no folder for builds: set HOME, XDG_CACHE_HOME or ASSAY_BUILDS")
}

/// JSON output of `builds make` and `builds list`.
fn printed(cache: &Cache, builds: impl Serialize) -> Value {
    json!({ "schema": 1, "kind": "builds", "folder": cache.root(), "builds": builds })
}

pub(crate) fn build(
    cache: &Cache,
    repository: Repository,
    revisions: Vec<String>,
    preset: &str,
    how: &HowArguments,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Made>> {
    let options = MakeOptions {
        repository,
        revisions,
        preset: Preset::find(preset)?,
        compiler: Compiler::find(how.compiler.as_deref())?,
        flags: how.flags.clone().unwrap_or_default(),
        jobs: super::threads(how.jobs.map_or(0, usize::from)),
    };
    Ok(make(cache, &options, terminal))
}

fn make_all(arguments: &BuildsMakeArguments) -> anyhow::Result<Outcome> {
    let cache = cache()?;
    let repository = Repository::open(&arguments.repo)?;
    let terminal = Terminal::stopped_by(stop_flag());
    let BuildsMakeArguments { revisions, preset, how, json, .. } = arguments;
    let made = build(&cache, repository, revisions.clone(), preset, how, &terminal)?;
    output::print_as(*json, &printed(&cache, &made), || targets(&made))?;
    let is_stopped = terminal.wants_stop();
    let is_whole = made.iter().all(|made| made.build().is_some());
    Ok(if is_stopped {
        Outcome::Interrupted
    } else if is_whole {
        Outcome::Good
    } else {
        Outcome::Negative
    })
}

/// Lists the builds as target specifications with their paths.
fn targets(made: &[Made]) -> String {
    let line = |made: &Made| match made.build() {
        Some(build) => {
            let program = build.programs.first();
            let path = program.map_or_else(String::new, |one| one.path.display().to_string());
            format!("core@{}\t{}\t{path}\n", made.revision, build.key)
        }
        None => format!("{}\tfailed\n", made.revision),
    };
    made.iter().map(line).collect()
}

fn list(is_json: bool) -> anyhow::Result<Outcome> {
    let cache = cache()?;
    let entries = cache.entries()?;
    if is_json {
        output::print_json(&printed(&cache, &entries))?;
        return Ok(Outcome::Good);
    }
    let caption = format!("Builds in {}", cache.root().display());
    let head = ["Key", "Names", "Version", "State", "Programs", "Build, s", "MiB"];
    let mut table = Table::new(&caption, &head, 5);
    for entry in &entries {
        table.push(row(entry));
    }
    let mut text = String::new();
    table.text(&mut text);
    for entry in &entries {
        if entry.state != State::Finished {
            let reason = entry.error.as_deref().and_then(|error| error.lines().next());
            let reason = reason.map(|line| format!("{line}; ")).unwrap_or_default();
            let _ = writeln!(text, "{}: {reason}log: {}", entry.key, entry.log.display());
        }
    }
    output::print(&text)?;
    Ok(Outcome::Good)
}

fn row(entry: &Entry) -> [String; 7] {
    let build = entry.build.as_ref();
    let names = build.map(|build| build.names.join(" ")).unwrap_or_default();
    let programs = build.map(|build| {
        build.programs.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(" ")
    });
    [
        entry.key.clone(),
        names,
        build.map(|build| build.version.clone()).unwrap_or_default(),
        entry.state.as_str().to_owned(),
        programs.unwrap_or_default(),
        build.map(|build| format!("{:.0}", build.seconds)).unwrap_or_default(),
        number::mib(entry.bytes),
    ]
}

fn clean(arguments: &BuildsCleanArguments) -> anyhow::Result<Outcome> {
    let cache = cache()?;
    let entries = cache.entries()?;
    // Shorter prefixes would match by chance.
    let is_named = |entry: &Entry, key: &String| {
        entry.key == *key || (key.len() >= 7 && entry.key.starts_with(key.as_str()))
    };
    if let Some(key) =
        arguments.keys.iter().find(|key| !entries.iter().any(|entry| is_named(entry, key)))
    {
        bail!("there is no build {key:?}; `assay builds list` lists them");
    }
    let is_chosen = |entry: &Entry| {
        arguments.all
            || (arguments.unfinished && matches!(entry.state, State::Failed | State::Unfinished))
            || arguments.keys.iter().any(|key| is_named(entry, key))
    };
    let cleaned = cache.clean(is_chosen)?;
    output::print_as(arguments.json, &cleaned, || text_of(&cleaned))?;
    Ok(if cleaned.busy.is_empty() { Outcome::Good } else { Outcome::Negative })
}

fn text_of(cleaned: &Cleaned) -> String {
    let removed = cleaned.removed.iter().map(|key| format!("removed {key}\n"));
    let busy = cleaned.busy.iter().map(|key| format!("kept {key}: another process builds it\n"));
    let freed = format!("{} MiB freed\n", number::mib(cleaned.bytes));
    removed.chain(busy).chain([freed]).collect()
}

fn presets(is_json: bool) -> anyhow::Result<Outcome> {
    let named = |name| Ok((name, Preset::find(name)?.title));
    let names = Preset::builtin_names().map(named).collect::<Result<Vec<_>, PlanError>>()?;
    print_names(is_json, &names)
}
