//! `assay run --from-snapshot`: checks the file once, before any target loads it.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use assay_engine::{ChainParams, SnapshotError, SnapshotHeader, SnapshotReader, digest_snapshot};
use assay_forge::Ledger;
use assay_lab::chain::ChainSnapshot;
use assay_node::SNAPSHOT_KEYS;

use crate::bar::Bar;

/// Reads the whole file and finds its block in the chain. Each program judges the coins itself; a
/// known wrong hash is reported here, before hours of loading.
pub(super) fn check(path: &Path, ledger: &Ledger) -> anyhow::Result<ChainSnapshot> {
    let params = crate::commands::chain(&ledger.chain.chain)?;
    let shown = path.display();
    let wrong = |error: &SnapshotError| match error.offset() {
        Some(offset) => anyhow::anyhow!("{shown}, byte offset {offset}: {error}"),
        None => anyhow::anyhow!("{shown}: {error}"),
    };
    let cannot_read = || format!("--from-snapshot: cannot read {shown}");
    let file = File::open(path).with_context(cannot_read)?;
    let bytes = file.metadata().with_context(cannot_read)?.len();
    let reader = match SnapshotReader::new(BufReader::with_capacity(1 << 20, file), SNAPSHOT_KEYS) {
        Ok(reader) => reader,
        Err(SnapshotError::Io(error)) if error.kind() == ErrorKind::UnexpectedEof => bail!(
            "{shown}, byte offset {bytes}: the file ends within the header of {} bytes",
            SnapshotHeader::SIZE
        ),
        Err(error) => return Err(wrong(&error)),
    };
    let header = *reader.header();
    if header.magic != params.magic {
        let known = ChainParams::NAMES.into_iter().filter_map(ChainParams::by_name);
        let of = known.into_iter().find(|known| known.magic == header.magic);
        let of = of.map_or_else(|| "an unknown chain".to_owned(), |known| known.name.to_owned());
        bail!(
            "{shown}, byte offset {}: a snapshot of {of}, and the block files are of {}",
            SnapshotHeader::MAGIC_OFFSET,
            params.name
        );
    }
    let base = header.base.to_string();
    let block = ledger.blocks.iter().find(|block| block.hash == base).with_context(|| {
        format!(
            "{shown}, byte offset {}: its block {base} is not in the chain of the block files up to height {}; give the block \
             files that it was made with, or a larger --stop-height",
            SnapshotHeader::BASE_OFFSET,
            ledger.tip.height
        )
    })?;
    let height = block.height;
    ensure!(
        height < ledger.tip.height,
        "{shown}: its block is at height {height}, where the chain ends; nothing is left to measure"
    );
    let bar = Bar::new("checking the snapshot [{bar:25}] {pos}/{len} coins  {per_sec}  ETA {eta}");
    let digest = digest_snapshot(reader, height, &|coins| bar.set(coins, header.coins));
    drop(bar);
    let digest = digest.map_err(|error| wrong(&error))?;
    if let Some(offset) = digest.unsorted {
        bail!(
            "{shown}, byte offset {offset}: this txid does not follow on the one before, one of them is damaged"
        );
    }
    let known = params.assume_utxo.iter().find(|known| known.block == header.base);
    if let Some(known) = known {
        ensure!(
            known.hash_serialized == digest.hash,
            "{shown}, after byte offset {}: all coins can be read, but their hash is {} where {} is known of height {height}; copy \
             the file again",
            SnapshotHeader::SIZE,
            digest.hash,
            known.hash_serialized
        );
    }
    Ok(ChainSnapshot {
        path: path.canonicalize().with_context(cannot_read)?,
        bytes,
        height,
        block: base,
        coins: digest.coins,
        hash: digest.hash.to_string(),
    })
}
