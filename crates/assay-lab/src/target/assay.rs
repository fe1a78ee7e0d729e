//! Our own node: this very program, or another build of it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use super::program::{fingerprint, first_line, long_options_in_help, output_of, version_number};
use super::way::SyncLaunch;
use super::{Family, Target, TargetError};
use crate::machine::disk::folder_bytes;
use crate::plan::{IndexKind, TargetsPlan};
use crate::process::Ports;

/// Option of `assay validate`: heights as lines of JSON.
const PROGRESS: &str = "progress";
/// Folder of our index inside the folder of a chain, and what earlier builds call it.
const OWN_INDEX_FOLDERS: [&str; 2] = ["indexes/electrum", "electrum"];

impl Target {
    /// Our own node; without a list it has all options that this version has.
    pub(super) fn ours(
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
            options: options.unwrap_or_else(|| BTreeSet::from([PROGRESS.to_owned()])),
            extra: Vec::new(),
            cores: Vec::new(),
            index: None,
        }
    }

    pub(super) fn detect_assay(program: &Path) -> Result<Self, TargetError> {
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

    /// The arguments of `assay node`, behind the command itself.
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
            // The laboratory is one client that asks much; other servers' limits are off as well.
            args.extend(["--electrum-rate", "0"].map(OsString::from));
            args.extend(plan.assay.index_args.iter().map(OsString::from));
        }
        args
    }

    /// Whether the index is a part of the node's process.
    pub(crate) fn has_own_index(&self) -> bool {
        self.index.as_ref().is_some_and(|index| index.kind == IndexKind::Own)
    }

    /// Whether an index of another program asks the node.
    pub(super) fn has_other_index(&self) -> bool {
        self.index.as_ref().is_some_and(|index| index.kind != IndexKind::Own)
    }

    /// Bytes on disk of the index in our node's folder, and of everything else in it.
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
        args
    }
}

/// What our program and the one around the kernel have in common.
pub(super) fn files_args(with: &SyncLaunch<'_>) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["validate".into(), "--blocks".into(), with.blocks.into()];
    args.extend(["--chain".into(), with.chain.into(), "--datadir".into(), with.datadir.into()]);
    args.push("--json".into());
    args
}
