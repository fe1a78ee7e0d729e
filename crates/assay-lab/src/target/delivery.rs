//! Delivery method of a target, and its command line for a sync.

use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

use anyhow::anyhow;

use super::bitcoind::CHAINSTATE;
use super::network::{Network, is_bitcoin};
use super::{DeliveryMethod, Family, SyncLaunch, Target, TargetError, btcd, kernel};
use crate::plan::Delivery;
use crate::process::Launch;

impl Target {
    /// Delivery method of this target for the plan's `by`.
    pub(crate) fn method(&self, by: Delivery) -> Result<DeliveryMethod, TargetError> {
        let unable = |why| Err(self.unable(why));
        let is_bitcoind =
            matches!(self.family, Family::BitcoinCore | Family::BitcoinKnots | Family::Bchn);
        match (by.is_sync(), self.family) {
            (false, Family::Btcd | Family::Kernel | Family::Engine) => {
                unable("it is a target of syncs alone, such as core-evolution")
            }
            (false, _) => Ok(DeliveryMethod::Rpc),
            (true, _) if self.index.is_some() => unable("an index cannot be measured in a sync"),
            (true, Family::Engine | Family::Kernel) => Ok(DeliveryMethod::Files),
            (true, Family::Assay) if !self.knows("-connect") => unable(
                "this build has no `assay bitcoind`; engine=PATH has it read the block files",
            ),
            (true, _) if is_bitcoind && self.is_older_than((0, 8)) => {
                Err(anyhow!("{}: -regtest needs version 0.8 or later", self.name).into())
            }
            (true, Family::Btcd) if by != Delivery::Peer => unable("btcd takes blocks from peers"),
            (true, _) if by == Delivery::ReindexChainstate && !self.knows(CHAINSTATE) => {
                unable("its help lists no -reindex-chainstate")
            }
            (true, _) => Ok(match by {
                Delivery::Rpc | Delivery::P2p | Delivery::Compact => DeliveryMethod::Rpc,
                Delivery::Peer => DeliveryMethod::Peer,
                Delivery::LoadBlock => DeliveryMethod::LoadBlock,
                Delivery::Reindex => DeliveryMethod::Reindex,
                Delivery::ReindexChainstate => DeliveryMethod::ReindexChainstate,
            }),
        }
    }

    /// Rejects chains that the node cannot sync: `assay bitcoind` supports those of Bitcoin.
    pub(crate) fn check_sync_chain(&self, by: Delivery, chain: &str) -> Result<(), TargetError> {
        if self.family != Family::Assay || !by.is_sync() || is_bitcoin(chain) {
            return Ok(());
        }
        let why = "our node syncs chains of Bitcoin so; name the target `engine` to have the block files read";
        Err(self.unable(why))
    }

    pub(crate) fn launch_sync(&self, method: DeliveryMethod, with: &SyncLaunch<'_>) -> Launch {
        let mut env = Vec::new();
        let network = Network::of(with.chain);
        let folder = with.datadir.join(network.folder);
        let mut node_log = None;
        let args = match (method, self.family) {
            (_, Family::Kernel) => kernel::sync_args(with),
            (_, Family::Btcd) => {
                let threads = with.plan.sync.threads;
                env.extend(threads.map(|count| ("GOMAXPROCS".into(), count.to_string().into())));
                let (_, name) = network.btcd.unwrap_or_default();
                node_log = Some(with.datadir.join("logs").join(name).join("btcd.log"));
                self.btcd_args(with)
            }
            (_, Family::Engine) => self.validate_args(with),
            (_, Family::Assay) => {
                node_log = Some(folder.join("debug.log"));
                // The command line of Bitcoin Core, so that both start alike.
                let mut args = vec![OsString::from("bitcoind")];
                args.extend(self.bitcoind_sync_args(method, with));
                args
            }
            (_, Family::BitcoinCore | Family::BitcoinKnots | Family::Bchn) => {
                node_log = Some(folder.join("debug.log"));
                self.bitcoind_sync_args(method, with)
            }
        };
        Launch { env, ..self.launch_with(args, &folder, node_log) }
    }

