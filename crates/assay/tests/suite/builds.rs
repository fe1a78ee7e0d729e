//! `assay builds` and targets `core@REV`, with real git, `CMake` and compiler; Bitcoin Core is not needed.

#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{json, stderr};

/// Builds a program that prints the output of `bitcoind -?`. One build step sleeps and logs to a file that it ran.
const CMAKE: &str = r#"cmake_minimum_required(VERSION 3.10)
project(tiny VERSION 1.0 LANGUAGES C)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/made.c
    COMMAND sh -c "echo ran >> '@NOTE@'; sleep @SECONDS@; cp '${CMAKE_SOURCE_DIR}/tiny.c' made.c" VERBATIM)
add_executable(tiny ${CMAKE_BINARY_DIR}/made.c)
"#;

const PROGRAM: &str = "#include <stdio.h>\nint main(void) { puts(\"Bitcoin Core version v1.0.0-tiny\"); return 0; }\n";

const PRESET: &str = "format = 1\nname = \"tiny\"\ntitle = \"T\"\n\
    [[recipe]]\nversions = \"..\"\nfile = \"CMakeLists.txt\"\nsystem = \"cmake\"\n\
    compiler = [\"-DCMAKE_C_COMPILER={cc}\"]\n\
    [[recipe.program]]\nname = \"bitcoind\"\ntarget = \"tiny\"\npaths = [\"tiny\"]\n";

struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// A repository with these revisions, tag and program; `None` if a tool is missing.
    fn new(test: &str, seconds: u32, revisions: &[(&str, &str)]) -> Option<Self> {
        for program in ["git", "cmake", "gcc", "g++", "sh"] {
            let found = Command::new(program).arg("--version").output();
            if found.is_err() {
                eprintln!("skipped: {test}: there is no {program}");
                return None;
            }
        }
        let world = Self { folder: tempfile::tempdir().expect("a folder") };
        let repo = world.path("repo");
        fs::create_dir(&repo).expect("writable");
        let cmake = CMAKE.replace("@NOTE@", &world.path("note").display().to_string());
        let cmake = cmake.replace("@SECONDS@", &seconds.to_string());
        fs::write(repo.join("CMakeLists.txt"), cmake).expect("writable");
        fs::write(world.path("tiny.toml"), PRESET).expect("writable");
        world.git(&["init", "--quiet", "--initial-branch=master"]);
        for (tag, program) in revisions {
            fs::write(repo.join("tiny.c"), program).expect("writable");
            world.git(&["add", "."]);
            world.git(&["commit", "--quiet", "-m", tag]);
            world.git(&["tag", tag]);
        }
        Some(world)
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path("repo")).args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@e",
        ]);
        command.args(["-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"]);
        assert!(command.args(arguments).status().expect("git runs").success(), "{arguments:?}");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::command(arguments);
        command.env("ASSAY_BUILDS", self.path("builds")).stdin(Stdio::null());
        command.current_dir(self.folder.path());
        command
    }

    fn assay(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    fn make(&self, revisions: &[&str]) -> Output {
        let mut arguments =
            vec!["builds", "make", "--repo", "repo", "--preset", "./tiny.toml", "--json"];
        arguments.extend(["--compiler", "gcc"]);
        arguments.extend(revisions.iter().flat_map(|revision| ["--rev", revision]));
        self.assay(&arguments)
    }

    fn states(&self) -> Vec<String> {
        let list = json(&self.assay(&["builds", "list", "--json"]));
        let builds = list["builds"].as_array().expect("a list").clone();
        builds.iter().map(|build| build["state"].as_str().expect("a word").to_owned()).collect()
    }
}

