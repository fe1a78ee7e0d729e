//! btcd, which only accepts blocks from peers.

use std::ffi::OsString;
use std::path::Path;

use super::SyncLaunch;
use super::network::Network;
use super::program::{
    datadir_arg, fingerprint, first_line, long_options_in_help, output_of, version_number,
};
use super::{Family, Target, TargetError};

/// Dedicated settings file of btcd: the user's is ignored, and the password is not visible in the process list.
pub(super) const SETTINGS: &str = "btcd.conf";

impl Target {
    pub(super) fn detect_btcd(program: &Path) -> Result<Self, TargetError> {
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
            cores: Vec::new(),
            index: None,
        })
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
