//! Report of the contents of block files.

use assay_store::{BlockFiles, Search};

use super::ScanReport;
use crate::files::{Branches, Census, Chain, Entry, Stray, invalid_header, missing_blocks};

/// Creates the report for a chosen branch.
pub(crate) fn report(
    files: &BlockFiles,
    found: &Search<Entry>,
    branches: &Branches<'_>,
    chain: &Chain<'_>,
    assumed_height: u32,
) -> ScanReport {
    let Census { blocks, duplicates, stale_blocks, stale_tips, unconnected, gaps } =
        branches.census(chain);
    ScanReport {
        files: files.files().len(),
        bytes: files.bytes(),
        is_obfuscated: files.is_obfuscated(),
        blocks,
        duplicates,
        height: chain.height(),
        hash: chain.hash(chain.height()),
        stale_blocks,
        stale_branches: stale_tips,
        unconnected,
        missing: missing_blocks(branches.params(), files, &gaps),
        padding_bytes: found.padding_bytes,
        strays: found.strays.iter().map(|stray| Stray::new(files, stray)).collect(),
        stray_count: found.stray_count,
        bad_header: branches.bad_headers().first().map(|bad| invalid_header(files, bad)),
        assumed_height,
        elapsed_s: 0.0,
    }
}
