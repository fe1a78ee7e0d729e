//! Targets: how each kind of node is recognised, named and started.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

mod spec;
mod sync;

use crate::index_target::IndexTarget;
use crate::kernel::{self, KernelNotFound};
use crate::plan::TargetsPlan;
use crate::process::Ports;
pub use spec::{IndexKind, IndexSpec, NodeSpec, TargetSpec, TargetSpecError};
pub(crate) use spec::{USE_TARGETS, is_target_name};
pub(crate) use sync::{SyncLaunch, Way, block_files};

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The program cannot be run.
    #[error("cannot run {}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The program does not say that it belongs to a known family.
    #[error("{} is of no known family; it calls itself {banner:?}", program.display())]
    UnknownFamily {
        /// The program.
        program: PathBuf,
        /// First line of what it says of its version.
        banner: String,
    },
    /// The program around the kernel is not there.
    #[error(transparent)]
    Kernel(#[from] KernelNotFound),
    /// The version is too old for what is asked of it.
    #[error("{name}: {what} needs version {needed} or later")]
    TooOld {
        /// The target.
        name: String,
        /// What is asked of it.
        what: &'static str,
        /// The first version that can do it.
        needed: &'static str,
    },
    /// It cannot be measured in the way that the plan asks for.
    #[error("{name} cannot take blocks as the plan asks: {why}")]
    Delivery {
        /// The target.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// The family does not speak the rules of the chain.
    #[error("{name} ({family}) cannot take chain {chain}")]
    WrongChain {
        /// The target.
        name: String,
        /// Its family.
        family: &'static str,
        /// The chain.
        chain: String,
    },
}

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Our own node.
    Assay,
    /// Bitcoin Core.
    BitcoinCore,
    /// Bitcoin Knots.
    BitcoinKnots,
    /// Bitcoin Cash Node.
    Bchn,
    /// btcd.
    Btcd,
    /// Bitcoin Core's kernel in a program of ours.
    Kernel,
}

impl Family {
    /// The name used in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Assay => "assay",
            Self::BitcoinCore => "bitcoin-core",
            Self::BitcoinKnots => "bitcoin-knots",
            Self::Bchn => "bchn",
            Self::Btcd => "btcd",
            Self::Kernel => "kernel",
        }
    }

    /// Reads what a program of the Bitcoin Core family calls itself.
    fn of_banner(banner: &str) -> Option<Self> {
        let small = banner.to_ascii_lowercase();
        if small.contains("bitcoin cash node") {
            Some(Self::Bchn)
        } else if small.contains("knots") {
            Some(Self::BitcoinKnots)
        } else if small.contains("bitcoin core") || small.starts_with("bitcoin version") {
            // Before 0.9 the program was called by the name of the network.
            Some(Self::BitcoinCore)
        } else {
            None
        }
    }

    fn takes(self, chain: &str) -> bool {
        match self {
            Self::Assay => true,
            Self::Bchn => chain == "bch-regtest",
            Self::BitcoinCore | Self::BitcoinKnots | Self::Btcd | Self::Kernel => {
                chain == "regtest"
            }
        }
    }
}

/// A target that was found and asked for its version.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) family: Family,
    pub(crate) version: String,
    /// Program and the arguments that always come first.
    command: Vec<OsString>,
    /// Size and time of the program file, so that a rebuilt program is measured anew.
    pub(crate) fingerprint: Fingerprint,
    /// Options that the program lists in its help.
    options: BTreeSet<String>,
    /// Arguments that its user gave it, behind all others.
    extra: Vec<String>,
    /// The index beside it.
    pub(crate) index: Option<IndexTarget>,
}

/// Tells two builds of a program apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    bytes: u64,
    modified_unix_ms: u64,
}

/// Everything needed to start one process.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Added to the environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cookie: PathBuf,
    /// The log the node writes itself, where it does.
    pub(crate) node_log: Option<PathBuf>,
}