    /// Writes a cookie file for programs that create none, where others look for it.
    pub(crate) fn write_credentials(&self, launch: &Launch, datadir: &Path) -> io::Result<()> {
        let is_btcd = self.family == Family::Btcd;
        if !is_btcd && !self.is_older_than((0, 12)) {
            return Ok(());
        }
        let password = password()?;
        if let Some(folder) = launch.cookie.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&launch.cookie, format!("assay:{password}"))?;
        if is_btcd {
            let text = format!("[Application Options]\nrpcuser=assay\nrpcpass={password}\n");
            fs::write(datadir.join(btcd::SETTINGS), text)
        } else {
            let text = format!("rpcuser=assay\nrpcpassword={password}\n");
            fs::write(datadir.join("bitcoin.conf"), text)
        }
    }
}

/// Sixteen random bytes in hex.
fn password() -> io::Result<String> {
    let mut bytes = [0; 16];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::Plan;
    use crate::plan::SyncPlan;
    use crate::process::Ports;

    pub(in super::super) fn example(family: Family, version: &str, help: &str) -> Target {
        let options = match family {
            Family::Btcd | Family::Engine => crate::target::program::long_options_in_help(help),
            _ => crate::target::program::options_in_help(help),
        };
        let command = vec!["program".into(), "node".into()];
        let names = ("example".to_owned(), version.to_owned());
        let target = Target::of(family, names, command, options);
        Target { extra: vec!["-extra".to_owned()], ..target }
    }

    fn line(target: &Target) -> String {
        line_by(Delivery::Peer, target)
    }

    fn line_by(by: Delivery, target: &Target) -> String {
        line_of(by, target, SyncPlan { threads: Some(2), ..SyncPlan::default() }, "regtest", false)
    }

    fn line_of(by: Delivery, target: &Target, sync: SyncPlan, chain: &str, is_own: bool) -> String {
        let mut plan = Plan::builtin("bitcoin-scaling").expect("valid");
        plan.sync = sync;
        let with = SyncLaunch {
            chain,
            activation: &BTreeMap::from([("segwit".to_owned(), 107)]),
            plan: &plan,
            datadir: Path::new("data"),
            ports: &Ports { rpc: 1, ..Ports::default() },
            source: 2,
            blocks: Path::new("chain/blocks"),
            assumed: plan.sync.assumevalid.then_some("beef"),
            is_own,
            stop_height: is_own.then_some(9),
        };
        let method = target.method(by).expect("it can");
        let launch = target.launch_sync(method, &with);
        let env = launch
            .env
            .iter()
            .map(|(name, value)| format!("{}={} ", name.display(), value.display()));
        let args = launch.args.iter().map(|arg| format!("{} ", arg.display()));
        env.chain(args).collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn command_lines() {
        let old = "Bitcoin version v0.8.6-beta\n\nOptions:\n  -dbcache=<n>           Set cache\n  -par=<n>\n  -checkpoints\n";
        let new = "Options:\n\n  -assumevalid=<hex>\n       text\n\n  -blocksonly\n  -disablewallet\n  -testactivationheight=<name@height.>\n  -v2transport\n";
        let btcd = "      --addcheckpoint=   Add\n  -a, --addpeer=  Add\n      --notls\n      --nocfilters  Disable\n      --utxocachemaxsize=  The\n";
        let lines = [
            line(&example(Family::BitcoinCore, "Bitcoin version v0.8.6-beta", old)),
            line(&example(Family::BitcoinCore, "Bitcoin Core daemon version v31.99.0", new)),
            line(&example(Family::Btcd, "btcd version 0.24.2-beta", btcd)),
            line(&example(Family::Kernel, "assay-peer-kernel 0.1.0", "")),
            line(&example(
                Family::Engine,
                "Assay 0.1.0",
                "      --progress  Print\n      --test-activation-height <NAME@HEIGHT>\n",
            )),
            line(&example(Family::Engine, "Assay 0.0.9", "      --json  Print\n")),
            line(&Target::ours(
                Family::Assay,
                "assay",
                "0.1.0",
                vec!["assay".into(), "node".into()],
            )),
            line_by(Delivery::Reindex, &example(Family::Bchn, "Bitcoin Cash Node v28.0.1", "")),
        ];
        insta::assert_snapshot!(lines.join("\n---\n"));
    }

    #[test]
    fn assumes_scripts_where_supported() {
        let sync = || SyncPlan { assumevalid: true, ..SyncPlan::default() };
        let core = example(Family::BitcoinCore, "Bitcoin Core v30.0", "  -assumevalid=<hex>\n");
        let line = line_of(Delivery::Reindex, &core, sync(), "regtest", false);
        assert!(line.contains(" -assumevalid=beef") && !line.contains("-assumevalid=0"), "{line}");
        let engine = "      --assume-valid <HASH>\n      --progress  Print\n";
        let engine = example(Family::Engine, "Assay 0.1.0", engine);
        assert!(
            line_of(Delivery::Reindex, &engine, sync(), "regtest", false)
                .contains(" --assume-valid beef")
        );
        let old = example(Family::BitcoinCore, "Bitcoin Core v0.13.0", "");
        assert!(
            !line_of(Delivery::Reindex, &old, sync(), "regtest", false).contains("assumevalid")
        );
        assert!(!line_by(Delivery::Reindex, &engine).contains("assume"));
    }

    #[test]
    fn external_chains() {
        let two = || SyncPlan { threads: Some(2), ..SyncPlan::default() };
        let new = "Options:\n\n  -minimumchainwork=<hex>\n  -signet\n  -testnet4\n  -v2transport\n";
        let core = example(Family::BitcoinCore, "Bitcoin Core daemon version v31.99.0", new);
        let btcd = example(Family::Btcd, "btcd version 0.24.2-beta", "      --notls\n");
        let kernel = example(Family::Kernel, "assay-peer-kernel 0.1.0", "");
        let engine = example(Family::Engine, "Assay 0.1.0", "      --progress  Print\n");
        let lines = [
            line_of(Delivery::Peer, &core, two(), "main", true),
            line_of(Delivery::Reindex, &core, two(), "testnet4", true),
            line_of(Delivery::Peer, &btcd, two(), "main", true),
            line_of(Delivery::Peer, &btcd, two(), "signet", true),
            line_of(Delivery::Peer, &kernel, two(), "main", true),
            line_of(Delivery::Peer, &engine, two(), "test", true),
        ];
        insta::assert_snapshot!(lines.join("\n---\n"));
        assert!(core.check_chain("testnet4").is_ok() && btcd.check_chain("testnet4").is_err());
        let old = example(Family::BitcoinCore, "Bitcoin Core version v0.20.0", "");
        let error = old.check_chain("signet").expect_err("it came with 0.21").to_string();
        assert_eq!(error, "example (bitcoin-core) cannot take chain signet");
    }

    #[test]
    fn versions_and_ways() {
        let core = |version: &str| example(Family::BitcoinCore, version, "");
        assert!(core("Bitcoin version v0.11.2").is_older_than((0, 12)));
        assert!(!core("Bitcoin Core version v0.12.0").is_older_than((0, 12)));
        assert!(!core("Bitcoin Core daemon version v31.99.0-unk").is_older_than((0, 12)));
        let error = core("Bitcoin version v0.7.2").method(Delivery::Peer).expect_err("no regtest");
        assert_eq!(error.to_string(), "example: -regtest needs version 0.8 or later");
        let btcd = example(Family::Btcd, "btcd version 0.24.2", "");
        assert_eq!(btcd.method(Delivery::Peer).expect("it can"), DeliveryMethod::Peer);
        assert!(btcd.method(Delivery::Rpc).is_err() && btcd.method(Delivery::Reindex).is_err());
        let old = example(Family::Assay, "Assay 0.0.9", "");
        assert!(old.method(Delivery::Peer).is_err() && old.method(Delivery::Rpc).is_ok());
        let error =
            core("Bitcoin Core v0.10").method(Delivery::ReindexChainstate).expect_err("old");
        assert!(error.to_string().contains("no -reindex-chainstate"), "{error}");
        assert_eq!(
            core("Bitcoin Core v30.0").method(Delivery::Rpc).expect("it can"),
            DeliveryMethod::Rpc
        );
    }
}
