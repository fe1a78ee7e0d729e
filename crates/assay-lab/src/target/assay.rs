//! Assay's node and engine: this program, or another build of it.

use std::ffi::OsString;
use std::path::Path;

use super::SyncLaunch;
use super::program::{banner_of, long_options_in_help, options_in_help, output_of, version_number};
use super::{Family, Target};
use crate::machine::disk::folder_bytes;
use crate::plan::{IndexKind, TargetsPlan};
use crate::process::Ports;

/// Options of this version: the first three of `assay validate`, the others of `assay bitcoind` for syncs.
const OPTIONS: [&str; 17] = [
    "assume-valid",
    "progress",
    "test-activation-height",
    "assumevalid",
    "blocksonly",
    "connect",
    "discover",
    "dnsseed",
    "fixedseeds",
    "listenonion",
    "logtimemicros",
    "minimumchainwork",
    "par",
    "reindex-chainstate",
    "rpcservertimeout",
    "testactivationheight",
    "v2transport",
];
/// Folder of the built-in index in a chain's folder: the current name and that of earlier builds.
const OWN_INDEX_FOLDERS: [&str; 2] = ["indexes/electrum", "electrum"];

impl Target {
    pub(super) fn ours(family: Family, name: &str, version: &str, command: Vec<OsString>) -> Self {
        let names = (name.to_owned(), format!("Assay {version}"));
        Self::of(family, names, command, OPTIONS.map(str::to_owned).into())
    }

    pub(super) fn detect_assay(family: Family, program: &Path) -> anyhow::Result<Self> {
        let banner = banner_of(program, "assay ")?;
        let version = banner.trim_start_matches("assay ");
        let options = match family {
            Family::Engine => long_options_in_help(&output_of(program, &["validate", "--help"])?),
            // Builds without it print a usage error, which lists no option in this form.
            _ => options_in_help(&output_of(program, &["bitcoind", "-help"])?),
        };
        let command = vec![program.as_os_str().to_owned(), "node".into()];
        let name = format!("{}-{}", family.as_str(), version_number(&banner));
        Ok(Self { options, ..Self::ours(family, &name, version, command) })
    }

    /// Arguments of `assay node` after the command itself.
    pub(super) fn assay_args(
        &self,
        chain: &str,
        datadir: &Path,
        ports: &Ports,
        plan: &TargetsPlan,
    ) -> Vec<OsString> {
        let mut args: Vec<OsString> = ["--chain", chain, "--datadir"].map(OsString::from).into();
        args.push(datadir.as_os_str().to_owned());
        args.extend(["--rpc".into(), format!("127.0.0.1:{}", ports.rpc).into()]);
        args.extend(plan.assay.args.iter().map(OsString::from));
        if self.has_own_index() {
            let electrum = format!("127.0.0.1:{}", ports.electrum);
            args.extend(["--index", "--electrum", &electrum].map(OsString::from));
            // The laboratory is a single client with many requests; limits of other servers are off as well.
            args.extend(["--electrum-rate", "0"].map(OsString::from));
            args.extend(plan.assay.index_args.iter().map(OsString::from));
        }
        args
    }

    /// True if the index is a part of the node's process.
    pub(crate) fn has_own_index(&self) -> bool {
        self.index.as_ref().is_some_and(|index| index.kind == IndexKind::Own)
    }

    /// True if an index of another program queries the node.
    pub(super) fn has_other_index(&self) -> bool {
        self.index.as_ref().is_some_and(|index| index.kind != IndexKind::Own)
    }

    /// Disk usage of the built-in index in the node's folder, and of everything else in it.
    pub(crate) fn own_index_bytes(datadir: &Path) -> (u64, u64) {
        let folders = OWN_INDEX_FOLDERS.map(|name| datadir.join("regtest").join(name));
        let index_bytes = folders.iter().map(|folder| folder_bytes(folder)).sum();
        (index_bytes, folder_bytes(datadir).saturating_sub(index_bytes))
    }

    pub(super) fn validate_args(&self, with: &SyncLaunch<'_>) -> Vec<OsString> {
        let sync = &with.plan.sync;
        let mut args = files_args(with);
        args.extend(["--db-cache".into(), sync.dbcache_mib.to_string().into()]);
        if let Some(threads) = sync.threads {
            args.extend(["--par".into(), threads.to_string().into()]);
        }
        args.extend(self.known(&["--progress"]));
        if let Some(hash) = with.assumed.filter(|_| self.knows("--assume-valid")) {
            args.extend(["--assume-valid".into(), hash.into()]);
        }
        if self.knows("--test-activation-height") {
            for (name, height) in with.activation {
                args.push("--test-activation-height".into());
                args.push(format!("{name}@{height}").into());
            }
        }
        args
    }
}

/// Common arguments of Assay's engine and the kernel wrapper.
pub(super) fn files_args(with: &SyncLaunch<'_>) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["validate".into(), "--blocks".into(), with.blocks.into()];
    args.extend(["--chain".into(), with.chain.into(), "--datadir".into(), with.datadir.into()]);
    args.push("--json".into());
    if let Some(height) = with.stop_height {
        args.extend(["--stop-height".into(), height.to_string().into()]);
    }
    args
}
