//! Ctrl-C and SIGTERM end every command, at once or in order, with status 130 or 143, and leave only finished records.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Guard;

/// The documented limit is two seconds; a machine that runs all tests at once is slower.
const AT_MOST: Duration = Duration::from_secs(30);
/// Longest start-up of a command.
const START_MAX: Duration = Duration::from_mins(5);
const PAUSE: Duration = Duration::from_millis(10);

/// Indication that a command has started its work.
enum Sign {
    /// A line with this text on standard error.
    Says(&'static str),
    /// A file in the folder of the test whose path contains this text.
    Makes(&'static str),
    /// A temporary folder of a child process in that of the command.
    Nests,
    /// Installed signal handlers: the command waits for input, or is in a long preparation.
    Watches,
}

use Sign::{Makes, Nests, Says, Watches};

/// Long-running commands, with `DIR` for the folder of the test and `SILENT` for a server that never responds.
const COMMANDS: &[(&str, Sign)] = &[
    ("machine --thorough --dir DIR", Makes(".assay-disk-")),
    ("run worst-blocks --quick --out DIR/out", Watches),
    ("run mempool --out DIR/out", Makes("/out/")),
    ("run bitcoin-scaling --target assay --out DIR/out", Makes("/out/")),
    ("run bitcoin-scaling --scale 0.01 --target assay --out DIR/out", Nests),
    ("bench hash", Watches),
    ("bench mempool", Makes("/tmp/assay-")),
    ("bench network --out DIR/out", Makes("/out/")),
    ("crash --out DIR/out", Makes("/out/")),
    ("chain forge bitcoin-scaling --scale 1 --out DIR/chain", Makes("/chain/ledger.jsonl.part")),
    ("chain serve DIR/forged --p2p 127.0.0.1:0", Says("serving")),
    ("logs -", Watches),
    ("electrum check SILENT --chain-dir DIR/forged", Watches),
    ("load electrum SILENT --chain-dir DIR/forged", Watches),
    ("emit DIR/forged --to p2p@SILENT", Watches),
    ("bench harness", Watches),
];

#[test]
fn every_command_ends() {
    let forged = tempfile::tempdir().expect("a folder");
    let chain = forged.path().join("forged");
    let chain = chain.to_str().expect("a path of text");
    crate::forge(chain, "--scale 0.01");
    // The kernel accepts connections for it.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = listener.local_addr().expect("an address").to_string();
    for (number, (command, sign)) in COMMANDS.iter().enumerate() {
        if matches!(sign, Watches) && !cfg!(target_os = "linux") {
            eprintln!("skipped: {command}: no /proc");
            continue;
        }
        // Signals alternate over the commands; the table has both kinds of commands for each.
        let signal = if number % 2 == 0 { ("INT", 130) } else { ("TERM", 143) };
        let command = command.replace("DIR/forged", chain).replace("SILENT", &silent);
        check(&command, sign, signal);
    }
}

fn assay(arguments: &[&str]) -> Command {
    let mut command = crate::command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command
}

fn check(command: &str, sign: &Sign, (signal, code): (&str, i32)) {
    let folder = tempfile::tempdir().expect("a folder");
    let (dir, tmp) = (folder.path().to_str().expect("a path of text"), folder.path().join("tmp"));
    fs::create_dir(&tmp).expect("writable");
    let words: Vec<String> = command.split(' ').map(|word| word.replace("DIR", dir)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut child = assay(&words);
    child.env("TMPDIR", &tmp).current_dir(&folder).stderr(Stdio::piped());
    let mut running = Running { child: Guard(child.spawn().expect("the program starts")), folder };
    let said = running.wait_for(sign, command);
    let start = Instant::now();
    let pid = running.child.0.id().to_string();
    let kill = Command::new("kill").args([&format!("-{signal}"), &pid]).status();
    assert!(kill.expect("there is kill").success());
    let status = running.end(command);
    let said = said.join().expect("standard error is read");
    assert_eq!(status.code(), Some(code), "{command}: {status}\n{said}");
    let left = files(running.folder.path());
    let is_litter = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A forge resumes from its own parts.
        let in_chain = path.iter().any(|part| part.to_string_lossy().starts_with("chain"));
        let is_part = name.ends_with(".part") && !in_chain;
        path.starts_with(&tmp) && **path != tmp || name.starts_with(".assay") || is_part
    };
    let litter: Vec<_> = left.iter().filter(is_litter).collect();
    assert!(litter.is_empty(), "{command}: {litter:?}");
    // Killed children may take a while to exit.
    while !processes_in(running.folder.path()).is_empty() {
        let processes = processes_in(running.folder.path());
        assert!(start.elapsed() < AT_MOST, "{command}: {processes:?}");
        thread::sleep(PAUSE);
    }
}

struct Running {
    child: Guard,
    folder: TempDir,
}

impl Running {
    /// Waits until the command works; returns the thread that reads its standard error.
    fn wait_for(&mut self, sign: &Sign, command: &str) -> thread::JoinHandle<String> {
        let stderr = BufReader::new(self.child.0.stderr.take().expect("a pipe"));
        let (send, lines) = std::sync::mpsc::channel();
        let reader = thread::spawn(move || {
            let mut said = String::new();
            for line in stderr.lines().map_while(Result::ok) {
                said.push_str(&line);
                said.push('\n');
                // The receiver is gone after the sign.
                let _ = send.send(line);
            }
            said
        });
        let start = Instant::now();
        loop {
            let is_seen = match sign {
                Says(text) => lines.try_iter().any(|line| line.contains(text)),
                Nests => files(self.folder.path())
                    .iter()
                    .any(|path| path.to_string_lossy().matches("/assay-").count() > 1),
                Makes(text) => files(self.folder.path())
                    .iter()
                    .any(|path| path.to_string_lossy().contains(text)),
                Watches => handles_signals(self.child.0.id()),
            };
            if is_seen {
                return reader;
            }
            if let Some(status) = self.child.0.try_wait().expect("a child") {
                panic!("{command} ended: {status}\n{}", reader.join().unwrap_or_default());
            }
            assert!(start.elapsed() < START_MAX, "{command} is not at work");
            thread::sleep(PAUSE);
        }
    }

    fn end(&mut self, command: &str) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.0.try_wait().expect("a child") {
                return status;
            }
            assert!(start.elapsed() < AT_MOST, "{command} goes on");
            thread::sleep(PAUSE);
        }
    }
}

/// All files and folders below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = |entry: fs::DirEntry| {
        let path = entry.path();
        let below = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files(&path)
        } else {
            Vec::new()
        };
        [path].into_iter().chain(below)
    };
    entries.flat_map(below).collect()
}

/// Command lines of processes that name the folder.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy();
    let command = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(command).filter(|command| command.contains(&*folder)).collect()
}

/// True if a process handles SIGINT and SIGTERM.
fn handles_signals(pid: u32) -> bool {
    const MASK: u64 = 1 << (2 - 1) | 1 << (15 - 1);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & MASK == MASK)
}
