//! Descendants of this process.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Kills all descendants, for a process that exits at once. Finds none on systems without `/proc`.
pub fn kill_descendants() {
    for pid in descendants(std::process::id()) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // A process that has ended needs no signal.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Youngest generation last, so that no parent can start another after its children are dead.
fn descendants(of: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some(parent) = parent(pid) else { continue };
        children.entry(parent).or_default().push(pid);
    }
    let mut all = vec![of];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        all.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    all.split_off(1)
}

/// Parent of a process; its name, in brackets, may contain anything.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

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
        let pid = Pid::from_raw(i32::try_from(sleep).expect("small")).expect("not zero");
        kill_process(pid, Signal::KILL).expect("it runs");
        shell.wait().expect("it ends");
    }
}
