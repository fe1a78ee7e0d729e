//! Builds of a tiny program in a git repository that the test creates, with real git, `CMake` and compiler.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::progress::{Event, Reporter};

const PRESET: &str = r#"
format = 1
name = "tiny"
title = "A program of one line"

[[version]]
file = "CMakeLists.txt"
marks = ["project(tiny VERSION "]

[[recipe]]
versions = "1..3"
file = "CMakeLists.txt"
system = "cmake"
compiler = ["-DCMAKE_C_COMPILER={cc}", "-DCMAKE_CXX_COMPILER={cxx}"]
flags = ["-DCMAKE_C_FLAGS={flags}"]

[[recipe.program]]
name = "bitcoind"
target = "tiny"
paths = ["bin/tiny", "tiny"]
"#;

/// A repository of four revisions: `v1.0` and `v1.1` build, `broken` does not; `v3.0` has no recipe.
struct Repo {
    folder: tempfile::TempDir,
}

#[derive(Default)]
struct Heard {
    stages: RefCell<Vec<String>>,
    steps: RefCell<u64>,
    stop_at: Option<&'static str>,
}

impl Reporter for Heard {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Status(text) if text.contains("/min") => {
                let (_, figures) = text.split_once(": ").expect("a stage and its steps");
                let done = figures.split(['/', ' ']).next().expect("a number");
                *self.steps.borrow_mut() = done.parse().expect("a number");
            }
            // Without waits for a lock: the processes that other tests start inherit it.
            Event::Status(text) if text.starts_with("waiting") => {}
            Event::Line(text) if text.starts_with("  ") => {}
            Event::Status(text) | Event::Line(text) => {
                self.stages.borrow_mut().push((*text).to_owned());
            }
            _ => {}
        }
    }
    fn wants_stop(&self) -> bool {
        self.stop_at.is_some_and(|at| self.stages.borrow().iter().any(|stage| stage == at))
    }
}

