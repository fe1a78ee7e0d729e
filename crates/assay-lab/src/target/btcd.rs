//! btcd, which only accepts blocks from peers.

use std::ffi::OsString;
use std::path::Path;

use super::SyncLaunch;
use super::network::Network;
use super::program::{banner_of, datadir_arg, long_options_in_help, output_of, version_number};
use super::{Family, Target};

/// Dedicated settings file of btcd: the user's is ignored, and the password is not visible in the process list.
pub(super) const SETTINGS: &str = "btcd.conf";

impl Target {
    pub(super) fn detect_btcd(program: &Path) -> anyhow::Result<Self> {
        let banner = banner_of(program, "btcd version")?;
        let options = long_options_in_help(&output_of(program, &["--help"])?);
        let name = format!("btcd-{}", version_number(&banner));
        Ok(Self::of(Family::Btcd, (name, banner), vec![program.into()], options))
    }

    pub(super) fn btcd_args(&self, with: &SyncLaunch<'_>) -> Vec<OsString> {
        let sync = &with.plan.sync;
        let (network, _) = Network::of(with.chain).btcd.unwrap_or_default();
        let mut args: Vec<OsString> = network.map(OsString::from).into_iter().collect();
        args.extend([
            datadir_arg("--configfile=", &with.datadir.join(SETTINGS)),
            datadir_arg("--datadir=", &with.datadir.join("data")),
            datadir_arg("--logdir=", &with.datadir.join("logs")),
            format!("--rpclisten=127.0.0.1:{}", with.ports.rpc).into(),
            format!("--connect=127.0.0.1:{}", with.source).into(),
        ]);
        // Block filters are an index that the other targets lack.
        let may = ["--notls", "--nolisten", "--nodnsseed", "--blocksonly", "--nocfilters"];
        args.extend(self.known(&may));
        if !sync.assumevalid {
            args.extend(self.known(&["--nocheckpoints"]));
        }
        let cache = format!("--utxocachemaxsize={}", sync.dbcache_mib);
        args.extend(self.known(&[&cache]));
        args
    }
}
