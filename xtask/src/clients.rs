//! Unmodified clients of other projects, from their registries, against our node on regtest.
//!
//! Each has a program in `xtask/clients` that starts a node, drives the client, checks the results and prints a summary in its
//! last line. A client that cannot be installed is reported as not run; without any other that is an error.

use std::env;
use std::fs::{self, File};
use std::iter;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::core_tests::{absolute, build};
use crate::forget_xtask;

struct Client {
    name: &'static str,
    version: &'static str,
    /// Program name in `xtask/clients`, without `.py`.
    program: &'static str,
    source: Source,
}

enum Source {
    /// `PyPI` packages.
    Pip(&'static [&'static str]),
    /// Programs of a Go module at the client's version, with build tags.
    Go { module: &'static str, tags: &'static str, programs: &'static [&'static str] },
    /// A Cargo package in `xtask/clients` that calls the client crates.
    Cargo(&'static str),
}

const CLIENTS: &[Client] = &[
    Client {
        name: "python-bitcoinrpc, python-bitcoinlib",
        version: "1.0, 0.12.2",
        program: "python_bitcoinrpc",
        source: Source::Pip(&["python-bitcoinrpc==1.0", "python-bitcoinlib==0.12.2"]),
    },
    Client {
        name: "ElectrumX",
        version: "1.19.0",
        program: "electrumx",
        source: Source::Pip(&["e-x==1.19.0"]),
    },
    Client {
        name: "bitcoincore-rpc, corepc-client",
        version: "0.19.0, 0.18.0",
        program: "rust_rpc",
        source: Source::Cargo("rust_rpc"),
    },
    Client {
        name: "lnd",
        version: "v0.20.0-beta",
        program: "lnd",
        source: Source::Go {
            module: "github.com/lightningnetwork/lnd",
            tags: "neutrinorpc walletrpc",
            programs: &["./cmd/lnd", "./cmd/lncli"],
        },
    },
];

/// Tests the clients with the named programs, or all; an error if one fails.
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
    let (mut has_run, mut failed) = (false, Vec::new());
    println!("{:<38}{:<16}{:<9}remarks", "client", "version", "result");
    for client in CLIENTS {
        if !names.is_empty() && !names.contains(&client.program) {
            continue;
        }
        let (result, remark) = client.attempt(root, &folder.join(client.program), &program)?;
        println!("{:<38}{:<16}{result:<9}{remark}", client.name, client.version);
        has_run |= result != NOT_RUN;
        if result == FAILED {
            failed.push(client.program);
        }
    }
    if !has_run {
        bail!("no client has run; logs are in {}", folder.display());
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} failed; logs are in {}", failed.join(", "), folder.display())
}

impl Client {
    /// Installs and tests a client: the result, and a summary or the reason of a failure.
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
        let python = match self.install(root, folder, &log) {
            Ok(python) => python,
            Err(error) => return Ok((NOT_RUN, format!("{error:#}"))),
        };
        // The executable's name selects the command line interface.
        let link = folder.join("bitcoind");
        let state = folder.join("state");
        let _ = fs::remove_file(&link);
        let _ = fs::remove_dir_all(&state);
        symlink(program, &link).with_context(|| format!("cannot make {}", link.display()))?;
        let mut command = Command::new(python);
        command.arg(root.join("xtask/clients").join(self.program).with_extension("py"));
        command.arg(link).arg(state).env("PYTHONDONTWRITEBYTECODE", "1");
        let old_path = env::var_os("PATH").unwrap_or_default();
        let path = iter::once(folder.join("bin")).chain(env::split_paths(&old_path));
        command.env("PATH", env::join_paths(path).context("PATH cannot be extended")?);
        let output = command.stderr(log).output().context("cannot start python3")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default().to_owned();
        if output.status.success() {
            Ok(("passed", last))
        } else {
            Ok((FAILED, format!("see {}", log_path.display())))
        }
    }

    /// Returns the interpreter for the test program; the client's programs are in `folder/bin`.
    fn install(&self, root: &Path, folder: &Path, log: &File) -> anyhow::Result<PathBuf> {
        let does = |command: &mut Command, what: &str| {
            forget_xtask(command);
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
            match command.status() {
                Ok(status) if status.success() => Ok(()),
                Ok(_) => bail!("{what} failed"),
                Err(error) => bail!("{what}: {error}"),
            }
        };
        match self.source {
            Source::Pip(packages) => {
                let environment = folder.join("venv");
                let mut venv = Command::new("python3");
                does(venv.args(["-m", "venv"]).arg(&environment), "python3 -m venv")?;
                let mut pip = Command::new(environment.join("bin/pip"));
                pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
                does(&mut pip, "pip install")?;
                return Ok(environment.join("bin/python3"));
            }
            Source::Go { module, tags, programs } => {
                // `go install` rejects modules with replace directives.
                let module = format!("{module}@{}", self.version);
                let output =
                    Command::new("go").args(["mod", "download", "-json", &module]).output();
                let output = output.context("go")?;
                let object: serde_json::Value =
                    serde_json::from_slice(&output.stdout).context("go mod download failed")?;
                let source = object["Dir"].as_str().context("go mod download failed")?;
                let mut go = Command::new("go");
                go.current_dir(source).args(["build", "-buildvcs=false", "-tags", tags, "-o"]);
                does(go.arg(folder.join("bin/")).args(programs), "go build")?;
            }
            Source::Cargo(name) => {
                let mut cargo = Command::new("cargo");
                cargo.args(["install", "--quiet", "--locked", "--debug", "--force", "--path"]);
                cargo.arg(root.join("xtask/clients").join(name)).arg("--root").arg(folder);
                does(cargo.arg("--target-dir").arg(folder.join("target")), "cargo install")?;
            }
        }
        Ok("python3".into())
    }
}

const FAILED: &str = "failed";
const NOT_RUN: &str = "not run";
