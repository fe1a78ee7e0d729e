//! Runs under `perf`, separate from the measured runs: CPU time of a target as a flame graph and a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use assay_report::{atomic_file, child};

use super::flame::{self, Folded};
use crate::process::Launch;
use crate::results::{Change, Changed, Profile, Share};

/// Folder of profiles in the folder of results.
pub(crate) const FOLDER: &str = "profiles";
/// Samples per second and thread; no divisor of clock rates.
const HERTZ: u32 = 199;
/// Stacks are unwound from copies of this size: release builds omit frame pointers.
const CALL_GRAPH: &str = "dwarf,8192";
/// Functions per target in the report.
const TOP: usize = 8;

pub(crate) fn is_there() -> bool {
    child::output(Command::new("perf").arg("--version")).is_ok_and(|output| output.status.success())
}

/// The same program under `perf record`, which writes to `data`.
pub(crate) fn wrapped(launch: Launch, data: &Path) -> Launch {
    let mut args = vec!["record".into(), "--quiet".into(), "-F".into(), HERTZ.to_string().into()];
    args.extend(["--call-graph".into(), CALL_GRAPH.into(), "-o".into(), data.into(), "--".into()]);
    args.push(launch.program);
    args.extend(launch.args);
    Launch { program: "perf".into(), args, ..launch }
}

/// Draws the flame graph of `data`, and removes it. Returns the stacks for comparisons.
pub(crate) fn evaluate(target: &str, title: &str, data: &Path, folder: &Path) -> (Profile, Folded) {
    let mut profile = Profile { target: target.to_owned(), ..Profile::default() };
    let stacks = match make(target, title, data, folder, &mut profile) {
        Ok(stacks) => stacks,
        Err(error) => {
            profile.missing = Some(error.to_string());
            Folded::new()
        }
    };
    if profile.missing.is_none() && profile.samples == 0 {
        profile.missing = Some("perf took no samples".to_owned());
    }
    // Large, and useless without the measured programs.
    let _ = fs::remove_file(data);
    (profile, stacks)
}

/// Difference of a target's samples from the first one's, `name` with `before`: a flame graph and the functions that changed most.
pub(crate) fn compare(
    (name, before): (&str, &Folded),
    after: &Folded,
    folder: &Path,
    profile: &mut Profile,
) {
    let target = &profile.target;
    let picture = format!("{name}-to-{target}.svg");
    let title = format!("From {name} to {target}: CPU time");
    let drawn = flame::draw_change(&title, before, after);
    let written = atomic_file::write(&folder.join(&picture), drawn.as_bytes());
    let (own_before, own_after) = (own(before), own(after));
    let mut changed: Vec<_> = own_before
        .keys()
        .chain(own_after.keys())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|function| Changed {
            function: (*function).to_owned(),
            before_s: seconds(own_before.get(function)),
            after_s: seconds(own_after.get(function)),
        })
        .collect();
    let size = |changed: &Changed| (changed.after_s - changed.before_s).abs();
    changed.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changed.truncate(TOP);
    profile.change = Some(Change {
        from: name.to_owned(),
        before_s: seconds(Some(&before.values().sum())),
        after_s: seconds(Some(&after.values().sum())),
        picture: written.is_ok().then(|| format!("{FOLDER}/{picture}")),
        changed,
    });
}

fn seconds(samples: Option<&u64>) -> f64 {
    samples.map_or(0.0, |samples| *samples as f64 / f64::from(HERTZ))
}

fn make(
    target: &str,
    title: &str,
    data: &Path,
    folder: &Path,
    profile: &mut Profile,
) -> io::Result<Folded> {
    let log = File::create(data.with_extension("script.log"))?;
    let mut command = Command::new("perf");
    command
        .args(["script", "--no-inline", "-F", "comm,tid,ip,sym", "-i"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    let mut script = child::spawn(&mut command)?;
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
    // The format of other flame graph tools.
    write(&format!("{target}.folded"), text.as_bytes())?;
    let picture = format!("{target}.svg");
    write(&picture, flame::draw(title, &stacks).as_bytes())?;
    profile.picture = Some(format!("{FOLDER}/{picture}"));
    Ok(stacks)
}

/// Parses stacks of `perf script`: a line with thread and pid, then a line per frame, innermost first, then an empty one.
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
            // Frames that could not be unwound have no information.
            if name != "[unknown]" && thread.is_some() {
                frames.push(name.replace(';', ":"));
            }
        } else {
            end(&mut thread, &mut frames);
            // Numbered threads of a pool are merged.
            let name = line.trim().rsplit_once(char::is_whitespace).map_or("", |(name, _)| name);
            let name = name.trim().trim_end_matches(|c: char| c.is_ascii_digit());
            thread = Some(name.replace(';', ":"));
        }
    }
    end(&mut thread, &mut frames);
    Ok(stacks)
}

/// Samples of each function itself, without its callees.
fn own(stacks: &Folded) -> BTreeMap<&str, u64> {
    let mut own = BTreeMap::new();
    for (stack, samples) in stacks {
        let leaf = stack.rsplit_once(';').map_or("[unknown]", |(_, leaf)| leaf);
        *own.entry(leaf).or_default() += samples;
    }
    own
}

fn top(stacks: &Folded) -> Vec<Share> {
    let all: u64 = stacks.values().sum();
    let mut own: Vec<_> = own(stacks).into_iter().collect();
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
        let launch =
            Launch { program: "node".into(), args: vec!["-regtest".into()], ..Launch::default() };
        let launch = wrapped(launch, Path::new("data"));
        assert_eq!(launch.program, "perf");
        let args: Vec<_> = launch.args.iter().map(|arg| arg.to_string_lossy()).collect();
        assert_eq!(args[args.len() - 3..], ["--", "node", "-regtest"]);
    }

    #[test]
    fn missing_profile_has_a_reason() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let none = folder.path().join("none");
        let (profile, stacks) = evaluate("assay", "title", &none, folder.path());
        assert!(profile.missing.is_some() && profile.picture.is_none(), "{profile:?}");
        assert!(stacks.is_empty());
    }

    #[test]
    fn two_profiles_are_compared() {
        let folded = |stacks: [(&str, u64); 2]| -> Folded {
            stacks.into_iter().map(|(stack, samples)| (stack.to_owned(), samples)).collect()
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut profile = Profile { target: "new".to_owned(), ..Profile::default() };
        let before = folded([("main;hash", 398), ("main;map", 199)]);
        let after = folded([("main;hash", 398), ("main;vector", 398)]);
        compare(("old", &before), &after, folder.path(), &mut profile);
        let change = profile.change.expect("compared");
        assert_eq!((change.before_s, change.after_s), (3.0, 4.0));
        assert_eq!(change.changed[0].function, "vector");
        assert_eq!((change.changed[0].before_s, change.changed[0].after_s), (0.0, 2.0));
        assert_eq!((change.changed[1].before_s, change.changed[1].after_s), (1.0, 0.0));
        assert_eq!(change.picture.as_deref(), Some("profiles/old-to-new.svg"));
        assert!(folder.path().join("old-to-new.svg").exists());
    }
}
