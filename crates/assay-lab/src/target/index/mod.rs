//! Indexes of a node: name, detection and start of each kind.
//!
//! Assay's index is a part of its node and is enabled by flags. The others are programs that query a node: each has its own
//! folder, its own form of node settings, and one port of the loopback interface.

mod settings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use assay_report::atomic_file::{self, WriteError};
use assay_report::child;

use super::program::{Fingerprint, fingerprint, unknown_family, version_number};
use super::{Family, TargetError};
use crate::plan::{IndexKind, IndexPlan, IndexSpec, TargetsPlan};
use crate::process::{Launch, Ports};

#[derive(Debug, Clone)]
pub(crate) struct IndexTarget {
    pub(crate) kind: IndexKind,
    /// Version string of the program; empty if it is only available after start.
    pub(crate) version: String,
    program: PathBuf,
    pub(crate) fingerprint: Fingerprint,
}

pub(crate) struct NodeOfIndex<'a> {
    pub(crate) chain: &'a str,
    pub(crate) family: Family,
    pub(crate) datadir: &'a Path,
    pub(crate) credentials: &'a str,
}

impl IndexTarget {
    pub(crate) fn detect(spec: &IndexSpec) -> anyhow::Result<Self> {
        match spec {
            IndexSpec::Own => Ok(Self {
                kind: IndexKind::Own,
                version: String::new(),
                program: PathBuf::new(),
                fingerprint: Fingerprint::default(),
            }),
            IndexSpec::Program(kind, program) => Ok(Self {
                kind: *kind,
                version: version_of(*kind, program)?,
                program: program.clone(),
                fingerprint: fingerprint(program.as_os_str()),
            }),
        }
    }

    /// Part of the target's name after the node's.
    pub(crate) fn name(&self) -> String {
        let number = version_number(&self.version);
        format!("{}-{number}", self.kind.as_str()).trim_end_matches('-').to_owned()
    }

    /// Rejects chains that the program does not support.
    pub(crate) fn check_chain(&self, chain: &str) -> Result<(), TargetError> {
        if self.kind.takes(chain) {
            return Ok(());
        }
        Err(TargetError::wrong_chain(&self.name(), self.kind.as_str(), chain))
    }

    /// The plan's settings of this kind.
    pub(crate) fn plan<'a>(&self, plan: &'a TargetsPlan) -> Option<&'a IndexPlan> {
        match self.kind {
            IndexKind::Own => None,
            IndexKind::Fulcrum => Some(&plan.fulcrum),
            IndexKind::Electrs => Some(&plan.electrs),
            IndexKind::ElectrumX => Some(&plan.electrumx),
        }
    }

    /// Node options that this index requires, filtered by the node's help; the second value is true if the node must accept peers.
    pub(crate) fn needs(&self, ports: &Ports) -> (Vec<String>, bool) {
        let zmq = format!("-zmqpubhashblock=tcp://127.0.0.1:{}", ports.zmq);
        match self.kind {
            IndexKind::Own => (Vec::new(), false),
            IndexKind::Fulcrum => (vec!["-txindex=1".to_owned(), zmq], false),
            IndexKind::Electrs => (vec!["-rest=1".to_owned()], true),
            IndexKind::ElectrumX => (vec!["-txindex=1".to_owned()], false),
        }
    }

    /// Writes the program's configuration into `dir` and returns its launch; `None` for the built-in index without a process.
    pub(crate) fn launch(
        &self,
        node: &NodeOfIndex<'_>,
        dir: &Path,
        ports: &Ports,
        plan: &TargetsPlan,
    ) -> Result<Option<Launch>, WriteError> {
        let Some(plan) = self.plan(plan) else { return Ok(None) };
        let mut launch =
            Launch { program: self.program.as_os_str().to_owned(), ..Launch::default() };
        match self.kind {
            IndexKind::Own => return Ok(None),
            IndexKind::Fulcrum => {
                let path = dir.join("fulcrum.conf");
                let text = settings::fulcrum(node, dir, ports, plan);
                atomic_file::write(&path, text.as_bytes())?;
                launch.args.push(path.into());
            }
            IndexKind::Electrs => {
                let path = dir.join("electrs.toml");
                let text = settings::electrs(node, &self.version, dir, ports, plan);
                atomic_file::write(&path, text.as_bytes())?;
                launch.args.extend(["--skip-default-conf-files".into(), "--conf".into()]);
                launch.args.push(path.into());
            }
            IndexKind::ElectrumX => launch.env = settings::electrumx(node, dir, ports, plan),
        }
        launch.args.extend(plan.args.iter().map(OsString::from));
        Ok(Some(launch))
    }
}

