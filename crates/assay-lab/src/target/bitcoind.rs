//! Programs of the Bitcoin Core family: Bitcoin Core, Bitcoin Knots, Bitcoin Cash Node.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context as _;

use super::network::Network;
use super::program::{
    datadir_arg, first_line, options_in_help, output_of, unknown_family, version_number,
};
use super::{DeliveryMethod, SyncLaunch};
use super::{Family, Target};
use crate::builds::Cache;
use crate::chain::block_files;
use crate::plan::{BuiltSpec, TargetsPlan};
use crate::process::Ports;

/// Node program of a build.
const PROGRAM: &str = "bitcoind";

pub(super) const CHAINSTATE: &str = "-reindex-chainstate";

/// Moves a soft fork on a test chain; since Bitcoin Core 22.
const ACTIVATION: &str = "-testactivationheight";

/// Options of the Bitcoin Core family, passed only if the help lists them: other versions reject unknown options. By default a
/// regtest node checks its whole mempool and block index after every change, and BCHN stops serving after its expiry date.
pub(super) const QUIET: [&str; 10] = [
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

impl Family {
    /// Family by the version banner.
    pub(super) fn of_banner(banner: &str) -> Option<Self> {
        let small = banner.to_ascii_lowercase();
        if small.contains("bitcoin cash node") {
            Some(Self::Bchn)
        } else if small.contains("knots") {
            Some(Self::BitcoinKnots)
        } else if small.contains("bitcoin core") || small.starts_with("bitcoin version") {
            // Before 0.9 the banner contains the network's name.
            Some(Self::BitcoinCore)
        } else {
            None
        }
    }
}

impl Target {
    pub(super) fn detect_bitcoind(program: &Path) -> anyhow::Result<Self> {
        // Programs before 0.9 lack `-version` and would start. All support `-?` and ignore unknown options next to it; the first
        // line has name and version.
        let help = output_of(program, &["-?", "-help-debug"])?;
        let banner = first_line(&help);
        let Some(family) = Family::of_banner(&banner) else {
            return Err(unknown_family(program, &banner));
        };
        let name = format!("{}-{}", family.as_str(), version_number(&banner));
        let names = (name.trim_end_matches('-').to_owned(), banner);
        Ok(Self::of(family, names, vec![program.into()], options_in_help(&help)))
    }

    /// A program from the build cache. It is named after its revision, because builds of one release have the same version.
    pub(super) fn detect_built(spec: &BuiltSpec) -> anyhow::Result<Self> {
        let cache = Cache::of_user()
            .context("no folder of builds: set HOME, XDG_CACHE_HOME or ASSAY_BUILDS")?;
        let build = cache.find(&spec.revision, &spec.with, PROGRAM)?;
        let program = build.program(PROGRAM).unwrap_or(Path::new(PROGRAM));
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain = |text: &str| -> String {
            text.chars().map(|c| if is_plain(&c) { c } else { '-' }).collect()
        };
        let words = std::iter::once("core").chain([spec.revision.as_str()]);
        let words = words.chain(spec.with.iter().map(String::as_str));
        let name = words.map(plain).collect::<Vec<_>>().join("-");
        Ok(Self { name, ..Self::detect_bitcoind(program)? })
    }

    pub(super) fn bitcoind_args(
        &self,
        datadir: &Path,
        ports: &Ports,
        plan: &TargetsPlan,
    ) -> Vec<OsString> {
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
            // Without it a node without outbound peers does not listen either.
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
            // The smallest accepted value: zero is rejected.
            args.push("-minrelaytxfee=0.00000001".into());
            if let Some(bytes) = plan.bitcoind.excessive_block_bytes {
                args.push(format!("-excessiveblocksize={bytes}").into());
            }
        }
        args.extend(plan.bitcoind.args.iter().map(OsString::from));
        args
    }

    /// For the Bitcoin Core family, and for Assay with the same command line.
    pub(super) fn bitcoind_sync_args(
        &self,
        method: DeliveryMethod,
        with: &SyncLaunch<'_>,
    ) -> Vec<OsString> {
        let sync = &with.plan.sync;
        let network = Network::of(with.chain).core_option;
        let mut args: Vec<OsString> = network.map(OsString::from).into_iter().collect();
        args.push(datadir_arg("-datadir=", with.datadir));
        args.extend(rpc_args(with.ports).map(OsString::from));
        let must = ["-listen=0".to_owned(), format!("-dbcache={}", sync.dbcache_mib)];
        args.extend(must.map(OsString::from));
        match method {
            DeliveryMethod::Peer => args.push(format!("-connect=127.0.0.1:{}", with.source).into()),
            // No outbound connections.
            _ => args.push("-connect=0".into()),
        }
        match method {
            DeliveryMethod::LoadBlock => {
                let files = block_files(with.blocks).unwrap_or_default();
                args.extend(files.iter().map(|file| datadir_arg("-loadblock=", file)));
            }
            DeliveryMethod::Reindex => args.push("-reindex".into()),
            DeliveryMethod::ReindexChainstate => args.push(CHAINSTATE.into()),
            DeliveryMethod::Rpc | DeliveryMethod::Peer | DeliveryMethod::Files => {}
        }
        args.extend(self.known(&QUIET));
        // Unencrypted: the benchmark measures block handling, not the transport.
        args.extend(self.known(&["-blocksonly=1", "-v2transport=0", "-rpcservertimeout=86400"]));
        if sync.assumevalid {
            let block = with.assumed.map(|hash| format!("-assumevalid={hash}"));
            args.extend(self.known(block.as_deref().as_slice()));
        } else {
            // Below 0.14 only checkpoints skip scripts, and regtest has none.
            args.extend(self.known(&["-assumevalid=0", "-checkpoints=0"]));
        }
        if with.is_own {
            // A truncated chain has less work than the network's minimum, and would not be downloaded.
            args.extend(self.known(&["-minimumchainwork=0"]));
        }
        // Others use the activation heights of their regtest: the blocks are valid under both.
        if self.knows(ACTIVATION) {
            let fork = |(name, height)| format!("{ACTIVATION}={name}@{height}").into();
            args.extend(with.activation.iter().map(fork));
        }
        if let Some(threads) = sync.threads.filter(|_| self.knows("-par")) {
            args.push(format!("-par={threads}").into());
        }
        if let Some(bytes) = with.plan.target.bitcoind.excessive_block_bytes
            && self.family == Family::Bchn
        {
            args.push(format!("-excessiveblocksize={bytes}").into());
        }
        args.extend(with.plan.target.bitcoind.args.iter().map(OsString::from));
        args
    }

    /// True for a version of Bitcoin Core or Knots before `major.minor`. BCHN has its own numbering.
    pub(super) fn is_older_than(&self, wanted: (u32, u32)) -> bool {
        if !matches!(self.family, Family::BitcoinCore | Family::BitcoinKnots) {
            return false;
        }
        let number = version_number(&self.version);
        let mut parts = number.split('.').map_while(|part| part.parse::<u32>().ok());
        let found = (parts.next(), parts.next().unwrap_or(0));
        found.0.is_some_and(|major| (major, found.1) < wanted)
    }
}

/// RPC arguments of the Bitcoin Core family.
pub(super) fn rpc_args(ports: &Ports) -> [String; 5] {
    [
        "-server".to_owned(),
        format!("-rpcport={}", ports.rpc),
        "-rpcbind=127.0.0.1".to_owned(),
        "-rpcallowip=127.0.0.1".to_owned(),
        "-printtoconsole=0".to_owned(),
    ]
}
