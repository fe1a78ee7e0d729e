//! Targets: detection, name and start of each kind of node, in a file per program.

mod assay;
mod bitcoind;
mod btcd;
mod delivery;
pub(crate) mod index;
pub mod kernel;
mod member;
mod network;
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use self::index::IndexTarget;
use self::kernel::KernelNotFound;
use self::network::{Network, is_bitcoin};
use self::program::{fingerprint, options_in_help, output_of};
use crate::plan::{IndexKind, NodeSpec, Plan, TargetSpec, TargetsPlan};
use crate::process::{Launch, Ports};

pub(crate) use self::network::folder_of as chain_folder;
pub(crate) use self::program::Fingerprint;

#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error(transparent)]
    Kernel(#[from] KernelNotFound),
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

impl TargetError {
    fn wrong_chain(name: &str, family: &str, chain: &str) -> Self {
        anyhow!("{name} ({family}) cannot take chain {chain}").into()
    }
}

/// Delivery method of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryMethod {
    /// By `submitblock`, one at a time.
    Rpc,
    /// From Assay's node over P2P.
    Peer,
    /// From the block files of the chain, which it validates without a node's data folder.
    Files,
    /// A node imports the block files of the chain: `-loadblock`.
    LoadBlock,
    /// A node has block files in its data folder: `-reindex`.
    Reindex,
    /// A node has block files and block index, and rebuilds the chainstate: `-reindex-chainstate`.
    ReindexChainstate,
}

#[derive(Clone, Copy)]
pub(crate) struct SyncLaunch<'a> {
    pub(crate) chain: &'a str,
    /// Activation height of each soft fork, if the chain lists it.
    pub(crate) activation: &'a BTreeMap<String, u32>,
    pub(crate) plan: &'a Plan,
    pub(crate) datadir: &'a Path,
    pub(crate) ports: &'a Ports,
    /// P2P port of the source.
    pub(crate) source: u16,
    /// Folder of the chain's block files, or the single file.
    pub(crate) blocks: &'a Path,
    /// `assumevalid` block, if the plan sets it.
    pub(crate) assumed: Option<&'a str>,
    /// True for block files of another program, of a chain that was not forged.
    pub(crate) is_own: bool,
    /// Last height to read from block files that extend further.
    pub(crate) stop_height: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    Assay,
    /// Assay's engine, which reads block files: `assay validate`.
    Engine,
    BitcoinCore,
    BitcoinKnots,
    Bchn,
    Btcd,
    /// Bitcoin Core's kernel in Assay's wrapper.
    Kernel,
}

impl Family {
    /// Name in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Assay => "assay",
            Self::Engine => "engine",
            Self::BitcoinCore => "bitcoin-core",
            Self::BitcoinKnots => "bitcoin-knots",
            Self::Bchn => "bchn",
            Self::Btcd => "btcd",
            Self::Kernel => "kernel",
        }
    }

    fn takes(self, chain: &str) -> bool {
        match self {
            Self::Assay | Self::Engine => true,
            Self::Bchn => chain == "bch-regtest",
            Self::BitcoinCore | Self::BitcoinKnots | Self::Kernel => is_bitcoin(chain),
            Self::Btcd => is_bitcoin(chain) && Network::of(chain).btcd.is_some(),
        }
    }
}

/// A detected target with its version.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) family: Family,
    pub(crate) version: String,
    /// Program with its first arguments.
    command: Vec<OsString>,
    /// Size and time of the program file, so that a rebuilt program is measured again.
    pub(crate) fingerprint: Fingerprint,
    /// Options in the program's help.
    options: BTreeSet<String>,
    /// The user's arguments, after all others.
    extra: Vec<String>,
    /// Cores that it is bound to; any if empty.
    cores: Vec<usize>,
    pub(crate) index: Option<IndexTarget>,
}

impl Target {
    /// A program alone: without an index, and without anything of the user.
    fn of(
        family: Family,
        (name, version): (String, String),
        command: Vec<OsString>,
        options: BTreeSet<String>,
    ) -> Self {
        let fingerprint = command.first().map(|program| fingerprint(program)).unwrap_or_default();
        let (extra, cores, index) = (Vec::new(), Vec::new(), None);
        Self { name, family, version, command, fingerprint, options, extra, cores, index }
    }

    /// The target cannot do what the plan asks for.
    pub(crate) fn unable(&self, why: &str) -> TargetError {
        anyhow!("{} cannot take blocks as the plan asks: {why}", self.name).into()
    }

    /// Adds it to others; a repeated name gets a number.
    pub(crate) fn push_to(mut self, targets: &mut Vec<Self>) {
        let base = self.name.clone();
        for number in 2.. {
            if targets.iter().all(|other| other.name != self.name) {
                break;
            }
            self.name = format!("{base}-{number}");
        }
        targets.push(self);
    }

