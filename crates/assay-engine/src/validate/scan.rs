//! Searching block files for headers, and reporting what was found.

use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_store::{BlockFiles, BlockFilesError, BlockPlace, RecordRules, Search, StrayBytes};
use assay_wire::Header;

use super::branches::{BadHeader, Branches, Census, Gap};
use super::headers::{Chain, Entry};
use super::{FilePlace, InvalidBlock, MissingBlock, ScanReport, Stray, ValidateProgress};

/// Searches all files in parallel.
pub(crate) fn search(
    params: &ChainParams,
    files: &BlockFiles,
    threads: usize,
    progress: &dyn ValidateProgress,
) -> Result<Search<Entry>, BlockFilesError> {
    let rules = RecordRules {
        bytes_max: u32::try_from(params.block_bytes_max()).unwrap_or(u32::MAX),
        is_header: &|bytes| {
            let header = Header::parse(bytes);
            check_header(params, &header, &header.hash()).is_ok()
        },
    };
    let to_entry = |place, bytes: &[u8; Header::SIZE]| {
        let header = Header::parse(bytes);
        Entry::new(&header, header.hash(), place)
    };
    files.search(threads, &rules, &to_entry, &|done, total| progress.scanning(done, total))
}

/// Reports everything there is, once a branch has been chosen.
pub(crate) fn report(
    files: &BlockFiles,
    found: &Search<Entry>,
    branches: &Branches<'_>,
    chain: &Chain<'_>,
    assumed_height: u32,
) -> ScanReport {
    let Census { blocks, duplicates, stale_blocks, stale_tips, unconnected, gaps } =
        branches.census(chain);
    let place = |place: &BlockPlace| FilePlace::new(files, place);
    let stray = |stray: &StrayBytes| {
        let StrayBytes { file, offset, bytes, kind } = *stray;
        let path = files.files()[file as usize].path.clone();
        Stray { place: FilePlace { path, offset, bytes }, kind }
    };
    let missing = |gap: &Gap<'_>| MissingBlock {
        hash: gap.hash,
        child: gap.child.hash,
        child_place: place(&gap.child.place),
    };
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
        missing: gaps.iter().map(missing).collect(),
        padding_bytes: found.padding_bytes,
        strays: found.strays.iter().map(stray).collect(),
        stray_count: found.stray_count,
        bad_header: branches.bad_headers().first().map(|bad| invalid_header(files, bad)),
        assumed_height,
        elapsed_s: 0.0,
    }
}

/// A header that breaks a rule, as an invalid block.
pub(crate) fn invalid_header(files: &BlockFiles, bad: &BadHeader<'_>) -> InvalidBlock {
    InvalidBlock {
        hash: bad.entry.hash,
        height: bad.height,
        reason: bad.error.reject_reason().into_owned(),
        debug: bad.error.to_string(),
        place: FilePlace::new(files, &bad.entry.place),
        is_damaged: false,
    }
}