impl Target {
    /// Finds out what `spec` is. `node_command` is how to call our own node.
    pub(crate) fn detect(
        spec: &TargetSpec,
        node_command: &[OsString],
        assay_version: &str,
    ) -> Result<Self, TargetError> {
        let mut target = match &spec.node {
            NodeSpec::Assay => {
                Self::ours("assay".to_owned(), assay_version, node_command.to_vec(), None)
            }
            NodeSpec::AssayAt(program) => Self::detect_assay(program)?,
            NodeSpec::Bitcoind(program) => Self::detect_bitcoind(program)?,
            NodeSpec::Btcd(program) => Self::detect_btcd(program)?,
            NodeSpec::Kernel(program) => Self::detect_kernel(program.as_deref())?,
        };
        target.extra.clone_from(&spec.args);
        if let Some(spec) = &spec.index {
            let mut index = IndexTarget::detect(spec)?;
            if index.kind == IndexKind::Own {
                index.version.clone_from(&target.version);
                target.name.push_str("+index");
            } else {
                target.name = format!("{}+{}", target.name, index.name());
            }
            target.index = Some(index);
        }
        if let Some(name) = &spec.name {
            target.name.clone_from(name);
        }
        Ok(target)
    }

    /// Our own node; without a list it has all options that this version has.
    fn ours(
        name: String,
        version: &str,
        command: Vec<OsString>,
        options: Option<BTreeSet<String>>,
    ) -> Self {
        let fingerprint = command.first().map(|program| fingerprint(program)).unwrap_or_default();
        Self {
            name,
            family: Family::Assay,
            version: format!("Assay {version}"),
            command,
            fingerprint,
            options: options.unwrap_or_else(|| BTreeSet::from([sync::PROGRESS.to_owned()])),
            extra: Vec::new(),
            index: None,
        }
    }

    fn detect_assay(program: &Path) -> Result<Self, TargetError> {
        let banner = first_line(&output_of(program, &["--version"])?);
        let Some(version) = banner.strip_prefix("assay ") else {
            return Err(TargetError::UnknownFamily { program: program.to_owned(), banner });
        };
        let options = long_options_in_help(&output_of(program, &["validate", "--help"])?);
        let command = vec![program.as_os_str().to_owned(), "node".into()];
        Ok(Self::ours(
            format!("assay-{}", version_number(&banner)),
            version,
            command,
            Some(options),
        ))
    }

    fn detect_btcd(program: &Path) -> Result<Self, TargetError> {
        let banner = first_line(&output_of(program, &["--version"])?);
        if !banner.starts_with("btcd version") {
            return Err(TargetError::UnknownFamily { program: program.to_owned(), banner });
        }
        let options = long_options_in_help(&output_of(program, &["--help"])?);
        Ok(Self {
            name: format!("btcd-{}", version_number(&banner)),
            family: Family::Btcd,
            version: banner,
            command: vec![program.as_os_str().to_owned()],
            fingerprint: fingerprint(program.as_os_str()),
            options,
            extra: Vec::new(),
            index: None,
        })
    }

    fn detect_kernel(program: Option<&Path>) -> Result<Self, TargetError> {
        let program = kernel::find(program)?;
        let banner = first_line(&output_of(&program, &["--version"])?);
        if !banner.starts_with(kernel::PROGRAM) {
            return Err(TargetError::UnknownFamily { program, banner });
        }
        Ok(Self {
            name: "kernel".to_owned(),
            family: Family::Kernel,
            version: banner,
            command: vec![program.as_os_str().to_owned()],
            fingerprint: fingerprint(program.as_os_str()),
            options: BTreeSet::new(),
            extra: Vec::new(),
            index: None,
        })
    }

    fn detect_bitcoind(program: &Path) -> Result<Self, TargetError> {
        // Programs of before 0.9 know no `-version`, and begin to work when asked for it. All know `-?`, and pass over what they
        // do not know beside it; the first line is their name and version.
        let help = output_of(program, &["-?", "-help-debug"])?;
        let banner = first_line(&help);
        let Some(family) = Family::of_banner(&banner) else {
            return Err(TargetError::UnknownFamily { program: program.to_owned(), banner });
        };
        let number = version_number(&banner);
        Ok(Self {
            name: format!("{}-{number}", family.as_str()).trim_end_matches('-').to_owned(),
            family,
            version: banner,
            command: vec![program.as_os_str().to_owned()],
            fingerprint: fingerprint(program.as_os_str()),
            options: options_in_help(&help),
            extra: Vec::new(),
            index: None,
        })
    }

    /// The program alone.
    pub(crate) fn program(&self) -> &OsStr {
        self.command.first().map_or(OsStr::new(""), |program| program)
    }