    /// Detects the target of `spec`. `node_command` starts Assay's node.
    pub(crate) fn detect(
        spec: &TargetSpec,
        node_command: &[OsString],
        assay_version: &str,
    ) -> Result<Self, TargetError> {
        let mut target = match &spec.node {
            NodeSpec::Assay => {
                Self::ours(Family::Assay, "assay", assay_version, node_command.to_vec())
            }
            NodeSpec::Engine(None) => {
                Self::ours(Family::Engine, "engine", assay_version, node_command.to_vec())
            }
            NodeSpec::AssayAt(program) => Self::detect_assay(Family::Assay, program)?,
            NodeSpec::Engine(Some(program)) => Self::detect_assay(Family::Engine, program)?,
            NodeSpec::Bitcoind(program) => Self::detect_bitcoind(program)?,
            NodeSpec::Built(build) => Self::detect_built(build)?,
            NodeSpec::Btcd(program) => Self::detect_btcd(program)?,
            NodeSpec::Kernel(program) => Self::detect_kernel(program.as_deref())?,
        };
        target.extra.clone_from(&spec.args);
        target.cores.clone_from(&spec.cores);
        if let Some(spec) = &spec.index {
            let mut index = IndexTarget::detect(spec)?;
            if index.kind == IndexKind::Own {
                index.version.clone_from(&target.version);
                target.name.push_str("+index");
            } else {
                if target.family == Family::Assay {
                    let help = output_of(Path::new(target.program()), &["bitcoind", "-help"])?;
                    target.options.extend(options_in_help(&help));
                }
                target.name = format!("{}+{}", target.name, index.name());
            }
            target.index = Some(index);
        }
        if let Some(name) = &spec.name {
            target.name.clone_from(name);
        }
        Ok(target)
    }

    /// The program without arguments.
    pub(crate) fn program(&self) -> &OsStr {
        self.command.first().map_or(OsStr::new(""), |program| program)
    }

    /// Rejects chains that the family does not support.
    pub(crate) fn check_chain(&self, chain: &str) -> Result<(), TargetError> {
        // Versions only support the test networks of their time.
        let is_core = matches!(self.family, Family::BitcoinCore | Family::BitcoinKnots);
        let option = Network::of(chain).core_option.filter(|_| is_core);
        let is_known = option.is_none_or(|name| name == "-regtest" || self.knows(name));
        if self.family.takes(chain) && is_known {
            return self.index.as_ref().map_or(Ok(()), |index| index.check_chain(chain));
        }
        Err(TargetError::wrong_chain(&self.name, self.family.as_str(), chain))
    }

    /// Command line of the node for a fresh `datadir` and these ports.
    pub(crate) fn launch(
        &self,
        chain: &str,
        datadir: &Path,
        ports: &Ports,
        plan: &TargetsPlan,
    ) -> Launch {
        let mut args: Vec<OsString> = self.command.iter().skip(1).cloned().collect();
        match self.family {
            // Indexes of other programs require Core's command line.
            Family::Assay if chain == "regtest" && self.has_other_index() => {
                args = vec!["bitcoind".into()];
                args.extend(self.bitcoind_args(datadir, ports, plan));
            }
            Family::Assay => args.extend(self.assay_args(chain, datadir, ports, plan)),
            Family::BitcoinCore | Family::BitcoinKnots | Family::Bchn => {
                args.extend(self.bitcoind_args(datadir, ports, plan));
            }
            // They accept no blocks over RPC: [`Self::method`] rejects them.
            Family::Btcd | Family::Kernel | Family::Engine => {}
        }
        self.launch_core(args, datadir)
    }

    /// A node on regtest that writes its log where Bitcoin Core does.
    fn launch_core(&self, args: Vec<OsString>, datadir: &Path) -> Launch {
        let folder = datadir.join("regtest");
        let node_log = folder.join("debug.log");
        self.launch_with(args, &folder, Some(node_log))
    }

    /// Adds what all command lines have; `folder` is that of the chain.
    fn launch_with(
        &self,
        mut args: Vec<OsString>,
        folder: &Path,
        node_log: Option<PathBuf>,
    ) -> Launch {
        args.extend(self.extra.iter().map(OsString::from));
        let (program, cookie) = (self.program().to_owned(), folder.join(".cookie"));
        Launch { program, args, env: Vec::new(), cookie, node_log, cores: self.cores.clone() }
    }

