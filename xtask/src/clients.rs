//! Clients of other projects, unchanged, from `PyPI`, against our node on regtest.
//!
//! Each has a program in `xtask/clients` that starts a node, drives the client, checks what came of it and prints in its last
//! line what the client did. A client that cannot be installed is reported as not run.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::command::forget_xtask;
use crate::core_tests::{absolute, build};

struct Client {
    name: &'static str,
    version: &'static str,
    /// Its program's name in `xtask/clients`, without `.py`.
    program: &'static str,
    /// Of `PyPI`.
    packages: &'static [&'static str],
}

const CLIENTS: &[Client] = &[
    Client {
        name: "python-bitcoinrpc, python-bitcoinlib",
        version: "1.0, 0.12.2",
        program: "python_bitcoinrpc",
        packages: &["python-bitcoinrpc==1.0", "python-bitcoinlib==0.12.2"],
    },
    Client {
        name: "ElectrumX",
        version: "1.19.0",
        program: "electrumx",
        packages: &["e-x==1.19.0"],
    },
];

/// Tries the clients whose programs are named, or all; an error when one did not do what it should.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut profile = "release";
    let mut program = None;
    let mut names = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--program" => {
                program = Some(absolute(rest.next().context("--program needs a value")?)?);
            }
            "--profile" => profile = rest.next().context("--profile needs a value")?,
            flag if flag.starts_with('-') => bail!("unknown option {flag}"),
            name => names.push(name),
        }
    }
    if let Some(name) =
        names.iter().find(|name| CLIENTS.iter().all(|client| client.program != **name))
    {
        bail!("no client has a program xtask/clients/{name}.py");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("there is a workspace")?;
    let folder = root.join("target/clients");
    let program = program.map_or_else(|| build(root, profile), Ok)?;
    let mut failed = Vec::new();
    println!("{:<38}{:<16}{:<9}remarks", "client", "version", "result");
    for client in CLIENTS {
        if !names.is_empty() && !names.contains(&client.program) {
            continue;
        }
        let (result, remark) = client.attempt(root, &folder.join(client.program), &program)?;
        println!("{:<38}{:<16}{result:<9}{remark}", client.name, client.version);
        if result == FAILED {
            failed.push(client.program);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} failed; logs are in {}", failed.join(", "), folder.display())
}

impl Client {
    /// Installs the client and tries it: the result, and what it did or why it did not.
    fn attempt(
        &self,
        root: &Path,
        folder: &Path,
        program: &Path,
    ) -> anyhow::Result<(&'static str, String)> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let log_path = folder.join("log");
        let log = File::create(&log_path)
            .with_context(|| format!("cannot write {}", log_path.display()))?;
        let environment = folder.join("venv");
        if let Err(error) = self.install(&environment, &log) {
            return Ok(("not run", format!("{error:#}")));
        }
        // The name decides which command line our program has.
        let link = folder.join("bitcoind");
        let state = folder.join("state");
        let _ = fs::remove_file(&link);
        let _ = fs::remove_dir_all(&state);
        symlink(program, &link).with_context(|| format!("cannot make {}", link.display()))?;
        let mut command = Command::new(environment.join("bin/python3"));
        command.arg(root.join("xtask/clients").join(self.program).with_extension("py"));
        command.arg(link).arg(state).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.stderr(log).output().context("cannot start python3")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default().to_owned();
        if output.status.success() {
            Ok(("passed", last))
        } else {
            Ok((FAILED, format!("see {}", log_path.display())))
        }
    }

    fn install(&self, environment: &Path, log: &File) -> anyhow::Result<()> {
        let does = |command: &mut Command, what: &str| {
            forget_xtask(command);
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
            match command.status() {
                Ok(status) if status.success() => Ok(()),
                Ok(_) => bail!("{what} failed"),
                Err(error) => bail!("{what}: {error}"),
            }
        };
        does(Command::new("python3").args(["-m", "venv"]).arg(environment), "python3 -m venv")?;
        let mut pip = Command::new(environment.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(self.packages);
        does(&mut pip, "pip install")
    }
}

const FAILED: &str = "failed";
