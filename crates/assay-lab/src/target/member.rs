//! Starts targets as members of a network: peers of each other, without encryption, so that their traffic can be read.

use std::ffi::OsString;
use std::path::Path;

use super::bitcoind::{QUIET, rpc_args};
use super::program::datadir_arg;
use super::{Family, Target, TargetError, btcd};
use crate::process::{Launch, Ports};

/// Source addresses of observers: nodes announce transactions to them without delay and never disconnect them.
const OBSERVERS: &str = "127.99.0.0/16";

impl Target {
    /// Checks that the target can be a member.
    pub(crate) fn check_member(&self) -> Result<(), TargetError> {
        match self.family {
            Family::Kernel => Err(self.unable("it has no peers")),
            _ if self.index.is_some() => Err(self.unable("a network has nodes alone")),
            _ => self.check_chain("regtest"),
        }
    }

    pub(crate) fn makes_blocks(&self) -> bool {
        self.family != Family::Btcd
    }

    /// Command line of a member. Assay has the same as Bitcoin Core.
    pub(crate) fn launch_member(&self, datadir: &Path, ports: &Ports) -> Launch {
        if self.family == Family::Btcd {
            let log = datadir.join("logs").join("regtest").join("btcd.log");
            let args = self.btcd_member(datadir, ports);
            return self.launch_with(args, &datadir.join("regtest"), Some(log));
        }
        let more = [format!("-whitelist=noban@{OBSERVERS}"), "-debug=net".to_owned()];
        let mut args = self.core_args(datadir, ports, &more);
        if self.family == Family::Assay {
            args.push("-v2transport=0".into());
        } else {
            args.extend(self.known(&["-v2transport=0"]));
        }
        self.launch_core(args, datadir)
    }

    /// Command line of a node in a mempool benchmark: it trusts the laboratory as a peer, and its mempool is limited to
    /// `mempool_mb` MB. Assay has the same as Bitcoin Core.
    pub(crate) fn launch_mempool(&self, datadir: &Path, ports: &Ports, mempool_mb: u32) -> Launch {
        let more = [
            format!("-whitelist={}", self.trusted()),
            format!("-maxmempool={mempool_mb}"),
            "-persistmempool=0".to_owned(),
        ];
        self.launch_core(self.core_args(datadir, ports, &more), datadir)
    }

    /// Arguments of Core's command line for a node on regtest that accepts peers and connects to none.
    fn core_args(&self, datadir: &Path, ports: &Ports, more: &[String]) -> Vec<OsString> {
        let is_ours = self.family == Family::Assay;
        let mut args: Vec<OsString> = is_ours.then(|| "bitcoind".into()).into_iter().collect();
        args.extend(["-regtest".into(), datadir_arg("-datadir=", datadir)]);
        args.extend(rpc_args(ports).map(OsString::from));
        args.push("-listen=1".into());
        args.push(format!("-bind=127.0.0.1:{}", ports.p2p).into());
        args.push("-connect=0".into());
        args.extend(more.iter().map(OsString::from));
        if !is_ours {
            args.extend(self.known(&QUIET));
        }
        args
    }

    /// Checks that its mempool can be measured.
    pub(crate) fn check_mempool(&self) -> Result<(), TargetError> {
        let why = "mempools are measured of our node and the Bitcoin Core family, on regtest";
        match self.family {
            _ if self.index.is_some() => Err(self.unable("a mempool is measured without an index")),
            Family::Assay | Family::BitcoinCore | Family::BitcoinKnots => Ok(()),
            _ => Err(self.unable(why)),
        }
    }

    fn btcd_member(&self, datadir: &Path, ports: &Ports) -> Vec<OsString> {
        let mut args = vec![
            "--regtest".into(),
            datadir_arg("--configfile=", &datadir.join(btcd::SETTINGS)),
            datadir_arg("--datadir=", &datadir.join("data")),
            datadir_arg("--logdir=", &datadir.join("logs")),
            format!("--rpclisten=127.0.0.1:{}", ports.rpc).into(),
            format!("--listen=127.0.0.1:{}", ports.p2p).into(),
            format!("--whitelist={OBSERVERS}").into(),
        ];
        args.extend(self.known(&["--notls", "--nodnsseed", "--nocfilters"]));
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::delivery::tests::example;

    #[test]
    fn command_lines() {
        let core = "Options:\n\n  -disablewallet\n  -v2transport\n  -checkmempool=<n>\n";
        let btcd = "      --notls\n      --nocfilters  Disable\n      --nodnsseed  Do not\n";
        let line = |family, help| {
            let ports = Ports { rpc: 1, p2p: 2, ..Ports::default() };
            let launch = example(family, "", help).launch_member(Path::new("data"), &ports);
            let args: Vec<_> = launch.args.iter().map(|arg| arg.to_string_lossy()).collect();
            args.join(" ")
        };
        let lines =
            [line(Family::Assay, ""), line(Family::BitcoinCore, core), line(Family::Btcd, btcd)];
        insta::assert_snapshot!(lines.join("\n---\n"), @"
        bitcoind -regtest -datadir=data -server -rpcport=1 -rpcbind=127.0.0.1 -rpcallowip=127.0.0.1 -printtoconsole=0 -listen=1 -bind=127.0.0.1:2 -connect=0 -whitelist=noban@127.99.0.0/16 -debug=net -v2transport=0 -extra
        ---
        -regtest -datadir=data -server -rpcport=1 -rpcbind=127.0.0.1 -rpcallowip=127.0.0.1 -printtoconsole=0 -listen=1 -bind=127.0.0.1:2 -connect=0 -whitelist=noban@127.99.0.0/16 -debug=net -disablewallet -checkmempool=0 -v2transport=0 -extra
        ---
        --regtest --configfile=data/btcd.conf --datadir=data/data --logdir=data/logs --rpclisten=127.0.0.1:1 --listen=127.0.0.1:2 --whitelist=127.99.0.0/16 --notls --nodnsseed --nocfilters -extra
        ");
        let ports = Ports { rpc: 1, p2p: 2, ..Ports::default() };
        let launch = example(Family::Assay, "", "").launch_mempool(Path::new("data"), &ports, 5);
        let args: Vec<_> = launch.args.iter().map(|arg| arg.to_string_lossy()).collect();
        insta::assert_snapshot!(args.join(" "), @"bitcoind -regtest -datadir=data -server -rpcport=1 -rpcbind=127.0.0.1 -rpcallowip=127.0.0.1 -printtoconsole=0 -listen=1 -bind=127.0.0.1:2 -connect=0 -whitelist=noban,relay@127.0.0.1 -maxmempool=5 -persistmempool=0 -extra");
    }
}