/// Version string of a program; `ElectrumX` starts regardless of its arguments, so its version is queried at runtime.
fn version_of(kind: IndexKind, program: &Path) -> anyhow::Result<String> {
    let failed = || format!("cannot run {}", program.display());
    if kind == IndexKind::ElectrumX {
        std::fs::metadata(program).with_context(failed)?;
        return Ok("ElectrumX".to_owned());
    }
    let output = child::output(Command::new(program).arg("--version")).with_context(failed)?;
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let banner = out.lines().chain(err.lines()).map(str::trim).find(|line| !line.is_empty());
    let banner = banner.unwrap_or_default();
    // electrs prints only the number.
    let name = match kind {
        IndexKind::Electrs if !banner.contains("electrs") => format!("electrs {banner}"),
        _ => banner.to_owned(),
    };
    if name.to_ascii_lowercase().contains(kind.as_str()) {
        return Ok(name);
    }
    Err(unknown_family(program, &name))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::plan::{Plan, Setting};

    fn example(kind: IndexKind) -> IndexTarget {
        IndexTarget {
            kind,
            version: format!("{} 2.1.1 (Release abc)", kind.as_str()),
            program: "/opt/program".into(),
            fingerprint: Fingerprint::default(),
        }
    }

    fn configured(kind: IndexKind, version: &str, chain: &str) -> String {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut plan = Plan::builtin("bch-scaling").expect("valid").target;
        for index in [&mut plan.fulcrum, &mut plan.electrs, &mut plan.electrumx] {
            index.config = [
                ("cache".to_owned(), Setting::Integer(7)),
                ("name".to_owned(), Setting::Text("a b".to_owned())),
            ]
            .into();
            index.args = vec!["--extra".to_owned()];
        }
        let node = NodeOfIndex {
            chain,
            family: Family::Bchn,
            datadir: Path::new("/node"),
            credentials: "user:pass",
        };
        let ports = Ports { rpc: 1, electrum: 2, p2p: 3, zmq: 4, metrics: 5 };
        let example = IndexTarget { version: version.to_owned(), ..example(kind) };
        let launch = example.launch(&node, dir.path(), &ports, &plan);
        let launch = launch.expect("writable").expect("a program");
        let mut text = String::new();
        for arg in &launch.args {
            let path = Path::new(arg);
            if path.is_absolute() {
                text.push_str(&std::fs::read_to_string(path).expect("written"));
            } else {
                writeln!(text, "{}", arg.display()).expect("a string");
            }
        }
        for (name, value) in &launch.env {
            writeln!(text, "{}={}", name.display(), value.display()).expect("a string");
        }
        text.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn configures_each_program() {
        insta::assert_snapshot!(configured(IndexKind::Fulcrum, "Fulcrum 2.1.1", "bch-regtest"), @"
        datadir = DIR
        bitcoind = 127.0.0.1:1
        rpcuser = user
        rpcpassword = pass
        tcp = 127.0.0.1:2
        peering = false
        announce = false
        polltime = 0.5
        ts_format = utc
        subnets_to_exclude_from_per_ip_limits = 127.0.0.1/32
        cache = 7
        name = a b
        --extra
        ");
        insta::assert_snapshot!(configured(IndexKind::Electrs, "electrs v0.10.9", "regtest"), @r#"
        --skip-default-conf-files
        --conf
        network = "regtest"
        db_dir = "DIR/db"
        daemon_dir = "/node"
        cookie_file = "/node/regtest/.cookie"
        daemon_rpc_addr = "127.0.0.1:1"
        electrum_rpc_addr = "127.0.0.1:2"
        monitoring_addr = "127.0.0.1:5"
        skip_block_download_wait = true
        log_filters = "INFO"
        daemon_p2p_addr = "127.0.0.1:3"
        cache = 7
        name = "a b"
        --extra
        "#);
        insta::assert_snapshot!(configured(IndexKind::ElectrumX, "ElectrumX", "bch-regtest"), @"
        --extra
        COIN=BitcoinCash
        NET=regtest
        DAEMON_URL=http://user:pass@127.0.0.1:1/
        DB_ENGINE=leveldb
        SERVICES=tcp://127.0.0.1:2
        PEER_DISCOVERY=off
        PEER_ANNOUNCE=
        COST_SOFT_LIMIT=0
        COST_HARD_LIMIT=0
        MAX_SEND=1000000000
        REQUEST_TIMEOUT=3600
        ALLOW_ROOT=1
        DB_DIRECTORY=DIR
        cache=7
        name=a b
        ");
    }

    #[test]
    fn electrs_takes_blocks_by_rest_since_0_11() {
        for (version, uses_peers) in
            [("electrs 0.10.9", true), ("electrs v0.11.0", false), ("electrs 1.0.0", false)]
        {
            let text = configured(IndexKind::Electrs, version, "regtest");
            assert_eq!(text.contains("daemon_p2p_addr"), uses_peers, "{version}");
        }
    }

    #[test]
    fn chains_and_kinds() {
        assert!(example(IndexKind::Fulcrum).check_chain("bch-regtest").is_ok());
        assert!(example(IndexKind::Electrs).check_chain("regtest").is_ok());
        let error = example(IndexKind::Electrs).check_chain("bch-regtest").expect_err("refused");
        assert_eq!(error.to_string(), "electrs-2.1.1 (electrs) cannot take chain bch-regtest");
    }

    #[test]
    fn rejects_other_programs() {
        let spec = IndexSpec::Program(IndexKind::Fulcrum, "/bin/echo".into());
        let error = IndexTarget::detect(&spec).expect_err("echo is no Fulcrum").to_string();
        assert!(error.starts_with("/bin/echo is of no known family"), "{error}");
        let spec = IndexSpec::Program(IndexKind::ElectrumX, "/nonexistent".into());
        let error = IndexTarget::detect(&spec).expect_err("not there").to_string();
        assert_eq!(error, "cannot run /nonexistent");
    }
}