impl Repo {
    /// `None` if a required program is missing.
    fn new(test: &str) -> Option<Self> {
        for program in ["git", "cmake", "gcc", "g++"] {
            if !compiler::is_there(program) {
                eprintln!("skipped: {test}: there is no {program}");
                return None;
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let repo = Self { folder };
        fs::create_dir_all(repo.path()).expect("writable");
        repo.git(&["init", "--quiet"]);
        for (tag, version, code) in [
            ("v1.0", "1.0", "int main(void) { return 10; }"),
            ("broken", "1.0", "int main(void) { return nothing; }"),
            ("v1.1", "1.1", "int main(void) { return 11; }"),
            ("v3.0", "3.0", "int main(void) { return 30; }"),
        ] {
            let cmake = format!(
                "cmake_minimum_required(VERSION 3.10)\nproject(tiny VERSION {version} LANGUAGES C)\nadd_executable(tiny tiny.c)\n"
            );
            fs::write(repo.path().join("CMakeLists.txt"), cmake).expect("writable");
            fs::write(repo.path().join("tiny.c"), format!("{code}\n")).expect("writable");
            repo.git(&["add", "."]);
            repo.git(&["commit", "--quiet", "-m", tag]);
            repo.git(&["tag", tag]);
        }
        Some(repo)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path());
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        command.args(["-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"]);
        assert!(command.args(arguments).status().expect("git runs").success(), "{arguments:?}");
    }

    fn cache(&self) -> Cache {
        Cache::at(&self.folder.path().join("cache"))
    }

    fn options(&self, revisions: &[&str]) -> MakeOptions {
        MakeOptions {
            repository: Repository::open(&self.path()).expect("a repository"),
            revisions: revisions.iter().map(|&revision| revision.to_owned()).collect(),
            preset: Preset::parse(PRESET, "tiny.toml").expect("valid"),
            compiler: Compiler::find(Some("gcc")).expect("it is there"),
            flags: String::new(),
            jobs: 2,
        }
    }

    fn make(&self, revisions: &[&str], heard: &Heard) -> Vec<Made> {
        make(&self.cache(), &self.options(revisions), heard)
    }
}

fn status(program: &Path) -> Option<i32> {
    Command::new(program).status().expect("it runs").code()
}

#[test]
fn caches_builds_and_reports_failures() {
    let Some(repo) = Repo::new("caches_builds_and_reports_failures") else { return };
    let heard = Heard::default();
    let made = repo.make(&["v1.0", "broken", "none", "v3.0", "v1.1"], &heard);
    let words: Vec<&str> = made.iter().map(|made| made.status).collect();
    assert_eq!(words, ["built", "failed", "failed", "failed", "built"], "{made:#?}");
    let error = |index: usize| made[index].error.as_deref().expect("it failed");
    assert!(error(1).contains("compiling failed") && error(1).contains("nothing"), "{}", error(1));
    assert!(error(1).contains("build.log"), "{}", error(1));
    assert!(error(2).contains("has no revision \"none\""), "{}", error(2));
    assert!(error(3).contains("no recipe for v3.0 (version 3.0)"), "{}", error(3));
    assert!(*heard.steps.borrow() > 0, "steps are counted");

    // The programs match their revisions, and the user's repository is unchanged.
    let cache = repo.cache();
    let path = |revision: &str| {
        let build = cache.find(revision, &[], "bitcoind").expect("built");
        build.program("bitcoind").expect("a program").to_owned()
    };
    assert_eq!((status(&path("v1.0")), status(&path("v1.1"))), (Some(10), Some(11)));
    let build = cache.find("v1.1", &["gcc".to_owned()], "bitcoind").expect("built");
    assert_eq!((build.version.as_str(), build.subject.as_str()), ("1.1", "v1.1"));
    assert!(!repo.path().join(".git").join("worktrees").exists());
    let by_hash = cache.find(&build.commit[..9], &[build.digest().to_owned()], "bitcoind");
    assert_eq!(by_hash.expect("built").key, build.key);

    // No revision is built twice.
    let heard = Heard::default();
    let again = repo.make(&["v1.0", "v1.1"], &heard);
    assert!(again.iter().all(|made| made.status == "found"), "{again:#?}");
    assert_eq!(heard.stages.borrow().as_slice(), ["build 1/2: v1.0", "build 2/2: v1.1"]);

    let states: Vec<State> =
        cache.entries().expect("readable").iter().map(|entry| entry.state).collect();
    assert_eq!(states, [State::Finished, State::Finished, State::Failed]);
    let cleaned = cache.clean(|entry| entry.state == State::Failed).expect("removable");
    assert_eq!((cleaned.removed.len(), cleaned.busy.len()), (1, 0));
    let cleaned = cache.clean(|_| true).expect("removable");
    assert_eq!(cleaned.removed.len(), 2);
    assert!(cache.entries().expect("readable").is_empty());
}

#[test]
fn an_interrupted_build_continues() {
    let Some(repo) = Repo::new("an_interrupted_build_continues") else { return };
    let stopped = Heard { stop_at: Some("compiling"), ..Heard::default() };
    let made = repo.make(&["v1.0", "v1.1"], &stopped);
    assert_eq!(made.len(), 1, "the rest is left out");
    assert!(made[0].error.as_deref().expect("stopped").contains("stopped"));
    let cache = repo.cache();
    // Programs of other tests may have inherited the lock: wait until they end.
    let start = std::time::Instant::now();
    let state = || cache.entries().expect("readable")[0].state;
    while state() == State::Building && start.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(state(), State::Unfinished);
    assert!(cache.find("v1.0", &[], "bitcoind").is_err(), "an unfinished build is none");

    // Neither the checkout nor the configuration runs again.
    let heard = Heard::default();
    let made = repo.make(&["v1.0"], &heard);
    assert_eq!(made[0].status, "built", "{made:#?}");
    assert_eq!(heard.stages.borrow().as_slice(), ["build 1/1: v1.0", "compiling"]);
}

#[test]
fn two_builders_wait_for_each_other() {
    let Some(repo) = Repo::new("two_builders_wait_for_each_other") else { return };
    let words = std::thread::scope(|scope| {
        let build = || {
            let made = repo.make(&["v1.0"], &Heard::default()).remove(0);
            made.build().map(|build| build.key.clone()).expect("there is a build")
        };
        let both = [scope.spawn(build), scope.spawn(build)];
        both.map(|one| one.join().expect("no panic"))
    });
    assert_eq!(words[0], words[1]);
    assert_eq!(repo.cache().finished().expect("readable").len(), 1);
}

#[test]
fn separates_flags_and_moved_branches() {
    let Some(repo) = Repo::new("separates_flags_and_moved_branches") else { return };
    let cache = repo.cache();
    let plain = make(&cache, &repo.options(&["v1.0"]), &Heard::default());
    let flags = MakeOptions { flags: "-O1".to_owned(), ..repo.options(&["v1.0"]) };
    let with_flags = make(&cache, &flags, &Heard::default());
    let key = |made: &[Made]| made[0].build().expect("built").key.clone();
    assert_ne!(key(&plain), key(&with_flags));
    let error = cache.find("v1.0", &[], "bitcoind").expect_err("two").to_string();
    assert!(error.contains("may be any of") && error.contains(&key(&plain)), "{error}");
    let digest = key(&with_flags).rsplit('-').next().expect("it has one").to_owned();
    assert_eq!(cache.find("v1.0", &[digest], "bitcoind").expect("one").flags, "-O1");

    // A branch denotes its latest build.
    for tag in ["v1.0", "v1.1"] {
        repo.git(&["branch", "--force", "tip", tag]);
        assert!(repo.make(&["tip"], &Heard::default())[0].build().is_some());
        let build = cache.find("tip", &[], "bitcoind").expect("one");
        assert_eq!(build.subject, tag);
    }
    let none = cache.find("v0.9", &["clang".to_owned()], "bitcoind").expect_err("none").to_string();
    assert!(none.contains("assay builds make --repo PATH --rev v0.9 --compiler clang"), "{none}");
}

#[test]
fn rejects_other_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = Repository::open(&folder.path().join("none")).expect_err("none").to_string();
    assert!(missing.contains("cannot open repository"), "{missing}");
    if compiler::is_there("git") {
        let empty = Repository::open(folder.path()).expect_err("none").to_string();
        assert!(empty.contains("not a git repository"), "{empty}");
    }
    assert!(Cache::at(&folder.path().join("none")).entries().expect("nothing").is_empty());
}
