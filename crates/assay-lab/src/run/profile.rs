//! Runs under `perf`, after those that count: where a target's time goes, as a flame graph and a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use assay_report::atomic_file;

use super::flame::{self, Folded};
use crate::process::Launch;
use crate::results::{Profile, Share};

/// Folder of profiles in the folder of results.
pub(crate) const FOLDER: &str = "profiles";
/// Samples per second and thread; no divisor of the rates of clocks.
const HERTZ: &str = "199";
/// Stacks are unwound from copies of so many bytes: release builds keep no frame pointers.
const CALL_GRAPH: &str = "dwarf,8192";
/// Functions that the report names for each target.
const TOP: usize = 8;

/// Whether `perf` is there.
pub(crate) fn is_there() -> bool {
    let version = Command::new("perf")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// The same program under `perf record`, which writes to `data`.
pub(crate) fn wrapped(launch: Launch, data: &Path) -> Launch {
    let mut args = vec!["record".into(), "--quiet".into(), "-F".into(), HERTZ.into()];
    args.extend(["--call-graph".into(), CALL_GRAPH.into(), "-o".into(), data.into(), "--".into()]);
    args.push(launch.program);
    args.extend(launch.args);
    Launch { program: "perf".into(), args, ..launch }
}

/// Makes the pictures of what `perf` wrote to `data`, which is removed.
pub(crate) fn evaluate(target: &str, title: &str, data: &Path, folder: &Path) -> Profile {
    let mut profile = Profile { target: target.to_owned(), ..Profile::default() };
    match make(target, title, data, folder, &mut profile) {
        Ok(()) if profile.samples > 0 => {}
        Ok(()) => profile.missing = Some("perf took no samples".to_owned()),
        Err(error) => profile.missing = Some(error.to_string()),
    }
    // Large, and of no use without the very programs that were measured.
    let _ = fs::remove_file(data);
    profile
}

fn make(
    target: &str,
    title: &str,
    data: &Path,
    folder: &Path,
    profile: &mut Profile,
) -> io::Result<()> {
    let log = File::create(data.with_extension("script.log"))?;
    let mut script = Command::new("perf")
        .args(["script", "--no-inline", "-F", "comm,tid,ip,sym", "-i"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()?;
    let stacks = match script.stdout.take() {
        Some(output) => fold(BufReader::new(output))?,
        None => Folded::new(),
    };
    if !script.wait()?.success() {
        return Err(io::Error::other("`perf script` failed: see its log among the logs"));
    }
    profile.samples = stacks.values().sum();
    profile.top = top(&stacks);
    let mut text = String::new();
    for (stack, samples) in &stacks {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{stack} {samples}");
    }
    let write = |name: &str, bytes: &[u8]| {
        atomic_file::write(&folder.join(name), bytes).map_err(io::Error::other)
    };
    // The form that other tools for flame graphs take.
    write(&format!("{target}.folded"), text.as_bytes())?;
    let picture = format!("{target}.svg");
    write(&picture, flame::draw(title, &stacks).as_bytes())?;
    profile.picture = Some(format!("{FOLDER}/{picture}"));
    Ok(())
}

/// Stacks of `perf script`: a line with thread and number, then a line per frame, innermost first, then an empty one.
fn fold(lines: impl BufRead) -> io::Result<Folded> {
    let mut stacks = Folded::new();
    let mut frames: Vec<String> = Vec::new();
    let mut thread = None;
    let mut end = |thread: &mut Option<String>, frames: &mut Vec<String>| {
        if let Some(thread) = thread.take() {
            let mut stack = thread;
            for frame in frames.drain(..).rev() {
                stack.push(';');
                stack.push_str(&frame);
            }
            *stacks.entry(stack).or_default() += 1;
        }
    };
    for line in lines.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            end(&mut thread, &mut frames);
        } else if line.starts_with(char::is_whitespace) {
            let name = line.trim().split_once(' ').map_or("[unknown]", |(_, name)| name.trim());
            // Frames that could not be unwound say nothing.
            if name != "[unknown]" && thread.is_some() {
                frames.push(name.replace(';', ":"));
            }
        } else {
            end(&mut thread, &mut frames);
            // Threads of a pool have numbers in their names; what they do is one thing.
            let name = line.trim().rsplit_once(char::is_whitespace).map_or("", |(name, _)| name);
            let name = name.trim().trim_end_matches(|c: char| c.is_ascii_digit());
            thread = Some(name.replace(';', ":"));
        }
    }
    end(&mut thread, &mut frames);
    Ok(stacks)
}

fn top(stacks: &Folded) -> Vec<Share> {
    let all: u64 = stacks.values().sum();
    let mut own: BTreeMap<&str, u64> = BTreeMap::new();
    for (stack, samples) in stacks {
        let leaf = stack.rsplit_once(';').map_or("[unknown]", |(_, leaf)| leaf);
        *own.entry(leaf).or_default() += samples;
    }
    let mut own: Vec<_> = own.into_iter().collect();
    own.sort_by_key(|(name, samples)| (std::cmp::Reverse(*samples), *name));
    let share = |(function, samples): (&str, u64)| Share {
        function: function.to_owned(),
        share: samples as f64 / all.max(1) as f64,
    };
    own.into_iter().take(TOP).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
worker-1 20163 
\t         1a92468 leaf::one
\t         1a9aac3 <T as core::Into>::call
\tffffffffffffffff [unknown]

worker-2 20164 
\t         1a92468 leaf::one
\t         1a9aac3 <T as core::Into>::call

http loop 7 
\t         1 a;b
";

    #[test]
    fn stacks_are_folded() {
        let stacks = fold(SCRIPT.as_bytes()).expect("readable");
        let expected = [("http loop;a:b", 1), ("worker-;<T as core::Into>::call;leaf::one", 2)];
        let found: Vec<_> =
            stacks.iter().map(|(stack, samples)| (stack.as_str(), *samples)).collect();
        assert_eq!(found, expected);
        let top = top(&stacks);
        assert_eq!(top[0].function, "leaf::one");
        assert!((top[0].share - 2.0 / 3.0).abs() < 1e-9);
        assert!(fold(&b"\tnothing before\n\n\n"[..]).expect("readable").is_empty());
    }

    #[test]
    fn a_program_is_started_by_perf() {
        let launch = Launch {
            program: "node".into(),
            args: vec!["-regtest".into()],
            env: Vec::new(),
            cookie: "cookie".into(),
            node_log: None,
            cores: Vec::new(),
        };
        let launch = wrapped(launch, Path::new("data"));
        assert_eq!(launch.program, "perf");
        let args: Vec<_> = launch.args.iter().map(|arg| arg.to_string_lossy()).collect();
        assert_eq!(args[args.len() - 3..], ["--", "node", "-regtest"]);
    }

    #[test]
    fn what_is_not_there_is_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let none = folder.path().join("none");
        let profile = evaluate("assay", "title", &none, folder.path());
        assert!(profile.missing.is_some() && profile.picture.is_none(), "{profile:?}");
    }
}