    /// Refuses chains that the family does not know.
    pub(crate) fn check_chain(&self, chain: &str) -> Result<(), TargetError> {
        if self.family.takes(chain) {
            return self.index.as_ref().map_or(Ok(()), |index| index.check_chain(chain));
        }
        Err(TargetError::WrongChain {
            name: self.name.clone(),
            family: self.family.as_str(),
            chain: chain.to_owned(),
        })
    }

    /// The command line of the node for a fresh `datadir` and these ports.
    pub(crate) fn launch(
        &self,
        chain: &str,
        datadir: &Path,
        ports: &Ports,
        plan: &TargetsPlan,
    ) -> Launch {
        let (program, first_args) = match self.command.split_first() {
            Some((program, args)) => (program.clone(), args.to_vec()),
            None => (OsString::new(), Vec::new()),
        };
        let mut args = first_args;
        let subfolder = datadir.join("regtest");
        match self.family {
            Family::Assay => {
                args.extend(["--chain", chain, "--datadir"].map(OsString::from));
                args.push(datadir.as_os_str().to_owned());
                args.extend(["--rpc".into(), format!("127.0.0.1:{}", ports.rpc).into()]);
                args.extend(plan.assay.args.iter().map(OsString::from));
                if self.has_own_index() {
                    let electrum = format!("127.0.0.1:{}", ports.electrum);
                    args.extend(["--index", "--electrum", &electrum].map(OsString::from));
                    // The laboratory is one client that asks much; other servers' limits are off as well.
                    args.extend(["--electrum-rate", "0"].map(OsString::from));
                    args.extend(plan.assay.index_args.iter().map(OsString::from));
                }
            }
            Family::BitcoinCore | Family::BitcoinKnots | Family::Bchn => {
                args.extend(self.bitcoind_args(datadir, ports, plan));
            }
            // They take no blocks over RPC: [`Self::way`] refuses them.
            Family::Btcd | Family::Kernel => {}
        }
        args.extend(self.extra.iter().map(OsString::from));
        let (cookie, log) = (subfolder.join(".cookie"), subfolder.join("debug.log"));
        Launch { program, args, env: Vec::new(), cookie, node_log: Some(log) }
    }

    /// Whether the index is a part of the node's process.
    pub(crate) fn has_own_index(&self) -> bool {
        self.index.as_ref().is_some_and(|index| index.kind == IndexKind::Own)
    }

    /// Bytes on disk of the index in our node's folder, and of everything else in it.
    pub(crate) fn own_index_bytes(datadir: &Path) -> (u64, u64) {
        let index = datadir.join("regtest").join(OWN_INDEX_FOLDER);
        let index_bytes = crate::disk::folder_bytes(&index);
        (index_bytes, crate::disk::folder_bytes(datadir).saturating_sub(index_bytes))
    }

    fn bitcoind_args(&self, datadir: &Path, ports: &Ports, plan: &TargetsPlan) -> Vec<OsString> {
        let mut args = vec!["-regtest".into(), datadir_arg("-datadir=", datadir)];
        let (for_index, listens) =
            self.index.as_ref().map_or_else(Default::default, |index| index.needs(ports));
        let listen =
            if listens { format!("-bind=127.0.0.1:{}", ports.p2p) } else { "-listen=0".to_owned() };
        let must = [
            listen,
            "-connect=0".to_owned(),
            format!("-dbcache={}", plan.bitcoind.dbcache_mib),
            format!("-maxmempool={}", plan.bitcoind.maxmempool_mb),
        ];
        args.extend(rpc_args(ports).map(OsString::from));
        args.extend(must.map(OsString::from));
        if listens {
            // Without it a node that connects to nobody does not listen either.
            args.push("-listen=1".into());
        }
        args.extend(for_index.iter().filter(|arg| self.knows(arg)).map(OsString::from));
        let may = [
            "-maxtipage=3153600000",
            "-persistmempool=0",
            "-rpcthreads=8",
            "-rpcworkqueue=64",
            "-rpcservertimeout=86400",
        ];
        args.extend(self.known(&QUIET));
        args.extend(self.known(&may));
        if self.family == Family::Bchn {
            // The smallest it takes: zero is refused.
            args.push("-minrelaytxfee=0.00000001".into());
            if let Some(bytes) = plan.bitcoind.excessive_block_bytes {
                args.push(format!("-excessiveblocksize={bytes}").into());
            }
        }
        args.extend(plan.bitcoind.args.iter().map(OsString::from));
        args
    }

