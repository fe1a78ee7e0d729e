//! Descendants of this process.

use std::collections::{BTreeMap, BTreeSet};

use assay_report::child;
use rustix::process::{Signal, kill_process};

use super::{pid_of, sample};

/// Kills all descendants, for a process that exits at once and starts no others. Finds none on systems without `/proc`.
pub fn kill_descendants() {
    child::forbid();
    kill_descendants_of(std::process::id());
}

fn kill_descendants_of(pid: u32) {
    let mut stopped = BTreeSet::new();
    // A stopped process starts no other, so a round that finds none has found all.
    loop {
        let mut new = descendants(pid);
        new.retain(|pid| stopped.insert(*pid));
        if new.is_empty() {
            break;
        }
        send(&new, Signal::STOP);
    }
    send(&stopped, Signal::KILL);
}

fn send<'a>(to: impl IntoIterator<Item = &'a u32>, signal: Signal) {
    for pid in to {
        if let Some(pid) = pid_of(*pid) {
            // A process that has ended needs no signal.
            let _ = kill_process(pid, signal);
        }
    }
}

fn descendants(of: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, stat) in sample::all_stats() {
        if let Some(parent) = sample::parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut all = vec![of];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        all.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    all.split_off(1)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn children_and_grandchildren_are_found() {
        if !cfg!(target_os = "linux") {
            return eprintln!("skipped: no /proc");
        }
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let mut line = String::new();
        let stdout = shell.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("readable");
        let sleep: u32 = line.trim().parse().expect("a process");
        assert_eq!(descendants(shell.id()), [sleep]);
        assert!(descendants(std::process::id()).contains(&sleep));
        kill_process(pid_of(sleep).expect("not zero"), Signal::KILL).expect("it runs");
        shell.wait().expect("it ends");
    }

    /// A grandchild that starts others all the time.
    #[test]
    fn none_survives_that_is_started_meanwhile() {
        if !cfg!(target_os = "linux") {
            return eprintln!("skipped: no /proc");
        }
        let busy = "while :; do sh -c 'sleep 600.125 & sleep 600.125' & sleep 0.002; done";
        let script = format!("({busy}) & read end");
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        while descendants(shell.id()).len() < 40 {
            thread::sleep(Duration::from_millis(1));
        }
        kill_descendants_of(shell.id());
        drop(shell.stdin.take());
        shell.wait().expect("it ends");
        // A killed process needs a while to end; one that survives sleeps for ten minutes.
        let start = Instant::now();
        while is_there("600.125") {
            assert!(start.elapsed() < Duration::from_mins(1), "one has survived");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// True if a process has this argument.
    fn is_there(argument: &str) -> bool {
        let has = |entry: fs::DirEntry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
        };
        fs::read_dir("/proc").expect("readable").flatten().any(has)
    }
}