    /// Value of `-whitelist` that grants the laboratory all permissions. Before 0.21 permissions had no names (Core's release notes), and BCHN still grants
    /// all of them.
    fn trusted(&self) -> &'static str {
        let is_plain = self.family == Family::Bchn || self.is_older_than((0, 21));
        if is_plain { "127.0.0.1" } else { "noban,relay@127.0.0.1" }
    }

    /// The same node, which trusts the laboratory as a peer: its delays for other peers are not measured.
    pub(crate) fn with_peers(&self, mut launch: Launch, ports: &Ports) -> Launch {
        let address = format!("127.0.0.1:{}", ports.p2p);
        let is_node = self.family == Family::Assay && launch.args.iter().any(|arg| arg == "--rpc");
        if is_node {
            let whitelist = ["--p2p-whitelist", "noban,relay@127.0.0.1"];
            launch.args.extend(["--p2p", &address].map(OsString::from));
            launch.args.extend(whitelist.map(OsString::from));
            launch.args.extend(["--max-tip-age", "3153600000"].map(OsString::from));
            return launch;
        }
        let whitelist = format!("-whitelist={}", self.trusted());
        let args = ["-listen=1".to_owned(), format!("-bind={address}"), whitelist];
        launch.args.extend(args.map(OsString::from));
        launch
    }

    /// Filters the arguments by the program's help.
    pub(crate) fn known<'a>(
        &self,
        args: &'a [&'a str],
    ) -> impl Iterator<Item = OsString> + use<'a, '_> {
        args.iter().filter(|arg| self.knows(arg)).map(OsString::from)
    }

    fn knows(&self, arg: &str) -> bool {
        let name = arg.trim_start_matches('-').split('=').next().unwrap_or_default();
        self.options.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::delivery::tests::example;
    use super::program::version_number;
    use super::*;

    #[test]
    fn families() {
        let cases = [
            ("Bitcoin Core daemon version v31.99.0-unk bitcoind", Some(Family::BitcoinCore)),
            ("Bitcoin Core version v0.21.1", Some(Family::BitcoinCore)),
            ("Bitcoin Knots daemon version v29.1.knots20250903", Some(Family::BitcoinKnots)),
            ("Bitcoin Core version v0.21.1.knots20210629", Some(Family::BitcoinKnots)),
            ("Bitcoin Cash Node Daemon version v28.0.1-631badbf6", Some(Family::Bchn)),
            ("Bitcoin version v0.8.6-beta", Some(Family::BitcoinCore)),
            ("btcd version 0.24", None),
        ];
        for (banner, family) in cases {
            assert_eq!(Family::of_banner(banner), family, "{banner}");
        }
        assert_eq!(version_number(cases[0].0), "31.99.0");
        assert_eq!(version_number(cases[4].0), "28.0.1");
    }

    fn line(target: &Target, chain: &str) -> String {
        let plan = Plan::builtin("bch-scaling").expect("valid").target;
        let ports =
            Ports { rpc: 18_443, electrum: 50_001, p2p: 18_444, zmq: 28_332, metrics: 4224 };
        let launch = target.launch(chain, Path::new("data"), &ports, &plan);
        let args: Vec<_> = launch.args.iter().map(|arg| arg.to_string_lossy()).collect();
        args.join("\n")
    }

    #[test]
    fn command_lines() {
        let help =
            "Options:\n\n  -expire\n  -checkmempool=<n>\n       -maxtipage is no option here\n";
        let bchn = Target {
            command: vec!["bitcoind".into()],
            extra: Vec::new(),
            ..example(Family::Bchn, "", help)
        };
        insta::assert_snapshot!(line(&bchn, "bch-regtest"), @r#"
        -regtest
        -datadir=data
        -server
        -rpcport=18443
        -rpcbind=127.0.0.1
        -rpcallowip=127.0.0.1
        -printtoconsole=0
        -listen=0
        -connect=0
        -dbcache=2048
        -maxmempool=4000
        -checkmempool=0
        -expire=0
        -minrelaytxfee=0.00000001
        -excessiveblocksize=256000000
        "#);
        let assay = Target { command: vec!["assay".into(), "node".into()], ..bchn };
        let assay = Target { family: Family::Assay, ..assay };
        insta::assert_snapshot!(line(&assay, "bch-regtest"), @r#"
        node
        --chain
        bch-regtest
        --datadir
        data
        --rpc
        127.0.0.1:18443
        --db-cache
        2048
        "#);
    }

    #[test]
    fn chains_and_families() {
        assert!(example(Family::Bchn, "", "").check_chain("bch-regtest").is_ok());
        assert!(example(Family::Bchn, "", "").check_chain("regtest").is_err());
        assert!(example(Family::BitcoinCore, "", "").check_chain("regtest").is_ok());
        assert!(example(Family::Assay, "", "").check_chain("bch-regtest").is_ok());
    }
}