    /// Those of the arguments that the program lists in its help.
    fn known<'a>(&self, args: &'a [&'a str]) -> impl Iterator<Item = OsString> + use<'a, '_> {
        args.iter().filter(|arg| self.knows(arg)).map(OsString::from)
    }

    fn knows(&self, arg: &str) -> bool {
        let name = arg.trim_start_matches('-').split('=').next().unwrap_or_default();
        self.options.contains(name)
    }
}

/// For programs of the Bitcoin Core family, given only to those whose help lists them: older and newer ones refuse what they do
/// not know. A regtest node checks its whole mempool and block index after every change unless told otherwise; BCHN refuses to
/// serve after its expiry date unless told otherwise.
const QUIET: [&str; 10] = [
    "-disablewallet",
    "-logtimemicros=1",
    "-listenonion=0",
    "-dnsseed=0",
    "-fixedseeds=0",
    "-discover=0",
    "-checkmempool=0",
    "-checkblockindex=0",
    "-checkblockreads=0",
    "-expire=0",
];

/// How a program of the Bitcoin Core family is to serve RPC.
fn rpc_args(ports: &Ports) -> [String; 5] {
    [
        "-server".to_owned(),
        format!("-rpcport={}", ports.rpc),
        "-rpcbind=127.0.0.1".to_owned(),
        "-rpcallowip=127.0.0.1".to_owned(),
        "-printtoconsole=0".to_owned(),
    ]
}

/// An argument that ends with a path.
fn datadir_arg(flag: &str, datadir: &Path) -> OsString {
    let mut arg = OsString::from(flag);
    arg.push(datadir);
    arg
}

/// Folder of our index inside the folder of a chain.
const OWN_INDEX_FOLDER: &str = "electrum";

fn output_of(program: &Path, args: &[&str]) -> Result<String, TargetError> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| TargetError::Run { program: program.to_owned(), source })?;
    // btcd prints its help to standard error.
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// The names of the options in a help text of other programs: lines that begin, but for blanks and a short form, with two
/// dashes.
fn long_options_in_help(help: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let line = line.trim_start();
        let line = line.split_once(", ").map_or(line, |(short, long)| {
            if short.len() == 2 && short.starts_with('-') { long } else { line }
        });
        let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        line.strip_prefix("--").map(|rest| rest.chars().take_while(allowed).collect::<String>())
    };
    help.lines().filter_map(name).filter(|name| !name.is_empty()).collect()
}

pub(crate) fn fingerprint(program: &OsStr) -> Fingerprint {
    let Ok(metadata) = std::fs::metadata(program) else { return Fingerprint::default() };
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Fingerprint {
        bytes: metadata.len(),
        modified_unix_ms: modified.map_or(0, |since| since.as_millis() as u64),
    }
}

/// The names of the options in a help text: lines that start with two blanks and a dash. Deeper
/// lines belong to the descriptions.
fn options_in_help(help: &str) -> BTreeSet<String> {
    help.lines()
        .filter_map(|line| line.strip_prefix("  -"))
        .map(|rest| {
            let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
            rest.chars().take_while(is_name).collect::<String>()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

/// `31.99.0` out of `Bitcoin Core daemon version v31.99.0-unk`, fit for file names; what follows a
/// dash tells commits apart, and is in the version that results carry.
pub(crate) fn version_number(banner: &str) -> String {
    let word = banner
        .split_ascii_whitespace()
        .map(|word| word.trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '.';
    word.unwrap_or_default().chars().take_while(allowed).collect()
}

#[cfg(test)]
mod tests {
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

    fn example(family: Family, help: &str) -> Target {
        Target {
            name: "example".to_owned(),
            family,
            version: String::new(),
            command: vec!["bitcoind".into()],
            fingerprint: Fingerprint::default(),
            options: options_in_help(help),
            extra: Vec::new(),
            index: None,
        }
    }

    fn line(target: &Target, chain: &str) -> String {
        let plan = crate::plan::Plan::builtin("bch-scaling").expect("valid").target;
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
        let bchn = example(Family::Bchn, help);
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
        assert!(example(Family::Bchn, "").check_chain("bch-regtest").is_ok());
        assert!(example(Family::Bchn, "").check_chain("regtest").is_err());
        assert!(example(Family::BitcoinCore, "").check_chain("regtest").is_ok());
        assert!(example(Family::Assay, "").check_chain("bch-regtest").is_ok());
    }
}