#[test]
fn a_build_is_a_target() {
    let Some(world) = World::new("a_build_is_a_target", 0, &[("v1", PROGRAM)]) else { return };
    let none = world.assay(&["run", "core-evolution", "--target", "core@v1", "--out", "none"]);
    assert_eq!(none.status.code(), Some(2));
    let said = stderr(&none);
    assert!(said.contains("assay builds make --repo PATH --rev v1"), "{said}");

    let made = world.make(&["v1", "v9"]);
    assert_eq!(made.status.code(), Some(1), "{}", stderr(&made));
    let made = json(&made);
    assert_eq!(made["builds"][0]["status"], "built");
    assert_eq!(made["builds"][1]["status"], "failed");
    assert!(made["builds"][1]["error"].as_str().is_some_and(|text| text.contains("\"v9\"")));
    let again = world.make(&["v1"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(json(&again)["builds"][0]["status"], "found");

    // The version output is recognised; that the program is no node shows only when it is started.
    let wrong = world.assay(&["bench", "agreement", "--target", "core@v1+gcc"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = stderr(&wrong);
    assert!(said.contains("v1.0.0-tiny is not Bitcoin Cash Node"), "{said}");

    let unknown = world.assay(&["builds", "clean", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert_eq!(world.assay(&["builds", "clean"]).status.code(), Some(2), "what to remove is said");
    let cleaned = json(&world.assay(&["builds", "clean", "--all", "--json"]));
    assert_eq!(cleaned["removed"].as_array().map(Vec::len), Some(1));
    assert!(world.states().is_empty());
}

/// SIGKILL during a compiler call: the build is not taken for finished, and finished steps are not repeated.
#[test]
fn a_killed_build_is_none_and_continues() {
    let revisions = [("v1", PROGRAM)];
    let Some(world) = World::new("a_killed_build_is_none_and_continues", 3, &revisions) else {
        return;
    };
    let mut command = world.command(&["builds", "make", "--repo", "repo", "--rev", "v1"]);
    command.args(["--preset", "./tiny.toml", "--compiler", "gcc"]).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::null()).spawn().expect("the program starts");
    wait_for(&world.path("note"));
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    let states = world.states();
    assert!(states == ["building"] || states == ["unfinished"], "{states:?}");
    let none = world.assay(&["run", "core-evolution", "--target", "core@v1", "--out", "none"]);
    assert!(stderr(&none).contains("there is no build of v1"), "{}", stderr(&none));

    let made = world.make(&["v1"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert_eq!(world.states(), ["finished"]);
    let note = fs::read_to_string(world.path("note")).expect("readable");
    assert_eq!(note, "ran\n", "the step that went on is not done again");
}

/// A program with the command line of `bench_bitcoin`: one benchmark takes `ns` nanoseconds, another a constant time.
fn bench_bitcoin(ns: u32) -> String {
    format!(
        "#include <stdio.h>\n#include <string.h>\nint main(int n, char **a) {{\n\
         const char *name = \"Quick\";\n\
         for (int i = 1; i < n; i++) {{\n\
         if (!strcmp(a[i], \"-?\")) puts(\"  -list\\n  -output-json=<file>\\n  -min-time=<ms>\");\n\
         if (!strcmp(a[i], \"-list\")) puts(\"Quick\\nSame\");\n\
         if (!strcmp(a[i], \"-filter=^Same$\")) name = \"Same\";\n\
         if (strncmp(a[i], \"-output-json=\", 13)) continue;\n\
         FILE *f = fopen(a[i] + 13, \"w\");\n\
         if (!f) return 1;\n\
         int ns = strcmp(name, \"Same\") ? {ns} : 70;\n\
         fprintf(f, \"{{\\\"results\\\": [{{\\\"name\\\": \\\"%s\\\", \\\"median(elapsed)\\\": %de-9}}]}}\", name, ns);\n\
         fclose(f); }}\n return 0; }}\n"
    )
}

#[test]
fn a_change_is_judged() {
    let (slow, quick) = (bench_bitcoin(100), bench_bitcoin(50));
    let revisions = [("slow", slow.as_str()), ("quick", quick.as_str())];
    let Some(world) = World::new("a_change_is_judged", 0, &revisions) else { return };
    let preset = PRESET.replace("name = \"bitcoind\"", "name = \"bench_bitcoin\"");
    fs::write(world.path("tiny.toml"), preset).expect("writable");
    world.git(&["branch", "--force", "old", "slow"]);
    let pr = |revisions: &[&str], out: &str| {
        let arguments = ["pr", "--repo", "repo", "--preset", "./tiny.toml", "--compiler", "gcc"];
        let more =
            ["--part", "micro", "--rounds", "9", "--min-time", "1ms", "--json", "--out", out];
        world.assay(&[&arguments[..], &more, revisions].concat())
    };
    for (revisions, verdict, status) in [
        (&["slow", "quick"][..], "faster", 0),
        (&["quick", "slow"], "slower", 1),
        (&["slow", "slow"], "no difference shown", 0),
        (&["quick", "--onto", "old"], "faster", 0),
    ] {
        let output = pr(revisions, verdict);
        assert_eq!(output.status.code(), Some(status), "{revisions:?}: {}", stderr(&output));
        let found = json(&output);
        let headline = found["headline"].as_str().expect("a sentence");
        assert!(headline.ends_with(&format!(": {verdict}.")), "{headline}");
        assert_eq!(found["checks"][0]["outcome"]["passed"], 2, "{found:#}");
        assert!(!found["notes"].to_string().contains("Same is"), "{found:#}");
        for file in ["report.html", "report.md", "pr.json", "micro/report.html"] {
            assert!(world.path(verdict).join(file).is_file(), "{file}");
        }
    }
    // A revision of the branch itself has no other merge base.
    let own = pr(&["slow"], "own");
    assert_eq!(own.status.code(), Some(2));
    assert!(
        stderr(&own).contains("slow is a part of master: give BASE and HEAD"),
        "{}",
        stderr(&own)
    );
}

/// A base, a step that is twice as fast, and a step without a build.
const STEPS: &str = "format = 1\nkind = \"steps\"\nname = \"mine\"\ntitle = \"T\"\nsummary = \"S\"\nsource = \"nowhere\"\n\
    preset = \"./tiny.toml\"\ncompiler = \"gcc\"\nsync = \"ibd-tracking-macro\"\npairs = 6\nrounds = 9\nmin_time_ms = 1\n\
    [base]\nrevision = \"slow\"\nseconds = 30.0\n\
    [[step]]\nname = \"first\"\ntitle = \"F\"\nrevision = \"quick\"\nseconds = 20.0\n\
    [[step.benchmark]]\nname = \"Quick\"\nns_before = 300.0\nns_after = 200.0\n\
    [[step]]\nname = \"second\"\ntitle = \"G\"\nrevision = \"later\"\nseconds = 15.0\n\
    [[step.benchmark]]\nname = \"Same\"\n";

#[test]
fn steps_are_judged_and_absent_ones_named() {
    let (slow, quick) = (bench_bitcoin(100), bench_bitcoin(50));
    let revisions = [("slow", slow.as_str()), ("quick", quick.as_str())];
    let Some(world) = World::new("steps_are_judged_and_absent_ones_named", 0, &revisions) else {
        return;
    };
    let preset = PRESET.replace("name = \"bitcoind\"", "name = \"bench_bitcoin\"");
    fs::write(world.path("tiny.toml"), preset).expect("writable");
    fs::write(world.path("steps.toml"), STEPS).expect("writable");
    let run = ["run", "./steps.toml", "--part", "micro", "--json", "--out", "out"];
    let none = world.assay(&run);
    assert_eq!(none.status.code(), Some(2));
    let said = stderr(&none);
    assert!(said.contains("absent: slow; build it: assay builds make"), "{said}");
    assert!(said.contains("--compiler gcc --rev slow"), "{said}");
    assert!(said.contains("no step of mine is built"), "{said}");

    assert_eq!(world.make(&["slow", "quick"]).status.code(), Some(0));
    let output = world.assay(&run);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = json(&output);
    let (first, second) = (&found["steps"][0], &found["steps"][1]);
    assert_eq!(first["micro"]["rows"][0]["verdict"], "faster", "{found:#}");
    assert_eq!((&first["published"], &second["published_since_base"]), (&1.5.into(), &2.0.into()));
    assert_eq!(second["micro"], Value::Null);
    let command = second["absent"][0]["command"].as_str().expect("a command");
    assert!(command.ends_with("--compiler gcc --rev later"), "{command}");
    let page = fs::read_to_string(world.path("out/report.md")).expect("a report");
    for said in [
        "1.500",
        "2.000",
        "absent",
        "1 of 2 steps are built",
        "The steps up to first against the base: not measured; published: 1.500",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(world.path("out/micro/first/report.html").is_file());

    let rejects = |arguments: &[&str], said: &str| {
        let output = world.assay(&[&["run", "./steps.toml"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    };
    rejects(
        &["--target", "assay"],
        "--target means nothing for ./steps.toml, a plan of kind steps",
    );
    rejects(&["--part", "nano"], "there are micro, macro, sum and related");
}

fn wait_for(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_mins(2), "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn build_failures_are_reported() {
    let world = World { folder: tempfile::tempdir().expect("a folder") };
    let rejects = |arguments: &[&str], said: &str| {
        let output = world.assay(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    };
    let make = ["builds", "make", "--rev", "v1"];
    rejects(&[&make[..], &["--repo", "none"]].concat(), "cannot open repository");
    rejects(&["builds", "make", "--repo", "."], "--rev");
    rejects(&["builds", "preset", "none"], "assay builds presets");
    rejects(&["pr", "--repo", "none", "a", "b"], "cannot open repository");
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: build_failures_are_reported: there is no git");
        return;
    }
    let status = Command::new("git").args(["init", "--quiet"]).arg(world.path("empty")).status();
    assert!(status.expect("git runs").success());
    let make = [&make[..], &["--repo", "empty"]].concat();
    rejects(&[&make[..], &["--preset", "none"]].concat(), "bitcoin-core, bitcoin-core-bench, bchn");
    rejects(&[&make[..], &["--preset", "./none.toml"]].concat(), "cannot read plan ./none.toml");
    rejects(&[&make[..], &["--compiler", "tcl"]].concat(), "give gcc, clang");
    rejects(&["pr", "--repo", "empty", "a"], "where a left master");
}
